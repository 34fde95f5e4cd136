/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of sysTrace's communication markers, one file per rank. What lies between the operations on
 * the device is own work: a victim waits inside of them. It is the device's where it was launched
 * before the device came to it, else the host's.
 */
#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/table.h"
#include "cli/collective.h"
#include "cli/grid.h"
#include "cli/markers.h"
#include "cli/stage.h"
#include "cli/timeline.h"
#include "proto/wire.h"

enum {
	MIN_STEPS = 10, /* for the steps of a rank to cut the frames of all */
	OPS = NT_OP_END,
};

struct file {
	const char *path;
	uint32_t rank;
	struct nt_trace_node node;
};

/* Calls of one operation and size of one communicator in one window of a rank. */
struct tally {
	uint64_t group, bytes, calls, first, last, sum_ns, min_ns;
	uint8_t op, frame_kind, size; /* size: nt_collective_size() */
	bool leads; /* the others of this operation and communicator hang on it */
	size_t next; /* of another size: index into rank.tally + 1, 0: none */
};

/* Whole steps of a rank that ended in one frame. */
struct window {
	int64_t bin; /* which frame: see struct nt_grid */
	uint32_t steps;
	uint64_t start_ns, end_ns, step_ns, own_ns, device_ns, comm_ns, calls;
	size_t tally, tallies; /* in struct rank */
};

struct member {
	uint64_t group, calls;
	uint32_t index; /* of this rank in the communicator */
	unsigned int use; /* enum nt_stage_use */
};

struct rank {
	uint32_t number;
	int32_t stage; /* rank that stands for all which do the same work, or -1 */
	struct window *window;
	size_t windows, at; /* at: the next one that no frame has yet */
	struct tally *tally;
	size_t tallies;
	struct member member[NT_FRAME_MAX_COMMS];
	size_t members;
};

struct comm {
	uint64_t group;
	uint32_t size;
	UT_hash_handle hh;
};

struct job {
	struct file *file;
	size_t files;
	struct rank *rank;
	size_t ranks;
	struct comm *comm;
	struct nt_grid grid;
	struct nt_trace *trace;
	struct nt_trace_error *error;
};

static void release_job(struct job *job)
{
	struct comm *comm, *next;

	HASH_ITER(hh, job->comm, comm, next)
	{
		HASH_DEL(job->comm, comm);
		free(comm);
	}
	for (size_t i = 0; i < job->ranks; i++) {
		free(job->rank[i].window);
		free(job->rank[i].tally);
	}
	free(job->rank);
	nt_grid_release(&job->grid);
	free(job->file);
	nt_trace_free(job->trace);
}

/* ---- one rank ----------------------------------------------------------------------------- */

/* NULL beyond the cap of a frame; *ret_error then is 0. */
static struct member *find_member(struct job *job, struct rank *rank, uint64_t group,
				  int *ret_error)
{
	struct comm *comm = NULL;

	*ret_error = 0;
	for (size_t i = 0; i < rank->members; i++)
		if (rank->member[i].group == group)
			return &rank->member[i];
	if (rank->members == NT_FRAME_MAX_COMMS)
		return NULL;
	HASH_FIND(hh, job->comm, &group, sizeof(group), comm);
	if (!comm) {
		*ret_error = -ENOMEM;
		comm = calloc(1, sizeof(*comm));
		if (!comm)
			return NULL;
		comm->group = group;
		HASH_ADD(hh, job->comm, group, sizeof(comm->group), comm);
		if (!nt_table_has(comm)) {
			free(comm);
			return NULL;
		}
		*ret_error = 0;
	}
	rank->member[rank->members] = (struct member){.group = group, .index = comm->size++};
	return &rank->member[rank->members++];
}

/* Room for one more, at the powers of two: no capacity to carry. */
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

/* Where calls of that kind are added up in the last window, new where it is. */
static int find_tally(struct rank *rank, const struct nt_marker_kind *kind,
		      struct tally **ret_tally)
{
	const uint8_t size = nt_collective_size(kind->bytes);
	struct window *window = &rank->window[rank->windows - 1];
	size_t lead = 0, last = 0;
	int r;

