/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of PyTorch's flight recorder (torch/csrc/distributed/c10d/FlightRecorder), formats 1.x and
 * 2.x, as JSON or pickled. A dump contains neither its rank nor its time: they come from the name
 * and the mtime of the file.
 */
#include "cli/flight/flight_impl.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/readers/collective.h"
#include "cli/readers/document.h"
#include "cli/readers/input.h"
#include "cli/readers/json_tree.h"
#include "cli/readers/pickle.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "engine/frame_builder.h"
#include "proto/text.h"
#include "proto/wire.h"

enum {
	SMALL_PICKLE_BYTES = 4 << 20, /* larger ones are read one after another */
};

static void release_flight(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks; i++)
		nt_flight_release_rank(&flight->rank[i]);
	free(flight->rank);
	nt_flight_release_lists(flight);
}

static void release_dump(struct nt_flight_dump *dump)
{
	free(dump->listed);
	free(dump->number);
}

static void release_json(json_t **json)
{
	json_decref(*json);
}

/* ---- one file ----------------------------------------------------------------------------- */

/* The number behind the last "rank" in the file's name, else the last number in it. */
static bool rank_of_name(const char *path, uint64_t *ret_rank)
{
	const char *base = strrchr(path, '/');
	const char *at, *digits = NULL;
	bool stated = false;
	size_t len;

	base = base ? base + 1 : path;
	for (at = base; (at = strstr(at, "rank")); at += strlen("rank")) {
		const char *number = at + strlen("rank");

		number += strspn(number, "-_.=");
		if (!isdigit((unsigned char)*number))
			continue;
		digits = number;
		stated = true;
	}
	for (at = base; !stated && *(at += strcspn(at, "0123456789"));) {
		digits = at;
		at += strspn(at, "0123456789");
	}
	if (!digits)
		return false;
	len = strspn(digits, "0123456789");
	return nt_parse_u64(digits, len, 0, NT_FRAME_MAX_RANKS - 1, ret_rank) == 0;
}

static int find_rank(struct nt_flight_dump *dump, const json_t *root)
{
	const json_t *stated = json_object_get(root, "rank");
	uint64_t rank = 0;

	if (stated ? !nt_flight_read_number(stated, NT_FRAME_MAX_RANKS - 1, &rank)
		   : !rank_of_name(dump->out->path, &rank))
		return nt_trace_refuse(
			dump->error,
			"%s: rank unknown: no 'rank' from 0 to %d, and no such number in the file's name",
			dump->out->path, NT_FRAME_MAX_RANKS - 1);
	dump->out->rank = (uint32_t)rank;
	return 0;
}

