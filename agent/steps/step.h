/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Step detection: the step of a training job is the period in the sequence of communication calls
 * of one rank. Nothing is configured, and the calls are the only input.
 *
 * A step begins at the entry of the call whose kind is the rarest within the period. That is a
 * gradient reduction, not one of a thousand tensor-parallel ones. Ranks that make the same calls
 * thus agree on it. Calls with little data (an occasionally averaged loss) and barriers are
 * ignored, unless there is nothing else.
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
	NT_STEP_KINDS = 512, /* distinct kinds of calls; the rest is one kind, and counted */
};

struct nt_step_call {
	uint64_t comm; /* any number that identifies the communicator within this rank */
	uint32_t comm_size;
	enum nt_op op;
	uint64_t bytes;
	uint32_t type;
	uint64_t entry_ns;
	uint64_t ret_ns; /* of a blocking call; 0: it only enqueues */
	uint64_t launches; /* of the process so far */
};

struct nt_step_info {
	bool found; /* a period is known */
	bool is_unsure; /* lost at a gap; the one found since is shorter */
	bool by_anchor; /* the order of calls varies: only the anchor recurs regularly */
	uint32_t period; /* counted calls per step */
	uint64_t anchor_comm; /* comm of the call that begins a step */
	uint64_t anchor_kind; /* hash of its operation, bytes, type and communicator size */
	uint32_t anchors; /* calls of that kind in one step */
	uint64_t step_ns; /* approximately, of most steps; 0: none measured yet */
	uint64_t number; /* of the step that began last: calls of the anchor so far ÷ anchors */
	uint64_t found_count; /* how often a period was found so far */
	uint64_t unknown_kinds; /* calls over the cap of kinds */
};

struct nt_step;

NT_MUST_CHECK int nt_step_new(struct nt_step **ret_step);
/* Memory in use, in bytes. */
size_t nt_step_bytes(const struct nt_step *step);
void nt_step_free(struct nt_step *step);
NT_DEFINE_AUTO(nt_step, nt_step_free)

/* Adds the rank's next call. True: a step begins at its entry. */
bool nt_step_call(struct nt_step *step, const struct nt_step_call *call);

/* The rank waits for others from entry to return: excluded from the search for periods. */
void nt_step_wait(struct nt_step *step, uint64_t entry_ns, uint64_t ret_ns);

/*
 * Calls since the last one were not observed. The period is kept if the next call of its anchor
 * begins a step in any case, else it is searched anew. A period much shorter than the step was is
 * then taken for a part of it, and begins no step.
 */
void nt_step_gap(struct nt_step *step);

void nt_step_info(const struct nt_step *step, struct nt_step_info *ret_info);

#endif
