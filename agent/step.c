/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The period is searched in a ring of the last calls, seldom enough that the cost per call stays
 * constant. Two rules keep a period from being too short: every kind of call that still recurs must
 * fit into it once, and each kind must repeat, not only most of the calls: a thousand equal
 * tensor-parallel calls and one gradient reduction have the period 1001.
 *
 * Yet a step may be several times the same calls. What was found is therefore looked at again when
 * more of it has been seen: do several of it make a round (agent/rhythm.h)? A small call that comes
 * once in so many, such as the reduction of a loss, speaks for it, and is then the boundary.
 */
#include "agent/step.h"

#include <errno.h>
#include <string.h>

#include "agent/rhythm.h"
#include "common/hash.h"

enum {
	TINY = 256, /* calls under 1/256 of the largest recurring one do not count */
	RING_FIRST = 256, /* entries at the start; doubles up to NT_STEP_RING */
	PERIODS = 3, /* whole periods that must be seen */
	CALLS_MIN = 4, /* before the first search */
	CANDIDATES = 64, /* periods tried in one search */
	RETRY_PART = 16, /* search again after 1/16 more calls */
	LOOSE_CALLS = 64, /* before calls are compared without their bytes */
	RUNS = 4, /* run starts of an anchor that must be regular */
	RUN_GAP = 5, /* from this distance on they may be off by one */
	BAD_STEPS = 2, /* steps of a wrong length in a row: search again */
	LONG_STEP_NS = 100000000, /* one of at least this length … */
	RARE_STEPS = 8, /* … is not made longer for a call that comes more seldom than this */
	REFINE_FIRST = 6, /* steps after which to look for rounds of them … */
	REFINE_LAST = NT_RHYTHM_GAPS, /* … and how long to go on */
	KIND_BITS = 10, /* of the hash from a call to its kind: twice NT_STEP_KINDS */
	KIND_SLOTS = 1 << KIND_BITS,
	KIND_OTHER = NT_STEP_KINDS, /* the kind of what finds the table full */
	KIND_NONE = UINT16_MAX,
};

struct call {
	uint16_t exact, loose; /* kinds: with the bytes, and without */
	uint32_t gap_us; /* since the call before */
};

struct kind {
	uint64_t hash; /* of what makes the kind, communicator included; 0: free */
	uint64_t stable; /* the same with the communicator's size for its name */
	uint64_t comm;
	uint64_t bytes; /* the most that a call of the kind moved */
	uint64_t total; /* calls so far */
	uint32_t in_ring; /* calls that the ring holds, as exact or as loose kind */
	bool barrier;
	/* Of the search that runs: */
	uint32_t count, first, last, in_period, hits, tries;
	bool alive; /* goes on to recur */
	/* Of the period found: */
	uint32_t in_pattern; /* calls of the kind within a period */
	uint32_t foreign; /* calls since the period was found, of a kind that is not in it */
	uint32_t unit, units; /* where it was met last, and how far from there: 0: irregular */
	uint32_t met;
};

struct nt_step {
	struct kind kind[NT_STEP_KINDS + 1];
	uint16_t slot[KIND_SLOTS]; /* hash → kind, open addressing; KIND_NONE: free */
	uint32_t kinds, gone; /* kinds in use; of these not in the ring any more */

	struct call *ring;
	uint32_t cap, len;
	uint64_t calls; /* so far; the newest lies at (calls - 1) % cap */
	uint64_t next_search; /* when `calls` reaches it */
	uint16_t *view; /* scratch of the search: kinds of the calls that count */

	bool found, by_anchor, loose;
	uint64_t floor_bytes; /* under it a call does not count */
	uint32_t period;
	uint16_t anchor, previous; /* kinds: of the step's first call, and of the last call */
	uint32_t anchors, anchors_seen; /* in one step; since the last boundary, with its own */
	uint32_t since; /* calls that count since the last boundary */
	uint32_t bad;
	uint32_t base_period; /* before several of it were found to make a round */
	bool refined;
	uint32_t next_refine; /* when `steps` reaches it */
	uint64_t last_ns; /* entry of the last call */
	uint64_t begin_ns; /* of the last boundary; 0: none yet */
	uint64_t step_ns; /* smoothed */
	uint32_t steps; /* boundaries since the period was found */
	uint64_t number, found_count, unknown_kinds;
};

