/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the ranks whose clocks are too far apart for frames of equal steps. */
#include "cli/systrace/read_systrace_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	APART_PART = 4, /* of a step: clocks that are closer are left as they are */
	FIT_PART = 8, /* of a step: ends of one call */
	MIN_ENDS = 16, /* of a rank of which something can be said */
	MAX_REMARK = 256,
};

/* Lists the ends of all ranks. Returns their number of members. */
static size_t list_members(const struct nt_systrace_job *job, struct nt_clocks_member *member)
{
	size_t members = 0;

	for (size_t i = 0; i < job->files; i++)
		for (size_t j = 0; j < job->rank[i].members; j++) {
			const struct nt_systrace_member *of = &job->rank[i].member[j];

			if (member)
				member[members] = (struct nt_clocks_member){
					.group = of->group,
					.rank = (uint32_t)i,
					.call = of->call,
					.calls = of->ends,
				};
			members++;
		}
	return members;
}

/* The text lies in the arena. -ENOMEM. */
static int remark(struct nt_trace *trace, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int remark(struct nt_trace *trace, const char *fmt, ...)
{
	char *text = nt_arena_alloc(&trace->arena, MAX_REMARK);
	va_list args;

	if (!text)
		return -ENOMEM;
	va_start(args, fmt);
	(void)vsnprintf(text, MAX_REMARK, fmt, args);
	va_end(args);
	trace->remark = text;
	return 0;
}

/*
 * A rank whose collectives with others do not end when theirs do. Sends may pair with those of
 * several members, as in a pipeline.
 */
static bool is_unknown(const struct nt_systrace_rank *rank, const struct nt_clocks_member *member,
		       size_t members, const struct nt_clock *clock, size_t of)
{
	for (size_t i = 0; i < rank->members; i++)
		for (size_t j = 0; j < members; j++)
			if (member[j].group == rank->member[i].group && member[j].rank != of &&
			    rank->member[i].ends >= MIN_ENDS && rank->member[i].call[0].shape &&
			    member[j].calls >= MIN_ENDS && clock[member[j].rank].known)
				return true;
	return false;
}

int nt_systrace_compare_clocks(struct nt_systrace_job *job, size_t *ret_ranks)
{
	const size_t members = list_members(job, NULL);
	nt_autofree struct nt_clocks_member *member = calloc(members + 1, sizeof(*member));
	nt_autofree struct nt_clock *clock = calloc(job->files, sizeof(*clock));
	const uint64_t limit_ns = job->grid.step_ns / APART_PART;
	uint32_t first_unknown = 0, farthest = 0;
	uint64_t most_ns = 0;
	size_t unknown = 0, far = 0;

	*ret_ranks = 0;
	if (!member || !clock)
		return -ENOMEM;
	(void)list_members(job, member);
	nt_clocks_find(member, members, job->files, (uint32_t)job->reference,
		       job->grid.step_ns / FIT_PART, clock);
	for (size_t i = 0; i < job->files; i++) {
		const int64_t ahead_ns = clock[i].ahead_ns;
		const uint64_t apart_ns = (uint64_t)(ahead_ns < 0 ? -ahead_ns : ahead_ns);

		if (!clock[i].known && is_unknown(&job->rank[i], member, members, clock, i)) {
			first_unknown = unknown++ ? first_unknown : job->file[i].rank;
			continue;
		}
		if (apart_ns <= limit_ns)
			continue;
		job->file[i].ahead_ns = ahead_ns;
		far++;
		if (apart_ns > most_ns) {
			most_ns = apart_ns;
			farthest = job->file[i].rank;
		}
	}
	*ret_ranks = far;
	if (unknown)
		return remark(
			job->trace,
			"the clocks of %zu ranks (first: %u) are not known, as their calls do "
			"not end when those of others do: comparisons by time may be wrong",
			unknown, first_unknown);
	if (!far)
		return 0;
	return remark(
		job->trace,
		"clocks corrected: those of %zu of %zu ranks differ from rank %u's, at most by "
		"%.3g s (rank %u), as the ends of their collectives show",
		far, job->files, job->file[job->reference].rank, (double)most_ns / 1e9, farthest);
}
