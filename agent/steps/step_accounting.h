/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Own work of a rank by step: the evidence against culprits (docs/verdicts.md). Input: spans of the
 * boot clock inside communication calls, inside synchronising calls, and, where calls only enqueue,
 * spans of proven own work (agent/steps/stream_order.h). A step is measured after it ended.
 *
 * If communication blocks, own work is the step without all communication calls. Otherwise it is
 * the sum of the own spans, and only valid if those cover most of the launches.
 */
#ifndef NT_AGENT_STEPS_STEP_ACCOUNTING_H
#define NT_AGENT_STEPS_STEP_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

struct nt_accounting_span {
	uint64_t start_ns, end_ns;
};

enum {
	NT_ACCOUNTING_SPANS = 256, /* unmeasured spans of one kind; more are measured early */
	NT_ACCOUNTING_READY = 4,
};

struct nt_accounting_spans {
	struct nt_accounting_span span[NT_ACCOUNTING_SPANS]; /* ascending, disjoint */
	uint32_t count;
};

struct nt_accounting_step {
	uint64_t start_ns, end_ns;
	uint64_t own_ns; /* asynchronous: only own spans */
	uint64_t own_blocked_ns, host_ns, blocked_ns, comm_ns;
	uint64_t launches, covered_launches; /* all; those within own spans */
	uint32_t local_syncs; /* in own spans */
	uint64_t number; /* the caller's, from the boundary that began it */
	bool asynchronous;
	/*
	 * From agent/steps/gpu.h: own work by device clock, mean delay of its kernels, and what
	 * the step took on the device. 0: that is not known.
	 */
	bool has_gpu;
	uint64_t gpu_ns, gpu_lag_ns, gpu_step_ns;
	/* Own work is what its communication left, and the device's alone of it: see there. */
	bool gpu_by_communication;
	uint64_t gpu_queued_ns;
};

struct nt_accounting {
	bool asynchronous; /* communication calls only enqueue */
	/* Calls of several threads overlap: one can be reported after the end of a step inside
	 * it. A step is then measured when the next one has ended. */
	bool overlapping;
	struct nt_accounting_spans comm, sync, own;
	uint64_t start_ns; /* of the oldest step not delivered; 0: none has begun */
	uint64_t measured_ns; /* spans before this are in `sums` */
	uint64_t end_ns; /* of that step; 0: not ended */
	uint64_t end_launches, end_number;
	struct nt_accounting_step sums;
	uint64_t launches_begin, number;
	struct nt_accounting_step ready[NT_ACCOUNTING_READY];
	uint32_t ready_count;
	uint64_t late_ns; /* reported too late to be counted */
	uint64_t overrun; /* steps not fetched in time */
};

/* A zeroed struct nt_accounting is ready for use, and needs no release. */
void nt_accounting_comm(struct nt_accounting *work, uint64_t entry_ns, uint64_t ret_ns);
void nt_accounting_sync(struct nt_accounting *work, uint64_t entry_ns, uint64_t ret_ns);
void nt_accounting_own(struct nt_accounting *work, uint64_t start_ns, uint64_t end_ns,
		       uint64_t launches, uint32_t local_syncs);

/*
 * A step begins at boundary_ns, and the last one ends. launches: of the process so far; number: of
 * the new step.
 */
void nt_accounting_boundary(struct nt_accounting *work, uint64_t boundary_ns, uint64_t launches,
			    uint64_t number);
/* Step boundaries are lost: drops the current step. */
void nt_accounting_reset(struct nt_accounting *work);
/* All calls that entered before `ns` have been given. */
void nt_accounting_settle(struct nt_accounting *work, uint64_t ns);

/* The next measured step; false: none. */
bool nt_accounting_next(struct nt_accounting *work, struct nt_accounting_step *ret_step);

/* True if the step's own work is valid: for asynchronous calls, if it covers the launches. */
bool nt_accounting_is_covered(const struct nt_accounting_step *step);

#endif
