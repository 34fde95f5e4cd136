/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/readers/timelines.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/document.h"
#include "cli/readers/input.h"
#include "cli/readers/operations.h"
#include "cli/readers/pool.h"
#include "common/base/parse_number.h"

enum {
	/* StragglerAnalysis gives each rank a thread for each of five kinds of operations. */
	THREADS_OF_RANK = 5,
	MAX_RANK = NT_FRAME_MAX_RANKS - 1,
	FILES_AT_ONCE = 64, /* whose operations are not in one list yet */
};

static const double MAX_US = 4e15;

static const char *const thread_kinds[THREADS_OF_RANK] = {"compute", "pp-comm", "tp-comm",
							  "dp-comm", "misc"};

/* MegatronApp's own names. A pass contains the communication among tensor-parallel ranks. */
static const char *const passes[] = {"forward", "forward-warmup", "backward", "backward-cooldown"};

struct reader {
	const char *path;
	uint16_t file;
	struct nt_operations *operations;
	int32_t *stage; /* of each rank, by the names of StragglerAnalysis' threads; -1: unknown */
	struct nt_trace_error *error;
	int compute, communication; /* kinds */
	bool is_list;
	bool repeated; /* all names of threads are known */
	bool again; /* a name that was not known yet has to be */
};

static const struct nt_json_pick args_members[] = {{"g_rk"},  {"dp_rk"}, {"pp_rk"}, {"iteration"},
						   {"group"}, {"step"},  {"rank"},  {"pp"},
						   {"name"},  {NULL}};
static const struct nt_json_pick event_members[] = {
	{"name"}, {"ph"}, {"ts"}, {"dur"}, {"pid"}, {"tid"}, {"args", args_members}, {NULL}};

/* ---- one event -------------------------------------------------------------------------------- */

static int integer(const struct reader *reader, const struct nt_json_value *object, const char *key,
		   uint64_t max, uint64_t *ret_value)
{
	const struct nt_json_value *value = nt_json_value_get(object, key);

	if (!nt_json_value_is(value, NT_JSON_INTEGER) || nt_json_value_integer(value) < 0 ||
	    (uint64_t)nt_json_value_integer(value) > max)
		return nt_trace_refuse(reader->error,
				       "'%s': expected an integer from 0 to %" PRIu64, key, max);
	*ret_value = (uint64_t)nt_json_value_integer(value);
	return 0;
}

static int microseconds(const struct reader *reader, const struct nt_json_value *event,
			const char *key, uint64_t *ret_ns)
{
	const struct nt_json_value *value = nt_json_value_get(event, key);
	const double us = nt_json_value_number(value);

	if (!nt_json_value_is_number(value) || !(us >= 0) || us > MAX_US)
		return nt_trace_refuse(reader->error, "'%s': expected microseconds from 0", key);
	*ret_ns = (uint64_t)llround(us * 1000);
	return 0;
}

static bool is_pass(const char *name)
{
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		if (strcmp(name, passes[i]) == 0)
			return true;
	return false;
}

/* MegatronApp: 1 if the event is relevant. */
static int read_megatron(const struct reader *reader, const struct nt_json_value *args,
			 const char *name, struct nt_operation *out)
{
	uint64_t rank = 0, replica = 0, stage = 0;
	const bool pass = is_pass(name);
	int r;

	/* The others of a group are listed for communication, and for nothing else. */
	if (!pass && !nt_json_value_is(nt_json_value_get(args, "group"), NT_JSON_ARRAY))
		return 0;
	r = integer(reader, args, "g_rk", MAX_RANK, &rank);
	r = r ?: integer(reader, args, "dp_rk", MAX_RANK, &replica);
	r = r ?: integer(reader, args, "pp_rk", MAX_RANK, &stage);
	r = r ?: integer(reader, args, "iteration", UINT32_MAX, &out->step);
	out->rank = (uint32_t)rank;
	out->replica = (uint32_t)replica;
	out->stage = (uint32_t)stage;
	out->kind = (uint8_t)(pass ? reader->compute : reader->communication);
	return r < 0 ? r : 1;
}

