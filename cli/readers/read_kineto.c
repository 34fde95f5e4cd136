/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of PyTorch profiler traces (Kineto, Chrome's trace format), one file per rank. It relies
 * on GPU kernels: own work is the time in which a kernel that is not NCCL's ran. A collective is
 * identified by its index in a rank's sequence of NCCL kernels, or in that of its process group if
 * the traces have it. Without a device, Gloo's and MPI's records give the start and end of calls,
 * and own work is the time outside of them. Clocks are those of the hosts.
 */
#include "cli/readers/trace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/input.h"
#include "cli/readers/kineto.h"
#include "common/base/buf.h"
#include "common/base/search.h"
#include "proto/text.h"

static void release_ranks(struct nt_kineto_ranks *traces)
{
	for (size_t i = 0; i < traces->ranks; i++) {
		free(traces->rank[i].kernel);
		free(traces->rank[i].span);
		free(traces->rank[i].work);
		free(traces->rank[i].step);
		free(traces->rank[i].comm);
		free(traces->rank[i].group);
	}
	free(traces->rank);
}

static void release_json(json_t **json)
{
	json_decref(*json);
}

/* ---- one file ----------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct nt_kineto_interval *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The rank: from the trace, else the first number in the file's name. */
static bool find_rank(const json_t *root, const char *path, uint32_t *ret_rank)
{
	const json_t *info = json_is_object(root) ? json_object_get(root, "distributedInfo") : NULL;
	const json_t *rank = json_object_get(info, "rank");
	const char *base = strrchr(path, '/');
	uint64_t number = 0;
	size_t digits = 0;

	if (json_is_integer(rank)) {
		*ret_rank = (uint32_t)json_integer_value(rank);
		return json_integer_value(rank) >= 0 &&
		       json_integer_value(rank) < NT_FRAME_MAX_RANKS;
	}
	base = base ? base + 1 : path;
	base += strcspn(base, "0123456789");
	for (; digits < 9 && isdigit((unsigned char)base[digits]); digits++)
		number = number * 10 + (uint64_t)(base[digits] - '0');
	*ret_rank = (uint32_t)number;
	return digits > 0 && number < NT_FRAME_MAX_RANKS;
}

/* The number of ranks in the job; missing in old files. */
static int find_world(const json_t *root, struct nt_kineto_rank *out, struct nt_trace_error *error)
{
	const json_t *info = json_is_object(root) ? json_object_get(root, "distributedInfo") : NULL;
	const json_t *size = json_object_get(info, "world_size");

	if (!size)
		return 0;
	if (!json_is_integer(size) || json_integer_value(size) <= (json_int_t)out->rank ||
	    json_integer_value(size) > NT_FRAME_MAX_RANKS)
		return nt_trace_refuse(error, "world_size is not a number from %u to %d",
				       out->rank + 1, NT_FRAME_MAX_RANKS);
	out->world = (uint32_t)json_integer_value(size);
	return 0;
}

/* Merges sorted intervals in place. Returns their number. */
static size_t join(struct nt_kineto_interval *interval, size_t count)
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
	out->spans = join(out->span, out->kernels);
	if (out->works)
		qsort(out->work, out->works, sizeof(*out->work), by_start);
	out->works = join(out->work, out->works);
	return 0;
}

