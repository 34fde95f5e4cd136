/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of sysTrace's communication markers, one file per rank. Own work is the time between the
 * operations on the device: a victim waits inside of them. It is device work if the next operation
 * was launched before the device reached it, else host work.
 */
#include "cli/systrace/read_systrace_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/collective.h"
#include "cli/readers/pool.h"
#include "cli/systrace/markers.h"
#include "cli/systrace/stage.h"
#include "proto/wire.h"

enum {
	MIN_STEPS = 10, /* of a rank whose steps delimit the frames of all */
	MAX_LIKE = 256, /* communicators of different use, size or number of calls */
	CALLS_PART = 16, /* recordings of ranks differ by at most this part of the calls */
};

static void release_job(struct nt_systrace_job *job)
{
	struct nt_systrace_comm *comm, *next;

	HASH_ITER(hh, job->comm, comm, next)
	{
		HASH_DEL(job->comm, comm);
		free(comm);
	}
	for (size_t i = 0; job->rank && i < job->files; i++)
		nt_systrace_release_rank(&job->rank[i]);
	free(job->rank);
	nt_grid_release(&job->grid);
	free(job->file);
	nt_trace_free(job->trace);
}

/* ---- all ranks together ------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct nt_systrace_file *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->path, y->path);
}

static int list_files(struct nt_systrace_job *job, const char *const *paths, size_t count)
{
	job->file = calloc(count, sizeof(*job->file));
	if (!job->file)
		return -ENOMEM;
	job->files = count;
	for (size_t i = 0; i < count; i++) {
		struct nt_systrace_file *file = &job->file[i];

		file->path = paths[i];
		if (!nt_markers_place(paths[i], &file->rank, &file->node))
			return nt_trace_refuse(
				job->error,
				"%s: rank unknown: expected a file name hccl_activity-IP-.RANK.csv, "
				"the rank from 0 to %d",
				paths[i], NT_FRAME_MAX_RANKS - 1);
	}
	qsort(job->file, count, sizeof(*job->file), by_rank);
	for (size_t i = 1; i < count; i++)
		if (job->file[i].rank == job->file[i - 1].rank)
			return nt_trace_refuse(job->error, "%s and %s: both are of rank %u",
					       job->file[i - 1].path, job->file[i].path,
					       job->file[i].rank);
	return 0;
}

static int list_ranks(struct nt_systrace_job *job)
{
	struct nt_trace *trace = job->trace;

	trace->rank_info = calloc(job->files, sizeof(*trace->rank_info));
	trace->node = calloc(job->files, sizeof(*trace->node));
	if (!trace->rank_info || !trace->node)
		return -ENOMEM;
	for (size_t i = 0; i < job->files; i++)
		trace->rank_info[trace->rank_infos++] = (struct nt_trace_rank_info){
			.rank = job->file[i].rank,
			.node = nt_trace_find_node(trace, &job->file[i].node),
		};
	trace->world = job->file[job->files - 1].rank + 1;
	return 0;
}

/* Uses this rank's steps as those of the job, if there are enough. */
static int take_steps(struct nt_systrace_job *job, const struct nt_systrace_file *file,
		      size_t least)
{
	__attribute__((cleanup(nt_steps_release))) struct nt_steps steps = {0};
	nt_auto(nt_markers) struct nt_markers *markers = NULL;
	struct nt_trace *trace = job->trace;
	int r;

	r = nt_markers_read(file->path, &markers, job->error);
	r = r ?: nt_steps_cut(markers, &steps);
	if (r < 0 || steps.steps < least)
		return r;
	r = nt_grid_make(&job->grid, &steps);
	if (r < 0)
		return r;
	trace->step = calloc(steps.steps, sizeof(*trace->step));
	if (!trace->step)
		return -ENOMEM;
	for (size_t i = 0; i < steps.steps; i++)
		trace->step[trace->steps++] =
			(struct nt_trace_step){steps.step[i].start_ns, steps.step[i].end_ns};
	return 0;
}

/* Those of the first rank with enough steps, else of the first with any. */
static int learn_steps(struct nt_systrace_job *job)
{
	for (size_t least = MIN_STEPS; least; least = least > 1 ? 1 : 0) {
		for (size_t i = 0; i < job->files && !job->grid.edge; i++) {
			int r;

			if (job->file[i].unread)
				continue;
			r = take_steps(job, &job->file[i], least);
			job->reference = i;
			if (r < 0 && !job->grid.edge) {
				r = nt_trace_leave_out(job->trace, r, job->error);
				job->file[i].unread = true;
			}
			if (r < 0)
				return r;
		}
	}
	if (job->trace->unread == job->files)
		return nt_trace_check_read(job->trace, 0, job->error);
	if (!job->grid.edge)
		return nt_trace_refuse(
			job->error,
			"%s: no step: expected two finished communication operations or more",
			job->file[0].path);
	return 0;
}