/* veScale names the rank; StragglerAnalysis has it in the number of the thread. */
static int read_operation(struct reader *reader, const struct nt_json_value *event,
			  const struct nt_json_value *args, const char *name,
			  struct nt_operation *out)
{
	const int kind = nt_operation_kind(name, strlen(name));
	uint64_t rank = 0, replica = 0, stage = 0, thread = 0;
	int r;

	if (kind < 0)
		return 0;
	r = integer(reader, args, "step", UINT32_MAX, &out->step);
	r = r ?: integer(reader, event, "pid", MAX_RANK, &replica);
	if (r == 0 && nt_json_value_get(args, "rank")) {
		r = integer(reader, args, "rank", MAX_RANK, &rank);
		r = r ?: integer(reader, args, "pp", MAX_RANK, &stage);
	} else if (r == 0) {
		r = integer(reader, event, "tid",
			    (uint64_t)NT_FRAME_MAX_RANKS * THREADS_OF_RANK - 1, &thread);
		rank = thread / THREADS_OF_RANK;
		/* Its name may follow. */
		if (r == 0 && reader->stage[rank] < 0 && !reader->repeated) {
			reader->again = true;
			return 0;
		}
		if (r == 0 && reader->stage[rank] < 0)
			return nt_trace_refuse(reader->error,
					       "thread %" PRIu64
					       ": rank unknown: no thread_name such "
					       "as 'PP rank 1, TP rank 0, compute'",
					       thread);
		stage = r == 0 ? (uint64_t)reader->stage[rank] : 0;
	}
	out->rank = (uint32_t)rank;
	out->replica = (uint32_t)replica;
	out->stage = (uint32_t)stage;
	out->kind = (uint8_t)kind;
	return r < 0 ? r : 1;
}

static int read_event(struct reader *reader, const struct nt_json_value *event)
{
	const char *name = nt_json_value_text(nt_json_value_get(event, "name"));
	const char *phase = nt_json_value_text(nt_json_value_get(event, "ph"));
	const struct nt_json_value *args = nt_json_value_get(event, "args");
	struct nt_operation operation = {.file = reader->file};
	int r;

	if (!name || !phase || strcmp(phase, "X") != 0 || !nt_json_value_is(args, NT_JSON_OBJECT))
		return 0;
	r = nt_json_value_get(args, "g_rk") ? read_megatron(reader, args, name, &operation)
					    : read_operation(reader, event, args, name, &operation);
	if (r <= 0)
		return r;
	r = microseconds(reader, event, "ts", &operation.start_ns);
	r = r ?: microseconds(reader, event, "dur", &operation.duration_ns);
	r = r ?: nt_operations_add(reader->operations, &operation);
	return r == -E2BIG ? nt_trace_refuse(reader->error, "more than %d operations",
					     NT_OPERATIONS_MAX)
			   : r;
}

/* "PP rank 1, TP rank 0, compute" of thread 5 × rank + 0. Other threads are of no interest. */
static void read_thread_name(struct reader *reader, const struct nt_json_value *event)
{
	const struct nt_json_value *args = nt_json_value_get(event, "args");
	const struct nt_json_value *thread = nt_json_value_get(event, "tid");
	const char *name = nt_json_value_text(nt_json_value_get(args, "name"));
	const char *what = nt_json_value_text(nt_json_value_get(event, "name"));
	const char *kind = name ? strrchr(name, ' ') : NULL;
	const int64_t tid = nt_json_value_integer(thread);
	uint32_t stage = 0;
	int32_t *known;
	size_t digits;

	if (!what || strcmp(what, "thread_name") != 0 || !kind ||
	    !nt_json_value_is(thread, NT_JSON_INTEGER) || tid < 0 ||
	    tid >= (int64_t)NT_FRAME_MAX_RANKS * THREADS_OF_RANK ||
	    strncmp(name, "PP rank ", strlen("PP rank ")) != 0 ||
	    strcmp(kind + 1, thread_kinds[tid % THREADS_OF_RANK]) != 0)
		return;
	known = &reader->stage[tid / THREADS_OF_RANK];
	name += strlen("PP rank ");
	digits = strspn(name, "0123456789");
	if (nt_parse_u32(name, digits, 0, MAX_RANK, &stage) < 0 || reader->repeated)
		return;
	/* The last name counts, for the events before it too. */
	reader->again |= *known >= 0 && *known != (int32_t)stage;
	*known = (int32_t)stage;
}

