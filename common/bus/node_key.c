/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/node_key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Messages are short: OpenSSL's EVP_MAC, which allocates several contexts for each, takes five
 * times as long as the hash itself, whose own functions allocate nothing.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "common/system/file.h"

enum {
	FILE_BYTES = 4096,
	TAG = 8 << 3 | 2, /* of the envelope's field 8, which has a length */
	PAYLOAD = NT_NODE_KEY_ID + NT_NODE_KEY_MAC,
	INNER_PAD = 0x36, /* of RFC 2104 */
	OUTER_PAD = 0x5c,
};

static const char node_label[] = "neutracer-node-v1";
static const char id_label[] = "neutracer-secret-v1";
static const char message_label[] = "neutracer-message-v1";
static const char line_label[] = "neutracer-node-key-v1";

_Static_assert(PAYLOAD < 0x80, "its length is one byte");

/* ---- HMAC ----------------------------------------------------------------------------------- */

struct signed_part {
	const void *data;
	size_t len;
};

/* A key, hashed in advance: each use copies it. Thread-safe. */
struct mac {
	SHA256_CTX inner, outer;
};

static void start_hash(SHA256_CTX *hash, const uint8_t block[SHA256_CBLOCK], uint8_t pad)
{
	uint8_t padded[SHA256_CBLOCK];

	for (size_t i = 0; i < sizeof(padded); i++)
		padded[i] = block[i] ^ pad;
	(void)SHA256_Init(hash);
	(void)SHA256_Update(hash, padded, sizeof(padded));
	OPENSSL_cleanse(padded, sizeof(padded));
}

static void set_key(struct mac *mac, const void *key, size_t len)
{
	uint8_t block[SHA256_CBLOCK] = {0};

	if (len > sizeof(block))
		(void)SHA256(key, len, block);
	else
		memcpy(block, key, len);
	start_hash(&mac->inner, block, INNER_PAD);
	start_hash(&mac->outer, block, OUTER_PAD);
	OPENSSL_cleanse(block, sizeof(block));
}

static void compute(const struct mac *mac, const struct signed_part *part, size_t parts,
		    uint8_t ret_mac[NT_NODE_KEY_MAC])
{
	SHA256_CTX hash = mac->inner;
	uint8_t inner[SHA256_DIGEST_LENGTH];

	for (size_t i = 0; i < parts; i++)
		(void)SHA256_Update(&hash, part[i].data, part[i].len);
	(void)SHA256_Final(inner, &hash);
	hash = mac->outer;
	(void)SHA256_Update(&hash, inner, sizeof(inner));
	(void)SHA256_Final(ret_mac, &hash);
}

/* Each part is delimited unambiguously: by a NUL, or by a length in front. */
static int sign_message(const struct mac *mac, const struct nt_bus_record *record,
			const void *message, size_t len, uint8_t ret_mac[NT_NODE_KEY_MAC])
{
	const char *topic = nt_topic_name(record->topic);
	const uint8_t key_len[] = {(uint8_t)(record->key_len >> 8), (uint8_t)record->key_len};
	const struct signed_part part[] = {
		{message_label, sizeof(message_label)},
		{topic, strlen(topic) + 1},
		{key_len, sizeof(key_len)},
		{record->key, record->key_len},
		{message, len},
	};

	if (record->key_len > NT_BUS_MAX_KEY)
		return -EMSGSIZE;
	compute(mac, part, sizeof(part) / sizeof(part[0]), ret_mac);
	return 0;
}

