/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes steps in frames and calls of communicators from one rank's markers. */
#include "cli/systrace/read_systrace_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/readers/collective.h"
#include "cli/systrace/lost_calls.h"
#include "cli/systrace/markers.h"
#include "cli/systrace/stage.h"
#include "cli/systrace/timeline.h"
#include "proto/wire.h"

enum {
	OPS = NT_OP_END,
};

/* NULL beyond the cap of a frame. */
static struct nt_systrace_member *find_member(struct nt_systrace_rank *rank, uint64_t group)
{
	for (size_t i = 0; i < rank->members; i++)
		if (rank->member[i].group == group)
			return &rank->member[i];
	if (rank->members == NT_FRAME_MAX_COMMS)
		return NULL;
	rank->member[rank->members] = (struct nt_systrace_member){.group = group};
	return &rank->member[rank->members++];
}

/* Grows at powers of two, so that no capacity is stored. */
static int make_room(void **list, size_t count, size_t size)
{
	void *grown;

	if ((count & (count - 1)) != 0)
		return 0;
	grown = reallocarray(*list, count ? count * 2 : 1, size);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	return 0;
}

/* Finds or adds the tally of that kind in the last window. */
static int find_tally(struct nt_systrace_rank *rank, const struct nt_marker_kind *kind,
		      struct nt_systrace_tally **ret_tally)
{
	const uint8_t size = nt_collective_size(kind->bytes);
	struct nt_systrace_window *window = &rank->window[rank->windows - 1];
	size_t lead = 0, last = 0;
	int r;

	for (size_t i = 0; i < window->tallies && !lead; i++) {
		const struct nt_systrace_tally *at = &rank->tally[window->tally + i];

		if (at->leads && at->group == kind->group && at->op == kind->op)
			lead = window->tally + i + 1;
	}
	for (size_t i = lead; i; i = rank->tally[i - 1].next) {
		last = i;
		if (rank->tally[i - 1].size == size) {
			*ret_tally = &rank->tally[i - 1];
			return 0;
		}
	}
	r = make_room((void **)&rank->tally, rank->tallies, sizeof(*rank->tally));
	if (r < 0)
		return r;
	if (last)
		rank->tally[last - 1].next = rank->tallies + 1;
	rank->tally[rank->tallies] = (struct nt_systrace_tally){.group = kind->group,
								.op = kind->op,
								.frame_kind = kind->frame_kind,
								.size = size,
								.leads = !last};
	*ret_tally = &rank->tally[rank->tallies++];
	window->tallies++;
	return 0;
}

/* Its end, if it is that of all members. */
static int add_end(struct nt_systrace_member *member, const struct nt_marker_kind *kind,
		   const struct nt_marker_op *op)
{
	const bool sends = kind->frame_kind == NT_FRAME_POINT_TO_POINT;
	int r;

	if (kind->frame_kind != NT_FRAME_SYNCHRONISING && kind->frame_kind != NT_FRAME_ALL_TO_ALL &&
	    !sends)
		return 0;
	/* Sends count only where nothing better is known. */
	if (sends && member->ends && member->call[0].shape)
		return 0;
	if (!sends && member->ends && !member->call[0].shape)
		member->ends = 0;
	if (member->ends == NT_CLOCKS_MAX_CALLS)
		return 0;
	r = make_room((void **)&member->call, member->ends, sizeof(*member->call));
	if (r < 0)
		return r;
	member->call[member->ends++] = (struct nt_clocks_call){
		.end_ns = op->end_ns,
		.shape = sends ? 0 : kind->shape | 1,
	};
	return 0;
}

static int tally_call(struct nt_systrace_rank *rank, const struct nt_marker_kind *kind,
		      const struct nt_marker_op *op)
{
	const uint64_t length = op->end_ns - op->start_ns;
	struct nt_systrace_tally *tally = NULL;
	struct nt_systrace_member *member = find_member(rank, kind->group);
	int r;

	if (!member) {
		rank->dropped++;
		return 0;
	}
	member->calls++;
	r = add_end(member, kind, op);
	if (r < 0)
		return r;
	if (kind->frame_kind == NT_FRAME_SYNCHRONISING)
		member->use |= NT_STAGE_REDUCES;
	else if (kind->frame_kind == NT_FRAME_POINT_TO_POINT)
		member->use |= NT_STAGE_SENDS;
	r = find_tally(rank, kind, &tally);
	if (r < 0)
		return r;
	if (!tally->calls) {
		tally->first = member->calls;
		tally->min_ns = length;
	}
	tally->calls++;
	tally->bytes += kind->bytes;
	tally->last = member->calls;
	tally->sum_ns += length;
	if (length < tally->min_ns)
		tally->min_ns = length;
	return 0;
}

