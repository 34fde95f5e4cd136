/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A webhook delivery: one POST, signed as specified by Standard Webhooks. */
#ifndef NT_AGGREGATOR_NOTIFY_WEBHOOK_H
#define NT_AGGREGATOR_NOTIFY_WEBHOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "common/base/cleanup.h"

enum {
	NT_WEBHOOK_MAX_SECRET = 512, /* bytes */
	NT_WEBHOOK_SIGNATURE = 64, /* holds "v1," and the base64 of a SHA-256 */
};

struct nt_webhook_key {
	unsigned char bytes[NT_WEBHOOK_MAX_SECRET];
	size_t len; /* 0: messages are not signed */
};

/* Parses "whsec_" and base64, or any other text as raw bytes. NULL: no key. -EINVAL. */
NT_MUST_CHECK int nt_webhook_key_read(const char *secret, struct nt_webhook_key *ret_key);

/* HMAC-SHA256 over "id.time.body": "v1,…". */
void nt_webhook_sign(const struct nt_webhook_key *key, const char *id, uint64_t time_s,
		     const char *body, size_t body_len, char text[NT_WEBHOOK_SIGNATURE]);

struct nt_webhook_post {
	const char *url, *id, *body;
	size_t body_len;
	const struct nt_webhook_key *key;
	uint64_t time_s; /* real time of this attempt */
	uint64_t connect_timeout_ns, total_timeout_ns;
	const atomic_bool *abort; /* true aborts the attempt */
};

/*
 * NT_ATTEMPT_TAKEN: 2xx. NT_ATTEMPT_LATER: no response, 408, 429, 5xx. Needs curl_global_init().
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_webhook_send(const struct nt_webhook_post *post,
				  struct nt_attempt *ret_answer);

#endif
