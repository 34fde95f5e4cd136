/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/limiter.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/hash.h"
#include "common/system/clock.h"

void nt_limiter_init(struct nt_limiter *limiter, uint32_t max)
{
	memset(limiter, 0, sizeof(*limiter));
	pthread_mutex_init(&limiter->lock, NULL);
	limiter->max = max;
	if (getrandom(&limiter->seed, sizeof(limiter->seed), 0) < 0)
		limiter->seed = nt_clock_mono_ns();
}

void nt_limiter_destroy(struct nt_limiter *limiter)
{
	pthread_mutex_destroy(&limiter->lock);
}

static uint64_t address_hash(const struct sockaddr *address, uint64_t seed)
{
	const unsigned char *byte = NULL;
	uint64_t hash;
	size_t len = 0;

	if (address && address->sa_family == AF_INET) {
		byte = (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
		len = 4;
	} else if (address && address->sa_family == AF_INET6) {
		byte = (const void *)&((const struct sockaddr_in6 *)(const void *)address)
			       ->sin6_addr;
		/* An IPv4 address inside an IPv6 one counts whole. */
		len = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)byte) ? 16 : 8;
	}
	hash = nt_hash_bytes(seed ^ NT_HASH_SEED, byte, len);
	return hash ^ hash >> 32;
}

bool nt_limiter_allow(struct nt_limiter *limiter, const struct sockaddr *address, uint64_t mono_ns,
		      uint32_t *ret_wait_s)
{
	uint64_t hash = address_hash(address, limiter->seed);
	size_t i = hash % NT_LIMITER_SLOTS;
	bool allowed;

	pthread_mutex_lock(&limiter->lock);
	if (limiter->slot[i].address != hash || mono_ns - limiter->slot[i].since_ns >= NT_MINUTE) {
		limiter->slot[i].address = hash;
		limiter->slot[i].since_ns = mono_ns;
		limiter->slot[i].failures = 0;
	}
	allowed = limiter->slot[i].failures < limiter->max;
	if (allowed)
		limiter->slot[i].failures++;
	else
		*ret_wait_s = (uint32_t)((NT_MINUTE - (mono_ns - limiter->slot[i].since_ns)) /
					 NT_SECOND) +
			      1;
	pthread_mutex_unlock(&limiter->lock);
	return allowed;
}
