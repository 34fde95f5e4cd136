/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several files of one rank, as a profiler writes them that records a few steps again and again. The
 * rank becomes one, with the steps of all files in the order of time. What lies between two files is
 * not recorded: no step contains it. A rank that lacks a file is absent in the steps of that cycle.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_rank_and_time(const void *a, const void *b)
{
	const struct nt_kineto_rank *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->kernel->start_ns > y->kernel->start_ns) -
	       (x->kernel->start_ns < y->kernel->start_ns);
}

/* Moves a list of all files of a rank into the first one's. */
static int join_list(struct nt_kineto_rank *rank, size_t files, size_t list_at, size_t count_at)
{
	struct nt_kineto_interval **list = (void *)((char *)rank + list_at), *grown;
	size_t *count = (void *)((char *)rank + count_at), sum = 0;

	for (size_t i = 0; i < files; i++) {
		const size_t *more_count = (const void *)((const char *)&rank[i] + count_at);

		sum += *more_count;
	}
	if (!sum)
		return 0;
	grown = reallocarray(*list, sum, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*list = grown;
	for (size_t i = 1; i < files; i++) {
		struct nt_kineto_interval **more = (void *)((char *)&rank[i] + list_at);
		size_t *more_count = (void *)((char *)&rank[i] + count_at);

		if (*more_count)
			memcpy(&grown[*count], *more, *more_count * sizeof(*grown));
		*count += *more_count;
		*more_count = 0;
		free(nt_take(*more));
	}
	return 0;
}

/* Closes the last step of a file. A file without steps is one. */
static int close_steps(struct nt_kineto_rank *rank)
{
	const uint64_t end_ns = rank->kernel[rank->kernels - 1].end_ns;
	const struct nt_kineto_interval whole = {.start_ns = rank->kernel->start_ns,
						 .end_ns = end_ns};
	struct nt_kineto_interval *last;

	if (!rank->steps) {
		int r = nt_kineto_add_interval(&rank->step, &rank->steps, &whole);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < rank->steps; i++)
		rank->step[i].file = (uint32_t)rank->cycle;
	last = &rank->step[rank->steps - 1];
	last->ends_file = true;
	/* Kernels continue after the host's last step has ended. */
	if (!rank->cuts && end_ns > last->end_ns)
		last->end_ns = end_ns;
	return 0;
}

/* The longest gaps of all steps, if all files have them. */
static int join_gaps(struct nt_kineto_rank *rank, size_t files)
{
	size_t sum = 0;
	bool all = true;
	uint64_t *gap_ns;

	for (size_t i = 0; i < files; i++) {
		sum += rank[i].steps;
		all &= rank[i].gap_ns != NULL;
	}
	gap_ns = all ? calloc(sum + 1, sizeof(*gap_ns)) : NULL;
	if (all && !gap_ns)
		return -ENOMEM;
	sum = 0;
	for (size_t i = 0; i < files; sum += rank[i++].steps)
		if (all)
			memcpy(&gap_ns[sum], rank[i].gap_ns, rank[i].steps * sizeof(*gap_ns));
	free(rank->gap_ns);
	rank->gap_ns = gap_ns;
	return 0;
}

/* Adds the later files to the first one. Its collectives have to be listed anew. */
static int join_lists(struct nt_kineto_rank *rank, size_t files)
{
#define LIST(list, count)                                                                          \
	join_list(rank, files, offsetof(struct nt_kineto_rank, list),                              \
		  offsetof(struct nt_kineto_rank, count))
	int r = join_gaps(rank, files);

	r = r ?: LIST(step, steps);
	r = r ?: LIST(kernel, kernels);
	r = r ?: LIST(span, spans);
	r = r ?: LIST(work, works);
	r = r ?: LIST(wait, waits);
#undef LIST
	for (size_t i = 1; i < files; i++) {
		rank->has_launches &= rank[i].has_launches;
		rank->cuts = rank[i].cuts;
		rank->dropped += rank[i].dropped;
	}
	return r;
}

/* end_ns: of the files before `from`, of which the last is `before`. */
static int check_files(const struct nt_kineto_rank *to, const struct nt_kineto_rank *before,
		       const struct nt_kineto_rank *from, uint64_t end_ns,
		       struct nt_trace_error *error)
{
	if (from->world != to->world)
		return nt_trace_refuse(error,
				       "%s and %s: not of one job: the sizes are %u and %u ranks",
				       to->path, from->path, to->world, from->world);
	if (from->kernel->start_ns < end_ns || from->on_host != to->on_host ||
	    from->step->start_ns < before->step[before->steps - 1].start_ns)
		return nt_trace_refuse(
			error,
			"%s and %s: both are of rank %u, and overlap: pass the files of one recording",
			to->path, from->path, to->rank);
	return 0;
}

/* The latest end of the file, or that of the files before it. */
static uint64_t last_end(const struct nt_kineto_rank *rank, uint64_t end_ns)
{
	for (size_t i = 0; i < rank->kernels; i++)
		if (rank->kernel[i].end_ns > end_ns)
			end_ns = rank->kernel[i].end_ns;
	return end_ns;
}

static int list_collectives(struct nt_kineto_rank *rank)
{
	free(rank->comm);
	rank->comms = 0;
	rank->comm = calloc(rank->kernels, sizeof(*rank->comm));
	if (!rank->comm)
		return -ENOMEM;
	for (size_t i = 0; i < rank->kernels; i++)
		if (rank->kernel[i].comm)
			rank->comm[rank->comms++] = &rank->kernel[i];
	return 0;
}

/* Joins the files of one rank, which are sorted by time, in the first of them. */
static int join_rank(struct nt_kineto_rank *rank, size_t files, struct nt_trace_error *error)
{
	uint64_t end_ns = 0;
	int r = 0;

	/* Launches have been matched. Ranks agree on derived steps within one file only. */
	free(rank->launch);
	rank->launch = NULL;
	rank->launches = 0;
	rank->step_calls = 0;
	for (size_t i = 0; i < files && r == 0; i++)
		r = close_steps(&rank[i]);
	for (size_t i = 1; i < files && r == 0; i++) {
		end_ns = last_end(&rank[i - 1], end_ns);
		r = check_files(rank, &rank[i - 1], &rank[i], end_ns, error);
		r = r ?: nt_kineto_join_groups(rank, &rank[i]);
	}
	r = r ?: join_lists(rank, files);
	rank->waits = nt_kineto_merge(rank->wait, rank->waits);
	rank->spans = nt_kineto_merge(rank->span, rank->spans);
	rank->works = nt_kineto_merge(rank->work, rank->works);
	return r ?: list_collectives(rank);
}

static size_t count_files(const struct nt_kineto_ranks *in, size_t first)
{
	size_t n = first;

	while (n < in->ranks && in->rank[n].rank == in->rank[first].rank)
		n++;
	return n - first;
}

/* Of any rank. */
static size_t most_files(const struct nt_kineto_ranks *in)
{
	size_t most = 0, files;

	for (size_t i = 0; i < in->ranks; i += files) {
		files = count_files(in, i);
		most = files > most ? files : most;
	}
	return most;
}

/* Whether the files overlap in more than half of the shorter one: other clocks differ by less. */
static bool is_one_cycle(const struct nt_kineto_rank *a, const struct nt_kineto_rank *b)
{
	const uint64_t a_start = a->kernel->start_ns, a_end = a->kernel[a->kernels - 1].end_ns;
	const uint64_t b_start = b->kernel->start_ns, b_end = b->kernel[b->kernels - 1].end_ns;
	const uint64_t start = a_start > b_start ? a_start : b_start;
	const uint64_t end = a_end < b_end ? a_end : b_end;
	const uint64_t a_ns = a_end - a_start, b_ns = b_end - b_start;

	return end > start && (end - start) * 2 > (a_ns < b_ns ? a_ns : b_ns);
}

/* Whether the rank lacks another file than `whole`, which has as many. */
static bool is_shifted(const struct nt_kineto_rank *rank, const struct nt_kineto_rank *whole,
		       size_t cycles)
{
	for (size_t i = 0; i < cycles; i++) {
		if (is_one_cycle(&rank[i], &whole[i]))
			continue;
		if ((i && is_one_cycle(&rank[i], &whole[i - 1])) ||
		    (i + 1 < cycles && is_one_cycle(&rank[i], &whole[i + 1])))
			return true;
	}
	return false;
}

/*
 * Of the ranks with most files, one that has the same as most of these, if there is a majority: the vote
 * of Boyer and Moore. Returns its place.
 */
static size_t find_whole(const struct nt_kineto_ranks *in, size_t cycles)
{
	size_t votes = 0, whole = 0, files;

	for (size_t i = 0; i < in->ranks; i += files) {
		files = count_files(in, i);
		if (files != cycles)
			continue;
		if (!votes)
			whole = i;
		if (!votes || !is_shifted(&in->rank[i], &in->rank[whole], cycles))
			votes++;
		else
			votes--;
	}
	return whole;
}

/* Finds the cycles of a rank that lacks files. False if its clock does not tell them. */
static bool place_files(struct nt_kineto_rank *rank, size_t files,
			const struct nt_kineto_rank *whole, size_t cycles)
{
	size_t at = 0;

	for (size_t i = 0; i < files; i++) {
		while (at < cycles && !is_one_cycle(&rank[i], &whole[at]))
			at++;
		if (at == cycles)
			return false;
		rank[i].cycle = at++;
	}
	return true;
}

/*
 * Calls without a number are counted by file. All ranks count on from the same numbers, also those
 * that lack a file. If some do, a call without a group has the number of calls before its file.
 */
static int number_on(struct nt_kineto_ranks *in, size_t cycles, bool is_partial)
{
	nt_autofree uint64_t *base = calloc(cycles + 1, sizeof(*base));
	nt_autofree uint64_t *calls = calloc(cycles + 1, sizeof(*calls));

	if (!base || !calls)
		return -ENOMEM;
	for (size_t i = 0; i < in->ranks; i++) {
		const struct nt_kineto_rank *rank = &in->rank[i];
		uint64_t *most = &base[rank->cycle + 1], *most_calls = &calls[rank->cycle + 1];

		*most_calls = rank->comms > *most_calls ? rank->comms : *most_calls;

		for (size_t j = 0; j < rank->groups; j++) {
			*most = rank->group[j].calls > *most ? rank->group[j].calls : *most;
			*most = rank->group[j].p2p_calls > *most ? rank->group[j].p2p_calls : *most;
		}
	}
	for (size_t i = 0; i < cycles; i++) {
		base[i + 1] += base[i];
		calls[i + 1] += calls[i];
	}
	for (size_t i = 0; is_partial && i < in->ranks; i++)
		for (size_t j = 0; j < in->rank[i].comms; j++)
			if (!in->rank[i].comm[j]->group) {
				in->rank[i].comm[j]->number = calls[in->rank[i].cycle];
				in->rank[i].comm[j]->stated = false;
			}
	for (size_t i = 0; i < in->ranks; i++)
		for (size_t j = 0; j < in->rank[i].kernels; j++)
			if (in->rank[i].kernel[j].group && !in->rank[i].kernel[j].stated)
				in->rank[i].kernel[j].number += base[in->rank[i].cycle];
	return 0;
}

/* Releases the files of a rank whose cycles are not known, if the missing one is damaged. */
static int leave_out(struct nt_kineto_rank *rank, size_t files, size_t cycles,
		     struct nt_trace *trace, struct nt_trace_error *error)
{
	int r = nt_trace_refuse(
		error,
		files < cycles
			? "rank %u has %zu files, and others have %zu: which one is missing is not clear"
			: "rank %u has %zu files of %zu, but not those that others have",
		rank->rank, files, cycles);

	if (!trace->unread)
		return r;
	for (size_t i = 0; i < files; i++)
		nt_kineto_rank_release(&rank[i]);
	return nt_trace_leave_out(trace, r, error);
}

/* Whether the cycles of the rank's files are known. */
static bool is_placed(struct nt_kineto_rank *rank, size_t files, const struct nt_kineto_rank *whole,
		      size_t cycles, const struct nt_trace *trace)
{
	if (files < cycles)
		return place_files(rank, files, whole, cycles);
	return !trace->unread || !is_shifted(rank, whole, cycles);
}

/* Finds the cycles of all files, and leaves out ranks of which they are not known. */
static int place_ranks(struct nt_kineto_ranks *in, size_t cycles, size_t whole,
		       struct nt_trace *trace, struct nt_trace_error *error)
{
	size_t kept = 0, files;

	trace->partial = trace->unread > 0;
	for (size_t i = 0; i < in->ranks; i += files) {
		int r = 0;

		files = count_files(in, i);
		trace->partial |= files < cycles;
		for (size_t j = 0; j < files; j++)
			in->rank[i + j].cycle = j;
		if (!is_placed(&in->rank[i], files, &in->rank[whole], cycles, trace))
			r = leave_out(&in->rank[i], files, cycles, trace, error);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < in->ranks; i++) {
		if (!in->rank[i].kernels)
			continue;
		if (i != kept) {
			in->rank[kept] = in->rank[i];
			in->rank[i] = (struct nt_kineto_rank){0};
		}
		kept++;
	}
	in->ranks = kept;
	return 0;
}

int nt_kineto_join_files(struct nt_kineto_ranks *in, struct nt_trace *trace, size_t *ret_files,
			 struct nt_trace_error *error)
{
	size_t joined = 0, files, whole;
	int r;

	if (in->ranks)
		qsort(in->rank, in->ranks, sizeof(*in->rank), by_rank_and_time);
	*ret_files = most_files(in);
	if (*ret_files <= 1)
		return 0;
	whole = find_whole(in, *ret_files);
	r = place_ranks(in, *ret_files, whole, trace, error);
	r = r ?: number_on(in, *ret_files, trace->partial);
	for (size_t i = 0; i < in->ranks && r == 0; i += files, joined++) {
		files = count_files(in, i);
		r = join_rank(&in->rank[i], files, error);
		if (r < 0)
			return r;
		for (size_t j = 1; j < files; j++)
			nt_kineto_rank_release(&in->rank[i + j]);
		if (i == joined)
			continue;
		in->rank[joined] = in->rank[i];
		in->rank[i] = (struct nt_kineto_rank){0};
	}
	if (r == 0)
		in->ranks = joined;
	return r;
}
