/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internal state of the step detection; only for agent/steps/step*.c. */
#ifndef NT_AGENT_STEPS_STEP_IMPL_H
#define NT_AGENT_STEPS_STEP_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/steps/call_period.h"
#include "agent/steps/step.h"

enum {
	NT_STEP_CALLS_MIN = 4, /* before the first search */
	NT_STEP_REFINE_LAST = NT_CALL_PERIOD_GAPS, /* steps after which times are not used */
	NT_KIND_SLOTS = 2 * NT_STEP_KINDS, /* of the hash table from call to kind */
	NT_KIND_OTHER = NT_STEP_KINDS, /* the kind of calls beyond the table */
	NT_KIND_NONE = UINT16_MAX,
};

struct nt_step_entry {
	uint16_t exact, loose; /* kinds: with the bytes, and without */
	/* Since the previous call: time, time outside calls, launches. */
	uint32_t gap_us, idle_us, launches;
};

/* Evidence that several periods make one step. Stronger evidence replaces weaker. */
enum nt_step_grade {
	NT_GRADE_NONE,
	NT_GRADE_TIMES, /* differ a little from rank to rank */
	NT_GRADE_MARKER, /* times, and a small call of the same frequency */
	NT_GRADE_COUNTS, /* launches: equal on all ranks, at any speed */
};

struct nt_step_kind {
	uint64_t hash; /* of all that defines the kind, with the communicator; 0: free */
	uint64_t stable; /* the same with the communicator's size in place of its id */
	uint64_t comm;
	uint64_t bytes; /* of the largest call of the kind */
	uint64_t total; /* calls so far */
	uint32_t in_ring; /* calls that the ring holds, as exact or as loose kind */
	bool barrier;
	/* Of the current search: */
	uint32_t count, first, last, hits, tries;
	bool alive; /* still recurs */
	/* Of the period found: */
	uint32_t in_pattern; /* calls of the kind within a period */
	uint32_t foreign; /* calls since the period was found, if the kind is not in it */
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
	uint64_t floor_bytes; /* smaller calls do not count */
	uint32_t period;
	uint16_t anchor, previous; /* kinds: of the step's first call, and of the last call */
	uint32_t anchors, anchors_seen; /* in one step; since the last boundary, with its own */
	uint32_t since; /* calls that count since the last boundary */
	bool gap; /* calls before the next boundary were not observed */
	uint32_t bad; /* steps of a wrong length in a row */
	uint32_t aside; /* calls of steps in a row that were none */
	uint32_t strange; /* calls in a row that count and are not in the period */
	/* Before several periods were found to make a round: */
	uint32_t base_period, base_anchors;
	uint16_t base_anchor;
	uint16_t marker; /* small call that begins the round, or NT_KIND_NONE */
	uint32_t round; /* periods that make the step */
	enum nt_step_grade grade;
	uint32_t next_refine; /* when `steps` reaches it */
	uint64_t last_ns; /* entry of the last call */
	uint64_t busy_ns; /* end of what was waited for last */
	uint64_t idle_ns; /* outside of calls, since the last one */
	uint64_t launches; /* as of the last call */
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

/* True if calls of the kind count, by the size of the largest that recur. */
static inline bool nt_step_counts(const struct nt_step_kind *kind, uint64_t floor_bytes)
{
	return floor_bytes == 0 || (!kind->barrier && kind->bytes >= floor_bytes);
}

/* Searches the remembered calls for a period, and follows it. */
void nt_step_search(struct nt_step *step);
/*
 * At a call that begins a period: checks whether several periods make one step. True: the step that
 * is followed has changed.
 */
bool nt_step_refine(struct nt_step *step);
/* Follows the last `period` calls as the step. start: of its first call; period: any. */
void nt_step_settle(struct nt_step *step, uint32_t len, uint32_t period, uint32_t start, bool loose,
		    uint64_t floor_bytes);
/* Stops following the period. */
void nt_step_forget(struct nt_step *step);

#endif
