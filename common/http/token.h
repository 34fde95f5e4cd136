/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens that open the API. In memory there are only their SHA-256 sums. */
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
};

enum nt_token_scope {
	NT_TOKEN_NONE,
	NT_TOKEN_READ,
	NT_TOKEN_ADMIN,
};

struct nt_tokens;

struct nt_token_error {
	char text[256]; /* one line */
};

/*
 * A token a line, then perhaps a blank and its scope, admin (the default) or read; # starts a
 * comment. A file that is missing is made, mode 0600, with one new token. -EINVAL for a file that
 * is not of this form or holds no token, or what the file system says.
 */
NT_MUST_CHECK int nt_tokens_open(const char *path, struct nt_tokens **ret_tokens,
				 struct nt_token_error *ret_error);
void nt_tokens_close(struct nt_tokens *tokens);
NT_DEFINE_AUTO(nt_tokens, nt_tokens_close)

/*
 * What the bearer of these bytes may do; in time that does not depend on how wrong they are. Looks
 * once a second whether the file has changed, and keeps the tokens that it had where the new file
 * is not right. From any thread.
 */
enum nt_token_scope nt_tokens_check(struct nt_tokens *tokens, const void *bearer, size_t len,
				    uint64_t mono_ns);

/* Looks as above: is the file not right, so that tokens hold which it may no longer name? */
bool nt_tokens_are_old(struct nt_tokens *tokens, uint64_t mono_ns);

/* The first token of a file as text, for a client. The caller frees *ret_token. */
NT_MUST_CHECK int nt_token_read(const char *path, char **ret_token);

#endif
