/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls that made an event twice. While a file has links of all processes and links of one, a call that
 * makes an event at its entry alone makes one of each, one right after the other. The second is dropped.
 * Where links of one kind come or go between two calls, the second event of the one may be taken for the
 * first of the next: each call still counts once.
 */
#ifndef NT_AGENT_GOVERNOR_REPEAT_H
#define NT_AGENT_GOVERNOR_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

enum {
	NT_REPEATS = 1024, /* threads; where two fall together a call may be taken twice */
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
	struct nt_repeat of[NT_REPEATS]; /* by a hash of the thread; a later one replaces it */
};

/* True: the event is the second of its call. Events of a thread come in order. */
bool nt_repeats_take(struct nt_repeats *repeats, const struct nt_event_call *call);

#endif
