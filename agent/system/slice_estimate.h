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

/* What is shorter says nothing about a rate. */
#define NT_SLICE_LEAST_NS 50000000ULL

/* Sums that grow at context switches alone, in any fixed order. */
struct nt_switch_sums {
	uint64_t of[NT_SWITCH_SUMS];
};

/* Who took the CPU for how long. */
struct nt_taken {
	uint64_t ns; /* of all, also of those without a place below */
	struct nt_host_taker taker[NT_HOST_TAKERS]; /* tgid 0: free */
};

struct nt_slice_estimate {
	struct nt_switch_sums start, last,
		extra; /* at the begin of a slice; in the last; between all */
	uint64_t start_clock_ns; /* when the slice began, or this thread in it */
	uint64_t slice_ns; /* length of the last slice; 0: none has ended */
	struct nt_taken slice, last_taken, unread; /* in this slice; in the last; not read yet */
	uint64_t gap_read_ns; /* part of the gap that readings have had */
};

/* gap_ns: since the last slice ended. clock_ns: time in which switches were observed. */
void nt_slice_estimate_begin(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			     uint64_t gap_ns, uint64_t clock_ns);
/* Of one that was too short the rates before remain. */
void nt_slice_estimate_end(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			   uint64_t clock_ns);
/* Another thread: its sums begin anew, what was taken from the process is still to be read. */
void nt_slice_estimate_reset(struct nt_slice_estimate *estimate);

/* Adds the estimates to the sums. gap_ns: since the last slice ended; 0: within a slice. */
void nt_slice_estimate_add(const struct nt_slice_estimate *estimate, uint64_t gap_ns,
			   struct nt_switch_sums *sums);

/*
 * What was taken since the last call. To be called before a slice begins or ends, so that it is in the
 * right one.
 */
void nt_slice_estimate_take(struct nt_slice_estimate *estimate,
			    const struct nt_host_taker taker[NT_HOST_TAKERS]);
/* What was taken since the last reading, with the estimate of the gap. */
void nt_slice_estimate_read(struct nt_slice_estimate *estimate, uint64_t gap_ns,
			    struct nt_taken *ret_taken);

#endif