/* ---- files ------------------------------------------------------------------------------------ */

static int begin(void *data, bool is_list, bool repeated)
{
	struct reader *reader = data;

	for (size_t i = 0; i < NT_FRAME_MAX_RANKS && !repeated; i++)
		reader->stage[i] = -1;
	reader->is_list = is_list;
	reader->repeated = repeated;
	reader->again = false;
	reader->operations->count = 0;
	*reader->error = (struct nt_trace_error){0};
	return 0;
}

static int give(void *data, size_t at, uint64_t line, const struct nt_json_value *event)
{
	struct reader *reader = data;
	int r;

	read_thread_name(reader, event);
	r = read_event(reader, event);
	if (r == -EBADMSG)
		(void)nt_document_refuse(reader->path, line, "event", at, reader->error);
	return r ?: reader->again;
}

static int read_file(struct reader *reader, struct nt_trace_error *error)
{
	nt_auto(nt_input) struct nt_input *input = NULL;
	struct nt_trace_error why = {0};
	const struct nt_document document = {
		.path = reader->path,
		.list = "traceEvents",
		.element = event_members,
		.begin = begin,
		.give = give,
		.data = reader,
	};
	int r = nt_input_open(reader->path, &input, error);

	if (r < 0)
		return r;
	reader->error = &why;
	reader->is_list = false;
	r = nt_document_read(&document, input, error);
	reader->error = NULL;
	if (r < 0 && (r != -EBADMSG || *error->text))
		return r;
	if (!reader->is_list)
		return nt_trace_refuse(error, "%s: no list of events: not a timeline",
				       reader->path);
	if (r < 0)
		*error = why;
	return r;
}

/* By rank and step, communication first, in the order of time. */
static int by_rank_step_kind(const void *a, const void *b)
{
	const struct nt_operation *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind > y->kind ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Cuts operations, sorted by start, so that none overlaps with one before it. */
static void separate(struct nt_operation *operation, size_t count)
{
	uint64_t done_ns = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t end_ns = operation[i].start_ns + operation[i].duration_ns;

		if (operation[i].start_ns < done_ns)
			operation[i].start_ns = done_ns;
		operation[i].duration_ns = end_ns > done_ns ? end_ns - operation[i].start_ns : 0;
		done_ns = end_ns > done_ns ? end_ns : done_ns;
	}
}

/* Takes the communication out of the passes, both without overlaps among themselves. */
static void subtract(struct nt_operation *pass, size_t count, const struct nt_operation *comm,
		     size_t comms)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t from = pass[i].start_ns, to = from + pass[i].duration_ns;

		while (at < comms && comm[at].start_ns + comm[at].duration_ns <= from)
			at++;
		/* One that ends behind this pass may begin in the next. */
		for (; at < comms && comm[at].start_ns < to; at++) {
			const uint64_t end = comm[at].start_ns + comm[at].duration_ns;

			pass[i].duration_ns -=
				(end < to ? end : to) -
				(comm[at].start_ns > from ? comm[at].start_ns : from);
			if (end > to)
				break;
		}
	}
}

/* MegatronApp's passes without the communication in them, in which a rank waits for others. */
static void subtract_communication(struct nt_operation *operation, size_t count, int compute,
				   int communication)
{
	for (size_t i = 0, end; i < count; i = end) {
		size_t comms = 0, computes = 0;

		for (end = i; end < count && operation[end].rank == operation[i].rank &&
			      operation[end].step == operation[i].step;
		     end++) {
			comms += operation[end].kind == communication;
			computes += operation[end].kind == compute;
		}
		/* Sources have either these two kinds or others. */
		if (comms + computes != end - i)
			continue;
		separate(&operation[i], comms);
		separate(&operation[i + comms], computes);
		subtract(&operation[i + comms], computes, &operation[i], comms);
	}
}

/* A step of a rank must be in one file only: its operations would be counted twice. */
static int check_files(const struct nt_operations *operations, const char *const *paths,
		       struct nt_trace_error *error)
{
	const struct nt_operation *at = operations->operation;

	for (size_t i = 1; i < operations->count; i++)
		if (at[i].rank == at[i - 1].rank && at[i].step == at[i - 1].step &&
		    at[i].file != at[i - 1].file)
			return nt_trace_refuse(
				error, "%s and %s: both have step %" PRIu64 " of rank %u",
				paths[at[i - 1].file], paths[at[i].file], at[i].step, at[i].rank);
	return 0;
}

