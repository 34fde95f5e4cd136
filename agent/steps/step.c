/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records the calls, classifies them by kind, and follows the period that agent/steps/step_search.c
 * finds in them.
 */
#include "agent/steps/step_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	RING_FIRST = 256, /* entries at the start; doubles up to NT_STEP_RING */
	SHORT = 5, /* calls */
	YOUNG_STEPS = 32, /* until then a period that does not fit well is searched again */
	PROVEN_STEPS = 8, /* from then on … */
	LONGEST_PHASE = 16, /* … calls of so many steps may come in between */
	YOUNG_PHASE = 2, /* before, of so many */
	BAD_STEPS = 2, /* steps of a wrong length in a row: search again */
	LONG_STEP_NS = 100000000, /* one of at least this length … */
	RARE_STEPS = 8, /* … is not made longer for a call that comes more seldom than this */
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
	step->next_search = NT_STEP_CALLS_MIN;
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

size_t nt_step_bytes(const struct nt_step *step)
{
	return sizeof(*step) + step->cap * (sizeof(*step->ring) + sizeof(*step->view));
}

/* ---- kinds of calls ------------------------------------------------------------------------- */

/* Drops kinds that have no call in the ring, unless they belong to the period. */
static void rebuild_kinds(struct nt_step *step)
{
	memset(step->slot, 0xff, sizeof(step->slot));
	step->kinds = 0;
	step->gone = 0;
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		struct nt_step_kind *kind = &step->kind[i];
		uint32_t at;

		if (kind->hash && !kind->in_ring && !kind->in_pattern)
			*kind = (struct nt_step_kind){0};
		if (!kind->hash)
			continue;
		at = kind->hash % NT_KIND_SLOTS;
		while (step->slot[at] != NT_KIND_NONE)
			at = (at + 1) % NT_KIND_SLOTS;
		step->slot[at] = (uint16_t)i;
		step->kinds++;
		step->gone += !kind->in_ring;
	}
}

static uint16_t find_kind(const struct nt_step *step, uint64_t hash, uint32_t *ret_at)
{
	uint32_t at = hash % NT_KIND_SLOTS;

	while (step->slot[at] != NT_KIND_NONE && step->kind[step->slot[at]].hash != hash)
		at = (at + 1) % NT_KIND_SLOTS;
	*ret_at = at;
	return step->slot[at];
}

