/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the file of one rank as a stream of events. */
#include "cli/kineto/kineto.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/document.h"

static const struct nt_json_pick listed_group[] = {{"pg_name"}, {"pg_size"}, {"ranks"}, {NULL}};
static const struct nt_json_pick info_members[] = {
	{"rank"}, {"world_size"}, {"pg_config", listed_group}, {NULL}};
static const struct nt_json_pick members[] = {
	{"distributedInfo", info_members}, {"baseTimeNanoseconds"}, {NULL}};

struct file {
	struct nt_kineto_rank *out;
	struct nt_kineto_rank stated; /* rank, world and groups by distributedInfo */
	bool has_rank; /* a sound one */
	struct nt_trace_error info_error, event_error; /* empty: none */
	uint64_t base_ns;
	bool begun, is_list;
};

static void release_file(struct file *file)
{
	nt_kineto_rank_release(&file->stated);
}

/* ---- distributedInfo ---------------------------------------------------------------------- */

/* The rank: from the trace, else the first number in the file's name. */
static bool find_rank(const struct nt_json_value *info, const char *path, uint32_t *ret_rank)
{
	const struct nt_json_value *rank = nt_json_value_get(info, "rank");
	const char *base = strrchr(path, '/');
	uint64_t number = 0;
	size_t digits = 0;

	if (nt_json_value_is(rank, NT_JSON_INTEGER)) {
		*ret_rank = (uint32_t)nt_json_value_integer(rank);
		return nt_json_value_integer(rank) >= 0 &&
		       nt_json_value_integer(rank) < NT_FRAME_MAX_RANKS;
	}
	base = base ? base + 1 : path;
	base += strcspn(base, "0123456789");
	for (; digits < 9 && isdigit((unsigned char)base[digits]); digits++)
		number = number * 10 + (uint64_t)(base[digits] - '0');
	*ret_rank = (uint32_t)number;
	return digits > 0 && number < NT_FRAME_MAX_RANKS;
}

/* The number of ranks in the job; missing in old files. */
static int find_world(const struct nt_json_value *info, struct nt_kineto_rank *out,
		      struct nt_trace_error *error)
{
	const struct nt_json_value *size = nt_json_value_get(info, "world_size");

	if (!size)
		return 0;
	if (!nt_json_value_is(size, NT_JSON_INTEGER) ||
	    nt_json_value_integer(size) <= (int64_t)out->rank ||
	    nt_json_value_integer(size) > NT_FRAME_MAX_RANKS)
		return nt_trace_refuse(error, "world_size is not a number from %u to %d",
				       out->rank + 1, NT_FRAME_MAX_RANKS);
	out->world = (uint32_t)nt_json_value_integer(size);
	return 0;
}

/* That it is refused shows only at the end: another one may follow. */
static int read_info(struct file *file, uint64_t line, const struct nt_json_value *info)
{
	struct nt_kineto_rank *stated = &file->stated;
	int r;

	nt_kineto_rank_release(stated);
	file->info_error = (struct nt_trace_error){0};
	file->has_rank = find_rank(info, file->out->path, &stated->rank);
	if (!file->has_rank)
		return 0;
	r = find_world(info, stated, &file->info_error);
	r = r ?: nt_kineto_read_groups(stated, info, &file->info_error);
	if (r == -EBADMSG)
		(void)nt_document_refuse(file->out->path, line, "distributedInfo", SIZE_MAX,
					 &file->info_error);
	return r == -EBADMSG ? 0 : r;
}

/* ---- the document ------------------------------------------------------------------------- */

static void shift_all(struct nt_kineto_interval *interval, size_t count, uint64_t by_ns)
{
	for (size_t i = 0; i < count; i++) {
		interval[i].start_ns += by_ns;
		interval[i].end_ns += by_ns;
	}
}

/* The base of all times may follow the events. */
static void set_base(struct file *file, const struct nt_json_value *value)
{
	const int64_t stated = nt_json_value_integer(value);
	const uint64_t base_ns = stated > 0 ? (uint64_t)stated : 0, by_ns = base_ns - file->base_ns;
	struct nt_kineto_rank *out = file->out;

	file->base_ns = base_ns;
	shift_all(out->kernel, out->kernels, by_ns);
	shift_all(out->step, out->steps, by_ns);
	shift_all(out->span, out->spans, by_ns);
	shift_all(out->work, out->works, by_ns);
	shift_all(out->wait, out->waits, by_ns);
	for (size_t i = 0; i < out->launches; i++)
		out->launch[i].end_ns += by_ns;
}

static int take_member(void *data, const char *key, uint64_t line,
		       const struct nt_json_value *value)
{
	struct file *file = data;
	int r;

	if (strcmp(key, "baseTimeNanoseconds") == 0) {
		set_base(file, value);
		return 0;
	}
	r = read_info(file, line, value);
	/* Events before it were read without the groups. */
	return r < 0 ? r : file->begun;
}

static int begin(void *data, bool is_list, bool repeated)
{
	struct file *file = data;
	struct nt_kineto_rank *out = file->out;
	const struct nt_kineto_rank *stated = &file->stated;
	const char *path = out->path;

	(void)repeated;
	nt_kineto_rank_release(out);
	out->path = path;
	out->rank = stated->rank;
	out->world = stated->world;
	if (stated->group) {
		out->group = calloc(NT_FRAME_MAX_COMMS, sizeof(*out->group));
		if (!out->group)
			return -ENOMEM;
		memcpy(out->group, stated->group, stated->groups * sizeof(*out->group));
		out->groups = stated->groups;
	}
	file->event_error = (struct nt_trace_error){0};
	file->is_list = is_list;
	file->begun = true;
	return 0;
}

static int give(void *data, size_t at, uint64_t line, const struct nt_json_value *event)
{
	struct file *file = data;
	int r = nt_kineto_read_event(file->out, event, file->base_ns, &file->event_error);

	if (r == -EBADMSG)
		(void)nt_document_refuse(file->out->path, line, "event", at, &file->event_error);
	return r;
}

/* Reads the document, however malformed its content; then what is wrong with it, in this order. */
static int read_document(struct file *file, const struct nt_document *document,
			 struct nt_input *input, struct nt_trace_error *error)
{
	int r = nt_document_read(document, input, error);

	if (r < 0 && (r != -EBADMSG || *error->text))
		return r;
	if (!file->is_list)
		return nt_trace_refuse(error,
				       "%s: no list 'traceEvents': not a PyTorch profiler trace",
				       document->path);
	if (!file->has_rank)
		return nt_trace_refuse(
			error,
			"%s: rank unknown: no distributedInfo.rank from 0 to %d, and no number in the file's name",
			document->path, NT_FRAME_MAX_RANKS - 1);
	if (*file->info_error.text)
		*error = file->info_error;
	else if (*file->event_error.text)
		*error = file->event_error;
	return *error->text ? -EBADMSG : 0;
}

int nt_kineto_read_file(struct nt_kineto_rank *out, struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_file))) struct file file = {.out = out};
	nt_auto(nt_input) struct nt_input *input = NULL;
	const struct nt_document document = {
		.path = out->path,
		.list = "traceEvents",
		.element = nt_kineto_event,
		.members = members,
		.member = take_member,
		.begin = begin,
		.give = give,
		.data = &file,
	};
	int r = nt_input_open(out->path, &input, ret_error);

	if (r < 0)
		return r;
	file.has_rank = find_rank(NULL, out->path, &file.stated.rank);
	return read_document(&file, &document, input, ret_error);
}