static int read_rank(struct nt_kineto_rank *out, struct nt_trace_error *error)
{
	__attribute__((cleanup(release_json))) json_t *root = NULL;
	nt_autobuf struct nt_buf text = {0};
	const json_t *events, *base, *event;
	uint64_t base_ns = 0;
	size_t i;
	int r;

	r = nt_input_read(out->path, &text, error);
	r = r ?: nt_input_json(out->path, &text, &root, error);
	if (r < 0)
		return r;
	events = json_is_object(root) ? json_object_get(root, "traceEvents") : root;
	if (!json_is_array(events))
		return nt_trace_refuse(error,
				       "%s: no list 'traceEvents': not a PyTorch profiler trace",
				       out->path);
	if (!find_rank(root, out->path, &out->rank))
		return nt_trace_refuse(
			error,
			"%s: rank unknown: no distributedInfo.rank from 0 to %d, and no number in the file's name",
			out->path, NT_FRAME_MAX_RANKS - 1);
	r = find_world(root, out, error);
	r = r ?: nt_kineto_read_groups(out, json_object_get(root, "distributedInfo"), error);
	if (r == -EBADMSG)
		(void)nt_input_refuse_at(error, out->path, &text, "distributedInfo", SIZE_MAX,
					 "distributedInfo");
	if (r < 0)
		return r;
	base = json_is_object(root) ? json_object_get(root, "baseTimeNanoseconds") : NULL;
	if (json_is_integer(base) && json_integer_value(base) > 0)
		base_ns = (uint64_t)json_integer_value(base);

	json_array_foreach(events, i, event)
	{
		r = nt_kineto_read_event(out, event, base_ns, error);
		if (r == -EBADMSG)
			(void)nt_input_refuse_at(error, out->path, &text,
						 json_is_object(root) ? "traceEvents" : NULL, i,
						 "event");
		if (r < 0)
			return r;
	}
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
	for (i = 0; i < out->kernels; i++)
		if (out->kernel[i].comm)
			out->comm[out->comms++] = &out->kernel[i];
	if (!out->steps)
		return nt_kineto_find_steps(out);
	qsort(out->step, out->steps, sizeof(*out->step), by_start);
	return 0;
}

/* ---- all ranks together ------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct nt_kineto_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

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
static uint64_t covered_ns(const struct nt_kineto_interval *interval, size_t count, uint64_t from,
			   uint64_t to)
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
	out->comm_ns = covered_ns(in->span, in->spans, from, to);
	out->own_ns = out->host_ns = to - from - out->comm_ns;
	out->on_cpu_ns = covered_ns(in->work, in->works, from, to);
}

static int by_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Arrival times of the collectives that occur under one name in every rank's sequence. Where the
 * sequences diverge (sub-groups, a truncated trace), the comparison ends.
 */
static int add_collectives(struct nt_trace *trace, const struct nt_kineto_ranks *in)
{
	nt_autofree uint64_t *arrival = NULL;
	size_t calls = in->ranks ? SIZE_MAX : 0;

	for (size_t i = 0; i < in->ranks; i++)
		calls = in->rank[i].comms < calls ? in->rank[i].comms : calls;
	arrival = calloc(in->ranks + 1, sizeof(*arrival));
	trace->collective = calloc(calls ? calls : 1, sizeof(*trace->collective));
	if (!arrival || !trace->collective)
		return -ENOMEM;

	for (size_t c = 0; c < calls; c++) {
		struct nt_trace_collective *out = &trace->collective[c];
		uint64_t last = 0;

		*out = (struct nt_trace_collective){
			.number = c + 1, .ranks = in->ranks, .transfer_ns = UINT64_MAX};
		for (size_t i = 0; i < in->ranks; i++) {
			const struct nt_kineto_interval *k = in->rank[i].comm[c];

			if (i == 0)
				(void)snprintf(out->name, sizeof(out->name), "%s", k->name);
			else if (strcmp(out->name, k->name) != 0)
				return 0;
			arrival[i] = k->start_ns;
			if (k->start_ns >= last) {
				last = k->start_ns;
				out->last_rank = in->rank[i].rank;
			}
			if (k->end_ns - k->start_ns < out->transfer_ns)
				out->transfer_ns = k->end_ns - k->start_ns;
		}
		qsort(arrival, in->ranks, sizeof(*arrival), by_u64);
		out->spread_ns = last - arrival[0];
		out->lateness_ns = last - arrival[in->ranks / 2];
		trace->collectives = c + 1;
	}
	return 0;
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
	*ret_end = n + 1 < trace->steps ? trace->step[n + 1].start_ns : trace->step[n].end_ns;
	/* Kernels continue after the host's last step has ended. */
	if (n + 1 == trace->steps && !trace->cuts && last->end_ns > *ret_end)
		*ret_end = last->end_ns;
	return true;
}