static uint64_t time_of_file(const char *path)
{
	char place[NT_INPUT_PLACE_BYTES];
	struct stat st;

	if (stat(nt_input_place(path, place), &st) < 0 || st.st_mtim.tv_sec < 0 ||
	    (uint64_t)st.st_mtim.tv_sec > NT_FLIGHT_MAX_NS / 1000000000)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

/* What the entries depend on. */
static int read_members(struct nt_flight_dump *dump, const json_t *root, uint64_t config_line)
{
	const char *version = json_string_value(json_object_get(root, "version"));
	const char *path = dump->out->path;
	int r;

	if (!json_is_object(root) || !version)
		return nt_trace_refuse(
			dump->error,
			"%s: no 'version': not a dump of the flight recorder, or one of PyTorch 2.2",
			path);
	dump->old = strncmp(version, "1.", 2) == 0;
	if (!dump->old && strncmp(version, "2.", 2) != 0)
		return nt_trace_refuse(
			dump->error,
			"%s: dump version '%.20s' is not supported: expected 1.x or 2.x, of PyTorch 2.3 and later",
			path, version);
	r = find_rank(dump, root);
	if (r < 0)
		return r;
	dump->status = json_object_get(root, "pg_status");
	r = nt_flight_read_config(dump, json_object_get(root, "pg_config"));
	if (r == -EBADMSG)
		(void)nt_document_refuse(path, config_line, "pg_config", SIZE_MAX, dump->error);
	r = r ?: nt_flight_match_status(dump);
	return r ?: nt_flight_check_entries(dump);
}

/* ---- a pickle ------------------------------------------------------------------------------- */

static int read_tree(struct nt_flight_dump *dump, const struct nt_buf *text)
{
	__attribute__((cleanup(release_json))) json_t *root = NULL;
	const json_t *entries, *entry;
	size_t i;
	int r;

	r = nt_pickle_read(dump->out->path, text->data, text->len, &root, dump->error);
	entries = json_object_get(root, "entries");
	dump->is_list = !entries || json_is_array(entries);
	json_array_foreach(entries, i, entry) r = r ?: nt_flight_note_entry(dump, entry);
	r = r ?: read_members(dump, root, 0);
	for (i = 0; r == 0 && i < json_array_size(entries); i++) {
		r = nt_flight_read_entry(dump, i, json_array_get(entries, i));
		if (r == -EBADMSG)
			(void)nt_document_refuse(dump->out->path, 0, "entry", i, dump->error);
	}
	nt_flight_settle_retired(dump->out);
	r = r ?: nt_flight_add_silent(dump);
	dump->status = NULL; /* it lies in the tree */
	return r;
}

/* A tree takes some 20 times the memory of its pickle. */
static int read_pickle(struct nt_flight_dump *dump, struct nt_input *input)
{
	nt_autobuf struct nt_buf text = {0};
	size_t taken;
	int r;

	r = nt_input_read(input, &text, SMALL_PICKLE_BYTES);
	if (r < 0)
		return r;
	taken = nt_pool_memory_take(dump->memory,
				    text.len > SMALL_PICKLE_BYTES ? SIZE_MAX : text.len);
	r = nt_input_read(input, &text, SIZE_MAX);
	r = r ?: read_tree(dump, &text);
	nt_buf_release(&text);
	nt_pool_memory_give(dump->memory, taken);
	return r;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Read twice: what the entries depend on may follow them. */
struct reading {
	struct nt_flight_dump *dump;
	json_t *root; /* without the entries */
	uint64_t config_line;
};

static const struct nt_json_pick root_members[] = {
	{"version"}, {"rank"}, {"pg_status"}, {"pg_config"}, {NULL}};
static const struct nt_json_pick noted_members[] = {{"process_group"}, {"pg_id"}, {NULL}};
static const struct nt_json_pick entry_members[] = {
	{"record_id"},
	{"process_group"},
	{"pg_id"},
	{"profiling_name"},
	{"is_p2p"},
	{"seq_id"},
	{"p2p_seq_id"},
	{"collective_seq_id"},
	{"time_created_ns"},
	{"time_discovered_started_ns"},
	{"time_discovered_completed_ns"},
	{"timeout_ms"},
	{"input_sizes"},
	{"output_sizes"},
	{"input_dtypes"},
	{"state"},
	{"retired"},
	{NULL},
};

static int take_member(void *data, const char *key, uint64_t line,
		       const struct nt_json_value *value)
{
	struct reading *reading = data;

	if (strcmp(key, "pg_config") == 0)
		reading->config_line = line;
	return json_object_set_new(reading->root, key, nt_json_tree(value)) < 0 ? -ENOMEM : 0;
}

static int begin_noting(void *data, bool is_list, bool repeated)
{
	const struct reading *reading = data;

	(void)repeated;
	reading->dump->is_list = is_list;
	reading->dump->entries = reading->dump->numbers = 0;
	return 0;
}

static int note(void *data, size_t at, uint64_t line, const struct nt_json_value *value)
{
	__attribute__((cleanup(release_json))) json_t *entry = nt_json_tree(value);
	const struct reading *reading = data;

	(void)at;
	(void)line;
	return entry ? nt_flight_note_entry(reading->dump, entry) : -ENOMEM;
}

static int begin_reading(void *data, bool is_list, bool repeated)
{
	(void)data;
	(void)is_list;
	(void)repeated;
	return 0;
}

static int read_one(void *data, size_t at, uint64_t line, const struct nt_json_value *value)
{
	__attribute__((cleanup(release_json))) json_t *entry = nt_json_tree(value);
	const struct reading *reading = data;
	struct nt_flight_dump *dump = reading->dump;
	int r;

	if (!entry)
		return -ENOMEM;
	r = nt_flight_read_entry(dump, at, entry);
	if (r == -EBADMSG)
		(void)nt_document_refuse(dump->out->path, line, "entry", at, dump->error);
	return r;
}

static int read_json(struct nt_flight_dump *dump, struct nt_input *input)
{
	__attribute__((cleanup(release_json))) json_t *root = json_object();
	struct reading reading = {.dump = dump, .root = root};
	struct nt_document document = {
		.path = dump->out->path,
		.list = "entries",
		.element = noted_members,
		.members = root_members,
		.member = take_member,
		.begin = begin_noting,
		.give = note,
		.data = &reading,
	};
	int r = root ? nt_document_read(&document, input, dump->error) : -ENOMEM;

	r = r ?: read_members(dump, root, reading.config_line);
	document.element = entry_members;
	document.members = NULL;
	document.begin = begin_reading;
	document.give = read_one;
	r = r ?: nt_document_read(&document, input, dump->error);
	nt_flight_settle_retired(dump->out);
	r = r ?: nt_flight_add_silent(dump);
	dump->status = NULL;
	return r;
}

static int begins_pickle(struct nt_input *input, bool *ret_pickled)
{
	char head[2];
	size_t len = 0;
	ptrdiff_t n = 1;

	while (n > 0 && len < sizeof(head)) {
		n = nt_input_next(input, head + len, sizeof(head) - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		return (int)n;
	*ret_pickled = nt_pickle_is((const uint8_t *)head, len);
	return nt_input_rewind(input);
}

int nt_flight_read_dump(struct nt_flight *flight, struct nt_flight_rank *out,
			struct nt_pool_memory *memory, struct nt_trace_error *error)
{
	__attribute__((cleanup(release_dump))) struct nt_flight_dump dump = {
		.flight = flight, .out = out, .memory = memory, .is_list = true, .error = error};
	nt_auto(nt_input) struct nt_input *input = NULL;
	bool pickled = false;
	int r;

	r = nt_input_open(out->path, &input, error);
	if (r < 0)
		return r;
	out->written_ns = time_of_file(out->path);
	r = begins_pickle(input, &pickled);
	if (r < 0)
		return r;
	return pickled ? read_pickle(&dump, input) : read_json(&dump, input);
}

/* ---- all ranks together ------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct nt_flight_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Each rank must occur once, and all must belong to one job. */
static int check_ranks(struct nt_flight *flight, struct nt_trace_error *error)
{
	const struct nt_flight_rank *stated = NULL;
	const struct nt_flight_rank *last = &flight->rank[flight->ranks - 1];
	bool any = false;

	for (size_t i = 0; i < flight->ranks; i++) {
		const struct nt_flight_rank *rank = &flight->rank[i];

		if (i && rank->rank == rank[-1].rank)
			return nt_trace_refuse(error, "%s and %s: both are of rank %u",
					       rank[-1].path, rank->path, rank->rank);
		for (size_t j = 0; j < rank->groups && !any; j++)
			any = rank->group[j].calls > 0;
		if (!rank->world)
			continue;
		if (stated && rank->world != stated->world)
			return nt_trace_refuse(
				error, "%s and %s: not of one job: the sizes are %u and %u ranks",
				stated->path, rank->path, stated->world, rank->world);
		stated = rank;
	}
	if (stated == last && last->rank >= stated->world)
		return nt_trace_refuse(error,
				       "%s: of rank %u, but its pg_config states a job of %u ranks",
				       last->path, last->rank, stated->world);
	if (stated && last->rank >= stated->world)
		return nt_trace_refuse(
			error, "%s and %s: not of one job: the first states a size of %u ranks",
			stated->path, last->path, stated->world);
	if (!any)
		return nt_trace_refuse(
			error,
			"%s: no calls in any of the dumps: was TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE) 0?",
			flight->rank[0].path);
	flight->world = stated ? stated->world : 0;
	/* If no file has the size, the lists of groups or a gap in the numbers show missing ranks. */
	if (!stated && (last->rank >= flight->ranks || flight->listed > flight->ranks))
		flight->world = last->rank >= flight->listed ? last->rank + 1 : flight->listed;
	return 0;
}

/* Gloo does not list the group of all ranks. */
static void settle_sizes(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks && flight->world; i++) {
		for (size_t j = 0; j < flight->rank[i].groups; j++) {
			struct nt_flight_group *group = &flight->rank[i].group[j];

			if (group->size || !group->all)
				continue;
			group->size = flight->world;
			group->place = flight->rank[i].rank;
		}
	}
}

/* Only some jobs record device starts. In the others recorded calls count as started. */
static void settle_starts(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks && !flight->timed; i++)
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			for (size_t k = 0; k < flight->rank[i].group[j].calls; k++)
				flight->rank[i].group[j].call[k].started = true;
}

/* Data missing in one dump is no difference between two ranks. */
static void settle_types(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks && flight->untyped; i++)
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			for (size_t k = 0; k < flight->rank[i].group[j].calls; k++)
				flight->rank[i].group[j].call[k].type = 0;
}

int nt_trace_read_flight(const char *const *paths, size_t count, struct nt_trace **ret_trace,
			 struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_flight))) struct nt_flight flight = {0};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	int r;

	r = nt_trace_new(count, &trace);
	if (r < 0)
		return r;
	flight.rank = calloc(count, sizeof(*flight.rank));
	if (!flight.rank)
		return -ENOMEM;
	r = nt_flight_read_files(&flight, paths, count, trace, ret_error);
	if (r < 0)
		return r;
	r = nt_trace_check_read(trace, flight.ranks, ret_error);
	if (r < 0)
		return r;
	flight.given = flight.ranks;
	qsort(flight.rank, flight.ranks, sizeof(*flight.rank), by_rank);
	r = check_ranks(&flight, ret_error);
	if (r < 0)
		return r;
	settle_starts(&flight);
	settle_types(&flight);
	settle_sizes(&flight);
	r = nt_flight_settle_status(&flight);
	r = r ?: nt_flight_list_missing(&flight, trace);
	r = r ?: nt_flight_frames(&flight, trace);
	if (r < 0)
		return r;
	trace->hangs = true;
	trace->world = flight.world;
	if (!flight.world && trace->unread)
		trace->world = (uint32_t)(flight.ranks + trace->unread);
	trace->given = flight.given;
	trace->dropped = flight.dropped;
	*ret_trace = nt_take(trace);
	return 0;
}
