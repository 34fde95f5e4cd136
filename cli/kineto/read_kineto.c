/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of PyTorch profiler traces (Kineto, Chrome's trace format), one file per rank. It relies
 * on GPU kernels: own work is the time in which a kernel that is not NCCL's ran. A collective is
 * identified by its index in a rank's sequence of NCCL kernels. If the traces have process groups,
 * it is the index in that of the group. Without a device, Gloo's and MPI's records give the start
 * and end of calls, and own work is the time outside of them. Clocks are those of the hosts.
 */
#include "cli/readers/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kineto/kineto.h"
#include "cli/readers/pool.h"
#include "common/base/search.h"
#include "proto/text.h"

void nt_kineto_rank_release(struct nt_kineto_rank *rank)
{
	free(rank->kernel);
	free(rank->span);
	free(rank->work);
	free(rank->launch);
	free(rank->wait);
	free(rank->step);
	free(rank->gap_ns);
	free(rank->late_ns);
	free(rank->comm);
	free(rank->group);
	*rank = (struct nt_kineto_rank){0};
}

void nt_kineto_ranks_release(struct nt_kineto_ranks *ranks)
{
	for (size_t i = 0; i < ranks->ranks; i++)
		nt_kineto_rank_release(&ranks->rank[i]);
	free(ranks->rank);
}

/* ---- one file ----------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct nt_kineto_interval *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

size_t nt_kineto_merge(struct nt_kineto_interval *interval, size_t count)
{
	size_t joined = 0;

	for (size_t i = 0; i < count; i++) {
		struct nt_kineto_interval *last = &interval[joined ? joined - 1 : 0];

		if (!joined || interval[i].start_ns > last->end_ns)
			interval[joined++] = interval[i];
		else if (interval[i].end_ns > last->end_ns)
			last->end_ns = interval[i].end_ns;
	}
	return joined;
}

/* For the host: merges the intervals of calls, and of operators. */
static int join_spans(struct nt_kineto_rank *out)
{
	out->span = calloc(out->kernels, sizeof(*out->span));
	if (!out->span)
		return -ENOMEM;
	memcpy(out->span, out->kernel, out->kernels * sizeof(*out->span));
	out->spans = nt_kineto_merge(out->span, out->kernels);
	if (out->works)
		qsort(out->work, out->works, sizeof(*out->work), by_start);
	out->works = nt_kineto_merge(out->work, out->works);
	return 0;
}

int nt_kineto_settle(struct nt_kineto_rank *out)
{
	int r;

	qsort(out->kernel, out->kernels, sizeof(*out->kernel), by_start);
	if (out->on_host) {
		r = join_spans(out);
		if (r < 0)
			return r;
	}
	nt_kineto_number_calls(out);
	out->comm = calloc(out->kernels, sizeof(*out->comm));
	if (!out->comm)
		return -ENOMEM;
	for (size_t i = 0; i < out->kernels; i++)
		if (out->kernel[i].comm)
			out->comm[out->comms++] = &out->kernel[i];
	if (!out->on_host)
		nt_kineto_match_launches(out);
	if (out->steps) {
		qsort(out->step, out->steps, sizeof(*out->step), by_start);
	} else {
		r = nt_kineto_find_steps(out);
		if (r < 0)
			return r;
	}
	if (out->waits)
		qsort(out->wait, out->waits, sizeof(*out->wait), by_start);
	out->waits = nt_kineto_merge(out->wait, out->waits);
	return out->on_host ? 0 : nt_kineto_place_steps(out);
}

static int read_rank(struct nt_kineto_rank *out, struct nt_trace_error *error)
{
	int r = nt_kineto_read_file(out, error);

	if (r < 0)
		return r;
	if (!out->kernels && out->spans) {
		free(out->kernel);
		out->kernel = nt_take(out->span);
		out->kernels = out->spans;
		out->on_host = true;
	}
	if (!out->kernels)
		return nt_trace_refuse(
			error,
			"%s: no GPU kernels, nor calls of Gloo or MPI: was it recorded with ProfilerActivity.CUDA?",
			out->path);
	return nt_kineto_settle(out);
}

/* ---- all ranks together ------------------------------------------------------------------- */

/* The first that starts at or after that time. */
static size_t first_kernel(const struct nt_kineto_rank *trace, uint64_t from)
{
	return nt_search_first(0, trace->kernels, i, trace->kernel[i].start_ns >= from);
}

/* Length of the union of the intervals that are (not) communication and start in [from, to). */
static uint64_t busy_ns(const struct nt_kineto_rank *trace, bool comm, uint64_t from, uint64_t to)
{
	uint64_t end = 0, sum = 0;

	for (size_t i = first_kernel(trace, from); i < trace->kernels; i++) {
		const struct nt_kineto_interval *k = &trace->kernel[i];

		if (k->start_ns >= to)
			break;
		if (k->comm != comm || k->end_ns <= end)
			continue;
		sum += k->end_ns - (k->start_ns > end ? k->start_ns : end);
		end = k->end_ns;
	}
	return sum;
}

/* The time in [from, to) covered by disjoint intervals: on the host they may exceed a step. */
uint64_t nt_kineto_covered_ns(const struct nt_kineto_interval *interval, size_t count,
			      uint64_t from, uint64_t to)
{
	size_t low = nt_search_first(0, count, i, interval[i].end_ns > from);
	uint64_t sum = 0;

	for (; low < count && interval[low].start_ns < to; low++) {
		const uint64_t start = interval[low].start_ns, end = interval[low].end_ns;

		sum += (end < to ? end : to) - (start > from ? start : from);
	}
	return sum;
}

/* The trace has no thread states. Operators count as computing. */
static void fill_host(const struct nt_kineto_rank *in, uint64_t from, uint64_t to,
		      struct nt_frame_rank *out)
{
	out->comm_ns = nt_kineto_covered_ns(in->span, in->spans, from, to);
	out->own_ns = out->host_ns = to - from - out->comm_ns;
	out->on_cpu_ns = nt_kineto_covered_ns(in->work, in->works, from, to);
}

/* Start and end of a rank's n-th step; without any, the whole trace is one step. */
static bool step_bounds(const struct nt_kineto_rank *trace, size_t n, uint64_t *ret_start,
			uint64_t *ret_end)
{
	const struct nt_kineto_interval *last = &trace->kernel[trace->kernels - 1];

	if (!trace->steps) {
		*ret_start = trace->kernel[0].start_ns;
		*ret_end = last->end_ns;
		return n == 0;
	}
	if (n >= trace->steps)
		return false;
	*ret_start = trace->step[n].start_ns;
	*ret_end = n + 1 < trace->steps && !trace->step[n].ends_file ? trace->step[n + 1].start_ns
								     : trace->step[n].end_ns;
	/* Kernels continue after the host's last step has ended. */
	if (n + 1 == trace->steps && !trace->cuts && last->end_ns > *ret_end)
		*ret_end = last->end_ns;
	return true;
}

/* Host work of all steps of a rank. */
static int find_late(struct nt_kineto_rank *rank)
{
	uint64_t from = 0, to = 0;

	if (!rank->has_launches)
		return 0;
	rank->late_ns = calloc(rank->steps + 1, sizeof(*rank->late_ns));
	if (!rank->late_ns)
		return -ENOMEM;
	for (size_t n = 0; step_bounds(rank, n, &from, &to); n++)
		rank->late_ns[n] = nt_kineto_late_ns(rank, from, to);
	return nt_kineto_spread_late(rank, rank->late_ns);
}

/* Start and end of the step that a rank has in the next frame, if that is of the given file. */
static bool next_step(const struct nt_kineto_rank *rank, size_t file, uint64_t *ret_start,
		      uint64_t *ret_end)
{
	return !rank->ahead && step_bounds(rank, rank->next, ret_start, ret_end) &&
	       file == (rank->steps ? rank->step[rank->next].file : 0);
}

static int add_step(struct nt_trace *trace, const struct nt_kineto_ranks *in, size_t file,
		    bool *ret_more)
{
	const uint32_t expected = trace->world ? trace->world : (uint32_t)in->ranks;
	struct nt_trace_frame *out = NULL;
	uint64_t start = UINT64_MAX, end = 0;
	size_t seen = 0, samples = 0;
	int r;

	for (size_t i = 0; i < in->ranks; i++) {
		uint64_t from = 0, to = 0;

		if (!next_step(&in->rank[i], file, &from, &to))
			continue;
		seen++;
		samples += nt_kineto_count_samples(&in->rank[i], from, to);
		start = from < start ? from : start;
		end = to > end ? to : end;
	}
	*ret_more = seen > 0;
	if (!seen)
		return 0;
	r = nt_trace_frame_add(trace, in->ranks, samples, &out);
	if (r < 0)
		return r;
	if (trace->frames > 1 && trace->frame[trace->frames - 2].frame.end_ns > start)
		start = trace->frame[trace->frames - 2].frame.end_ns;
	out->frame.start_ns = start;
	out->frame.end_ns = end > start ? end : start + 1;
	out->frame.ranks = in->ranks;
	out->frame.expected_ranks = expected;
	out->frame.completeness = (double)seen / expected;

	for (size_t i = 0; i < in->ranks; i++) {
		struct nt_frame_rank *rank = &out->rank[i];
		uint64_t from = 0, to = 0;

		*rank = (struct nt_frame_rank){
			.rank = in->rank[i].rank,
			.node = in->rank[i].node,
			.own_tier = in->rank[i].on_host ? NT_FRAME_T2 : NT_FRAME_T3,
			.rank_known = true,
			.uses_gpu = !in->rank[i].on_host,
			.stage = -1,
			.replica = -1,
		};
		if (!next_step(&in->rank[i], file, &from, &to)) {
			in->rank[i].ahead -= in->rank[i].ahead > 0;
			continue;
		}
		rank->observed = true;
		rank->steps = 1;
		rank->step_ns = rank->window_ns = to - from;
		if (in->rank[i].on_host) {
			fill_host(&in->rank[i], from, to, rank);
		} else {
			rank->own_ns = rank->own_blocked_ns =
				busy_ns(&in->rank[i], false, from, to);
			rank->comm_ns = busy_ns(&in->rank[i], true, from, to);
			rank->no_host = !in->rank[i].has_launches;
			if (in->rank[i].has_launches)
				rank->host_ns = in->rank[i].late_ns[in->rank[i].next];
		}
		r = nt_kineto_add_comms(&in->rank[i], from, to, trace, out, rank);
		if (r < 0)
			return r;
		in->rank[i].next++;
	}
	nt_kineto_sort_samples(out);
	return 0;
}

/* All must belong to one job. left_out: ranks without any file that is read. */
static int check_ranks(const struct nt_kineto_ranks *in, size_t left_out, struct nt_trace *trace,
		       struct nt_trace_error *error)
{
	const struct nt_kineto_rank *stated = NULL; /* has the size of the job */

	for (size_t i = 0; i < in->ranks; i++) {
		const struct nt_kineto_rank *rank = &in->rank[i];

		if (!rank->world)
			continue;
		if (stated && rank->world != stated->world)
			return nt_trace_refuse(
				error, "%s and %s: not of one job: the sizes are %u and %u ranks",
				stated->path, rank->path, stated->world, rank->world);
		stated = rank;
	}
	/* A file without a size may have a rank beyond the size in the others. */
	if (stated && in->rank[in->ranks - 1].rank >= stated->world)
		return nt_trace_refuse(
			error, "%s and %s: not of one job: the first states a size of %u ranks",
			stated->path, in->rank[in->ranks - 1].path, stated->world);
	trace->world = stated ? stated->world : 0;
	if (!stated && left_out)
		trace->world = (uint32_t)(in->ranks + left_out);
	return 0;
}

int nt_kineto_make_trace(struct nt_kineto_ranks *in, struct nt_trace *trace,
			 struct nt_trace_error *error)
{
	const size_t damaged = trace->unread; /* files: those of a rank may be several */
	size_t files = 1;
	int r;

	r = nt_kineto_join_files(in, trace, &files, error);
	r = r ?: check_ranks(in, files > 1 ? trace->unread - damaged : damaged, trace, error);
	r = r ?: nt_kineto_find_nodes(in, trace);
	if (r < 0)
		return r;
	/* Derived groups are numbered in the order of their calls, which a missing file shifts. */
	if (!trace->partial && !nt_kineto_has_groups(in)) {
		r = nt_kineto_derive_groups(in, trace->world);
		if (r < 0)
			return r;
		if (nt_kineto_has_groups(in))
			trace->remark =
				"these traces do not state process groups: they were derived from "
				"which calls end together";
	}
	r = nt_kineto_add_collectives(in, trace);
	if (r == 0 && !nt_kineto_has_groups(in)) {
		r = nt_kineto_assume_group(in);
		trace->ungrouped = in->ranks > 1 && !nt_kineto_has_groups(in);
	}
	if (r < 0)
		return r;
	r = nt_kineto_agree_steps(in);
	if (r == 0 && files == 1)
		r = nt_kineto_align_steps(in);
	if (r < 0)
		return r;
	for (size_t i = 0; i < in->ranks; i++) {
		r = find_late(&in->rank[i]);
		if (r < 0)
			return r;
		trace->dropped += in->rank[i].dropped;
		trace->hostless += !in->rank[i].on_host && !in->rank[i].has_launches;
	}
	if (files > 1 && !trace->remark)
		trace->remark =
			"each rank has several files: they were joined in the order of time";
	for (size_t file = 0; file < files; file++) {
		for (bool more = true; more;) {
			r = add_step(trace, in, file, &more);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* One file, read by a thread of the pool. */
struct kineto_reading {
	struct nt_kineto_rank rank;
	struct nt_trace_error error;
	int r;
};

static void read_one(void *data, size_t i)
{
	struct kineto_reading *reading = (struct kineto_reading *)data + i;

	reading->r = read_rank(&reading->rank, &reading->error);
}

static void release_readings(struct kineto_reading *reading, size_t count)
{
	for (size_t i = 0; reading && i < count; i++)
		nt_kineto_rank_release(&reading[i].rank);
	free(reading);
}

/* Takes over what was read, in the order of the files, and notes why others were not. */
static int collect(struct kineto_reading *reading, size_t count, struct nt_kineto_ranks *in,
		   struct nt_trace *trace, struct nt_trace_error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (reading[i].r < 0) {
			int r;

			*error = reading[i].error;
			r = nt_trace_leave_out(trace, reading[i].r, error);
			if (r < 0)
				return r;
			continue;
		}
		in->rank[in->ranks++] = reading[i].rank;
		reading[i].rank = (struct nt_kineto_rank){0};
	}
	return 0;
}

static int read_ranks(const char *const *paths, size_t count, struct nt_kineto_ranks *in,
		      struct nt_trace *trace, struct nt_trace_error *error)
{
	struct kineto_reading *reading = calloc(count, sizeof(*reading));
	int r;

	if (!reading)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		reading[i].rank.path = paths[i];
	nt_pool_run(nt_pool_threads(), count, read_one, reading);
	r = collect(reading, count, in, trace, error);
	release_readings(reading, count);
	return r;
}

int nt_trace_read_kineto(const char *const *paths, size_t count, struct nt_trace **ret_trace,
			 struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(nt_kineto_ranks_release))) struct nt_kineto_ranks in = {0};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	int r;

	r = nt_trace_new(count, &trace);
	if (r < 0)
		return r;
	in.rank = calloc(count, sizeof(*in.rank));
	if (!in.rank)
		return -ENOMEM;
	r = read_ranks(paths, count, &in, trace, ret_error);
	if (r < 0)
		return r;
	r = nt_trace_check_read(trace, in.ranks, ret_error);
	if (r < 0)
		return r;
	r = nt_kineto_make_trace(&in, trace, ret_error);
	if (r < 0)
		return r;
	*ret_trace = nt_take(trace);
	return 0;
}