int nt_step_new(struct nt_step **ret_step)
{
	nt_auto(nt_step) struct nt_step *step = calloc(1, sizeof(*step));

	if (!step)
		return -ENOMEM;
	step->ring = calloc(RING_FIRST, sizeof(*step->ring));
	step->view = calloc(RING_FIRST, sizeof(*step->view));
	if (!step->ring || !step->view)
		return -ENOMEM;
	step->cap = RING_FIRST;
	step->next_search = CALLS_MIN;
	memset(step->slot, 0xff, sizeof(step->slot));
	*ret_step = nt_take(step);
	return 0;
}

void nt_step_free(struct nt_step *step)
{
	if (!step)
		return;
	free(step->ring);
	free(step->view);
	free(step);
}

/* ---- kinds of calls ------------------------------------------------------------------------- */

/* Without the kinds that the ring holds no call of, unless they belong to the period. */
static void rebuild_kinds(struct nt_step *step)
{
	memset(step->slot, 0xff, sizeof(step->slot));
	step->kinds = 0;
	step->gone = 0;
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		struct kind *kind = &step->kind[i];
		uint32_t at;

		if (kind->hash && !kind->in_ring && !kind->in_pattern)
			*kind = (struct kind){0};
		if (!kind->hash)
			continue;
		at = kind->hash % KIND_SLOTS;
		while (step->slot[at] != KIND_NONE)
			at = (at + 1) % KIND_SLOTS;
		step->slot[at] = (uint16_t)i;
		step->kinds++;
		step->gone += !kind->in_ring;
	}
}

static uint16_t find_kind(const struct nt_step *step, uint64_t hash, uint32_t *ret_at)
{
	uint32_t at = hash % KIND_SLOTS;

	while (step->slot[at] != KIND_NONE && step->kind[step->slot[at]].hash != hash)
		at = (at + 1) % KIND_SLOTS;
	*ret_at = at;
	return step->slot[at];
}

static uint16_t free_kind(const struct nt_step *step)
{
	for (uint16_t i = 0; i < NT_STEP_KINDS; i++) {
		if (!step->kind[i].hash)
			return i;
	}
	return KIND_NONE;
}

static uint16_t take_kind(struct nt_step *step, const struct nt_step_call *call, bool loose)
{
	uint64_t stable = nt_hash_u64(NT_HASH_SEED, call->op), hash;
	uint16_t index;
	uint32_t at;

	stable = nt_hash_u64(stable, loose ? UINT64_MAX : call->bytes);
	stable = nt_hash_u64(stable, call->type);
	hash = nt_hash_mix(nt_hash_u64(stable, call->comm)) | 1; /* 0 is a free kind */
	stable = nt_hash_mix(nt_hash_u64(stable, call->comm_size));

	index = find_kind(step, hash, &at);
	if (index == KIND_NONE) {
		if (step->kinds == NT_STEP_KINDS && step->gone > 0) {
			rebuild_kinds(step);
			(void)find_kind(step, hash, &at);
		}
		if (step->kinds == NT_STEP_KINDS) {
			step->unknown_kinds++;
			return KIND_OTHER;
		}
		index = free_kind(step);
		step->kind[index] = (struct kind){
			.hash = hash,
			.stable = stable,
			.comm = call->comm,
			.barrier = call->op == NT_OP_BARRIER,
		};
		step->slot[at] = index;
		step->kinds++;
		step->gone++; /* until the ring holds it */
	}
	if (call->bytes > step->kind[index].bytes)
		step->kind[index].bytes = call->bytes;
	step->kind[index].total++;
	return index;
}

static void hold_kind(struct nt_step *step, uint16_t index, bool hold)
{
	struct kind *kind = &step->kind[index];

	if (hold)
		step->gone -= kind->in_ring++ == 0 && index != KIND_OTHER;
	else
		step->gone += --kind->in_ring == 0 && index != KIND_OTHER;
}

/* ---- the ring ------------------------------------------------------------------------------- */

