/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Detection of repeated events. While a file has shared and own links, a call that makes an event
 * at its entry alone makes one through each, in direct succession. The second is dropped. If links
 * of one kind come or go between two calls, the second event of one may be taken for the first of
 * the next. Each call still counts once.
 */
#ifndef NT_AGENT_GOVERNOR_REPEAT_H
#define NT_AGENT_GOVERNOR_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

enum {
	NT_REPEATS = 1024, /* threads; on a collision a repeat may be missed */
};

/* The last call of a thread that made an event at its entry alone. */
struct nt_repeat {
	uint32_t tid; /* 0: none */
	uint16_t row;
	bool is_own;
	uint64_t words, entry_ns;
};

/* A zeroed one is ready for use. */
struct nt_repeats {
	struct nt_repeat of[NT_REPEATS]; /* by thread hash; a collision replaces the entry */
};

/* True: the event repeats the last one of its thread. Events of a thread must be in order. */
bool nt_repeats_take(struct nt_repeats *repeats, const struct nt_event_call *call);

#endif
