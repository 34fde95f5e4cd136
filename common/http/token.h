/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Access tokens of the API. Only their SHA-256 sums are in memory. */
#ifndef NT_COMMON_HTTP_TOKEN_H
#define NT_COMMON_HTTP_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_TOKEN_MAX_COUNT = 16, /* in one file */
	NT_TOKEN_MIN_BYTES = 16,
	NT_TOKEN_MAX_BYTES = 512,
	NT_TOKEN_NAME_BYTES = 64, /* a name and its NUL */
	NT_TOKEN_SUM_BYTES = 32, /* SHA-256 */
};

enum nt_token_scope {
	NT_TOKEN_NONE,
	NT_TOKEN_READ,
	NT_TOKEN_ADMIN,
};

struct nt_tokens;

/* A token that is valid. */
struct nt_token_holder {
	enum nt_token_scope scope;
	char name[NT_TOKEN_NAME_BYTES]; /* "line N" for a token without a name */
	unsigned char sum[NT_TOKEN_SUM_BYTES];
};

struct nt_token_error {
	char text[512]; /* one line */
};

/*
 * One token per line: TOKEN [SCOPE [NAME]], separated by blanks. The scope is admin (the default) or
 * read. A name has up to 63 letters, digits, '.', '_' and '-'. # starts a comment. Several tokens may
 * have one name. A missing file is created with one new token, mode 0600. -EINVAL for a malformed
 * file, one without a token or one that is not a regular file, or the file system's error.
 */
NT_MUST_CHECK int nt_tokens_open(const char *path, struct nt_tokens **ret_tokens,
				 struct nt_token_error *ret_error);
void nt_tokens_close(struct nt_tokens *tokens);
NT_DEFINE_AUTO(nt_tokens, nt_tokens_close)

/*
 * Whether these bytes are a token, compared in constant time. Checks once a second for changes of
 * the file; keeps the previous tokens if the new file is invalid. Thread-safe.
 */
bool nt_tokens_find(struct nt_tokens *tokens, const void *bearer, size_t len, uint64_t mono_ns,
		    struct nt_token_holder *ret_holder);
/* The same for a token of which only the sum is known. */
bool nt_tokens_find_sum(struct nt_tokens *tokens, const unsigned char sum[NT_TOKEN_SUM_BYTES],
			uint64_t mono_ns, struct nt_token_holder *ret_holder);

/*
 * Checks as above: whether the file is invalid, so that the previous tokens are still accepted.
 * ret_error, which may be NULL, then has the reason.
 */
bool nt_tokens_are_old(struct nt_tokens *tokens, uint64_t mono_ns,
		       struct nt_token_error *ret_error);

/* The first token of a file, for a client. The caller frees *ret_token. */
NT_MUST_CHECK int nt_token_read(const char *path, char **ret_token);

#endif
