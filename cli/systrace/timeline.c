/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/systrace/timeline.h"

#include <assert.h>
#include <errno.h>

#include "cli/readers/period.h"
#include "cli/systrace/bursts.h"
#include "common/base/search.h"
#include "proto/wire.h"

/* Delay from launch to start on an idle device. */
static const uint64_t launch_ns = 100000;

static int by_start(const void *a, const void *b)
{
	const struct nt_marker_op *x = *(const struct nt_marker_op *const *)a;
	const struct nt_marker_op *y = *(const struct nt_marker_op *const *)b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/*
 * The device's own part of the gap before the operation. It is all of the gap if the operation was
 * launched early in it, as the device then had work for the rest. A host that runs ahead waits for
 * the device now and then. A short part of the gap before the launch does not mean an idle device.
 */
static uint64_t device_part(const struct nt_marker_op *op, uint64_t gap_start_ns)
{
	const uint64_t gap = op->start_ns - gap_start_ns;
	uint64_t behind;

	if (op->launched_ns <= gap_start_ns)
		return gap;
	behind = op->start_ns > op->launched_ns ? op->start_ns - op->launched_ns : 0;
	if (behind > gap / 2)
		return gap;
	return behind > launch_ns ? behind : 0;
}

int nt_timeline_make(const struct nt_markers *markers, struct nt_timeline *line)
{
	nt_autofree const struct nt_marker_op **op = calloc(markers->ops + 1, sizeof(*op));

	line->busy = calloc(markers->ops + 1, sizeof(*line->busy));
	if (!op || !line->busy)
		return -ENOMEM;
	for (size_t i = 0; i < markers->ops; i++)
		op[i] = &markers->op[i];
	qsort(op, markers->ops, sizeof(*op), by_start);
	for (size_t i = 0; i < markers->ops; i++) {
		struct nt_busy *last = line->busies ? &line->busy[line->busies - 1] : NULL;

		if (last && op[i]->start_ns <= last->end_ns) {
			if (op[i]->end_ns > last->end_ns)
				last->end_ns = op[i]->end_ns;
			continue;
		}
		const uint64_t device_ns = last ? device_part(op[i], last->end_ns) : 0;

		line->busy[line->busies++] = (struct nt_busy){
			.start_ns = op[i]->start_ns,
			.end_ns = op[i]->end_ns,
			.before_ns = last ? last->before_ns + last->end_ns - last->start_ns : 0,
			.device_ns = last ? last->device_ns + device_ns : 0,
			.early_ns = last && device_ns == op[i]->start_ns - last->end_ns &&
						    op[i]->launched_ns > last->end_ns
					    ? op[i]->launched_ns - last->end_ns
					    : 0,
		};
	}
	return 0;
}

void nt_timeline_release(struct nt_timeline *line)
{
	free(line->busy);
}

void nt_timeline_sum(const struct nt_timeline *line, uint64_t time_ns, uint64_t *ret_comm,
		     uint64_t *ret_device)
{
	const size_t low = nt_search_first(0, line->busies, i, line->busy[i].start_ns > time_ns);
	const struct nt_busy *last;

	*ret_comm = *ret_device = 0;
	if (!low)
		return;
	last = &line->busy[low - 1];
	*ret_comm = last->before_ns + (time_ns < last->end_ns ? time_ns : last->end_ns) -
		    last->start_ns;
	*ret_device = last->device_ns;
}

uint64_t nt_timeline_longest(const struct nt_timeline *line, uint64_t from_ns, uint64_t to_ns,
			     uint64_t *ret_early_ns)
{
	uint64_t longest = 0;

	*ret_early_ns = 0;
	for (size_t i = nt_search_first(1, line->busies, j, line->busy[j].start_ns > from_ns);
	     i < line->busies && line->busy[i].start_ns <= to_ns; i++) {
		const uint64_t gap = line->busy[i].start_ns - line->busy[i - 1].end_ns;

		if (gap <= longest)
			continue;
		longest = gap;
		*ret_early_ns = line->busy[i].early_ns;
	}
	return longest;
}

void nt_steps_release(struct nt_steps *steps)
{
	free(steps->step);
}

/* Calls and their kinds, as nt_period_find() takes them. */
struct period_calls {
	uint32_t *call;
	uint64_t *shape;
};

static void release_calls(struct period_calls *list)
{
	free(list->call);
	free(list->shape);
}

/* A kind of marker and what makes it one kind of call. */
struct marker_key {
	uint64_t group, shape;
	uint32_t kind;
};

static int by_group_shape(const void *a, const void *b)
{
	const struct marker_key *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->shape > y->shape) - (x->shape < y->shape);
}

/* The upper half holds the bytes: of calls that occur once per step, a small one is usually last. */
static uint64_t shape_of(const struct nt_marker_kind *kind)
{
	const uint64_t bytes = kind->op == NT_OP_BARRIER ? 1 : kind->bytes;

	return (bytes < UINT32_MAX ? bytes : UINT32_MAX) << 32 | kind->shape >> 32;
}

/* Numbers the kinds of calls: the volume exchanged among experts varies from call to call. */
static int number_kinds(const struct nt_markers *markers, uint32_t *number, uint64_t *shape,
			uint32_t *ret_kinds)
{
	nt_autofree struct marker_key *key = calloc((size_t)markers->kinds + 1, sizeof(*key));
	uint32_t kinds = 0;

	if (!key)
		return -ENOMEM;
	for (uint32_t i = 0; i < markers->kinds; i++)
		key[i] = (struct marker_key){markers->kind[i].group, markers->kind[i].shape, i};
	qsort(key, markers->kinds, sizeof(*key), by_group_shape);
	for (uint32_t i = 0; i < markers->kinds; i++) {
		kinds += i == 0 || by_group_shape(&key[i], &key[i - 1]) != 0;
		number[key[i].kind] = kinds - 1;
		shape[kinds - 1] = shape_of(&markers->kind[key[i].kind]);
	}
	*ret_kinds = kinds;
	return 0;
}