	for (size_t i = 0; i < window->tallies && !lead; i++) {
		const struct tally *at = &rank->tally[window->tally + i];

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
	rank->tally[rank->tallies] = (struct tally){.group = kind->group,
						    .op = kind->op,
						    .frame_kind = kind->frame_kind,
						    .size = size,
						    .leads = !last};
	*ret_tally = &rank->tally[rank->tallies++];
	window->tallies++;
	return 0;
}

static int tally_call(struct job *job, struct rank *rank, const struct nt_marker_kind *kind,
		      const struct nt_marker_op *op)
{
	const uint64_t length = op->end_ns - op->start_ns;
	struct tally *tally = NULL;
	struct member *member;
	int r = 0;

	member = find_member(job, rank, kind->group, &r);
	if (!member) {
		job->trace->dropped += r == 0;
		return r;
	}
	member->calls++;
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

static int add_step(struct job *job, struct rank *rank, const struct nt_markers *markers,
		    const struct nt_timeline *line, const struct nt_timeline_step *step)
{
	const int64_t bin = nt_grid_bin(&job->grid, step->end_ns);
	uint64_t comm_from, comm_to, device_from, device_to, own_ns;
	struct window *window;
	int r;

	if (!rank->windows || rank->window[rank->windows - 1].bin != bin) {
		r = make_room((void **)&rank->window, rank->windows, sizeof(*rank->window));
		if (r < 0)
			return r;
		rank->window[rank->windows++] = (struct window){
			.bin = bin, .start_ns = step->start_ns, .tally = rank->tallies};
	}
	window = &rank->window[rank->windows - 1];
	nt_timeline_sum(line, step->start_ns, &comm_from, &device_from);
	nt_timeline_sum(line, step->end_ns, &comm_to, &device_to);
	own_ns = step->end_ns - step->start_ns - (comm_to - comm_from);
	window->end_ns = step->end_ns;
	window->steps += step->count;
	window->step_ns += step->end_ns - step->start_ns;
	window->comm_ns += comm_to - comm_from;
	window->own_ns += own_ns;
	window->device_ns += device_to - device_from < own_ns ? device_to - device_from : own_ns;
	for (size_t i = step->first; i <= step->last; i++) {
		r = tally_call(job, rank, &markers->kind[markers->op[i].kind], &markers->op[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The operation that sysTrace would watch: all-gathers, which tensor-parallel ranks do all the time;
 * without any the next that synchronises; else whatever takes longest.
 */
static void choose_op(const struct nt_markers *markers, struct nt_trace_place *place)
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
	for (uint32_t i = 0; i < markers->kinds && !*place->op; i++) {
		if (markers->kind[i].op != best)
			continue;
		(void)snprintf(place->op, sizeof(place->op), "%s", markers->kind[i].name);
		place->group = markers->kind[i].group;
	}
}

static int read_rank(struct job *job, const struct file *file, struct nt_trace_place *place)
{
	__attribute__((cleanup(nt_timeline_release))) struct nt_timeline line = {0};
	__attribute__((cleanup(nt_steps_release))) struct nt_steps steps = {0};
	nt_auto(nt_markers) struct nt_markers *markers = NULL;
	struct rank *rank = &job->rank[job->ranks];
	int r;

	r = nt_markers_read(file->path, &markers, job->error);
	if (r < 0)
		return r;
	choose_op(markers, place);
	r = nt_timeline_make(markers, &line);
	r = r ?: nt_steps_cut(markers, &steps);
	if (r < 0)
		return r;
	place->lacks = !steps.steps;
	if (!steps.steps)
		return 0;
	rank->number = file->rank;
	job->ranks++;
	for (size_t i = 0; i < steps.steps; i++) {
		r = add_step(job, rank, markers, &line, &steps.step[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- all ranks together ------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->path, y->path);
}

static int list_files(struct job *job, const char *const *paths, size_t count)
{
	job->file = calloc(count, sizeof(*job->file));
	if (!job->file)
		return -ENOMEM;
	job->files = count;
	for (size_t i = 0; i < count; i++) {
		struct file *file = &job->file[i];

		file->path = paths[i];
		if (!nt_markers_place(paths[i], &file->rank, &file->node))
			return nt_trace_refuse(
				job->error,
				"%s: no rank in the file's name: want hccl_activity-IP-.RANK.csv, "
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

static uint32_t find_node(struct nt_trace *trace, const struct nt_trace_node *node)
{
	if (!*node->name)
		return NT_FRAME_NO_NODE;
	/* Neighbours in rank mostly share it. */
	for (size_t i = trace->nodes; i-- > 0;)
		if (strcmp(trace->node[i].name, node->name) == 0)
			return (uint32_t)i;
	trace->node[trace->nodes] = *node;
	return (uint32_t)trace->nodes++;
}

static int list_places(struct job *job)
{
	struct nt_trace *trace = job->trace;

	trace->place = calloc(job->files, sizeof(*trace->place));
	trace->node = calloc(job->files, sizeof(*trace->node));
	if (!trace->place || !trace->node)
		return -ENOMEM;
	for (size_t i = 0; i < job->files; i++)
		trace->place[trace->places++] = (struct nt_trace_place){
			.rank = job->file[i].rank,
			.node = find_node(trace, &job->file[i].node),
		};
	trace->world = job->file[job->files - 1].rank + 1;
	return 0;
}

/* The steps of the job are those of this rank, if it has as many as that. */
static int take_steps(struct job *job, const struct file *file, size_t least)
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

/* Of the first rank that has enough; of the first that has any, where none has. */
static int learn_steps(struct job *job)
{
	for (size_t least = MIN_STEPS; least; least = least > 1 ? 1 : 0) {
		for (size_t i = 0; i < job->files && !job->grid.edge; i++) {
			int r = take_steps(job, &job->file[i], least);

			if (r < 0)
				return r;
		}
	}
	if (!job->grid.edge)
		return nt_trace_refuse(
			job->error, "%s: no step: two finished communication operations at least",
			job->file[0].path);
	return 0;
}

/* All members of all communicators are known: who does the same work as whom. */
static int find_stages(struct job *job)
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

/* An operation of a communicator, calls of all sizes together. */
static struct nt_frame_op add_up(const struct rank *rank, const struct tally *lead)
{
	struct nt_frame_op op = {.op = lead->op, .kind = lead->frame_kind, .first = lead->first};
	const struct tally *most = lead;

	for (const struct tally *at = lead; at; at = at->next ? &rank->tally[at->next - 1] : NULL) {
		op.calls += at->calls;
		op.bytes += at->bytes;
		op.sum_ns += at->sum_ns;
		op.first = at->first < op.first ? at->first : op.first;
		op.last = at->last > op.last ? at->last : op.last;
		if (at->bytes > most->bytes)
			most = at;
	}
	op.timed_calls = op.calls;
	op.min_ns = nt_collective_spread(most->min_ns, most->calls, op.calls);
	return op;
}

static void fill_comms(struct job *job, struct rank *rank, const struct window *window,
		       struct nt_trace_frame *out, size_t *comms, size_t *ops)
{
	struct nt_frame_rank *seen = &out->rank[out->frame.ranks];

	seen->comm = &out->comm[*comms];
	for (size_t i = 0; i < rank->members; i++) {
		struct nt_frame_comm *said = &out->comm[*comms];
		struct comm *comm = NULL;

		*said = (struct nt_frame_comm){
			.id = rank->member[i].group,
			.rank = rank->member[i].index,
			/* Collection begins on each rank at a call of its own: no two numbers
			 * mean the same call. */
			.epoch = (uint64_t)rank->number + 1,
			.op = &out->op[*ops],
		};
		HASH_FIND(hh, job->comm, &said->id, sizeof(said->id), comm);
		said->size = comm ? comm->size : 1;
		for (size_t j = 0; j < window->tallies; j++) {
			const struct tally *tally = &rank->tally[window->tally + j];

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

static void fill_rank(struct job *job, struct rank *rank, int64_t bin, struct nt_trace_frame *out,
		      size_t *comms, size_t *ops)
{
	const struct nt_trace_place *place = nt_trace_find_place(job->trace, rank->number);
	struct nt_frame_rank *seen = &out->rank[out->frame.ranks];
	const struct window *window = &rank->window[rank->at];

	*seen = (struct nt_frame_rank){
		.rank = rank->number,
		.node = place ? place->node : NT_FRAME_NO_NODE,
		.own_tier = NT_FRAME_T2,
		.rank_known = true,
		.uses_gpu = true,
		/* Between its first window and its last it is there, if in the middle of a step. */
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
		seen->host_ns = window->own_ns - window->device_ns;
		seen->comm_ns = window->comm_ns;
		fill_comms(job, rank, window, out, comms, ops);
		rank->at++;
	}
	out->frame.ranks++;
}

static int add_frame(struct job *job, int64_t bin, size_t comms, size_t ops)
{
	struct nt_trace *trace = job->trace;
	const uint64_t end_ns = nt_grid_end(&job->grid, bin);
	struct nt_trace_frame *out = NULL;
	size_t heard = 0;
	int r;

	r = nt_trace_frame_add(trace, job->ranks, 0, &out);
	if (r == -E2BIG)
		return nt_trace_refuse(job->error, "%s: more than %d windows", job->file[0].path,
				       NT_TRACE_MAX_FRAMES);
	if (r < 0)
		return r;
	out->comm = calloc(comms + 1, sizeof(*out->comm));
	out->op = calloc(ops + 1, sizeof(*out->op));
	if (!out->comm || !out->op)
		return -ENOMEM;
	out->frame.end_ns = end_ns;
	out->frame.start_ns = end_ns > job->grid.length_ns ? end_ns - job->grid.length_ns : 0;
	if (trace->frames > 1)
		out->frame.start_ns = trace->frame[trace->frames - 2].frame.end_ns;
	out->frame.expected_ranks = trace->world;
	comms = ops = 0;
	for (size_t i = 0; i < job->ranks; i++)
		fill_rank(job, &job->rank[i], bin, out, &comms, &ops);
	for (size_t i = 0; i < job->ranks; i++)
		heard += out->rank[i].observed;
	out->frame.completeness = (double)heard / trace->world;
	return 0;
}

/* Windows ascend within a rank, so the next frame is the least that any of them is at. */
static int add_frames(struct job *job)
{
	for (;;) {
		size_t comms = 0, ops = 0;
		int64_t bin = INT64_MAX;
		int r;

		for (size_t i = 0; i < job->ranks; i++) {
			const struct rank *rank = &job->rank[i];

			if (rank->at < rank->windows && rank->window[rank->at].bin < bin)
				bin = rank->window[rank->at].bin;
		}
		if (bin == INT64_MAX)
			return 0;
		for (size_t i = 0; i < job->ranks; i++) {
			const struct rank *rank = &job->rank[i];

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
	__attribute__((cleanup(release_job))) struct job job = {.error = ret_error};
	int r;

	if (count == 0 || count > NT_FRAME_MAX_RANKS)
		return -EINVAL;
	job.trace = calloc(1, sizeof(*job.trace));
	job.rank = calloc(count, sizeof(*job.rank));
	if (!job.trace || !job.rank)
		return -ENOMEM;
	r = list_files(&job, paths, count);
	r = r ?: list_places(&job);
	r = r ?: learn_steps(&job);
	for (size_t i = 0; i < count && r == 0; i++)
		r = read_rank(&job, &job.file[i], &job.trace->place[i]);
	r = r ?: find_stages(&job);
	r = r ?: add_frames(&job);
	if (r < 0)
		return r;
	*ret_trace = nt_take(job.trace);
	return 0;
}
