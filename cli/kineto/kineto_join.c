/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several files of one rank, as a profiler writes them that records a few steps again and again. The
 * rank becomes one, with the steps of all files in the order of time. What lies between two files is
 * not recorded: no step contains it.
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

static uint64_t last_end(const struct nt_kineto_rank *rank)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < rank->kernels; i++)
		if (rank->kernel[i].end_ns > end_ns)
			end_ns = rank->kernel[i].end_ns;
	return end_ns;
}

/* Appends the elements of a list to another one, and frees the former. */
static int append(void **list, size_t *count, void **more, size_t more_count, size_t size)
{
	char *grown;

	if (more_count) {
		grown = reallocarray(*list, *count + more_count, size);
		if (!grown)
			return -ENOMEM;
		memcpy(grown + *count * size, *more, more_count * size);
		*list = grown;
		*count += more_count;
	}
	free(*more);
	*more = NULL;
	return 0;
}

static int append_intervals(struct nt_kineto_interval **list, size_t *count,
			    struct nt_kineto_interval **more, size_t *more_count)
{
	int r = append((void **)list, count, (void **)more, *more_count, sizeof(**list));

	*more_count = 0;
	return r;
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
	last = &rank->step[rank->steps - 1];
	last->ends_file = true;
	/* Kernels continue after the host's last step has ended. */
	if (!rank->cuts && end_ns > last->end_ns)
		last->end_ns = end_ns;
	return 0;
}

static int append_steps(struct nt_kineto_rank *to, struct nt_kineto_rank *from)
{
	size_t gaps = to->steps;
	int r = 0;

	if (to->gap_ns && from->gap_ns) {
		r = append((void **)&to->gap_ns, &gaps, (void **)&from->gap_ns, from->steps,
			   sizeof(*to->gap_ns));
	} else {
		free(to->gap_ns);
		to->gap_ns = NULL;
	}
	return r ?: append_intervals(&to->step, &to->steps, &from->step, &from->steps);
}

/* Adds a later file to a rank. Its collectives have to be listed anew. */
static int append_file(struct nt_kineto_rank *to, struct nt_kineto_rank *from)
{
	int r = nt_kineto_join_groups(to, from);

	r = r ?: append_steps(to, from);
	r = r ?: append_intervals(&to->kernel, &to->kernels, &from->kernel, &from->kernels);
	r = r ?: append_intervals(&to->span, &to->spans, &from->span, &from->spans);
	r = r ?: append_intervals(&to->work, &to->works, &from->work, &from->works);
	r = r ?: append_intervals(&to->wait, &to->waits, &from->wait, &from->waits);
	to->has_launches &= from->has_launches;
	to->cuts = from->cuts;
	to->dropped += from->dropped;
	return r;
}

static int check_files(const struct nt_kineto_rank *to, const struct nt_kineto_rank *from,
		       struct nt_trace_error *error)
{
	if (from->world != to->world)
		return nt_trace_refuse(error,
				       "%s and %s: not of one job: the sizes are %u and %u ranks",
				       to->path, from->path, to->world, from->world);
	if (from->kernel->start_ns < last_end(to) || from->on_host != to->on_host ||
	    from->step->start_ns < to->step[to->steps - 1].start_ns)
		return nt_trace_refuse(
			error,
			"%s and %s: both are of rank %u, and overlap: pass the files of one recording",
			to->path, from->path, to->rank);
	return 0;
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
	int r = 0;

	/* Launches have been matched. Ranks agree on derived steps within one file only. */
	free(rank->launch);
	rank->launch = NULL;
	rank->launches = 0;
	rank->step_calls = 0;
	for (size_t i = 0; i < files && r == 0; i++)
		r = close_steps(&rank[i]);
	for (size_t i = 1; i < files && r == 0; i++) {
		r = check_files(rank, &rank[i], error);
		r = r ?: append_file(rank, &rank[i]);
	}
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

int nt_kineto_join_files(struct nt_kineto_ranks *in, size_t *ret_files,
			 struct nt_trace_error *error)
{
	size_t joined = 0, files;

	if (in->ranks)
		qsort(in->rank, in->ranks, sizeof(*in->rank), by_rank_and_time);
	*ret_files = in->ranks ? count_files(in, 0) : 1;
	for (size_t i = 0; i < in->ranks; i += files) {
		files = count_files(in, i);
		/* Whose cycle is missing cannot be known: the clocks are those of the hosts. */
		if (files != *ret_files)
			return nt_trace_refuse(
				error,
				"rank %u has %zu files, and rank %u has %zu: pass as many of each, as those of one recording",
				in->rank[0].rank, *ret_files, in->rank[i].rank, files);
	}
	if (*ret_files <= 1)
		return 0;
	for (size_t i = 0; i < in->ranks; i += *ret_files, joined++) {
		int r = join_rank(&in->rank[i], *ret_files, error);

		if (r < 0)
			return r;
		for (size_t j = 1; j < *ret_files; j++)
			nt_kineto_rank_release(&in->rank[i + j]);
		if (i == joined)
			continue;
		in->rank[joined] = in->rank[i];
		in->rank[i] = (struct nt_kineto_rank){0};
	}
	in->ranks = joined;
	return 0;
}
