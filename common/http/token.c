/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/token.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/base/ascii.h"
#include "common/system/clock.h"
#include "common/system/file.h"

enum {
	FILE_MAX_BYTES = 16 << 10,
	NEW_TOKEN_BYTES = 32, /* of randomness */
};

struct token_set {
	struct nt_token_holder token[NT_TOKEN_MAX_COUNT];
	unsigned int line[NT_TOKEN_MAX_COUNT]; /* of the file */
	size_t count;
};

struct nt_tokens {
	char *path;
	pthread_mutex_t lock; /* protects everything below */
	struct token_set set;
	struct timespec modified;
	ino_t inode;
	bool is_settled; /* read later than in the second of its last change */
	uint64_t looked_ns;
	bool is_old; /* the file is invalid or missing, and the set is an earlier one */
	struct nt_token_error problem; /* why, if it is */
};

/* The word at *at, which is moved behind it. */
static size_t next_word(const char **at, const char *end, const char **ret_word)
{
	while (*at < end && isblank((unsigned char)**at))
		(*at)++;
	*ret_word = *at;
	while (*at < end && !isspace((unsigned char)**at))
		(*at)++;
	return (size_t)(*at - *ret_word);
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(text, word, len);
}

/* Reads the next word unless the rest of the line is empty or a comment. */
static bool has_word(const char **at, const char *end, const char **ret_word, size_t *ret_len)
{
	*ret_len = next_word(at, end, ret_word);
	return *ret_len && (*ret_word)[0] != '#';
}

static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	}
	return len < NT_TOKEN_NAME_BYTES;
}

/* The line that has this token already, or 0. */
static unsigned int find_line(const struct token_set *set, const unsigned char *sum)
{
	for (size_t i = 0; i < set->count; i++)
		if (!memcmp(set->token[i].sum, sum, NT_TOKEN_SUM_BYTES))
			return set->line[i];
	return 0;
}

/* NULL, or the defect of the line; *ret_repeated: the line whose token it repeats. */
static const char *parse_line(const char *line, const char *end, unsigned int number,
			      struct token_set *set, unsigned int *ret_repeated)
{
	struct nt_token_holder token = {.scope = NT_TOKEN_ADMIN};
	const char *secret, *word;
	size_t secret_len, len;

	if (!has_word(&line, end, &secret, &secret_len))
		return NULL;
	if (secret_len < NT_TOKEN_MIN_BYTES || secret_len > NT_TOKEN_MAX_BYTES)
		return "a token has 16 to 512 characters";
	if (!nt_ascii_is_visible(secret, secret_len))
		return "a token has printable characters only";
	(void)snprintf(token.name, sizeof(token.name), "line %u", number);
	if (has_word(&line, end, &word, &len)) {
		if (is_word(word, len, "read"))
			token.scope = NT_TOKEN_READ;
		else if (!is_word(word, len, "admin"))
			return "a scope is read or admin";
		if (has_word(&line, end, &word, &len)) {
			if (!is_name(word, len))
				return "a name has up to 63 letters, digits, '.', '_' and '-'";
			(void)snprintf(token.name, sizeof(token.name), "%.*s", (int)len, word);
			if (has_word(&line, end, &word, &len))
				return "there is more on a line than a token, its scope and its "
				       "name";
		}
	}
	if (set->count == NT_TOKEN_MAX_COUNT)
		return "there are more than 16 tokens";
	SHA256((const unsigned char *)secret, secret_len, token.sum);
	*ret_repeated = find_line(set, token.sum);
	if (*ret_repeated)
		return "the token is repeated";
	set->line[set->count] = number;
	set->token[set->count++] = token;
	return NULL;
}

static int parse_tokens(const char *text, size_t len, struct token_set *ret_set,
			struct nt_token_error *ret_error)
{
	struct token_set set = {.count = 0};
	const char *end = text + len;

	for (unsigned int number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		unsigned int repeated = 0;
		const char *wrong = parse_line(text, line_end, number, &set, &repeated);

		if (repeated) {
			(void)snprintf(ret_error->text, sizeof(ret_error->text),
				       "line %u: the token of line %u is repeated", number,
				       repeated);
			return -EINVAL;
		}
		if (wrong) {
			(void)snprintf(ret_error->text, sizeof(ret_error->text), "line %u: %s",
				       number, wrong);
			return -EINVAL;
		}
		text = line_end + 1;
	}
	if (!set.count) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text), "it holds no token");
		return -EINVAL;
	}
	*ret_set = set;
	return 0;
}

static void erase(struct nt_buf *buf)
{
	if (buf->data)
		OPENSSL_cleanse(buf->data, buf->cap);
	nt_buf_release(buf);
}

static int explain(struct nt_token_error *error, int r)
{
	(void)snprintf(error->text, sizeof(error->text), "%s", strerrordesc_np(-r));
	return r;
}