/* ---- hex ------------------------------------------------------------------------------------ */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_hex(const char *text, size_t len, uint8_t *to, size_t bytes)
{
	if (len != 2 * bytes)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		to[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static void print_hex(const uint8_t *data, size_t bytes, char *to)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < bytes; i++) {
		to[2 * i] = digits[data[i] >> 4];
		to[2 * i + 1] = digits[data[i] & 15];
	}
	to[2 * bytes] = '\0';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* ---- a node's key as text ------------------------------------------------------------------- */

static bool is_node(const char *node)
{
	size_t len = 0;

	for (; node[len]; len++) {
		if ((unsigned char)node[len] <= ' ')
			return false;
	}
	return len && len <= NT_NODE_KEY_NODE;
}

int nt_node_key_print(const struct nt_node_key *key, const char *node,
		      char ret_line[NT_NODE_KEY_LINE])
{
	char id[2 * NT_NODE_KEY_ID + 1], secret[2 * NT_NODE_KEY_MAC + 1];

	if (!is_node(node))
		return -EINVAL;
	print_hex(key->id, sizeof(key->id), id);
	print_hex(key->secret, sizeof(key->secret), secret);
	(void)snprintf(ret_line, NT_NODE_KEY_LINE, "%s %s %s %s", line_label, node, id, secret);
	OPENSSL_cleanse(secret, sizeof(secret));
	return 0;
}

static struct signed_part next_word(const char **at, const char *end)
{
	const char *begin;

	while (*at < end && is_blank(**at))
		(*at)++;
	begin = *at;
	while (*at < end && !is_blank(**at))
		(*at)++;
	return (struct signed_part){begin, (size_t)(*at - begin)};
}

static bool is_word(const struct signed_part *part, const char *word)
{
	return part->len == strlen(word) && memcmp(part->data, word, part->len) == 0;
}

int nt_node_key_parse(const char *text, size_t len, const char *node, struct nt_node_key *ret_key,
		      struct nt_node_key_error *ret_error)
{
	const char *at = text, *end = text + len;
	struct signed_part label = next_word(&at, end), name = next_word(&at, end);
	struct signed_part id = next_word(&at, end), secret = next_word(&at, end);
	struct nt_node_key key;

	if (!is_word(&label, line_label) || next_word(&at, end).len ||
	    !parse_hex(id.data, id.len, key.id, sizeof(key.id)) ||
	    !parse_hex(secret.data, secret.len, key.secret, sizeof(key.secret))) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text),
			       "not one line '%s NODE ID KEY', as \"neutracer node-key\" prints it",
			       line_label);
		return -EINVAL;
	}
	if (!is_word(&name, node)) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text),
			       "the key of node '%.*s', not of '%.80s'",
			       (int)(name.len < 80 ? name.len : 80), (const char *)name.data, node);
		return -EINVAL;
	}
	*ret_key = key;
	return 0;
}

int nt_node_key_read(const char *path, const char *node, struct nt_node_key *ret_key,
		     struct nt_node_key_error *ret_error)
{
	nt_autobuf struct nt_buf buf = {0};
	int r = nt_file_read(path, FILE_BYTES, &buf);

	ret_error->text[0] = '\0';
	if (r == 0)
		r = nt_node_key_parse((const char *)buf.data, buf.len, node, ret_key, ret_error);
	if (buf.data)
		OPENSSL_cleanse(buf.data, buf.len);
	return r;
}

/* ---- signing -------------------------------------------------------------------------------- */

struct nt_signer {
	struct mac mac;
	uint8_t id[NT_NODE_KEY_ID];
};

int nt_signer_new(const struct nt_node_key *key, struct nt_signer **ret_signer)
{
	nt_auto(nt_signer) struct nt_signer *signer = calloc(1, sizeof(*signer));

	if (!signer)
		return -ENOMEM;
	memcpy(signer->id, key->id, sizeof(signer->id));
	set_key(&signer->mac, key->secret, sizeof(key->secret));
	*ret_signer = nt_take(signer);
	return 0;
}

void nt_signer_free(struct nt_signer *signer)
{
	if (!signer)
		return;
	OPENSSL_cleanse(signer, sizeof(*signer));
	free(signer);
}

int nt_signer_sign(struct nt_signer *signer, const struct nt_bus_record *record, struct nt_buf *buf)
{
	uint8_t trailer[NT_NODE_KEY_TRAILER] = {TAG, PAYLOAD};
	int r;

	if (buf->len + sizeof(trailer) > NT_BUS_MAX_VALUE)
		return -EMSGSIZE;
	memcpy(trailer + 2, signer->id, sizeof(signer->id));
	r = sign_message(&signer->mac, record, buf->data, buf->len, trailer + 2 + NT_NODE_KEY_ID);
	return r < 0 ? r : nt_buf_append(buf, trailer, sizeof(trailer));
}

/* ---- secrets -------------------------------------------------------------------------------- */

struct nt_node_secrets {
	struct {
		struct mac mac;
		uint8_t id[NT_NODE_KEY_ID];
	} secret[NT_NODE_KEY_SECRETS];
	size_t count;
};

static void add_secret(struct nt_node_secrets *secrets, const uint8_t *data, size_t len)
{
	const struct signed_part label = {id_label, sizeof(id_label)};
	uint8_t hash[NT_NODE_KEY_MAC];
	struct mac mac;

	set_key(&mac, data, len);
	compute(&mac, &label, 1, hash);
	secrets->secret[secrets->count].mac = mac;
	memcpy(secrets->secret[secrets->count++].id, hash, NT_NODE_KEY_ID);
}

static int refuse_line(int line, const char *why, struct nt_node_key_error *ret_error)
{
	(void)snprintf(ret_error->text, sizeof(ret_error->text), "line %d: %s", line, why);
	return -EINVAL;
}

static int take_line(struct nt_node_secrets *secrets, const char *text, size_t len, int line,
		     struct nt_node_key_error *ret_error)
{
	uint8_t data[NT_NODE_KEY_SECRET_MAX];

