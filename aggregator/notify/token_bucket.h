/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rate limit: at most so many messages in any minute, of which a quarter may come at once. */
#ifndef NT_AGGREGATOR_NOTIFY_TOKEN_BUCKET_H
#define NT_AGGREGATOR_NOTIFY_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct nt_token_bucket {
	uint64_t interval_ns; /* one token; 0: no limit */
	uint64_t capacity;
	uint64_t full_ns; /* when it is full again, if nothing is taken */
};

/* per_minute 0: no limit. */
struct nt_token_bucket nt_token_bucket_of(uint32_t per_minute);

/* Tokens at now_ns, a time that does not go back; UINT64_MAX: no limit. */
uint64_t nt_token_bucket_left(const struct nt_token_bucket *bucket, uint64_t now_ns);
/* False: there is none. */
bool nt_token_bucket_take(struct nt_token_bucket *bucket, uint64_t now_ns);
/* When there is one; not before now_ns. */
uint64_t nt_token_bucket_next_ns(const struct nt_token_bucket *bucket, uint64_t now_ns);

#endif
