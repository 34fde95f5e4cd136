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
	MAX_REMARK = 640,
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

/* Adds to the remark, which lies in the arena. -ENOMEM. */
static int remark(struct nt_trace *trace, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int remark(struct nt_trace *trace, const char *fmt, ...)
{
	char *text = nt_arena_alloc(&trace->arena, MAX_REMARK);
	va_list args;
	int len;

	if (!text)
		return -ENOMEM;
	len = snprintf(text, MAX_REMARK, "%s%s", trace->remark ? trace->remark : "",
		       trace->remark ? "; " : "");
	va_start(args, fmt);
	if (len >= 0 && len < MAX_REMARK)
		(void)vsnprintf(text + len, (size_t)(MAX_REMARK - len), fmt, args);
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

/* Clocks that are not known, that are not corrected, and that are. */
struct clock_kinds {
	size_t unknown, early, far;
	uint32_t first_unknown, first_early, farthest;
	uint64_t most_ns; /* of the farthest */
};

static int note(struct nt_systrace_job *job, const struct clock_kinds *kinds)
{
	int r = 0;

	if (kinds->unknown)
		r = remark(job->trace,
			   "the clocks of %zu ranks (first: %u) are not known, as their calls do "
			   "not end when those of others do: comparisons by time may be wrong",
			   kinds->unknown, kinds->first_unknown);
	if (r == 0 && kinds->early)
		r = remark(job->trace,
			   "the clocks of %zu ranks (first: %u) were not corrected, as times would "
			   "be negative: comparisons by time may be wrong",
			   kinds->early, kinds->first_early);
	if (r == 0 && kinds->far)
		r = remark(job->trace,
			   "clocks corrected: those of %zu of %zu ranks differ from rank %u's, at "
			   "most by %.3g s (rank %u), as the ends of their collectives show",
			   kinds->far, job->files, job->file[job->reference].rank,
			   (double)kinds->most_ns / 1e9, kinds->farthest);
	return r;
}

int nt_systrace_compare_clocks(struct nt_systrace_job *job, size_t *ret_ranks)
{
	const size_t members = list_members(job, NULL);
	nt_autofree struct nt_clocks_member *member = calloc(members + 1, sizeof(*member));
	nt_autofree struct nt_clock *clock = calloc(job->files, sizeof(*clock));
	const uint64_t limit_ns = job->grid.step_ns / APART_PART;
	struct clock_kinds kinds = {0};

	*ret_ranks = 0;
	if (!member || !clock)
		return -ENOMEM;
	(void)list_members(job, member);
	nt_clocks_find(member, members, job->files, (uint32_t)job->reference,
		       job->grid.step_ns / FIT_PART, clock);
	for (size_t i = 0; i < job->files; i++) {
		const int64_t ahead_ns = clock[i].ahead_ns;
		const uint64_t apart_ns = (uint64_t)(ahead_ns < 0 ? -ahead_ns : ahead_ns);
		const uint32_t rank = job->file[i].rank;

		if (!clock[i].known && is_unknown(&job->rank[i], member, members, clock, i)) {
			kinds.first_unknown = kinds.unknown++ ? kinds.first_unknown : rank;
		} else if (apart_ns <= limit_ns) {
			continue;
		} else if (ahead_ns > 0 && apart_ns > job->rank[i].first_ns) {
			kinds.first_early = kinds.early++ ? kinds.first_early : rank;
		} else {
			job->file[i].ahead_ns = ahead_ns;
			kinds.far++;
			kinds.farthest = apart_ns > kinds.most_ns ? rank : kinds.farthest;
			kinds.most_ns = apart_ns > kinds.most_ns ? apart_ns : kinds.most_ns;
		}
	}
	*ret_ranks = kinds.far;
	return note(job, &kinds);
}
