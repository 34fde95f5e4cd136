/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Equal calls in bursts: gradient buckets of one size are reduced one after the other, once a step. */
#ifndef NT_CLI_READERS_BURSTS_H
#define NT_CLI_READERS_BURSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/*
 * idle_ns[i]: time before the i-th call without any, for i from 1 on. Sets first[i] if the call is
 * the first of a burst, and *ret_calls to the number of calls of most bursts. 0: the calls come one
 * by one, or without a pattern. -ENOMEM.
 */
NT_MUST_CHECK int nt_bursts_find(const uint64_t *idle_ns, size_t calls, bool *first,
				 uint32_t *ret_calls);

#endif
