/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rate limit of authentication failures per address and minute. The table has a fixed size. */
#ifndef NT_COMMON_HTTP_LIMITER_H
#define NT_COMMON_HTTP_LIMITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	NT_LIMITER_SLOTS = 1024,
};

struct nt_limiter {
	pthread_mutex_t lock;
	uint32_t max; /* failures of one address in a minute */
	uint64_t seed; /* random, so that clients cannot choose which table slot they share */
	struct {
		uint64_t address; /* hash; an IPv6 address counts with its /64 */
		uint64_t since_ns;
		uint32_t failures;
	} slot[NT_LIMITER_SLOTS];
};

void nt_limiter_init(struct nt_limiter *limiter, uint32_t max);
void nt_limiter_destroy(struct nt_limiter *limiter);

/*
 * Counts a failure. False if the address is over the limit; *ret_wait_s is then the remaining time.
 */
bool nt_limiter_allow(struct nt_limiter *limiter, const struct sockaddr *address, uint64_t mono_ns,
		      uint32_t *ret_wait_s);

#endif
