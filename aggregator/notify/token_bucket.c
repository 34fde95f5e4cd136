/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/token_bucket.h"

#include "common/system/clock.h"

struct nt_token_bucket nt_token_bucket_of(uint32_t per_minute)
{
	/* In any minute: the burst, and what is refilled meanwhile. */
	uint64_t refilled = per_minute - per_minute / 4;

	if (!per_minute)
		return (struct nt_token_bucket){.interval_ns = 0};
	return (struct nt_token_bucket){
		.interval_ns = NT_MINUTE / refilled,
		.capacity = per_minute / 4 ? per_minute / 4 : 1,
	};
}

uint64_t nt_token_bucket_left(const struct nt_token_bucket *bucket, uint64_t now_ns)
{
	uint64_t missing;

	if (!bucket->interval_ns)
		return UINT64_MAX;
	if (bucket->full_ns <= now_ns)
		return bucket->capacity;
	missing = (bucket->full_ns - now_ns + bucket->interval_ns - 1) / bucket->interval_ns;
	return missing < bucket->capacity ? bucket->capacity - missing : 0;
}

bool nt_token_bucket_take(struct nt_token_bucket *bucket, uint64_t now_ns)
{
	if (!nt_token_bucket_left(bucket, now_ns))
		return false;
	if (bucket->full_ns < now_ns)
		bucket->full_ns = now_ns;
	bucket->full_ns += bucket->interval_ns;
	return true;
}

uint64_t nt_token_bucket_next_ns(const struct nt_token_bucket *bucket, uint64_t now_ns)
{
	if (nt_token_bucket_left(bucket, now_ns))
		return now_ns;
	return bucket->full_ns - (bucket->capacity - 1) * bucket->interval_ns;
}