/* ---- the files of ranks ------------------------------------------------------------------- */

/* The n-th file, read by a thread of the pool. */
struct systrace_reading {
	struct nt_trace_error error;
	int r;
};

struct systrace_readings {
	struct nt_systrace_job *job;
	struct systrace_reading *reading;
	bool again; /* only those whose clock is to be corrected */
};

static void read_one(void *data, size_t i)
{
	const struct systrace_readings *readings = data;
	struct systrace_reading *reading = &readings->reading[i];
	struct nt_systrace_job *job = readings->job;

	if (readings->again && !job->file[i].ahead_ns)
		return;
	nt_systrace_release_rank(&job->rank[i]);
	if (!job->file[i].unread)
		reading->r = nt_systrace_read_rank(&job->grid, &job->file[i], &job->rank[i],
						   &job->trace->rank_info[i], &reading->error);
}

/* Numbers the rank in its communicators. */
static int add_members(struct nt_systrace_job *job, struct nt_systrace_rank *rank)
{
	for (size_t i = 0; i < rank->members; i++) {
		const uint64_t group = rank->member[i].group;
		struct nt_systrace_comm *comm = NULL;

		HASH_FIND(hh, job->comm, &group, sizeof(group), comm);
		if (!comm) {
			comm = calloc(1, sizeof(*comm));
			if (!comm)
				return -ENOMEM;
			comm->group = group;
			HASH_ADD(hh, job->comm, group, sizeof(comm->group), comm);
			if (!nt_table_has(comm)) {
				free(comm);
				return -ENOMEM;
			}
		}
		rank->member[i].index = comm->size++;
	}
	return 0;
}

