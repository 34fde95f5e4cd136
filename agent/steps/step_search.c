/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The period is searched in a ring of the last calls, seldom enough that the cost per call stays
 * constant. Two rules prevent too short a period. Every kind of call that still recurs must fit
 * into it once. Each kind must repeat, not only most of the calls: a thousand equal tensor-parallel
 * calls and one gradient reduction have the period 1001.
 */
#include "agent/steps/step_impl.h"

enum {
	TINY = 256, /* calls under 1/256 of the largest recurring one do not count */
	PERIODS = 3, /* whole periods that must be seen */
	CANDIDATES = 64, /* periods tried in one search */
	LEAST_LOOK = 64, /* calls that must repeat, where there are so many */
	RETRY_PART = 16, /* search again after 1/16 more calls */
	LOOSE_CALLS = 64, /* before calls are compared without their bytes */
	BYTES_LOOK = 1024, /* calls whose bytes are compared */
	BYTES_PERIODS = 32, /* of a step, by their bytes */
	RUNS = 4, /* run starts of an anchor that must be regular */
	RUN_GAP = 5, /* from this distance on they may be off by one */
	/* steps after which to look for rounds of them (agent/steps/step_rounds.c) */
	REFINE_FIRST = 6,
};

/* ---- the search ----------------------------------------------------------------------------- */

/* Statistics of the kinds in the view. `other` never recurs. */
static void survey(struct nt_step *step, uint32_t len)
{
	for (uint32_t i = 0; i <= NT_STEP_KINDS; i++) {
		step->kind[i].count = 0;
		step->kind[i].alive = false;
	}
	for (uint32_t i = 0; i < len; i++) {
		struct nt_step_kind *kind = &step->kind[step->view[i]];

		if (kind->count++ == 0)
			kind->first = i;
		kind->last = i;
	}
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		struct nt_step_kind *kind = &step->kind[i];
		uint32_t gap;

		if (kind->count < 2)
			continue;
		gap = (kind->last - kind->first) / (kind->count - 1);
		kind->alive = len - 1 - kind->last <= 2 * gap + 1;
	}
}

/* Fills the view with the calls that count; returns their number. */
static uint32_t look(struct nt_step *step, bool loose, uint64_t *ret_floor_bytes)
{
	uint64_t largest = 0, floor_bytes;
	uint32_t len = 0;

	for (uint32_t i = 0; i < step->len; i++) {
		const struct nt_step_entry *call = nt_step_entry_at(step, i);

		step->view[i] = loose ? call->loose : call->exact;
	}
	survey(step, step->len);
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		if (step->kind[i].alive && step->kind[i].bytes > largest)
			largest = step->kind[i].bytes;
	}
	floor_bytes = largest ? (largest + TINY - 1) / TINY : 0;
	for (uint32_t i = 0; i < step->len; i++) {
		if (nt_step_counts(&step->kind[step->view[i]], floor_bytes))
			step->view[len++] = step->view[i];
	}
	survey(step, len);
	*ret_floor_bytes = floor_bytes;
	return len;
}

static double mean_gap(const struct nt_step_kind *kind)
{
	return (double)(kind->last - kind->first) / (kind->count - 1);
}

/* The kind that still recurs with the largest gaps, or NT_KIND_NONE. */
static uint16_t rarest(const struct nt_step *step)
{
	uint16_t best = NT_KIND_NONE;

	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		const struct nt_step_kind *kind = &step->kind[i];

		if (!kind->alive)
			continue;
		if (best == NT_KIND_NONE || mean_gap(kind) > mean_gap(&step->kind[best]) ||
		    (mean_gap(kind) == mean_gap(&step->kind[best]) &&
		     kind->stable < step->kind[best].stable))
			best = (uint16_t)i;
	}
	return best;
}

/*
 * The part of each kind that repeats after `period` calls, over the last periods, the mean of the
 * kinds; 0: not enough. A few short periods are inconclusive: equal layers repeat like steps, until
 * their pass ends.
 */
static double repeats(struct nt_step *step, uint32_t len, uint32_t period)
{
	uint32_t span = (PERIODS - 1) * period, from, once = 0, kinds = 0;
	double sum = 0;

	if (span < LEAST_LOOK)
		span = len - period < LEAST_LOOK ? len - period : LEAST_LOOK;
	from = len - span;

	for (uint32_t i = from; i < len; i++) {
		step->kind[step->view[i]].hits = 0;
		step->kind[step->view[i]].tries = 0;
	}
	for (uint32_t i = from; i < len; i++) {
		struct nt_step_kind *kind = &step->kind[step->view[i]];

		kind->tries++;
		kind->hits += step->view[i] == step->view[i - period];
	}
	for (uint32_t i = from; i < len; i++) {
		struct nt_step_kind *kind = &step->kind[step->view[i]];

		if (!kind->tries)
			continue;
		if (kind->count < 2) {
			once++; /* a call that came once does not contradict a period */
		} else if (kind->alive) { /* nor does one that no longer comes */
			sum += (double)kind->hits / kind->tries;
			kinds++;
		}
		kind->tries = 0;
	}
	return kinds > 0 && sum >= 0.9 * kinds && once * 10 <= len - from ? sum / kinds : 0.0;
}

