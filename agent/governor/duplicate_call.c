/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/governor/duplicate_call.h"

#include "common/base/hash.h"
#include "common/system/clock.h"

/* The thread may be preempted between the two. */
#define DUPLICATE_NS (10 * NT_MILLISECOND)

bool nt_duplicate_calls_check(struct nt_duplicate_calls *duplicates,
			      const struct nt_event_call *call)
{
	struct nt_duplicate_call *last =
		&duplicates->of[nt_hash_mix(call->h.tid) % NT_DUPLICATE_CALLS];
	bool is_own = call->h.flags & NT_CALL_OWN;
	uint64_t words = nt_hash_bytes(NT_HASH_SEED, call->word, sizeof(call->word));

	if (last->tid == call->h.tid && last->row == call->h.row && last->words == words &&
	    last->is_own != is_own && call->h.entry_ns - last->entry_ns < DUPLICATE_NS) {
		last->tid = 0;
		return true;
	}
	*last = (struct nt_duplicate_call){
		.tid = call->h.tid,
		.row = call->h.row,
		.is_own = is_own,
		.words = words,
		.entry_ns = call->h.entry_ns,
	};
	return false;
}