/* Keeps the ranks with steps, in the order of the files, and notes which files were not read. */
static int collect(struct nt_systrace_job *job, struct systrace_reading *reading)
{
	for (size_t i = 0; i < job->files; i++) {
		struct nt_trace_rank_info *info = &job->trace->rank_info[i];
		int r = 0;

		if (reading[i].r < 0) {
			*job->error = reading[i].error;
			r = nt_trace_leave_out(job->trace, reading[i].r, job->error);
			job->file[i].unread = true;
		}
		if (r < 0)
			return r;
		info->lacks |= job->file[i].unread;
		if (info->lacks)
			continue;
		if (job->ranks < i) {
			job->rank[job->ranks] = job->rank[i];
			job->rank[i] = (struct nt_systrace_rank){0};
		}
		job->trace->dropped += job->rank[job->ranks].dropped;
		r = add_members(job, &job->rank[job->ranks++]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_ranks(struct nt_systrace_job *job)
{
	struct systrace_readings readings = {
		.job = job,
		.reading = calloc(job->files, sizeof(*readings.reading)),
	};
	size_t corrected = 0;
	int r;

	if (!readings.reading)
		return -ENOMEM;
	nt_pool_run(nt_pool_threads(), job->files, read_one, &readings);
	r = nt_systrace_compare_clocks(job, &corrected);
	readings.again = true;
	if (r == 0 && corrected)
		nt_pool_run(nt_pool_threads(), job->files, read_one, &readings);
	r = r ?: collect(job, readings.reading);
	free(readings.reading);
	return r;
}

/* ---- communicators ------------------------------------------------------------------------ */

static void add_uses(struct nt_systrace_job *job)
{
	for (size_t i = 0; i < job->ranks; i++)
		for (size_t j = 0; j < job->rank[i].members; j++) {
			const struct nt_systrace_member *member = &job->rank[i].member[j];
			struct nt_systrace_comm *comm = NULL;

			HASH_FIND(hh, job->comm, &member->group, sizeof(member->group), comm);
			if (!comm)
				continue;
			comm->use |= member->use;
			comm->whole = comm->size;
			comm->calls = member->calls > comm->calls ? member->calls : comm->calls;
		}
}

static bool is_alike(const struct nt_systrace_comm *a, const struct nt_systrace_comm *b)
{
	const uint64_t more = a->calls > b->calls ? a->calls : b->calls;
	const uint64_t less = a->calls > b->calls ? b->calls : a->calls;

	return a->use == b->use && more - less <= more / CALLS_PART;
}

/*
 * Some ranks have no file. A communicator then has a member that was not recorded if others with as
 * many calls of the same use have more members. That member may be the last to arrive, so that the
 * shortest of the other members' calls is no transfer.
 */
static void find_unseen(struct nt_systrace_job *job)
{
	const size_t unseen = job->trace->world - job->ranks;
	const struct nt_systrace_comm *like[MAX_LIKE];
	struct nt_systrace_comm *comm, *next;
	size_t n = 0;

	add_uses(job);
	if (!unseen)
		return;
	HASH_ITER(hh, job->comm, comm, next)
	{
		size_t i = 0;

		while (i < n && (like[i]->size != comm->size || !is_alike(like[i], comm)))
			i++;
		if (i == n && n < MAX_LIKE)
			like[n++] = comm;
	}
	HASH_ITER(hh, job->comm, comm, next)
	{
		/* What holds all recorded ranks holds the others, too. */
		if (comm->size == job->ranks)
			comm->whole = job->trace->world;
		for (size_t i = 0; i < n; i++)
			if (is_alike(like[i], comm) && like[i]->size > comm->whole &&
			    like[i]->size <= comm->size + unseen)
				comm->whole = like[i]->size;
	}
}

/* All members of all communicators are known: groups the ranks with the same work. */
static int find_stages(struct nt_systrace_job *job)
{
	nt_autofree struct nt_stage_link *link = NULL;
	nt_autofree int32_t *stage = calloc(job->ranks + 1, sizeof(*stage));
	size_t links = 0;
	int r;

	for (size_t i = 0; i < job->ranks; i++)
		links += job->rank[i].members;
	link = calloc(links + 1, sizeof(*link));
	if (!link || !stage)
		return -ENOMEM;
	links = 0;
	for (uint32_t i = 0; i < job->ranks; i++)
		for (size_t j = 0; j < job->rank[i].members; j++)
			link[links++] = (struct nt_stage_link){
				.comm = job->rank[i].member[j].group,
				.rank = i,
				.use = job->rank[i].member[j].use,
			};
	r = nt_stage_find(link, links, job->ranks, stage);
	if (r < 0)
		return r;
	for (size_t i = 0; i < job->ranks; i++)
		job->rank[i].stage = stage[i] < 0 ? -1 : (int32_t)job->rank[stage[i]].number;
	return 0;
}

/* An operation of a communicator, with calls of all sizes. */
static struct nt_frame_op add_up(const struct nt_systrace_rank *rank,
				 const struct nt_systrace_tally *lead)
{
	struct nt_frame_op op = {.op = lead->op, .kind = lead->frame_kind, .first = lead->first};
	const struct nt_systrace_tally *most = lead;

	for (const struct nt_systrace_tally *at = lead; at;
	     at = at->next ? &rank->tally[at->next - 1] : NULL) {
		op.calls += at->calls;
		op.bytes += at->bytes;
		op.sum_ns += at->sum_ns;
		op.first = at->first < op.first ? at->first : op.first;
		op.last = at->last > op.last ? at->last : op.last;
		if (at->bytes > most->bytes)
			most = at;
	}
	op.timed_calls = op.calls;
	op.by_gpu = true;
	op.min_ns = nt_collective_spread(most->min_ns, most->calls, op.calls);
	return op;
}

static void fill_comms(struct nt_systrace_job *job, struct nt_systrace_rank *rank,
		       const struct nt_systrace_window *window, struct nt_trace_frame *out,
		       size_t *comms, size_t *ops)
{
	struct nt_frame_rank *seen = &out->rank[out->frame.ranks];

	seen->comm = &out->comm[*comms];
	for (size_t i = 0; i < rank->members; i++) {
		struct nt_frame_comm *said = &out->comm[*comms];
		struct nt_systrace_comm *comm = NULL;

		*said = (struct nt_frame_comm){
			.id = rank->member[i].group,
			.rank = rank->member[i].index,
			/* Collection begins at a different call on each rank: numbers differ. */
			.epoch = (uint64_t)rank->number + 1,
			.op = &out->op[*ops],
		};
		HASH_FIND(hh, job->comm, &said->id, sizeof(said->id), comm);
		said->size = comm ? comm->whole : 1;
		for (size_t j = 0; j < window->tallies; j++) {
			const struct nt_systrace_tally *tally = &rank->tally[window->tally + j];

			if (!tally->leads || tally->group != said->id)
				continue;
			out->op[*ops] = add_up(rank, tally);
			if (out->op[*ops].last > said->last)
				said->last = out->op[*ops].last;
			said->ops++;
			(*ops)++;
		}
		if (said->ops) {
			(*comms)++;
			seen->comms++;
		}
	}
}

/* Fills *part if the rank has a step in this frame. */
static void fill_rank(struct nt_systrace_job *job, struct nt_systrace_rank *rank, int64_t bin,
		      struct nt_trace_frame *out, size_t *comms, size_t *ops,
		      struct nt_systrace_part *part)
{
	const struct nt_trace_rank_info *info = nt_trace_find_rank_info(job->trace, rank->number);
	struct nt_frame_rank *seen = &out->rank[out->frame.ranks];
	const struct nt_systrace_window *window = &rank->window[rank->at];

	*seen = (struct nt_frame_rank){
		.rank = rank->number,
		.node = info ? info->node : NT_FRAME_NO_NODE,
		.own_tier = NT_FRAME_T2,
		.rank_known = true,
		.uses_gpu = true,
		/* Present between its first and its last window, even in the middle of a step. */
		.observed = rank->at < rank->windows && rank->window[0].bin <= bin,
		.stage = rank->stage,
		.replica = -1,
	};
	seen->silent = !seen->observed;
	if (rank->at < rank->windows && window->bin == bin) {
		seen->steps = window->steps;
		seen->step_ns = window->step_ns;
		seen->window_ns = window->end_ns - window->start_ns;
		seen->own_ns = window->own_ns;
		seen->own_blocked_ns = window->device_ns;
		seen->own_longest_ns = window->longest_ns;
		seen->host_ns = window->own_ns - window->device_ns;
		seen->comm_ns = window->comm_ns;
		fill_comms(job, rank, window, out, comms, ops);
		*part = (struct nt_systrace_part){
			.stage = rank->stage,
			.at = out->frame.ranks,
			.steps = window->steps,
			.early_ns = (double)window->early_ns / window->steps,
			.rest_ns = (double)(window->longest_ns - window->early_ns) / window->steps,
		};
		rank->at++;
	}
	out->frame.ranks++;
}

static int add_frame(struct nt_systrace_job *job, int64_t bin, size_t comms, size_t ops)
{
	struct nt_trace *trace = job->trace;
	const uint64_t end_ns = nt_grid_end(&job->grid, bin);
	nt_autofree struct nt_systrace_part *part = calloc(job->ranks + 1, sizeof(*part));
	struct nt_trace_frame *out = NULL;
	size_t observed = 0, parts = 0;
	int r;

	r = nt_trace_frame_add(trace, job->ranks, 0, &out);
	if (r == -E2BIG)
		return nt_trace_refuse(job->error, "%s: more than %d windows", job->file[0].path,
				       NT_TRACE_MAX_FRAMES);
	if (r < 0)
		return r;
	out->comm = calloc(comms + 1, sizeof(*out->comm));
	out->op = calloc(ops + 1, sizeof(*out->op));
	if (!out->comm || !out->op || !part)
		return -ENOMEM;
	out->frame.end_ns = end_ns;
	out->frame.start_ns = end_ns > job->grid.length_ns ? end_ns - job->grid.length_ns : 0;
	if (trace->frames > 1)
		out->frame.start_ns = trace->frame[trace->frames - 2].frame.end_ns;
	out->frame.expected_ranks = trace->world;
	comms = ops = 0;
	for (size_t i = 0; i < job->ranks; i++) {
		fill_rank(job, &job->rank[i], bin, out, &comms, &ops, &part[parts]);
		parts += part[parts].steps > 0;
	}
	r = nt_systrace_name_growth(part, parts, out->rank);
	if (r < 0)
		return r;
	for (size_t i = 0; i < job->ranks; i++)
		observed += out->rank[i].observed;
	out->frame.completeness = (double)observed / trace->world;
	return 0;
}

/* Windows ascend within a rank: the next frame is the lowest of their current ones. */
static int add_frames(struct nt_systrace_job *job)
{
	for (;;) {
		size_t comms = 0, ops = 0;
		int64_t bin = INT64_MAX;
		int r;

		for (size_t i = 0; i < job->ranks; i++) {
			const struct nt_systrace_rank *rank = &job->rank[i];

			if (rank->at < rank->windows && rank->window[rank->at].bin < bin)
				bin = rank->window[rank->at].bin;
		}
		if (bin == INT64_MAX)
			return 0;
		for (size_t i = 0; i < job->ranks; i++) {
			const struct nt_systrace_rank *rank = &job->rank[i];

			if (rank->at == rank->windows || rank->window[rank->at].bin != bin)
				continue;
			comms += rank->members;
			ops += rank->window[rank->at].tallies;
		}
		r = add_frame(job, bin, comms, ops);
		if (r < 0)
			return r;
	}
}

int nt_trace_read_systrace(const char *const *paths, size_t count, struct nt_trace **ret_trace,
			   struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_job))) struct nt_systrace_job job = {.error = ret_error};
	int r;

	r = nt_trace_new(count, &job.trace);
	if (r < 0)
		return r;
	job.rank = calloc(count, sizeof(*job.rank));
	if (!job.rank)
		return -ENOMEM;
	r = list_files(&job, paths, count);
	r = r ?: list_ranks(&job);
	r = r ?: learn_steps(&job);
	r = r ?: read_ranks(&job);
	if (r == 0)
		find_unseen(&job);
	r = r ?: find_stages(&job);
	r = r ?: add_frames(&job);
	if (r < 0)
		return r;
	*ret_trace = nt_take(job.trace);
	return 0;
}