static uint16_t free_kind(const struct nt_step *step)
{
	for (uint32_t i = 0; i < NT_STEP_KINDS; i++) {
		if (!step->kind[i].hash)
			return (uint16_t)i;
	}
	return NT_KIND_NONE;
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
	if (index == NT_KIND_NONE) {
		if (step->kinds == NT_STEP_KINDS && step->gone > 0) {
			rebuild_kinds(step);
			(void)find_kind(step, hash, &at);
		}
		if (step->kinds == NT_STEP_KINDS) {
			step->unknown_kinds++;
			return NT_KIND_OTHER;
		}
		index = free_kind(step);
		step->kind[index] = (struct nt_step_kind){
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
	struct nt_step_kind *kind = &step->kind[index];

	if (hold)
		step->gone -= kind->in_ring++ == 0 && index != NT_KIND_OTHER;
	else
		step->gone += --kind->in_ring == 0 && index != NT_KIND_OTHER;
}

void nt_step_wait(struct nt_step *step, uint64_t entry_ns, uint64_t ret_ns)
{
	if (ret_ns < entry_ns)
		ret_ns = entry_ns;
	if (step->busy_ns && entry_ns > step->busy_ns)
		step->idle_ns += entry_ns - step->busy_ns;
	if (ret_ns > step->busy_ns)
		step->busy_ns = ret_ns;
}

/* ---- the ring ------------------------------------------------------------------------------- */

/* Out of memory, the ring keeps its size: long periods are then not found. */
static void grow_ring(struct nt_step *step)
{
	uint32_t cap = step->cap * 2;
	nt_autofree struct nt_step_entry *ring = calloc(cap, sizeof(*ring));
	uint16_t *view;

	if (!ring)
		return;
	view = realloc(step->view, cap * sizeof(*view));
	if (!view)
		return;
	step->view = view;
	for (uint32_t i = 0; i < step->len; i++)
		ring[(step->calls - step->len + i) % cap] = *nt_step_entry_at(step, i);
	free(step->ring);
	step->ring = nt_take(ring);
	step->cap = cap;
}

static struct nt_step_entry push_call(struct nt_step *step, const struct nt_step_call *call)
{
	struct nt_step_entry entry;
	uint64_t gap_ns = 0, launches = 0;

	if (step->len == step->cap && step->cap < NT_STEP_RING)
		grow_ring(step);
	if (step->len == step->cap) {
		const struct nt_step_entry *oldest = nt_step_entry_at(step, 0);

		hold_kind(step, oldest->exact, false);
		hold_kind(step, oldest->loose, false);
		step->len--;
	}
	if (step->last_ns && call->entry_ns > step->last_ns)
		gap_ns = call->entry_ns - step->last_ns;
	if (step->last_ns && call->launches > step->launches)
		launches = call->launches - step->launches;
	step->last_ns = call->entry_ns;
	step->launches = call->launches;
	nt_step_wait(step, call->entry_ns, call->ret_ns);
	entry.gap_us = nt_step_fit(gap_ns / 1000);
	entry.idle_us = nt_step_fit(step->idle_ns / 1000);
	entry.launches = nt_step_fit(launches);
	step->idle_ns = 0;
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

/* ---- one call ------------------------------------------------------------------------------- */

static bool begins_step(struct nt_step *step, uint16_t kind)
{
	if (kind != step->anchor)
		return false;
	if (step->by_anchor)
		return step->previous != step->anchor;
	return step->anchors_seen % step->anchors == 0;
}

/* True if a recurring call outside the period justifies a search. */
static bool needs_longer(const struct nt_step *step, const struct nt_step_kind *kind)
{
	if (kind->foreign < 2 || step->calls < step->next_search)
		return false;
	return step->step_ns < LONG_STEP_NS || kind->foreign * RARE_STEPS > step->steps;
}

static bool is_bad_length(const struct nt_step *step)
{
	/* In a short period, one more or less is as much as half of it. */
	uint32_t tolerance = step->period / 10 + (step->period >= SHORT);

	return step->since + tolerance < step->period || step->since > step->period + tolerance;
}

/*
 * Two consecutive steps hardly longer than a forward pass: an evaluation that contains the call
 * that begins a step. Its calls belong to the step that follows.
 */
static bool is_forward_alone(const struct nt_step *step)
{
	return step->bad + 1 >= BAD_STEPS && step->steps >= PROVEN_STEPS &&
	       step->since <= step->period / 2 + 1 &&
	       step->aside + step->since <= LONGEST_PHASE * step->period;
}

/* More calls than two steps have, without the one that begins a step. */
static bool is_in_phase(const struct nt_step *step)
{
	return step->since > YOUNG_PHASE * step->period + YOUNG_PHASE;
}

/*
 * The steps have changed, unless this is a phase. An evaluation repeats some of a step's calls and
 * is followed by the same steps as before.
 */
static bool is_over(const struct nt_step *step)
{
	return is_in_phase(step) && (step->steps < PROVEN_STEPS ||
				     step->since > LONGEST_PHASE * step->period + YOUNG_PHASE);
}

/* None of the calls of the period comes any more. */
static bool has_vanished(const struct nt_step *step)
{
	uint32_t periods = step->steps < PROVEN_STEPS ? YOUNG_PHASE : LONGEST_PHASE;

	return step->strange > periods * step->period + YOUNG_PHASE;
}

static void take_time(struct nt_step *step, uint64_t entry_ns)
{
	uint64_t ns = entry_ns > step->begin_ns ? entry_ns - step->begin_ns : 0;

	/*
	 * The typical duration: in a burst of enqueued calls, the one that waits for the device
	 * would distort any mean.
	 */
	if (step->begin_ns && !step->step_ns)
		step->step_ns = ns;
	else if (step->begin_ns && ns < step->step_ns)
		step->step_ns -= (step->step_ns - ns) / 4;
	else if (step->begin_ns)
		step->step_ns += (ns - step->step_ns) / 8;
	step->begin_ns = entry_ns;
	step->steps++;
}

/* Follows a known period. True: a step begins here. */
static bool follow(struct nt_step *step, uint16_t index, uint64_t entry_ns)
{
	struct nt_step_kind *kind = &step->kind[index];

	if ((step->loose || step->by_anchor || (!step->fits && step->steps < YOUNG_STEPS)) &&
	    step->calls >= step->next_search) {
		uint64_t found = step->found_count;

		nt_step_search(step); /* a better one may exist now */
		if (step->found_count != found)
			return false;
	}
	if (!kind->in_pattern) {
		if (!nt_step_counts(kind, step->floor_bytes))
			return false;
		kind->foreign++;
		step->strange++;
		if (has_vanished(step)) {
			nt_step_forget(step);
			step->next_search = step->calls;
		} else if (needs_longer(step, kind)) {
			nt_step_search(step);
		}
		return false;
	}
	step->strange = 0;
	if (!begins_step(step, index)) {
		step->previous = index;
		step->anchors_seen += index == step->anchor;
		step->since++;
		if (is_over(step))
			nt_step_forget(step);
		return false;
	}
	if (step->gap) {
		step->gap = false;
		step->bad = 0;
		step->begin_ns = 0;
	} else if (is_bad_length(step)) {
		uint64_t found = step->found_count;

		if (is_forward_alone(step)) {
			step->aside += step->since;
			step->previous = index;
			step->since = 1;
			step->anchors_seen = 1;
			return false;
		}
		step->bad++;
		/* One of many steps of a wrong length: a longer search may find a better period. */
		if (!is_in_phase(step) && step->calls >= step->next_search)
			nt_step_search(step);
		if (step->found_count != found)
			return false;
	} else {
		step->bad = 0;
	}
	step->aside = 0;
	step->previous = index;
	step->since = 1;
	step->anchors_seen = 1;
	if (step->bad >= BAD_STEPS) {
		nt_step_forget(step);
		step->next_search = step->calls;
		return false;
	}
	take_time(step, entry_ns);
	step->number = kind->total / step->anchors;
	return true;
}

/* A better explanation of the step may appear later, or a worse one disappear. */
static bool look_again(struct nt_step *step, uint16_t index)
{
	if (!step->found || step->by_anchor || step->steps < step->next_refine ||
	    index != step->base_anchor)
		return false;
	/* If a marker begins the step, it is unknown which of several calls begins a period. */
	if (step->base_anchors > 1 && (step->marker != NT_KIND_NONE || step->anchors_seen != 1))
		return false;
	return nt_step_refine(step);
}

/* A round is recognised by its parts, which repeat sooner. */
static bool is_like_before(struct nt_step *step)
{
	if (step->step_ns < step->before_ns / 2)
		return false;
	step->before_ns = 0;
	return true;
}

bool nt_step_call(struct nt_step *step, const struct nt_step_call *call)
{
	struct nt_step_entry entry = push_call(step, call);

	if (step->found) {
		uint16_t index = step->loose ? entry.loose : entry.exact;
		bool begins = follow(step, index, call->entry_ns);

		if (look_again(step, index))
			begins = follow(step, index, call->entry_ns);
		return begins && is_like_before(step);
	}
	if (step->calls >= step->next_search)
		nt_step_search(step);
	return false;
}

void nt_step_gap(struct nt_step *step)
{
	/* Shorter steps are accepted after some gaps. */
	step->before_ns -= step->before_ns / 8;
	step->last_ns = 0;
	step->busy_ns = 0;
	step->idle_ns = 0;
	step->begin_ns = 0;
	if (!step->found)
		return;
	if (!step->by_anchor && (step->anchors > 1 || step->before_ns)) {
		if (step->step_ns > step->before_ns)
			step->before_ns = step->step_ns;
		nt_step_forget(step);
		step->next_search = step->calls + NT_STEP_CALLS_MIN;
		return;
	}
	step->gap = true;
	step->since = 0;
	step->aside = 0;
	step->anchors_seen = 0;
	/* Calls at the start of a run of anchors may be missing: the rest begins no step. */
	step->previous = step->by_anchor ? step->anchor : NT_KIND_NONE;
}

void nt_step_info(const struct nt_step *step, struct nt_step_info *ret_info)
{
	const struct nt_step_kind *anchor = &step->kind[step->anchor];

	*ret_info = (struct nt_step_info){
		.found = step->found,
		.by_anchor = step->by_anchor,
		.period = step->period,
		.anchor_comm = anchor->comm,
		.anchor_kind = anchor->stable,
		.anchors = step->anchors,
		.step_ns = step->step_ns > step->before_ns ? step->step_ns : step->before_ns,
		.is_unsure = step->before_ns != 0,
		.number = step->number,
		.found_count = step->found_count,
		.unknown_kinds = step->unknown_kinds,
	};
}
