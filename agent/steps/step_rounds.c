/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A step may consist of several equal periods. A period is therefore checked again after more of it
 * was seen: do several make a round (agent/steps/call_period.h)? All ranks must find the same, so
 * evidence that is equal on all of them decides. First the launches between the calls. Then a small
 * call that occurs once per several periods, such as the reduction of a loss, if times agree: it is
 * then the boundary. Times alone only if there is nothing else.
 */
#include "agent/steps/step_impl.h"

enum {
	MARKERS = 4, /* occurrences of a small call that are required */
	LONG_UNIT_US = 500000, /* the shortest window */
};

struct units {
	/* Between the starts of units, newest first: as in struct nt_step_entry. */
	uint32_t gap_us[NT_CALL_PERIOD_GAPS], idle_us[NT_CALL_PERIOD_GAPS],
		launches[NT_CALL_PERIOD_GAPS];
	uint32_t at[NT_CALL_PERIOD_GAPS + 1]; /* calls from the newest back to each start */
	uint32_t count; /* of gaps */
};

/* The result: rounds of units. */
struct rounds {
	uint32_t round; /* units of one; 1: each is a step; 0: undecided */
	uint32_t first; /* the newest unit that begins one */
	uint16_t marker;
	enum nt_step_grade grade;
};

static uint16_t kind_at(const struct nt_step *step, uint32_t i)
{
	const struct nt_step_entry *call = nt_step_entry_at(step, i);

	return step->loose ? call->loose : call->exact;
}

/* A small call, seen `units` starts further back than last time. */
static void meet(struct nt_step_kind *kind, uint32_t units)
{
	uint32_t distance = units - kind->unit;

	if (kind->met == 1)
		kind->units = distance;
	else if (kind->met > 1 && distance != kind->units)
		kind->units = 0;
	kind->unit = units;
	kind->met++;
}

static bool is_in_base(const struct nt_step *step, uint16_t kind)
{
	return step->kind[kind].in_pattern && kind != step->marker;
}

/* Walks back from the newest call, which begins a unit. */
static void find_units(struct nt_step *step, struct units *units)
{
	uint64_t gap_us = 0, idle_us = 0, launches = 0;
	uint32_t left = 1, begins = 0;

	units->count = 0;
	for (uint32_t i = 0; i <= NT_STEP_KINDS; i++) {
		step->kind[i].met = 0;
		step->kind[i].units = 0;
	}
	for (uint32_t i = step->len; i-- > 0 && units->count < NT_CALL_PERIOD_GAPS;) {
		const struct nt_step_entry *entry = nt_step_entry_at(step, i);
		uint16_t index = kind_at(step, i);

		if (!is_in_base(step, index))
			meet(&step->kind[index], begins);
		if (index == step->base_anchor && --left == 0) {
			left = step->base_anchors;
			if (begins++ > 0) {
				units->gap_us[units->count] = nt_step_fit(gap_us);
				units->idle_us[units->count] = nt_step_fit(idle_us);
				units->launches[units->count++] = nt_step_fit(launches);
			}
			units->at[units->count] = step->len - 1 - i;
			gap_us = idle_us = launches = 0;
		}
		gap_us += entry->gap_us;
		idle_us += entry->idle_us;
		launches += entry->launches;
	}
}

/* The most frequent small call that comes once in a constant number of units. */
static uint16_t find_marker(const struct nt_step *step)
{
	uint16_t best = NT_KIND_NONE;

	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		const struct nt_step_kind *kind = &step->kind[i];

		if (is_in_base(step, (uint16_t)i) || kind->met < MARKERS || kind->units < 2)
			continue;
		if (best == NT_KIND_NONE || kind->units < step->kind[best].units ||
		    (kind->units == step->kind[best].units &&
		     kind->stable < step->kind[best].stable))
			best = (uint16_t)i;
	}
	return best;
}

/* The calls of the period and the marker, in the last `calls` calls. */
static uint32_t view_with(struct nt_step *step, uint32_t calls, uint16_t marker)
{
	uint32_t len = 0;

	for (uint32_t i = step->len - calls; i < step->len; i++) {
		uint16_t kind = kind_at(step, i);

		if (is_in_base(step, kind) || kind == marker)
			step->view[len++] = kind;
	}
	return len;
}

