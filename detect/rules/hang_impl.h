/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helpers for waiting times. Private to hang*.c and pause.c. */
#ifndef NT_DETECT_RULES_HANG_IMPL_H
#define NT_DETECT_RULES_HANG_IMPL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

static inline bool is_collective(uint8_t kind)
{
	return kind == NT_FRAME_SYNCHRONISING || kind == NT_FRAME_ALL_TO_ALL;
}

static inline bool is_live(const struct nt_detect_rank *rank)
{
	return !rank->ended && !rank->finalized && !rank->silent;
}

static inline uint64_t at_least(uint64_t floor_ns, uint64_t period_ns)
{
	return floor_ns > period_ns ? floor_ns : period_ns;
}

static inline uint64_t usual_periods(const struct nt_detect *detect, double periods)
{
	const struct nt_detect_step *step = &detect->step;
	const double usual_ns = step->past.ready ? step->past.value_centre : step->step_ns;

	return (uint64_t)fmin(periods * usual_ns, NT_PATIENCE_MOST_NS);
}

static inline bool is_recent(const struct nt_detect *detect, uint64_t when_ns, uint64_t span_ns)
{
	return when_ns && when_ns + span_ns > detect->end_ns;
}

static inline bool is_fresh(const struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	if (!rank->seen_frame)
		return false;
	return detect->frames - rank->seen_frame < NT_FRESH_FRAMES ||
	       (rank->sampled && is_recent(detect, rank->seen_ns, NT_FRESH_SAMPLED_NS));
}

static inline const struct nt_detect_link *find_link(const struct nt_detect_rank *rank,
						     const struct nt_detect_comm *comm)
{
	for (uint32_t i = 0; i < rank->links; i++)
		if (rank->link[i].comm == comm)
			return &rank->link[i];
	return NULL;
}

/*
 * Stopped by a signal: it waits for nobody, wherever it is. A debugger (state t) may have been
 * attached because of the hang.
 */
static inline bool is_stopped(const struct nt_detect_rank *rank)
{
	return rank->state == 'T';
}

/* In a call that ends when one other rank makes its own, or that waits for such calls. */
static inline bool is_in_peer_call(const struct nt_detect_rank *rank)
{
	return rank->inside.in_call && !is_collective(rank->inside.kind);
}

/* In a collective with unknown members: its agent attached too late to learn them. */
static inline bool is_in_unbound(const struct nt_detect_rank *rank)
{
	for (uint32_t i = 0; i < rank->links; i++)
		if (rank->link[i].comm->id == rank->inside.comm)
			return rank->inside.in_call && is_collective(rank->inside.kind) &&
			       rank->link[i].comm->members < 2;
	return false;
}

#endif
