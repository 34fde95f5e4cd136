/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Long stalls in traces whose frames are whole steps: one rank is on its host for so long that live
 * it would be noted as a slow host, while the others wait. A checkpoint on one rank is that, too. It
 * is no fault: one step is no evidence of one.
 */
#ifndef NT_CLI_REPLAY_LONG_STALL_H
#define NT_CLI_REPLAY_LONG_STALL_H

#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "detect/thresholds/rules.h"

enum {
	NT_LONG_STALL_MAX = 8, /* ranks that are noted */
};

struct nt_long_stall {
	uint32_t rank, node; /* node: as in the frame */
	uint32_t steps; /* with such a stall */
	/* The longest of them; host work of the rank, and the median of the others. */
	uint64_t since_ns, until_ns;
	double host_ns, peers_ns;
};

/* Finds up to NT_LONG_STALL_MAX ranks, in the order of time. -ENOMEM. */
NT_MUST_CHECK int nt_long_stall_find(const struct nt_trace *trace, const struct nt_rules *rules,
				     struct nt_long_stall *ret_stall, size_t *ret_stalls);

#endif