	if (len % 2 || len / 2 < NT_NODE_KEY_SECRET_MIN || len / 2 > sizeof(data) ||
	    !parse_hex(text, len, data, len / 2))
		return refuse_line(line, "not a secret of 32 to 128 bytes in hex digits",
				   ret_error);
	if (secrets->count == NT_NODE_KEY_SECRETS)
		return refuse_line(line, "more than 4 secrets", ret_error);
	add_secret(secrets, data, len / 2);
	OPENSSL_cleanse(data, sizeof(data));
	return 0;
}

int nt_node_secrets_parse(const char *text, size_t len, struct nt_node_secrets **ret_secrets,
			  struct nt_node_key_error *ret_error)
{
	nt_auto(nt_node_secrets) struct nt_node_secrets *secrets = calloc(1, sizeof(*secrets));
	const char *at = text, *end = text + len;

	if (!secrets)
		return -ENOMEM;
	for (int line = 1; at < end; line++) {
		const char *next = memchr(at, '\n', (size_t)(end - at)), *stop = next ? next : end;
		struct signed_part word = next_word(&at, stop);
		int r = 0;

		if (word.len && *(const char *)word.data != '#')
			r = take_line(secrets, word.data, word.len, line, ret_error);
		if (r < 0)
			return r;
		if (word.len && *(const char *)word.data != '#' && next_word(&at, stop).len)
			return refuse_line(line, "something behind the secret", ret_error);
		at = next ? next + 1 : end;
	}
	if (!secrets->count)
		return refuse_line(1, "no secret in the file", ret_error);
	*ret_secrets = nt_take(secrets);
	return 0;
}

int nt_node_secrets_read(const char *path, struct nt_node_secrets **ret_secrets,
			 struct nt_node_key_error *ret_error)
{
	nt_autobuf struct nt_buf buf = {0};
	int r = nt_file_read(path, FILE_BYTES, &buf);

	ret_error->text[0] = '\0';
	if (r == 0)
		r = nt_node_secrets_parse((const char *)buf.data, buf.len, ret_secrets, ret_error);
	if (buf.data)
		OPENSSL_cleanse(buf.data, buf.len);
	return r;
}

void nt_node_secrets_free(struct nt_node_secrets *secrets)
{
	if (!secrets)
		return;
	OPENSSL_cleanse(secrets, sizeof(*secrets));
	free(secrets);
}

static void derive(const struct nt_node_secrets *secrets, size_t which, const char *node,
		   struct nt_node_key *ret_key)
{
	const struct signed_part part[] = {
		{node_label, sizeof(node_label)},
		{node, strlen(node)},
	};

	compute(&secrets->secret[which].mac, part, 2, ret_key->secret);
	memcpy(ret_key->id, secrets->secret[which].id, sizeof(ret_key->id));
}

int nt_node_secrets_derive(const struct nt_node_secrets *secrets, const char *node,
			   struct nt_node_key *ret_key)
{
	if (!is_node(node))
		return -EINVAL;
	derive(secrets, 0, node, ret_key);
	return 0;
}

/* ---- verifying ------------------------------------------------------------------------------ */

static bool is_valid(const struct nt_node_secrets *secrets, size_t which, const char *node,
		     const struct nt_bus_record *record, const uint8_t *mac)
{
	uint8_t wanted[NT_NODE_KEY_MAC];
	struct nt_node_key key;
	struct mac keyed;
	bool valid;

	derive(secrets, which, node, &key);
	set_key(&keyed, key.secret, sizeof(key.secret));
	valid = sign_message(&keyed, record, record->value, record->value_len - NT_NODE_KEY_TRAILER,
			     wanted) == 0 &&
		CRYPTO_memcmp(wanted, mac, sizeof(wanted)) == 0;
	OPENSSL_cleanse(&key, sizeof(key));
	OPENSSL_cleanse(&keyed, sizeof(keyed));
	return valid;
}

enum nt_signed nt_node_secrets_verify(const struct nt_node_secrets *secrets, const char *node,
				      const struct nt_bus_record *record)
{
	const uint8_t *trailer;
	size_t which = 0;

	if (record->value_len < NT_NODE_KEY_TRAILER)
		return NT_SIGNED_MISSING;
	trailer = (const uint8_t *)record->value + record->value_len - NT_NODE_KEY_TRAILER;
	if (trailer[0] != TAG || trailer[1] != PAYLOAD)
		return NT_SIGNED_MISSING;
	trailer += 2;
	while (which < secrets->count &&
	       memcmp(secrets->secret[which].id, trailer, NT_NODE_KEY_ID) != 0)
		which++;
	if (which == secrets->count)
		return NT_SIGNED_UNKNOWN;
	return is_valid(secrets, which, node, record, trailer + NT_NODE_KEY_ID) ? NT_SIGNED_VALID
										: NT_SIGNED_WRONG;
}