/* One file, read by a thread of the pool. */
struct timeline_reading {
	const char *path;
	uint16_t file;
	struct nt_operations operations;
	struct nt_trace_error error;
	int r;
};

static void read_one(void *data, size_t i)
{
	struct timeline_reading *reading = (struct timeline_reading *)data + i;
	nt_autofree int32_t *stage = calloc(NT_FRAME_MAX_RANKS, sizeof(*stage));
	struct reader reader = {
		.path = reading->path,
		.file = reading->file,
		.operations = &reading->operations,
		.stage = stage,
		.compute = nt_operation_kind("compute", strlen("compute")),
		.communication = nt_operation_kind("communication", strlen("communication")),
	};

	reading->r = stage ? read_file(&reader, &reading->error) : -ENOMEM;
}

/* Appends what was read, or notes why nothing was. */
static int take_reading(struct timeline_reading *reading, struct nt_operations *operations,
			struct nt_trace *trace, struct nt_trace_error *error)
{
	const size_t before = operations->count;
	int r = reading->r;

	for (size_t i = 0; r == 0 && i < reading->operations.count; i++)
		r = nt_operations_add(operations, &reading->operations.operation[i]);
	if (r < 0)
		*error = reading->error;
	if (r == -E2BIG)
		r = nt_trace_refuse(error, "%s: more than %d operations", reading->path,
				    NT_OPERATIONS_MAX);
	nt_operations_release(&reading->operations);
	if (r == 0)
		return 0;
	operations->count = before;
	return nt_trace_leave_out(trace, r, error);
}

static int read_files(struct nt_operations *operations, const char *const *paths, size_t count,
		      struct nt_trace *trace, struct nt_trace_error *error)
{
	struct timeline_reading *reading = calloc(FILES_AT_ONCE, sizeof(*reading));
	int r = reading ? 0 : -ENOMEM;

	for (size_t from = 0; r == 0 && from < count; from += FILES_AT_ONCE) {
		const size_t n = count - from < FILES_AT_ONCE ? count - from : FILES_AT_ONCE;

		for (size_t i = 0; i < n; i++)
			reading[i] = (struct timeline_reading){.path = paths[from + i],
							       .file = (uint16_t)(from + i)};
		nt_pool_run(nt_pool_threads(), n, read_one, reading);
		for (size_t i = 0; i < n; i++)
			r = r ?: take_reading(&reading[i], operations, trace, error);
		for (size_t i = 0; i < n; i++)
			nt_operations_release(&reading[i].operations);
	}
	free(reading);
	if (r < 0)
		return r;
	if (!operations->count && !trace->unread)
		return nt_trace_refuse(
			error,
			"%s: no operations with a known name, such as forward or forward-compute",
			paths[0]);
	return nt_trace_check_read(trace, operations->count ? count - trace->unread : 0, error);
}

static void release_operations(struct nt_operations *operations)
{
	nt_operations_release(operations);
}

int nt_trace_read_timelines(const char *const *paths, size_t count, struct nt_trace **ret_trace,
			    struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_operations))) struct nt_operations operations = {
		.absolute = true};
	nt_auto(nt_trace) struct nt_trace *trace = calloc(1, sizeof(*trace));
	int r;

	if (count == 0 || count > NT_TIMELINES_MAX_FILES)
		return nt_trace_refuse(ret_error, "more than %d timelines", NT_TIMELINES_MAX_FILES);
	if (!trace)
		return -ENOMEM;
	r = read_files(&operations, paths, count, trace, ret_error);
	if (r < 0)
		return r;
	if (operations.count)
		qsort(operations.operation, operations.count, sizeof(*operations.operation),
		      by_rank_step_kind);
	r = check_files(&operations, paths, ret_error);
	if (r < 0)
		return r;
	subtract_communication(operations.operation, operations.count,
			       nt_operation_kind("compute", strlen("compute")),
			       nt_operation_kind("communication", strlen("communication")));
	r = nt_operations_frames(&operations, trace);
	if (r < 0)
		return r;
	*ret_trace = nt_take(trace);
	return 0;
}