static const struct call *call_at(const struct nt_step *step, uint32_t i)
{
	return &step->ring[(step->calls - step->len + i) % step->cap];
}

/* Where memory is short the ring stays as small as it is: long periods are then not found. */
static void grow_ring(struct nt_step *step)
{
	uint32_t cap = step->cap * 2;
	nt_autofree struct call *ring = calloc(cap, sizeof(*ring));
	uint16_t *view;

	if (!ring)
		return;
	view = realloc(step->view, cap * sizeof(*view));
	if (!view)
		return;
	step->view = view;
	for (uint32_t i = 0; i < step->len; i++)
		ring[(step->calls - step->len + i) % cap] = *call_at(step, i);
	free(step->ring);
	step->ring = nt_take(ring);
	step->cap = cap;
}

static struct call push_call(struct nt_step *step, const struct nt_step_call *call)
{
	struct call entry;
	uint64_t gap_us = 0;

	if (step->len == step->cap && step->cap < NT_STEP_RING)
		grow_ring(step);
	if (step->len == step->cap) {
		const struct call *oldest = call_at(step, 0);

		hold_kind(step, oldest->exact, false);
		hold_kind(step, oldest->loose, false);
		step->len--;
	}
	if (step->last_ns && call->entry_ns > step->last_ns)
		gap_us = (call->entry_ns - step->last_ns) / 1000;
	step->last_ns = call->entry_ns;
	entry.gap_us = gap_us < UINT32_MAX ? (uint32_t)gap_us : UINT32_MAX;
	/* Held at once, so that the second cannot take the place of the first. */
	entry.exact = take_kind(step, call, false);
	hold_kind(step, entry.exact, true);
	entry.loose = take_kind(step, call, true);
	hold_kind(step, entry.loose, true);
	step->ring[step->calls % step->cap] = entry;
	step->calls++;
	step->len++;
	return entry;
}

/* ---- the search ----------------------------------------------------------------------------- */

static bool counts(const struct kind *kind, uint64_t floor_bytes)
{
	return floor_bytes == 0 || (!kind->barrier && kind->bytes >= floor_bytes);
}

/* Statistics of the kinds in what the view holds. `other` never recurs. */
static void survey(struct nt_step *step, uint32_t len)
{
	for (uint32_t i = 0; i <= NT_STEP_KINDS; i++) {
		step->kind[i].count = 0;
		step->kind[i].alive = false;
	}
	for (uint32_t i = 0; i < len; i++) {
		struct kind *kind = &step->kind[step->view[i]];

		if (kind->count++ == 0)
			kind->first = i;
		kind->last = i;
	}
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		struct kind *kind = &step->kind[i];
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
		const struct call *call = call_at(step, i);

		step->view[i] = loose ? call->loose : call->exact;
	}
	survey(step, step->len);
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		if (step->kind[i].alive && step->kind[i].bytes > largest)
			largest = step->kind[i].bytes;
	}
	floor_bytes = largest ? (largest + TINY - 1) / TINY : 0;
	for (uint32_t i = 0; i < step->len; i++) {
		if (counts(&step->kind[step->view[i]], floor_bytes))
			step->view[len++] = step->view[i];
	}
	survey(step, len);
	*ret_floor_bytes = floor_bytes;
	return len;
}

static double mean_gap(const struct kind *kind)
{
	return (double)(kind->last - kind->first) / (kind->count - 1);
}

/* The kind that still recurs with the largest gaps, or KIND_NONE. */
static uint16_t rarest(const struct nt_step *step)
{
	uint16_t best = KIND_NONE;

	for (uint16_t i = 0; i < NT_STEP_KINDS; i++) {
		const struct kind *kind = &step->kind[i];

		if (!kind->alive)
			continue;
		if (best == KIND_NONE || mean_gap(kind) > mean_gap(&step->kind[best]) ||
		    (mean_gap(kind) == mean_gap(&step->kind[best]) &&
		     kind->stable < step->kind[best].stable))
			best = i;
	}
	return best;
}

