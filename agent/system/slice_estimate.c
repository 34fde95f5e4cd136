/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/slice_estimate.h"

#include <stddef.h>

/* The estimate of one sum for the time since the last slice. */
static uint64_t gap_part(const struct nt_slice_estimate *estimate, int i, uint64_t gap_ns)
{
	return estimate->slice_ns ? (uint64_t)((double)estimate->last.of[i] * (double)gap_ns /
					       (double)estimate->slice_ns)
				  : 0;
}

/* ---- who took the CPU ----------------------------------------------------------------------- */

/* The place of the process; without room that of the one with least, if it has less. NULL: none. */
static struct nt_host_taker *place_of(struct nt_taken *taken, const struct nt_host_taker *taker)
{
	struct nt_host_taker *place = NULL, *least = &taken->taker[0];

	for (int i = 0; i < NT_HOST_TAKERS; i++) {
		struct nt_host_taker *t = &taken->taker[i];

		if (t->tgid == taker->tgid)
			return t;
		if (!t->tgid && !place)
			place = t;
		if (t->ns < least->ns)
			least = t;
	}
	if (!place && least->ns >= taker->ns)
		return NULL;
	place = place ? place : least;
	*place = *taker;
	place->ns = 0;
	return place;
}

static void add_taker(struct nt_taken *taken, const struct nt_host_taker *taker, uint64_t ns)
{
	struct nt_host_taker entry = *taker;
	struct nt_host_taker *place;

	if (!taker->tgid || !ns)
		return;
	taken->ns += ns;
	entry.ns = ns;
	place = place_of(taken, &entry);
	if (place)
		place->ns += ns;
}

/* The estimate for that part of the time since the last slice. */
static void add_gap(struct nt_slice_estimate *estimate, uint64_t gap_ns)
{
	const struct nt_taken *last = &estimate->last_taken;
	const uint64_t new_ns = gap_ns > estimate->gap_read_ns ? gap_ns - estimate->gap_read_ns : 0;

	estimate->gap_read_ns += new_ns;
	for (int i = 0; estimate->slice_ns && i < NT_HOST_TAKERS; i++)
		add_taker(&estimate->unread, &last->taker[i],
			  (uint64_t)((double)last->taker[i].ns * (double)new_ns /
				     (double)estimate->slice_ns));
}

void nt_slice_estimate_take(struct nt_slice_estimate *estimate,
			    const struct nt_host_taker taker[NT_HOST_TAKERS])
{
	for (int i = 0; i < NT_HOST_TAKERS; i++) {
		add_taker(&estimate->unread, &taker[i], taker[i].ns);
		add_taker(&estimate->slice, &taker[i], taker[i].ns);
	}
}

void nt_slice_estimate_read(struct nt_slice_estimate *estimate, uint64_t gap_ns,
			    struct nt_taken *ret_taken)
{
	add_gap(estimate, gap_ns);
	*ret_taken = estimate->unread;
	estimate->unread = (struct nt_taken){0};
}

/* ---- slices --------------------------------------------------------------------------------- */

void nt_slice_estimate_begin(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			     uint64_t gap_ns, uint64_t clock_ns)
{
	for (int i = 0; i < NT_SWITCH_SUMS; i++)
		estimate->extra.of[i] += gap_part(estimate, i, gap_ns);
	add_gap(estimate, gap_ns);
	estimate->start = *sums;
	estimate->start_clock_ns = clock_ns;
	estimate->slice = (struct nt_taken){0};
}

void nt_slice_estimate_end(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			   uint64_t clock_ns)
{
	estimate->gap_read_ns = 0;
	if (clock_ns < estimate->start_clock_ns + NT_SLICE_LEAST_NS)
		return;
	for (int i = 0; i < NT_SWITCH_SUMS; i++) {
		const uint64_t before = estimate->start.of[i];

		estimate->last.of[i] = sums->of[i] > before ? sums->of[i] - before : 0;
	}
	estimate->last_taken = estimate->slice;
	estimate->slice_ns = clock_ns - estimate->start_clock_ns;
}

void nt_slice_estimate_reset(struct nt_slice_estimate *estimate)
{
	const struct nt_taken unread = estimate->unread;

	*estimate = (struct nt_slice_estimate){.unread = unread};
}

void nt_slice_estimate_add(const struct nt_slice_estimate *estimate, uint64_t gap_ns,
			   struct nt_switch_sums *sums)
{
	for (int i = 0; i < NT_SWITCH_SUMS; i++)
		sums->of[i] += estimate->extra.of[i] + gap_part(estimate, i, gap_ns);
}
