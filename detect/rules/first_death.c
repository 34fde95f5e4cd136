/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/rules/first_death.h"

#include <stdbool.h>

#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* The numbers of Linux. */
enum {
	SIGNAL_HUP = 1,
	SIGNAL_INT = 2,
	SIGNAL_QUIT = 3,
	SIGNAL_KILL = 9,
	SIGNAL_TERM = 15,
	SIGNAL_XCPU = 24,
	/* a shell or a handler passes a signal on as this plus its number */
	STATUS_OF_SIGNAL_ZERO = 128,
};

/* The signal that ended the rank, also where it was passed on as a status; 0: none. */
static int signal_of(const struct nt_detect_rank *rank)
{
	if (rank->exit_signal)
		return rank->exit_signal;
	return rank->exit_status > STATUS_OF_SIGNAL_ZERO ? rank->exit_status - STATUS_OF_SIGNAL_ZERO
							 : 0;
}

/* Whether people, launchers and schedulers send the signal to whole jobs, which may take long. */
static bool is_from_outside(int signal)
{
	return signal == SIGNAL_TERM || signal == SIGNAL_INT || signal == SIGNAL_HUP ||
	       signal == SIGNAL_QUIT || signal == SIGNAL_XCPU;
}

static bool is_same_way(const struct nt_detect_rank *a, const struct nt_detect_rank *b)
{
	const int signal = signal_of(a);

	if (signal || signal_of(b))
		return signal == signal_of(b);
	return a->exit_status == b->exit_status;
}

/*
 * Whether both have one reason. Who kills a whole job reaches all its nodes within seconds. A
 * launcher whose rank was killed kills the rest, some at once, others after a delay for their
 * orderly end.
 */
static bool ended_together(const struct nt_detect_rank *first, const struct nt_detect_rank *rank)
{
	const int signal = signal_of(first);
	const uint64_t within_ns =
		signal == SIGNAL_KILL ? NT_DEATH_KILLED_TOGETHER_NS : NT_DEATH_TOGETHER_NS;

	if (rank->ended_by_parent && !first->ended_by_parent)
		return false;
	return is_same_way(rank, first) &&
	       (is_from_outside(signal) ||
		rank->ended_ns <= nt_stats_add(first->ended_ns, within_ns));
}

/* A process that was killed may take longer to end than one that was killed for it. */
static uint64_t sort_ns(const struct nt_detect_rank *rank)
{
	return nt_stats_add(rank->ended_ns, rank->ended_by_parent ? NT_DEATH_TOGETHER_NS : 0);
}

/* A total order, independent of position. */
static bool is_earlier(const struct nt_detect_rank *rank, const struct nt_detect_rank *other)
{
	if (sort_ns(rank) != sort_ns(other))
		return sort_ns(rank) < sort_ns(other);
	return rank->rank < other->rank;
}

bool nt_first_death_had_xid(const struct nt_detect_rank *rank)
{
	return rank->xid && rank->ended_ns <= nt_stats_add(rank->xid_ns, NT_DEATH_XID_NS);
}

static bool has_failed(const struct nt_detect_rank *rank)
{
	return rank->known && !rank->finalized && (rank->exit_signal || rank->exit_status);
}

/*
 * The only rank whose GPU had an error before, and that failed: all others may end at once, for that.
 * Else NULL. A signal from outside ends a job whatever its GPUs do.
 */
static const struct nt_detect_rank *find_failed_gpu(const struct nt_detect *detect)
{
	const struct nt_detect_rank *failed = NULL;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (!rank->ended || !nt_first_death_had_xid(rank))
			continue;
		if (failed)
			return NULL;
		failed = rank;
	}
	return failed && has_failed(failed) && !is_from_outside(signal_of(failed)) &&
			       signal_of(failed) != SIGNAL_KILL
		       ? failed
		       : NULL;
}

const struct nt_detect_rank *nt_first_death(const struct nt_detect *detect)
{
	const struct nt_detect_rank *first = NULL;
	uint32_t ended = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (!rank->ended)
			continue;
		ended++;
		if (!first || is_earlier(rank, first))
			first = rank;
	}
	if (ended >= 2 && find_failed_gpu(detect))
		return find_failed_gpu(detect);
	if (ended < 2 || !has_failed(first))
		return NULL;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (rank != first && rank->ended && ended_together(first, rank))
			return NULL;
	}
	return first;
}