/* Does nearly every kind repeat after `period` calls, over the last periods? */
static bool repeats(struct nt_step *step, uint32_t len, uint32_t period)
{
	uint32_t from = len - (PERIODS - 1) * period, once = 0, kinds = 0;
	double sum = 0;

	for (uint32_t i = from; i < len; i++) {
		step->kind[step->view[i]].hits = 0;
		step->kind[step->view[i]].tries = 0;
	}
	for (uint32_t i = from; i < len; i++) {
		struct kind *kind = &step->kind[step->view[i]];

		kind->tries++;
		kind->hits += step->view[i] == step->view[i - period];
	}
	for (uint32_t i = from; i < len; i++) {
		struct kind *kind = &step->kind[step->view[i]];

		if (!kind->tries)
			continue;
		if (kind->count < 2) {
			once++; /* a call that came once says nothing against a period */
		} else {
			sum += (double)kind->hits / kind->tries;
			kinds++;
		}
		kind->tries = 0;
	}
	return kinds > 0 && sum >= 0.9 * kinds && once * 10 <= len - from;
}

static uint32_t find_period(struct nt_step *step, uint32_t len)
{
	uint16_t anchor = rarest(step);
	double least;
	uint32_t tried = 0;

	if (anchor == KIND_NONE)
		return 0;
	least = 0.9 * mean_gap(&step->kind[anchor]);
	/* A period is a distance between two calls of the rarest kind. */
	for (uint32_t i = step->kind[anchor].last; i-- > 0 && tried < CANDIDATES;) {
		uint32_t period = step->kind[anchor].last - i;

		if (period * PERIODS > len)
			break;
		if (step->view[i] != anchor || period < least)
			continue;
		tried++;
		if (repeats(step, len, period))
			return period;
	}
	return 0;
}

/* The order of calls varies: a kind whose runs begin at regular distances will do. */
static uint32_t find_runs(const struct nt_step *step, uint32_t len, uint16_t *ret_anchor)
{
	uint16_t anchor = rarest(step);
	uint32_t start[RUNS + 1], runs = 0, gap, low, high;

	if (anchor == KIND_NONE)
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

/* Is the rotation of the last period that starts at a smaller than the one that starts at b? */
static bool rotation_is_less(const struct nt_step *step, const uint16_t *period, uint32_t len,
			     uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < len; i++) {
		const struct kind *x = &step->kind[period[(a + i) % len]];
		const struct kind *y = &step->kind[period[(b + i) % len]];

		if (x->in_pattern != y->in_pattern)
			return x->in_pattern < y->in_pattern;
		if (x->stable != y->stable)
			return x->stable < y->stable;
		if (x->hash != y->hash)
			return x->comm < y->comm; /* learned in the same order everywhere */
	}
	return false;
}

