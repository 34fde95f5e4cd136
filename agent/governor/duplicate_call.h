/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Detection of duplicate events. While a file has shared and own links, a call that makes an event
 * at its entry alone makes one through each, in direct succession. The second is dropped. If links
 * of one kind come or go between two calls, the second event of one may be taken for the first of
 * the next. Each call still counts once.
 */
#ifndef NT_AGENT_GOVERNOR_DUPLICATE_CALL_H
#define NT_AGENT_GOVERNOR_DUPLICATE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

enum {
	NT_DUPLICATE_CALLS = 1024, /* threads; on a collision a duplicate may be missed */
};

/* The last call of a thread that made an event at its entry alone. */
struct nt_duplicate_call {
	uint32_t tid; /* 0: none */
	uint16_t row;
	bool is_own;
	uint64_t words, entry_ns;
};

/* A zeroed one is ready for use. */
struct nt_duplicate_calls {
	/* by thread hash; a collision replaces the entry */
	struct nt_duplicate_call of[NT_DUPLICATE_CALLS];
};

/* True: the event duplicates the last one of its thread. Events of a thread must be in order. */
bool nt_duplicate_calls_check(struct nt_duplicate_calls *duplicates,
			      const struct nt_event_call *call);

#endif
