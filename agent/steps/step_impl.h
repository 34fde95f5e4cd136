/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is remembered of a rank's calls; for agent/step*.c alone. */
#ifndef NT_AGENT_STEPS_STEP_IMPL_H
#define NT_AGENT_STEPS_STEP_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/steps/call_period.h"
#include "agent/steps/step.h"

enum {
	NT_STEP_CALLS_MIN = 4, /* before the first search */
	NT_STEP_REFINE_LAST = NT_CALL_PERIOD_GAPS, /* steps until times no longer tell rounds */
	NT_KIND_SLOTS = 2 * NT_STEP_KINDS, /* of the hash from a call to its kind */
	NT_KIND_OTHER = NT_STEP_KINDS, /* the kind of what finds the table full */
	NT_KIND_NONE = UINT16_MAX,
};

struct nt_step_entry {
	uint16_t exact, loose; /* kinds: with the bytes, and without */
	/* Since the call before: the time, that outside of calls, and what was launched. */
	uint32_t gap_us, idle_us, launches;
};

/* What told that several periods make one step. The better replaces the worse. */
enum nt_step_grade {
	NT_GRADE_NONE,
	NT_GRADE_TIMES, /* differ a little from rank to rank */
	NT_GRADE_MARKER, /* times, and a small call that comes as seldom */
	NT_GRADE_COUNTS, /* launches: the same on all ranks, however slow anything is */
};

struct nt_step_kind {
	uint64_t hash; /* of what makes the kind, communicator included; 0: free */
	uint64_t stable; /* the same with the communicator's size for its name */
	uint64_t comm;
	uint64_t bytes; /* the most that a call of the kind moved */
	uint64_t total; /* calls so far */
	uint32_t in_ring; /* calls that the ring holds, as exact or as loose kind */
	bool barrier;
	/* Of the search that runs: */
	uint32_t count, first, last, hits, tries;
	bool alive; /* goes on to recur */
	/* Of the period found: */
	uint32_t in_pattern; /* calls of the kind within a period */
	uint32_t foreign; /* calls since the period was found, of a kind that is not in it */
	uint32_t unit, units; /* where it was met last, and how far from there: 0: irregular */
	uint32_t met;
};

struct nt_step {
	struct nt_step_kind kind[NT_STEP_KINDS + 1];
	uint16_t slot[NT_KIND_SLOTS]; /* hash → kind, open addressing; NT_KIND_NONE: free */
	uint32_t kinds, gone; /* kinds in use; of these not in the ring any more */

	struct nt_step_entry *ring;
	uint32_t cap, len;
	uint64_t calls; /* so far; the newest lies at (calls - 1) % cap */
	uint64_t next_search; /* when `calls` reaches it */
	uint16_t *view; /* scratch of the search: kinds of the calls that count */

	bool fits; /* the period found last repeats call for call */
	bool found, by_anchor, loose;
	uint64_t floor_bytes; /* under it a call does not count */
	uint32_t period;
	uint16_t anchor, previous; /* kinds: of the step's first call, and of the last call */
	uint32_t anchors, anchors_seen; /* in one step; since the last boundary, with its own */
	uint32_t since; /* calls that count since the last boundary */
	bool gap; /* calls before the next boundary were not observed */
	uint32_t bad; /* steps of a wrong length in a row */
	uint32_t aside; /* calls of steps in a row that were none */
	/* Before several of it were found to make a round: */
	uint32_t base_period, base_anchors;
	uint16_t base_anchor;
	uint16_t marker; /* small call that begins the round, or NT_KIND_NONE */
	uint32_t round; /* periods that make the step */
	enum nt_step_grade grade;
	uint32_t next_refine; /* when `steps` reaches it */
	uint64_t last_ns; /* entry of the last call */
	uint64_t busy_ns; /* end of what was waited for last */
	uint64_t idle_ns; /* outside of calls, since the last one */
	uint64_t launches; /* as the last call knew them */
	uint64_t begin_ns; /* of the last boundary; 0: none yet */
	uint64_t step_ns; /* of most steps, smoothed */
	/* the same before a gap, until steps like those are found again; or 0 */
	uint64_t before_ns;
	uint32_t steps; /* boundaries since the period was found */
	uint64_t number, found_count, unknown_kinds;
};

static inline uint32_t nt_step_fit(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* The i-th of the remembered calls, the oldest first. */
static inline const struct nt_step_entry *nt_step_entry_at(const struct nt_step *step, uint32_t i)
{
	return &step->ring[(step->calls - step->len + i) % step->cap];
}

/* Does a call of the kind count, where the largest that recurs are as large as they are? */
static inline bool nt_step_counts(const struct nt_step_kind *kind, uint64_t floor_bytes)
{
	return floor_bytes == 0 || (!kind->barrier && kind->bytes >= floor_bytes);
}

/* Looks for a period in the remembered calls, and follows it from now on. */
void nt_step_search(struct nt_step *step);
/*
 * At a call that begins a period: do several of what was found make one step? True: another step is
 * followed now.
 */
bool nt_step_refine(struct nt_step *step);
/* A step is the last `period` calls of the view. start: which of them begins it; period: any. */
void nt_step_settle(struct nt_step *step, uint32_t len, uint32_t period, uint32_t start, bool loose,
		    uint64_t floor_bytes);
/* No period is followed any more. */
void nt_step_forget(struct nt_step *step);

#endif