static void forget_pattern(struct nt_step *step)
{
	for (uint32_t i = 0; i <= NT_STEP_KINDS; i++) {
		step->kind[i].in_pattern = 0;
		step->kind[i].foreign = 0;
	}
	step->found = false;
	step->bad = 0;
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

/* A step is the last `period` calls of the view. start: which of them begins it; period: any. */
static void settle(struct nt_step *step, uint32_t len, uint32_t period, uint32_t start, bool loose,
		   uint64_t floor_bytes)
{
	const uint16_t *last = step->view + len - period;

	forget_pattern(step);
	for (uint32_t i = 0; i < period; i++)
		step->kind[last[i]].in_pattern++;
	if (start == period)
		start = smallest_rotation(step, last, period);
	step->found = true;
	step->by_anchor = false;
	step->loose = loose;
	step->floor_bytes = floor_bytes;
	step->period = period;
	step->base_period = period;
	step->refined = false;
	step->next_refine = REFINE_FIRST;
	step->anchor = last[start];
	step->anchors = step->kind[step->anchor].in_pattern;
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

	forget_pattern(step);
	for (i = len > PERIODS * gap ? len - PERIODS * gap : 0; i < len; i++)
		step->kind[step->view[i]].in_pattern++;
	step->found = true;
	step->by_anchor = true;
	step->loose = loose;
	step->floor_bytes = floor_bytes;
	step->period = gap;
	step->base_period = gap;
	step->refined = true; /* its order varies already */
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
	uint32_t period = len < CALLS_MIN ? 0 : find_period(step, len);

	if (!period)
		return false;
	/* The same again: keep the phase, which may have been found by a longer look. */
	if (step->found && !step->by_anchor && step->loose == loose &&
	    step->base_period == period && step->floor_bytes == floor_bytes &&
	    is_in_pattern(step, len, period))
		return true;
	settle(step, len, period, period, loose, floor_bytes);
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

/* Bytes that differ each time are the last explanation: a long period looks the same at first. */
static void search(struct nt_step *step)
{
	bool weak = !step->found || step->loose;

	step->next_search = step->calls + CALLS_MIN / 2 + step->len / RETRY_PART;
	if (search_period(step, false) || !weak || search_runs(step, false) || step->found ||
	    step->len < LOOSE_CALLS)
		return;
	if (!search_period(step, true))
		(void)search_runs(step, true);
}

/* ---- rounds of what was found --------------------------------------------------------------- */

struct units {
	uint32_t gap_us[NT_RHYTHM_GAPS]; /* between the begins of units, the newest first */
	uint32_t at[NT_RHYTHM_GAPS + 1]; /* calls from the newest back to each begin */
	uint32_t count; /* of gaps */
};

static uint16_t kind_at(const struct nt_step *step, uint32_t i)
{
	const struct call *call = call_at(step, i);

	return step->loose ? call->loose : call->exact;
}

/* A small call, met `units` begins further back than last time. */
static void meet(struct kind *kind, uint32_t units)
{
	uint32_t distance = units - kind->unit;

	if (kind->met == 1)
		kind->units = distance;
	else if (kind->met > 1 && distance != kind->units)
		kind->units = 0;
	kind->unit = units;
	kind->met++;
}

/* Walks back from the newest call, which begins a unit. */
static void find_units(struct nt_step *step, struct units *units)
{
	uint32_t left = 1, begins = 0;
	uint64_t gap_us = 0;

	units->count = 0;
	for (uint32_t i = 0; i <= NT_STEP_KINDS; i++) {
		step->kind[i].met = 0;
		step->kind[i].units = 0;
	}
	for (uint32_t i = step->len; i-- > 0 && units->count < NT_RHYTHM_GAPS;) {
		uint16_t index = kind_at(step, i);
		struct kind *kind = &step->kind[index];

		if (!kind->in_pattern)
			meet(kind, begins);
		if (index == step->anchor && --left == 0) {
			left = step->anchors;
			if (begins++ > 0)
				units->gap_us[units->count++] =
					gap_us < UINT32_MAX ? (uint32_t)gap_us : UINT32_MAX;
			units->at[units->count] = step->len - 1 - i;
			gap_us = 0;
		}
		gap_us += call_at(step, i)->gap_us;
	}
}

/* The most frequent small call that comes once in a constant number of units. */
static uint16_t find_marker(const struct nt_step *step)
{
	uint16_t best = KIND_NONE;

	for (uint16_t i = 0; i < NT_STEP_KINDS; i++) {
		const struct kind *kind = &step->kind[i];

		if (kind->in_pattern || kind->met < PERIODS + 1 || kind->units < 2)
			continue;
		if (best == KIND_NONE || kind->units < step->kind[best].units ||
		    (kind->units == step->kind[best].units &&
		     kind->stable < step->kind[best].stable))
			best = i;
	}
	return best;
}

/* The calls of the period and the marker, in the last `calls` calls. */
static uint32_t view_with(struct nt_step *step, uint32_t calls, uint16_t marker)
{
	uint32_t len = 0;

	for (uint32_t i = step->len - calls; i < step->len; i++) {
		uint16_t kind = kind_at(step, i);

		if (step->kind[kind].in_pattern || kind == marker)
			step->view[len++] = kind;
	}
	return len;
}

/* At the begin of a unit: do several of them make a step? */
static void refine(struct nt_step *step)
{
	uint32_t round, first = 0, len, base = step->base_period, begin;
	struct units units;
	uint16_t marker;

	step->next_refine += step->next_refine / 4 + 1;
	find_units(step, &units);
	marker = find_marker(step);
	round = nt_rhythm_find(units.gap_us, units.count,
			       marker == KIND_NONE ? 0 : step->kind[marker].units, &first);
	if (!round || units.count < round)
		return;
	if (marker != KIND_NONE && step->kind[marker].units != round)
		marker = KIND_NONE;
	/* The last round: between two begins of a unit, so that each call is in it once. */
	len = view_with(step, units.at[round] + 1, marker) - 1; /* without the newest call */
	if (len != round * base + (marker != KIND_NONE))
		return; /* something else came in between: another time */
	if (marker != KIND_NONE) {
		settle(step, len, len, len, step->loose, step->floor_bytes);
	} else {
		begin = (round - first) % round; /* unit of the view that begins the step */
		settle(step, len, len, begin * base, step->loose, step->floor_bytes);
	}
	step->base_period = base;
	step->refined = true;
}

/* ---- one call ------------------------------------------------------------------------------- */

static bool begins_step(struct nt_step *step, uint16_t kind)
{
	if (kind != step->anchor)
		return false;
	if (step->by_anchor)
		return step->previous != step->anchor;
	return step->anchors_seen % step->anchors == 0;
}

/* Is it worth a search that a call outside the period came again? */
static bool asks_for_longer(const struct nt_step *step, const struct kind *kind)
{
	if (kind->foreign < 2 || step->calls < step->next_search)
		return false;
	return step->step_ns < LONG_STEP_NS || kind->foreign * RARE_STEPS > step->steps;
}

static bool is_bad_length(const struct nt_step *step)
{
	uint32_t tolerance = step->period / 10 + 1;

	return step->since + tolerance < step->period || step->since > step->period + tolerance;
}

static void take_time(struct nt_step *step, uint64_t entry_ns)
{
	uint64_t ns = entry_ns > step->begin_ns ? entry_ns - step->begin_ns : 0;

	if (step->begin_ns)
		step->step_ns = step->step_ns ? (7 * step->step_ns + ns) / 8 : ns;
	step->begin_ns = entry_ns;
	step->steps++;
}

/* Follows a known period. True: a step begins here. */
static bool follow(struct nt_step *step, uint16_t index, uint64_t entry_ns)
{
	struct kind *kind = &step->kind[index];

	if ((step->loose || step->by_anchor) && step->calls >= step->next_search) {
		uint64_t found = step->found_count;

		search(step); /* there may be a better one by now */
		if (step->found_count != found)
			return false;
	}
	if (!kind->in_pattern) {
		if (!counts(kind, step->floor_bytes))
			return false;
		kind->foreign++;
		if (asks_for_longer(step, kind))
			search(step);
		return false;
	}
	if (!begins_step(step, index)) {
		step->previous = index;
		step->anchors_seen += index == step->anchor;
		if (++step->since > 2 * step->period + 2)
			forget_pattern(step);
		return false;
	}
	step->bad = is_bad_length(step) ? step->bad + 1 : 0;
	step->previous = index;
	step->since = 1;
	step->anchors_seen = 1;
	if (step->bad >= BAD_STEPS) {
		forget_pattern(step);
		step->next_search = step->calls;
		return false;
	}
	take_time(step, entry_ns);
	step->number = kind->total / step->anchors;
	if (!step->refined && step->steps >= step->next_refine && step->steps <= REFINE_LAST) {
		refine(step);
		if (step->refined)
			return follow(step, index, entry_ns);
	}
	return true;
}

bool nt_step_call(struct nt_step *step, const struct nt_step_call *call)
{
	struct call entry = push_call(step, call);

	if (step->found)
		return follow(step, step->loose ? entry.loose : entry.exact, call->entry_ns);
	if (step->calls >= step->next_search)
		search(step);
	return false;
}

void nt_step_info(const struct nt_step *step, struct nt_step_info *ret_info)
{
	const struct kind *anchor = &step->kind[step->anchor];

	*ret_info = (struct nt_step_info){
		.found = step->found,
		.by_anchor = step->by_anchor,
		.period = step->period,
		.anchor_comm = anchor->comm,
		.anchor_kind = anchor->stable,
		.anchors = step->anchors,
		.number = step->number,
		.found_count = step->found_count,
		.unknown_kinds = step->unknown_kinds,
	};
}
