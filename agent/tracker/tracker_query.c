/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results of the queries of CUDA events that ranks make. */
#include "agent/tracker/tracker_impl.h"

#include "common/system/clock.h"

void nt_tracker_add_completion(struct nt_tracker_stats *sum, const struct nt_rank *rank)
{
	const struct nt_completion_stats *more;

	if (!rank->completion)
		return;
	more = nt_completion_stats(rank->completion);
	sum->completion.inside += more->inside;
	sum->completion.outside += more->outside;
	sum->completion.unproved += more->unproved;
	sum->completion.marks_over_cap += more->marks_over_cap;
	sum->completion.queries_over_cap += more->queries_over_cap;
	sum->completion.measured += more->measured;
	sum->completion.given_up += more->given_up;
}

/* Over a second or more. Each query costs two traps, whether it makes an event or not. */
static bool is_over_rate(const struct nt_tracker *tracker, struct nt_process *process,
			 const struct nt_event_query *query)
{
	const uint64_t ns = query->h.entry_ns, was_ns = process->queries_ns;
	/* Threads count at once: a later event may have the lower number. */
	const uint64_t more =
		query->queries > process->queries ? query->queries - process->queries : 0;

	if (was_ns && ns < was_ns + NT_SECOND)
		return false;
	process->queries_ns = ns;
	process->queries = query->queries;
	return was_ns &&
	       (double)more * NT_SECOND > tracker->options.query_max * (double)(ns - was_ns);
}

bool nt_tracker_query(struct nt_tracker *tracker, const struct nt_event_query *query)
{
	struct nt_process *process = nt_tracker_process(tracker, query->h.pid);

	if (!process || !process->ranks) {
		tracker->stats.queries_unowned++;
		return true;
	}
	if (is_over_rate(tracker, process, query)) {
		tracker->stats.queries_over_rate++;
		for (uint32_t i = 0; i < process->ranks; i++)
			if (process->rank[i]->completion)
				nt_completion_reset(process->rank[i]->completion);
		return false;
	}
	/* An event is no rank's in particular. */
	if (process->ranks == 1)
		nt_rank_query(process->rank[0], query->event, query->h.flags & NT_QUERY_COMPLETE,
			      query->h.entry_ns);
	else
		tracker->stats.queries_unowned++;
	return true;
}
