/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a rank did by itself, step by step: the culprit's evidence (docs/verdicts.md). Times come as
 * spans of the boot clock: inside communication calls, inside synchronising calls, and, where calls
 * only enqueue, spans of proven own work (agent/steps/stream_order.h). A step is measured when it has ended.
 *
 * Where communication blocks, own work is the step without every communication call. Where it does
 * not, own work is the sum of the own spans, and only holds if those cover most of the launches.
 */
#ifndef NT_AGENT_STEPS_STEP_ACCOUNTING_H
#define NT_AGENT_STEPS_STEP_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

struct nt_accounting_span {
	uint64_t start_ns, end_ns;
};

enum {
	NT_ACCOUNTING_SPANS = 256, /* unmeasured spans of one sort; more are measured early */
	NT_ACCOUNTING_READY = 4,
};

struct nt_accounting_spans {
	struct nt_accounting_span span[NT_ACCOUNTING_SPANS]; /* ascending, disjoint */
	uint32_t count;
};

struct nt_accounting_step {
	uint64_t start_ns, end_ns;
	uint64_t own_ns; /* asynchronous: only what the own spans prove */
	uint64_t own_blocked_ns, host_ns, blocked_ns, comm_ns;
	uint64_t launches, covered_launches; /* all; those that own spans hold */
	uint32_t local_syncs; /* in own spans */
	uint64_t number; /* the caller's, as given with the boundary that began it */
	bool asynchronous;
	/* Of agent/steps/gpu.h: own work by the device's clock, and how long its kernels waited, mean. */
	bool has_gpu;
	uint64_t gpu_ns, gpu_lag_ns;
};

struct nt_accounting {
	bool asynchronous; /* communication calls only enqueue */
	/* Calls of several threads overlap, and one may be reported after a step's end that lies
	 * within it: a step is then measured when the next one has ended. */
	bool overlapping;
	struct nt_accounting_spans comm, sync, own;
	uint64_t start_ns; /* of the oldest step not delivered; 0: none has begun */
	uint64_t measured_ns; /* spans before this are in `sums` */
	uint64_t end_ns; /* of that step; 0: it goes on */
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
 * A step begins at the time, and with it the last one ends. launches: of the process so far;
 * number: of the step that begins.
 */
void nt_accounting_boundary(struct nt_accounting *work, uint64_t boundary_ns, uint64_t launches,
			    uint64_t number);
/* Steps are no longer known: what has not ended is dropped. */
void nt_accounting_reset(struct nt_accounting *work);
/* Nothing that entered before `ns` is still to come. */
void nt_accounting_settle(struct nt_accounting *work, uint64_t ns);

/* The next step that has ended and is measured; false: none. */
bool nt_accounting_next(struct nt_accounting *work, struct nt_accounting_step *ret_step);

/* Does the step's own time hold? (For asynchronous calls: it covers the launches.) */
bool nt_accounting_is_covered(const struct nt_accounting_step *step);

#endif