/* Margin by which a longer period must repeat better than a shorter one. */
static const double clearly = 0.02;
static const double mostly = 0.6; /* of the calls must have the bytes of a step before */

static uint32_t find_period(struct nt_step *step, uint32_t len)
{
	uint16_t anchor = rarest(step);
	double least, best = 0.0;
	uint32_t tried = 0, found = 0;

	if (anchor == NT_KIND_NONE)
		return 0;
	least = 0.9 * mean_gap(&step->kind[anchor]);
	/* A period is a distance between two calls of the rarest kind: the shortest of the best. */
	for (uint32_t i = step->kind[anchor].last; i-- > 0 && tried < CANDIDATES;) {
		uint32_t period = step->kind[anchor].last - i;
		double score;

		if (best > 1.0 - clearly || period * PERIODS > len)
			break;
		if (step->view[i] != anchor || period < least)
			continue;
		tried++;
		score = repeats(step, len, period);
		if (score > best + clearly) {
			best = score;
			found = period;
		}
	}
	step->fits = best > 1.0 - clearly;
	return found;
}

/* The part of the last calls in the view that are what they were `lag` calls before. */
static double same_as_before(const struct nt_step *step, uint32_t len, uint32_t lag)
{
	uint32_t from = len > lag + BYTES_LOOK ? len - BYTES_LOOK : lag, same = 0;

	for (uint32_t i = from; i < len; i++)
		same += step->view[i] == step->view[i - lag];
	return len > from ? (double)same / (len - from) : 0.0;
}

/*
 * Calls that differ in their bytes alone may make several periods a step: a halo is exchanged once
 * per neighbour, each time with other bytes. The bytes change now and then on all ranks, as
 * particles move, and need not repeat always. Uses the view. Returns the periods of a step.
 */
static uint32_t count_by_bytes(struct nt_step *step, uint32_t period, uint64_t floor_bytes)
{
	double first = 0.0, best = 0.0;
	uint32_t len = 0, found = 1;

	for (uint32_t i = 0; i < step->len; i++) {
		const struct nt_step_entry *call = nt_step_entry_at(step, i);

		if (nt_step_counts(&step->kind[call->loose], floor_bytes))
			step->view[len++] = call->exact;
	}
	for (uint32_t n = 1; n <= BYTES_PERIODS && n * period * PERIODS <= len; n++) {
		double same = same_as_before(step, len, n * period);

		if (n == 1)
			first = same;
		if (same <= best + 5 * clearly)
			continue;
		best = same;
		found = n;
	}
	return best >= mostly && best >= first + mostly / 2 ? found : 1;
}

/* The order of calls varies: a kind whose runs begin at regular distances suffices. */
static uint32_t find_runs(const struct nt_step *step, uint32_t len, uint16_t *ret_anchor)
{
	uint16_t anchor = rarest(step);
	uint32_t start[RUNS + 1], runs = 0, gap, low, high;

	if (anchor == NT_KIND_NONE)
		return 0;
	for (uint32_t i = len; i-- > 0 && runs <= RUNS;) {
		if (step->view[i] == anchor && (i == 0 || step->view[i - 1] != anchor))
			start[runs++] = i;
	}
	if (runs <= RUNS)
		return 0;
	gap = (start[0] - start[RUNS] + RUNS / 2) / RUNS;
	low = gap - gap / 10 - (gap >= RUN_GAP);
	high = gap + gap / 10 + (gap >= RUN_GAP);
	for (uint32_t i = 0; i < RUNS; i++) {
		uint32_t distance = start[i] - start[i + 1];

		if (gap < 2 || distance < low || distance > high)
			return 0;
	}
	*ret_anchor = anchor;
	return gap;
}

/* True if the rotation of the last period from a is smaller than that from b. */
static bool rotation_is_less(const struct nt_step *step, const uint16_t *period, uint32_t len,
			     uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < len; i++) {
		const struct nt_step_kind *x = &step->kind[period[(a + i) % len]];
		const struct nt_step_kind *y = &step->kind[period[(b + i) % len]];

		if (x->in_pattern != y->in_pattern)
			return x->in_pattern < y->in_pattern;
		if (x->stable != y->stable)
			return x->stable < y->stable;
		if (x->hash != y->hash)
			return x->comm < y->comm; /* assigned in the same order on all ranks */
	}
	return false;
}