/* The set is unchanged on failure. */
static int load(struct nt_tokens *tokens, struct nt_token_error *ret_error)
{
	__attribute__((cleanup(erase))) struct nt_buf text = {0};
	struct stat st;
	int r;

	if (stat(tokens->path, &st))
		return explain(ret_error, -errno);
	/* Requests wait meanwhile: a pipe would block them. */
	if (!S_ISREG(st.st_mode)) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text), "not a regular file");
		return -EINVAL;
	}
	r = nt_file_read(tokens->path, FILE_MAX_BYTES, &text);
	if (r < 0)
		return explain(ret_error, r);
	r = parse_tokens((const char *)text.data, text.len, &tokens->set, ret_error);
	if (r < 0)
		return r;
	/* A second change within a tick of the file system's clock has the same time. */
	tokens->is_settled = nt_clock_real_ns() / NT_SECOND > (uint64_t)st.st_mtim.tv_sec + 1;
	tokens->modified = st.st_mtim;
	tokens->inode = st.st_ino;
	return 0;
}

/* If two processes start at once, one creates the file and both read it. */
static int make_file(const char *path)
{
	unsigned char random[NEW_TOKEN_BYTES];
	char line[2 * NEW_TOKEN_BYTES + 2];
	int r;

	r = nt_file_make_parent(path, 0755);
	if (r < 0)
		return r;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(line + 2 * i, 3, "%02x", random[i]);
	line[sizeof(line) - 2] = '\n';
	r = nt_file_create(path, 0600, line, sizeof(line) - 1);
	OPENSSL_cleanse(random, sizeof(random));
	OPENSSL_cleanse(line, sizeof(line));
	return r == -EEXIST ? 0 : r;
}

int nt_tokens_open(const char *path, struct nt_tokens **ret_tokens,
		   struct nt_token_error *ret_error)
{
	nt_auto(nt_tokens) struct nt_tokens *tokens = calloc(1, sizeof(*tokens));
	struct nt_token_error error;
	int r;

	ret_error->text[0] = '\0';
	if (!tokens)
		return -ENOMEM;
	pthread_mutex_init(&tokens->lock, NULL);
	tokens->path = strdup(path);
	if (!tokens->path)
		return -ENOMEM;

	r = load(tokens, &error);
	if (r == -ENOENT) {
		r = make_file(path);
		if (r < 0) {
			(void)snprintf(ret_error->text, sizeof(ret_error->text),
				       "token file '%s' cannot be made: %s", path,
				       strerrordesc_np(-r));
			return r;
		}
		r = load(tokens, &error);
	}
	if (r < 0) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text),
			       "token file '%.350s': %.140s", path, error.text);
		return r;
	}
	*ret_tokens = nt_take(tokens);
	return 0;
}

void nt_tokens_close(struct nt_tokens *tokens)
{
	if (!tokens)
		return;
	pthread_mutex_destroy(&tokens->lock);
	free(tokens->path);
	free(tokens);
}

static void look_again(struct nt_tokens *tokens, uint64_t mono_ns)
{
	struct stat st;

	if (mono_ns - tokens->looked_ns < NT_SECOND)
		return;
	tokens->looked_ns = mono_ns;
	if (tokens->is_settled && stat(tokens->path, &st) == 0 &&
	    st.st_mtim.tv_sec == tokens->modified.tv_sec &&
	    st.st_mtim.tv_nsec == tokens->modified.tv_nsec && st.st_ino == tokens->inode)
		tokens->is_old = false;
	else /* possibly half-written: the old tokens stay valid until it is complete */
		tokens->is_old = load(tokens, &tokens->problem) < 0;
}

bool nt_tokens_find_sum(struct nt_tokens *tokens, const unsigned char sum[NT_TOKEN_SUM_BYTES],
			uint64_t mono_ns, struct nt_token_holder *ret_holder)
{
	bool found = false;

	pthread_mutex_lock(&tokens->lock);
	look_again(tokens, mono_ns);
	for (size_t i = 0; i < tokens->set.count; i++) {
		if (CRYPTO_memcmp(sum, tokens->set.token[i].sum, NT_TOKEN_SUM_BYTES) != 0)
			continue;
		*ret_holder = tokens->set.token[i];
		found = true;
	}
	pthread_mutex_unlock(&tokens->lock);
	return found;
}

bool nt_tokens_find(struct nt_tokens *tokens, const void *bearer, size_t len, uint64_t mono_ns,
		    struct nt_token_holder *ret_holder)
{
	unsigned char sum[SHA256_DIGEST_LENGTH];

	if (len > NT_TOKEN_MAX_BYTES)
		return false;
	SHA256(bearer, len, sum);
	return nt_tokens_find_sum(tokens, sum, mono_ns, ret_holder);
}

bool nt_tokens_are_old(struct nt_tokens *tokens, uint64_t mono_ns, struct nt_token_error *ret_error)
{
	bool old;

	pthread_mutex_lock(&tokens->lock);
	look_again(tokens, mono_ns);
	old = tokens->is_old;
	if (old && ret_error)
		*ret_error = tokens->problem;
	pthread_mutex_unlock(&tokens->lock);
	return old;
}

int nt_token_read(const char *path, char **ret_token)
{
	__attribute__((cleanup(erase))) struct nt_buf text = {0};
	const char *at, *end, *word;
	int r;

	r = nt_file_read(path, FILE_MAX_BYTES, &text);
	if (r < 0)
		return r;
	at = (const char *)text.data;
	end = at + text.len;
	while (at < end) {
		size_t len = next_word(&at, end, &word);

		if (len && word[0] != '#') {
			char *token = strndup(word, len);

			if (!token)
				return -ENOMEM;
			*ret_token = token;
			return 0;
		}
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			break;
		at++;
	}
	return -EINVAL;
}