/* Before each call the time in which none runs. NULL: -ENOMEM. */
static uint64_t *list_idle(const struct nt_markers *markers)
{
	uint64_t *idle_ns = calloc(markers->ops + 1, sizeof(*idle_ns));
	uint64_t end_ns = 0;

	for (size_t i = 0; idle_ns && i < markers->ops; i++) {
		const struct nt_marker_op *op = &markers->op[i];

		idle_ns[i] = op->start_ns > end_ns ? op->start_ns - end_ns : 0;
		end_ns = op->end_ns > end_ns ? op->end_ns : end_ns;
	}
	return idle_ns;
}

static int find_period(const struct nt_markers *markers, struct period_calls *list,
		       struct nt_period *ret_period)
{
	nt_autofree uint32_t *number = calloc((size_t)markers->kinds + 1, sizeof(*number));
	nt_autofree uint64_t *idle_ns = list_idle(markers);
	uint32_t kinds;
	int r;

	list->call = calloc(markers->ops + 1, sizeof(*list->call));
	list->shape = calloc((size_t)markers->kinds + 1, sizeof(*list->shape));
	if (!list->call || !list->shape || !number || !idle_ns)
		return -ENOMEM;
	r = number_kinds(markers, number, list->shape, &kinds);
	if (r < 0)
		return r;
	for (size_t i = 0; i < markers->ops; i++)
		list->call[i] = number[markers->op[i].kind];
	return nt_period_find(list->call, markers->ops, idle_ns, list->shape, kinds, ret_period);
}

/* Bursts of calls without a period; *ret_calls 0: none. */
static int find_bursts(const struct nt_markers *markers, bool *first, uint32_t *ret_calls)
{
	nt_autofree uint64_t *idle_ns = list_idle(markers);

	return idle_ns ? nt_bursts_find(idle_ns, markers->ops, first, ret_calls) : -ENOMEM;
}

/* Whether the i-th operation ends a step; `calls`: since the last one, with this one. */
static bool is_end(const struct nt_markers *markers, const struct period_calls *list,
		   const struct nt_period *period, const bool *first, size_t i, size_t calls)
{
	if (period->has_anchor)
		return nt_period_ends(period, list->call, markers->ops, i);
	/* That of the last burst may be cut. */
	if (first)
		return i + 1 < markers->ops && first[i + 1];
	return calls >= period->calls;
}

/*
 * The first call of the first whole burst. Calls before it are those of a slow first step, with
 * pauses between them, or of a burst whose begin was not recorded: they make no step.
 */
static size_t first_whole(const bool *first, size_t calls, uint32_t burst)
{
	size_t begin = 0;

	for (size_t i = 1; i < calls; i++) {
		if (!first[i])
			continue;
		if (begin && i - begin == burst)
			return begin;
		begin = i;
	}
	return 0;
}

int nt_steps_cut(const struct nt_markers *markers, struct nt_steps *steps)
{
	__attribute__((cleanup(release_calls))) struct period_calls list = {0};
	nt_autofree bool *first = calloc(markers->ops + 1, sizeof(*first));
	struct nt_period period = {0};
	uint32_t burst = 0;
	uint64_t from_ns = 0;
	bool has_start = false;
	size_t from = 0;
	int r;

	if (!first)
		return -ENOMEM;
	r = find_period(markers, &list, &period);
	if (r == 0 && (period.calls == 1 || period.doubtful))
		r = find_bursts(markers, first, &burst);
	if (r < 0)
		return r;
	/* One burst in a period is that step, or all of it but for its norm. */
	if (period.calls > 1 && 2 * burst > period.calls)
		burst = 0;
	if (burst)
		period = (struct nt_period){.calls = burst};
	assert(period.calls);
	steps->step = calloc(markers->ops + 1, sizeof(*steps->step));
	if (!steps->step)
		return -ENOMEM;
	if (burst)
		from = first_whole(first, markers->ops, burst);
	if (from) {
		has_start = true;
		from_ns = markers->op[from - 1].end_ns;
	}
	for (size_t i = from; i < markers->ops; i++) {
		const struct nt_marker_op *op = &markers->op[i];
		const size_t calls = i + 1 - from;

		if (!is_end(markers, &list, &period, burst ? first : NULL, i, calls))
			continue;
		/* Operations of two streams may end in another order than they were launched in. */
		if (has_start && op->end_ns <= from_ns)
			continue;
		if (has_start) {
			const size_t count = (calls + period.calls / 2) / period.calls;

			steps->step[steps->steps++] = (struct nt_timeline_step){
				.start_ns = from_ns,
				.end_ns = op->end_ns,
				.first = from,
				.last = i,
				.count = count ? (uint32_t)count : 1,
			};
		}
		has_start = true;
		from_ns = op->end_ns;
		from = i + 1;
	}
	return 0;
}

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int nt_steps_median(const struct nt_steps *steps, uint64_t *ret_ns)
{
	nt_autofree uint64_t *length = calloc(steps->steps + 1, sizeof(*length));

	if (!length)
		return -ENOMEM;
	for (size_t i = 0; i < steps->steps; i++)
		length[i] =
			(steps->step[i].end_ns - steps->step[i].start_ns) / steps->step[i].count;
	qsort(length, steps->steps, sizeof(*length), by_length);
	*ret_ns = length[steps->steps / 2] ? length[steps->steps / 2] : 1;
	return 0;
}
