/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How far the clocks of ranks are apart. The members of a collective leave it together, so the
 * distance of two members' ends is that of their clocks. Recordings may begin at different calls:
 * of the ways to pair the calls in order, the one that keeps this distance equal is right.
 */
#ifndef NT_CLI_SYSTRACE_CLOCKS_H
#define NT_CLI_SYSTRACE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_CLOCKS_MAX_CALLS = 1024, /* of a member: the first ones are enough */
};

struct nt_clocks_call {
	uint64_t end_ns;
	uint64_t shape; /* equal on all members */
};

/* The calls of one rank in one communicator, in their order. */
struct nt_clocks_member {
	uint64_t group;
	uint32_t rank; /* from 0 to ranks - 1 */
	const struct nt_clocks_call *call;
	size_t calls;
};

struct nt_clock {
	int64_t ahead_ns; /* of the reference */
	bool known; /* linked to the reference by communicators whose ends fit */
};

/*
 * Fills clock[ranks]. `member` is reordered. Ends fit if three quarters of the distances differ by
 * at most `width_ns` from the typical one.
 */
void nt_clocks_find(struct nt_clocks_member *member, size_t members, size_t ranks,
		    uint32_t reference, uint64_t width_ns, struct nt_clock *clock);

#endif