static int add_step(const struct nt_grid *grid, struct nt_systrace_rank *rank,
		    const struct nt_markers *markers, const struct nt_timeline *line,
		    const struct nt_timeline_step *step)
{
	const int64_t bin = nt_grid_bin(grid, step->end_ns);
	uint64_t comm_from, comm_to, comm_ns, device_from, device_to, own_ns, longest_ns, early_ns;
	struct nt_systrace_window *window;
	int r;

	if (!rank->windows || rank->window[rank->windows - 1].bin != bin) {
		r = make_room((void **)&rank->window, rank->windows, sizeof(*rank->window));
		if (r < 0)
			return r;
		rank->window[rank->windows++] = (struct nt_systrace_window){
			.bin = bin, .start_ns = step->start_ns, .tally = rank->tallies};
	}
	window = &rank->window[rank->windows - 1];
	nt_timeline_sum(line, step->start_ns, &comm_from, &device_from);
	nt_timeline_sum(line, step->end_ns, &comm_to, &device_to);
	comm_ns = comm_to - comm_from + step->lost_ns;
	own_ns = step->end_ns - step->start_ns - comm_ns;
	longest_ns = nt_timeline_longest(line, step->start_ns, step->end_ns, &early_ns);
	/* The call that was lost may be in the longest gap. */
	if (step->lost_ns && longest_ns > own_ns)
		longest_ns = own_ns;
	if (early_ns > longest_ns)
		early_ns = longest_ns;
	window->end_ns = step->end_ns;
	window->steps += step->count;
	window->step_ns += step->end_ns - step->start_ns;
	window->comm_ns += comm_ns;
	window->own_ns += own_ns;
	window->longest_ns += step->count * longest_ns;
	window->early_ns += step->count * early_ns;
	window->device_ns += device_to - device_from < own_ns ? device_to - device_from : own_ns;
	for (size_t i = step->first; i <= step->last; i++) {
		r = tally_call(rank, &markers->kind[markers->op[i].kind], &markers->op[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The operation that sysTrace would watch: all-gathers, frequent among tensor-parallel ranks; else
 * the next that synchronises; else the one that takes longest in total.
 */
static void choose_op(const struct nt_markers *markers, struct nt_trace_rank_info *info)
{
	static const uint8_t preferred[] = {NT_OP_ALL_GATHER, NT_OP_REDUCE_SCATTER,
					    NT_OP_ALL_REDUCE};
	uint64_t sum[OPS] = {0};
	int best = 0;

	for (size_t i = 0; i < markers->ops; i++)
		sum[markers->kind[markers->op[i].kind].op] +=
			(markers->op[i].end_ns - markers->op[i].start_ns) / 1000 + 1;
	for (int i = 1; i < OPS; i++)
		best = sum[i] > sum[best] ? i : best;
	for (size_t i = sizeof(preferred); i-- > 0;)
		best = sum[preferred[i]] ? preferred[i] : best;
	for (uint32_t i = 0; i < markers->kinds && !*info->op; i++) {
		if (markers->kind[i].op != best)
			continue;
		(void)snprintf(info->op, sizeof(info->op), "%s", markers->kind[i].name);
		info->group = markers->kind[i].group;
	}
}

static uint64_t first_time(const struct nt_markers *markers)
{
	uint64_t first_ns = UINT64_MAX;

	for (size_t i = 0; i < markers->ops; i++) {
		const struct nt_marker_op *op = &markers->op[i];

		first_ns = op->start_ns < first_ns ? op->start_ns : first_ns;
		if (op->launch_ns && op->launch_ns < first_ns)
			first_ns = op->launch_ns;
	}
	return first_ns;
}

/* By the clock of the reference, which is no more than the first time behind. */
static void correct(struct nt_markers *markers, int64_t ahead_ns)
{
	const uint64_t ahead = (uint64_t)ahead_ns;

	for (size_t i = 0; i < markers->ops; i++) {
		struct nt_marker_op *op = &markers->op[i];

		op->start_ns -= ahead;
		op->end_ns -= ahead;
		if (op->launch_ns) {
			op->launch_ns -= ahead;
			op->launched_ns -= ahead;
		}
	}
}

void nt_systrace_release_rank(struct nt_systrace_rank *rank)
{
	for (size_t i = 0; i < rank->members; i++)
		free(rank->member[i].call);
	free(rank->window);
	free(rank->tally);
	*rank = (struct nt_systrace_rank){0};
}

int nt_systrace_read_rank(const struct nt_grid *grid, const struct nt_systrace_file *file,
			  struct nt_systrace_rank *rank, struct nt_trace_rank_info *info,
			  struct nt_trace_error *error)
{
	__attribute__((cleanup(nt_timeline_release))) struct nt_timeline line = {0};
	__attribute__((cleanup(nt_steps_release))) struct nt_steps steps = {0};
	nt_auto(nt_markers) struct nt_markers *markers = NULL;
	int r;

	r = nt_markers_read(file->path, &markers, error);
	if (r < 0)
		return r;
	rank->first_ns = first_time(markers);
	correct(markers, file->ahead_ns);
	choose_op(markers, info);
	r = nt_timeline_make(markers, &line);
	r = r ?: nt_steps_cut(markers, &steps);
	r = r ?: nt_lost_calls_find(markers, &line, &steps);
	if (r < 0)
		return r;
	info->lacks = !steps.steps;
	if (!steps.steps)
		return 0;
	rank->number = file->rank;
	for (size_t i = 0; i < steps.steps; i++) {
		r = add_step(grid, rank, markers, &line, &steps.step[i]);
		if (r < 0)
			return r;
	}
	return 0;
}
