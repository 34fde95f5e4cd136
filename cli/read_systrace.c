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
#include "cli/markers.h"
#include "cli/period.h"
#include "proto/wire.h"

enum {
	MIN_STEPS = 3, /* for a rank's steps to cut the frames of all */
	OPS = NT_OP_END,
};

static const uint64_t least_window_ns = 500000000; /* as the agent's */
/* From launch to start on a device that had nothing to do. */
static const uint64_t launch_ns = 100000;

struct file {
	const char *path;
	uint32_t rank;
	struct nt_trace_node node;
};

/* Calls of one operation of one communicator in one window of a rank. */
struct tally {
	uint64_t group, bytes, calls, first, last, sum_ns, min_ns;
	uint8_t op, frame_kind;
};

/* Whole steps of a rank that ended in one frame. */
struct window {
	int64_t bin; /* which frame: see struct grid */
	uint32_t steps;
	uint64_t start_ns, end_ns, step_ns, own_ns, device_ns, comm_ns, calls;
	size_t tally, tallies; /* in struct rank */
};

struct member {
	uint64_t group, calls;
	uint32_t index; /* of this rank in the communicator */
};

struct rank {
	uint32_t number;
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

/* Where frames end: at the steps of one rank, and as far apart before and after them. */
struct grid {
	uint64_t *edge;
	size_t edges;
	uint64_t length_ns;
};

struct job {
	struct file *file;
	size_t files;
	struct rank *rank;
	size_t ranks;
	struct comm *comm;
	struct grid grid;
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
	free(job->grid.edge);
	free(job->file);
	nt_trace_free(job->trace);
}

/* ---- what a rank's device did ------------------------------------------------------------- */

/* Time in communication, as the union of the operations of all streams. */
struct busy {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* sum of those before */
	uint64_t device_ns; /* of all gaps until start_ns: what the device was at work for */
};

struct timeline {
	struct busy *busy;
	size_t busies;
};

static int by_start(const void *a, const void *b)
{
	const struct nt_marker_op *x = *(const struct nt_marker_op *const *)a;
	const struct nt_marker_op *y = *(const struct nt_marker_op *const *)b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Of the gap, what the operation behind it had already been launched for and still did not begin. */
static uint64_t device_part(const struct nt_marker_op *op, uint64_t gap_start_ns)
{
	const uint64_t from = op->launched_ns > gap_start_ns ? op->launched_ns : gap_start_ns;

	if (!op->launched_ns)
		return op->start_ns - gap_start_ns;
	return op->start_ns > from && op->start_ns - from > launch_ns ? op->start_ns - from : 0;
}

static int make_timeline(const struct nt_markers *markers, struct timeline *line)
{
	nt_autofree const struct nt_marker_op **op = calloc(markers->ops + 1, sizeof(*op));

	line->busy = calloc(markers->ops + 1, sizeof(*line->busy));
	if (!op || !line->busy)
		return -ENOMEM;
	for (size_t i = 0; i < markers->ops; i++)
		op[i] = &markers->op[i];
	qsort(op, markers->ops, sizeof(*op), by_start);
	for (size_t i = 0; i < markers->ops; i++) {
		struct busy *last = line->busies ? &line->busy[line->busies - 1] : NULL;

		if (last && op[i]->start_ns <= last->end_ns) {
			if (op[i]->end_ns > last->end_ns)
				last->end_ns = op[i]->end_ns;
			continue;
		}
		line->busy[line->busies++] = (struct busy){
			.start_ns = op[i]->start_ns,
			.end_ns = op[i]->end_ns,
			.before_ns = last ? last->before_ns + last->end_ns - last->start_ns : 0,
			.device_ns = last ? last->device_ns + device_part(op[i], last->end_ns) : 0,
		};
	}
	return 0;
}

static void free_timeline(struct timeline *line)
{
	free(line->busy);
}

/* Sums from the start of the file until then. */
static void sum_until(const struct timeline *line, uint64_t time_ns, uint64_t *ret_comm,
		      uint64_t *ret_device)
{
	size_t low = 0, high = line->busies;
	const struct busy *last;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (line->busy[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_comm = *ret_device = 0;
	if (!low)
		return;
	last = &line->busy[low - 1];
	*ret_comm = last->before_ns + (time_ns < last->end_ns ? time_ns : last->end_ns) -
		    last->start_ns;
	*ret_device = last->device_ns;
}

/* ---- steps -------------------------------------------------------------------------------- */

struct step {
	uint64_t start_ns, end_ns;
	size_t first, last; /* operations: the one after the last step's end, and its own end */
	uint32_t count; /* of steps, where the end of one was lost */
};

struct steps {
	struct step *step;
	size_t steps;
};

static void free_steps(struct steps *steps)
{
	free(steps->step);
}

static int find_period(const struct nt_markers *markers, struct nt_period *ret_period)
{
	nt_autofree uint32_t *call = calloc(markers->ops + 1, sizeof(*call));
	nt_autofree uint64_t *shape = calloc((size_t)markers->kinds + 1, sizeof(*shape));

	if (!call || !shape)
		return -ENOMEM;
	for (size_t i = 0; i < markers->ops; i++)
		call[i] = markers->op[i].kind;
	for (uint32_t i = 0; i < markers->kinds; i++)
		shape[i] = markers->kind[i].shape;
	return nt_period_find(call, markers->ops, shape, markers->kinds, ret_period);
}

static int cut_steps(const struct nt_markers *markers, struct steps *steps)
{
	struct nt_period period = {0};
	uint64_t from_ns = 0;
	bool has_start = false;
	size_t from = 0;
	int r;

	r = find_period(markers, &period);
	if (r < 0)
		return r;
	steps->step = calloc(markers->ops + 1, sizeof(*steps->step));
	if (!steps->step)
		return -ENOMEM;
	for (size_t i = 0; i < markers->ops; i++) {
		const struct nt_marker_op *op = &markers->op[i];
		const size_t calls = i + 1 - from;

		if (period.has_anchor ? op->kind != period.anchor : calls < period.calls)
			continue;
		/* Two streams may end in another order than they were launched in. */
		if (has_start && op->end_ns <= from_ns)
			continue;
		if (has_start) {
			const size_t count = (calls + period.calls / 2) / period.calls;

			steps->step[steps->steps++] = (struct step){
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

static int median_step(const struct steps *steps, uint64_t *ret_ns)
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

/* ---- frames ------------------------------------------------------------------------------- */

/*
 * Frames end half a step after the rank's, so that clocks may differ by as much without that a step
 * of one rank falls into another frame than the same step of another.
 */
static int make_grid(struct grid *grid, const struct steps *steps)
{
	uint64_t step_ns = 0;
	size_t group;
	int r;

	r = median_step(steps, &step_ns);
	if (r < 0)
		return r;
	group = (size_t)((least_window_ns + step_ns - 1) / step_ns);
	grid->edge = calloc(steps->steps / group + 1, sizeof(*grid->edge));
	if (!grid->edge)
		return -ENOMEM;
	for (size_t i = group - 1; i < steps->steps; i += group)
		grid->edge[grid->edges++] = steps->step[i].end_ns + step_ns / 2;
	if (!grid->edges)
		grid->edge[grid->edges++] = steps->step[steps->steps - 1].end_ns + step_ns / 2;
	grid->length_ns = group * step_ns;
	return 0;
}

static int64_t bin_of(const struct grid *grid, uint64_t time_ns)
{
	const uint64_t last = grid->edge[grid->edges - 1];
	size_t low = 0, high = grid->edges;

	if (time_ns <= grid->edge[0])
		return -(int64_t)((grid->edge[0] - time_ns) / grid->length_ns);
	if (time_ns > last)
		return (int64_t)(grid->edges + (time_ns - last - 1) / grid->length_ns);
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (grid->edge[middle] < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low;
}

static uint64_t end_of(const struct grid *grid, int64_t bin)
{
	const int64_t edges = (int64_t)grid->edges;

	if (bin < 0)
		return grid->edge[0] - (uint64_t)-bin * grid->length_ns;
	if (bin < edges)
		return grid->edge[bin];
	return grid->edge[edges - 1] + (uint64_t)(bin - edges + 1) * grid->length_ns;
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

static int tally_call(struct job *job, struct rank *rank, const struct nt_marker_kind *kind,
		      const struct nt_marker_op *op)
{
	const uint64_t length = op->end_ns - op->start_ns;
	struct window *window = &rank->window[rank->windows - 1];
	struct tally *tally = NULL;
	struct member *member;
	int r = 0;

	member = find_member(job, rank, kind->group, &r);
	if (!member)
		return r;
	member->calls++;
	for (size_t i = 0; i < window->tallies && !tally; i++) {
		struct tally *at = &rank->tally[window->tally + i];

		if (at->group == kind->group && at->op == kind->op)
			tally = at;
	}
	if (!tally) {
		r = make_room((void **)&rank->tally, rank->tallies, sizeof(*rank->tally));
		if (r < 0)
			return r;
		tally = &rank->tally[rank->tallies++];
		*tally = (struct tally){.group = kind->group,
					.op = kind->op,
					.frame_kind = kind->frame_kind,
					.first = member->calls,
					.min_ns = length};
		window->tallies++;
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
		    const struct timeline *line, const struct step *step)
{
	const int64_t bin = bin_of(&job->grid, step->end_ns);
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
	sum_until(line, step->start_ns, &comm_from, &device_from);
	sum_until(line, step->end_ns, &comm_to, &device_to);
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
	for (uint32_t i = 0; i < markers->kinds && !*place->op; i++)
		if (markers->kind[i].op == best)
			(void)snprintf(place->op, sizeof(place->op), "%s", markers->kind[i].name);
}

static int read_rank(struct job *job, const struct file *file, struct nt_trace_place *place)
{
	__attribute__((cleanup(free_timeline))) struct timeline line = {0};
	__attribute__((cleanup(free_steps))) struct steps steps = {0};
	nt_auto(nt_markers) struct nt_markers *markers = NULL;
	struct rank *rank = &job->rank[job->ranks];
	int r;

	r = nt_markers_read(file->path, &markers, job->error);
	if (r < 0)
		return r;
	choose_op(markers, place);
	r = make_timeline(markers, &line);
	r = r ?: cut_steps(markers, &steps);
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

/* The steps of the job are those of the first rank that has some. */
static int learn_steps(struct job *job)
{
	for (size_t i = 0; i < job->files && !job->grid.edge; i++) {
		__attribute__((cleanup(free_steps))) struct steps steps = {0};
		nt_auto(nt_markers) struct nt_markers *markers = NULL;
		struct nt_trace *trace = job->trace;
		int r;

		r = nt_markers_read(job->file[i].path, &markers, job->error);
		r = r ?: cut_steps(markers, &steps);
		if (r < 0)
			return r;
		if (steps.steps < MIN_STEPS && i + 1 < job->files)
			continue;
		if (!steps.steps)
			break;
		r = make_grid(&job->grid, &steps);
		if (r < 0)
			return r;
		trace->step = calloc(steps.steps, sizeof(*trace->step));
		if (!trace->step)
			return -ENOMEM;
		for (size_t j = 0; j < steps.steps; j++)
			trace->step[trace->steps++] = (struct nt_trace_step){steps.step[j].start_ns,
									     steps.step[j].end_ns};
	}
	if (!job->grid.edge)
		return nt_trace_refuse(
			job->error, "%s: no step: two finished communication operations at least",
			job->file[0].path);
	return 0;
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

			if (tally->group != said->id)
				continue;
			if (tally->last > said->last)
				said->last = tally->last;
			said->ops++;
			out->op[(*ops)++] = (struct nt_frame_op){
				.op = tally->op,
				.kind = tally->frame_kind,
				.calls = tally->calls,
				.bytes = tally->bytes,
				.first = tally->first,
				.last = tally->last,
				.timed_calls = tally->calls,
				.sum_ns = tally->sum_ns,
				.min_ns = tally->min_ns,
			};
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
		.stage = -1,
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
	const uint64_t end_ns = end_of(&job->grid, bin);
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
	r = r ?: add_frames(&job);
	if (r < 0)
		return r;
	*ret_trace = nt_take(job.trace);
	return 0;
}