void nt_step_forget(struct nt_step *step)
{
	for (uint32_t i = 0; i <= NT_STEP_KINDS; i++) {
		step->kind[i].in_pattern = 0;
		step->kind[i].foreign = 0;
	}
	step->found = false;
	step->bad = 0;
	step->aside = 0;
	step->strange = 0;
	step->steps = 0;
	step->begin_ns = 0;
	step->step_ns = 0;
}

/* The rarest kind comes first, and of several such rotations the smallest: all ranks agree. */
static uint32_t smallest_rotation(const struct nt_step *step, const uint16_t *last, uint32_t period)
{
	uint32_t start = 0;

	for (uint32_t i = 1; i < period; i++) {
		if (step->kind[last[i]].in_pattern <= step->kind[last[start]].in_pattern &&
		    rotation_is_less(step, last, period, i, start))
			start = i;
	}
	return start;
}

void nt_step_settle(struct nt_step *step, uint32_t len, uint32_t period, uint32_t start, bool loose,
		    uint64_t floor_bytes)
{
	const uint16_t *last = step->view + len - period;

	nt_step_forget(step);
	for (uint32_t i = 0; i < period; i++)
		step->kind[last[i]].in_pattern++;
	if (start == period)
		start = smallest_rotation(step, last, period);
	step->found = true;
	step->by_anchor = false;
	step->loose = loose;
	step->floor_bytes = floor_bytes;
	step->period = period;
	step->grade = NT_GRADE_NONE;
	step->next_refine = REFINE_FIRST;
	step->anchor = last[start];
	step->anchors = step->kind[step->anchor].in_pattern;
	step->base_period = period;
	step->base_anchor = step->anchor;
	step->base_anchors = step->anchors;
	step->marker = NT_KIND_NONE;
	step->round = 1;
	step->anchors_seen = 0;
	for (uint32_t i = start; i < period; i++)
		step->anchors_seen += last[i] == step->anchor;
	step->since = period - start;
	step->previous = last[period - 1];
	step->found_count++;
}

static void settle_runs(struct nt_step *step, uint32_t len, uint32_t gap, bool loose,
			uint16_t anchor, uint64_t floor_bytes)
{
	uint32_t i;

	nt_step_forget(step);
	for (i = len > PERIODS * gap ? len - PERIODS * gap : 0; i < len; i++)
		step->kind[step->view[i]].in_pattern++;
	step->found = true;
	step->by_anchor = true;
	step->loose = loose;
	step->floor_bytes = floor_bytes;
	step->period = gap;
	step->base_period = gap;
	step->anchor = anchor;
	step->anchors = 1;
	step->previous = step->view[len - 1];
	step->since = 0;
	for (i = len; i-- > 0;) {
		step->since++;
		if (step->view[i] == anchor && (i == 0 || step->view[i - 1] != anchor))
			break;
	}
	step->found_count++;
}

static bool is_in_pattern(const struct nt_step *step, uint32_t len, uint32_t period)
{
	for (uint32_t i = len - period; i < len; i++) {
		if (!step->kind[step->view[i]].in_pattern)
			return false;
	}
	return true;
}

/* True: a period of calls of the same bytes, or without regard to them, is followed now. */
static bool search_period(struct nt_step *step, bool loose)
{
	uint64_t floor_bytes;
	uint32_t len = look(step, loose, &floor_bytes);
	uint32_t period = len < NT_STEP_CALLS_MIN ? 0 : find_period(step, len);

	if (!period)
		return false;
	if (loose) {
		period *= count_by_bytes(step, period, floor_bytes);
		len = look(step, true, &floor_bytes);
	}
	/* The same period: keep the phase, which a longer search may have found. */
	if (step->found && !step->by_anchor && step->loose == loose &&
	    step->base_period == period && step->floor_bytes == floor_bytes &&
	    is_in_pattern(step, len, period))
		return true;
	nt_step_settle(step, len, period, period, loose, floor_bytes);
	return true;
}

static bool search_runs(struct nt_step *step, bool loose)
{
	uint64_t floor_bytes;
	uint32_t len = look(step, loose, &floor_bytes), gap;
	uint16_t anchor;

	gap = find_runs(step, len, &anchor);
	if (!gap)
		return false;
	settle_runs(step, len, gap, loose, anchor, floor_bytes);
	return true;
}

/* Varying bytes are the last explanation: a long period looks the same at first. */
void nt_step_search(struct nt_step *step)
{
	bool weak = !step->found || step->loose;

	step->next_search = step->calls + NT_STEP_CALLS_MIN / 2 + step->len / RETRY_PART;
	if (search_period(step, false) || !weak || search_runs(step, false) || step->found ||
	    step->len < LOOSE_CALLS)
		return;
	if (!search_period(step, true))
		(void)search_runs(step, true);
}