static int add_step(struct nt_trace *trace, const struct nt_kineto_ranks *in, size_t n,
		    bool *ret_more)
{
	const uint32_t expected = trace->world ? trace->world : (uint32_t)in->ranks;
	struct nt_trace_frame *out = NULL;
	uint64_t start = UINT64_MAX, end = 0;
	size_t seen = 0, samples = 0;
	int r;

	for (size_t i = 0; i < in->ranks; i++) {
		uint64_t from = 0, to = 0;

		if (!step_bounds(&in->rank[i], n, &from, &to))
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
			.node = NT_FRAME_NO_NODE,
			.own_tier = in->rank[i].on_host ? NT_FRAME_T2 : NT_FRAME_T3,
			.rank_known = true,
			.uses_gpu = !in->rank[i].on_host,
			.stage = -1,
			.replica = -1,
		};
		if (!step_bounds(&in->rank[i], n, &from, &to))
			continue;
		rank->observed = true;
		rank->steps = 1;
		rank->step_ns = rank->window_ns = to - from;
		if (in->rank[i].on_host) {
			fill_host(&in->rank[i], from, to, rank);
		} else {
			rank->own_ns = rank->own_blocked_ns =
				busy_ns(&in->rank[i], false, from, to);
			rank->comm_ns = busy_ns(&in->rank[i], true, from, to);
		}
		r = nt_kineto_add_comms(&in->rank[i], from, to, trace, out, rank);
		if (r < 0)
			return r;
	}
	nt_kineto_sort_samples(out);
	return 0;
}

/* Sorts by rank; each must occur once, and all must belong to one job. */
static int check_ranks(const struct nt_kineto_ranks *in, struct nt_trace *trace,
		       struct nt_trace_error *error)
{
	const struct nt_kineto_rank *stated = NULL; /* has the size of the job */

	for (size_t i = 0; i < in->ranks; i++) {
		const struct nt_kineto_rank *rank = &in->rank[i];

		if (i && rank->rank == rank[-1].rank)
			return nt_trace_refuse(error, "%s and %s: both are of rank %u",
					       rank[-1].path, rank->path, rank->rank);
		if (!rank->world)
			continue;
		if (stated && rank->world != stated->world)
			return nt_trace_refuse(
				error, "%s and %s: not of one job, which had %u or %u ranks",
				stated->path, rank->path, stated->world, rank->world);
		stated = rank;
	}
	/* A file without a size may have a rank beyond the size in the others. */
	if (stated && in->rank[in->ranks - 1].rank >= stated->world)
		return nt_trace_refuse(error, "%s and %s: not of one job, which had %u ranks",
				       stated->path, in->rank[in->ranks - 1].path, stated->world);
	trace->world = stated ? stated->world : 0;
	return 0;
}

int nt_trace_read_kineto(const char *const *paths, size_t count, struct nt_trace **ret_trace,
			 struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_ranks))) struct nt_kineto_ranks in = {0};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	bool more = true;
	int r;

	if (count == 0 || count > NT_FRAME_MAX_RANKS)
		return -EINVAL;
	trace = calloc(1, sizeof(*trace));
	in.rank = calloc(count, sizeof(*in.rank));
	if (!trace || !in.rank)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		in.rank[i].path = paths[i];
		in.ranks = i + 1;
		r = read_rank(&in.rank[i], ret_error);
		if (r < 0)
			return r;
	}
	qsort(in.rank, in.ranks, sizeof(*in.rank), by_rank);
	r = check_ranks(&in, trace, ret_error);
	if (r < 0)
		return r;
	if (nt_kineto_has_groups(&in)) {
		r = nt_kineto_add_collectives(&in, trace);
	} else {
		r = add_collectives(trace, &in);
		r = r ?: nt_kineto_assume_group(&in);
		trace->ungrouped = in.ranks > 1 && !nt_kineto_has_groups(&in);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < in.ranks; i++)
		trace->dropped += in.rank[i].dropped;
	for (size_t n = 0; more; n++) {
		r = add_step(trace, &in, n, &more);
		if (r < 0)
			return r;
	}
	*ret_trace = nt_take(trace);
	return 0;
}