/*
 * Reductions between tensor-parallel ranks come many per second, and the last of a step may be
 * hardly longer than the others. Calls that take a window each are no such part of a step.
 */
static bool are_long(const struct units *units)
{
	uint64_t sum_us = 0;

	for (uint32_t i = 0; i < units->count; i++)
		sum_us += units->gap_us[i];
	return sum_us >= (uint64_t)units->count * LONG_UNIT_US;
}

/*
 * Launches between calls are equal on all ranks, and decide. Otherwise times do, preferably those
 * outside of calls: with slow transfers, all calls are equally spaced.
 */
static struct rounds find_rounds(struct nt_step *step, const struct units *units)
{
	struct rounds rounds = {.marker = find_marker(step)};
	uint32_t hint = rounds.marker == NT_KIND_NONE ? 0 : step->kind[rounds.marker].units;

	rounds.round =
		nt_call_period_count(units->launches, units->count, are_long(units), &rounds.first);
	rounds.grade = NT_GRADE_COUNTS;
	if (!rounds.round && step->steps <= NT_STEP_REFINE_LAST) {
		rounds.round =
			nt_call_period_find_idle(units->idle_us, units->count, hint, &rounds.first);
		if (!rounds.round)
			rounds.round = nt_call_period_find(units->gap_us, units->count, hint,
							   &rounds.first);
		rounds.grade = rounds.round == hint ? NT_GRADE_MARKER : NT_GRADE_TIMES;
	}
	if (hint != rounds.round)
		rounds.marker = NT_KIND_NONE;
	return rounds;
}

/* A change of times does not replace a step that was found before, unless by a longer one. */
static bool is_better(const struct nt_step *step, const struct rounds *rounds)
{
	if (!rounds->round || (rounds->round == 1 && step->round == 1))
		return false;
	if (rounds->grade != step->grade)
		return rounds->grade > step->grade &&
		       (rounds->round != step->round || rounds->marker != step->marker ||
			rounds->grade == NT_GRADE_COUNTS);
	if (rounds->round == step->round)
		return step->marker == NT_KIND_NONE && rounds->marker != NT_KIND_NONE;
	return rounds->grade == NT_GRADE_COUNTS || rounds->round % step->round == 0;
}

/* Makes the units of the last rounds a step; false if something else came in between. */
static bool settle_rounds(struct nt_step *step, const struct units *units,
			  const struct rounds *rounds)
{
	const uint32_t base = step->base_period, base_anchors = step->base_anchors;
	const uint16_t base_anchor = step->base_anchor;
	const bool marked = rounds->marker != NT_KIND_NONE;
	uint32_t len, begin = (rounds->round - rounds->first) % rounds->round;

	/* Between two starts of a unit: each call is in it once; without the newest call. */
	len = view_with(step, units->at[rounds->round] + 1, rounds->marker) - 1;
	if (len != rounds->round * base + marked)
		return false;
	nt_step_settle(step, len, len, marked ? len : begin * base, step->loose, step->floor_bytes);
	step->base_period = base;
	step->base_anchor = base_anchor;
	step->base_anchors = base_anchors;
	step->marker = rounds->marker;
	step->round = rounds->round;
	step->grade = rounds->grade;
	return true;
}

/* The step already followed, found in another way. */
static bool is_known(const struct nt_step *step, const struct rounds *rounds)
{
	if (rounds->round != step->round || rounds->marker != step->marker)
		return false;
	if (step->marker != NT_KIND_NONE)
		return true;
	return rounds->first == (step->base_anchors == 1 ? step->anchors_seen - 1 : 0);
}

bool nt_step_refine(struct nt_step *step)
{
	struct units units;
	struct rounds rounds;

	step->next_refine += step->next_refine / 4 + 1;
	find_units(step, &units);
	rounds = find_rounds(step, &units);
	if (units.count < rounds.round || !is_better(step, &rounds))
		return false;
	if (is_known(step, &rounds)) {
		step->grade = rounds.grade;
		return false;
	}
	return settle_rounds(step, &units, &rounds);
}
