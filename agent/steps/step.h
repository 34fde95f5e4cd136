/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the step of a training job in the sequence of communication calls of one rank: its step is
 * the period of that sequence. Nothing is configured, and nothing of the job is known but the calls.
 *
 * A step begins at the entry of the call whose kind is the rarest within the period (a gradient
 * reduction rather than one of a thousand tensor-parallel ones); ranks that make the same calls
 * therefore put the boundary at the same place. Calls that move next to nothing (a loss that is
 * averaged now and then) and barriers are overlooked, unless there is nothing else.
 */
#ifndef NT_AGENT_STEPS_STEP_H
#define NT_AGENT_STEPS_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_STEP_RING = 8192, /* calls remembered: the longest period is a third of it */
	NT_STEP_KINDS = 512, /* different calls told apart; the rest is one kind, and counted */
};

struct nt_step_call {
	uint64_t comm; /* any number that tells the communicators of this rank apart */
	uint32_t comm_size;
	enum nt_op op;
	uint64_t bytes;
	uint32_t type;
	uint64_t entry_ns;
	uint64_t ret_ns; /* of a call that blocks; 0: it only enqueues */
	uint64_t launches; /* of the process so far */
};

struct nt_step_info {
	bool found; /* a period is known */
	bool is_unsure; /* it was lost with a gap: what was found since is shorter than before */
	bool by_anchor; /* the order of calls varies: only the anchor recurs regularly */
	uint32_t period; /* calls that count, from step to step */
	uint64_t anchor_comm; /* comm of the call that begins a step */
	uint64_t anchor_kind; /* hash of its operation, bytes, type and communicator size */
	uint32_t anchors; /* calls of that kind in one step */
	uint64_t step_ns; /* about, of most steps; 0: none was measured yet */
	uint64_t number; /* of the step that began last: calls of the anchor so far ÷ anchors */
	uint64_t found_count; /* how often a period was found so far */
	uint64_t unknown_kinds; /* calls over the cap of kinds */
};

struct nt_step;

NT_MUST_CHECK int nt_step_new(struct nt_step **ret_step);
/* Memory that it takes now; as the like of others. */
size_t nt_step_bytes(const struct nt_step *step);
void nt_step_free(struct nt_step *step);
NT_DEFINE_AUTO(nt_step, nt_step_free)

/* Takes the next call of the rank. True: a step begins at its entry. */
bool nt_step_call(struct nt_step *step, const struct nt_step_call *call);

/* From entry to return the rank waits for others: that time is nobody's rhythm. */
void nt_step_wait(struct nt_step *step, uint64_t entry_ns, uint64_t ret_ns);

/*
 * Calls were not observed since the last one. The period is kept where the next call of its anchor begins
 * a step whatever came before, else it is looked for anew: what is much shorter than the step was is then
 * taken for a part of it, and begins no step.
 */
void nt_step_gap(struct nt_step *step);

void nt_step_info(const struct nt_step *step, struct nt_step_info *ret_info);

#endif
