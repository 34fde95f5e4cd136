/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What context switches add to a rank's sums while they are observed in slices: between two slices
 * the rates of the last one are taken to go on. It has no clock and makes no system call.
 */
#ifndef NT_AGENT_SYSTEM_SLICE_ESTIMATE_H
#define NT_AGENT_SYSTEM_SLICE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/host_event.h"

enum {
	NT_SWITCH_SUMS = sizeof(struct nt_host_times) / sizeof(uint64_t) + 2 * NT_HOST_WAITS,
};

/* Sums that grow at context switches alone, in any fixed order. */
struct nt_switch_sums {
	uint64_t of[NT_SWITCH_SUMS];
};

struct nt_slice_estimate {
	struct nt_switch_sums start, last,
		extra; /* at the begin of a slice; in the last; between all */
	uint64_t slice_ns; /* length of the last slice; 0: none has ended */
};

/* gap_ns: since the last slice ended. */
void nt_slice_estimate_begin(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			     uint64_t gap_ns);
void nt_slice_estimate_end(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			   uint64_t slice_ns);

/* Adds the estimates to the sums. gap_ns: since the last slice ended; 0: within a slice. */
void nt_slice_estimate_add(const struct nt_slice_estimate *estimate, uint64_t gap_ns,
			   struct nt_switch_sums *sums);

#endif
