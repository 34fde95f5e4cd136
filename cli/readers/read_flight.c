/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of PyTorch's flight recorder (torch/csrc/distributed/c10d/FlightRecorder), formats 1.x and
 * 2.x, as JSON or pickled. A dump contains neither its rank nor its time: they come from the name
 * and the mtime of the file.
 */
#include "cli/readers/flight_impl.h"

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
#include "cli/readers/input.h"
#include "cli/readers/pickle.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "engine/frame_builder.h"
#include "proto/text.h"
#include "proto/wire.h"

static void release_flight(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks; i++) {
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			free(flight->rank[i].group[j].call);
		free(flight->rank[i].group);
	}
	free(flight->rank);
}

static void release_dump(struct nt_flight_dump *dump)
{
	free(dump->listed);
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
	struct stat st;

	if (stat(path, &st) < 0 || st.st_mtim.tv_sec < 0 ||
	    (uint64_t)st.st_mtim.tv_sec > NT_FLIGHT_MAX_NS / 1000000000)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

static int read_root(struct nt_flight_dump *dump, const json_t *root)
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
			"%s: a dump of version '%.20s'; versions 1.x and 2.x, of PyTorch 2.3 and later, can be read",
			path, version);
	r = find_rank(dump, root);
	if (r < 0)
		return r;
	dump->status = json_object_get(root, "pg_status");
	r = nt_flight_read_config(dump, json_object_get(root, "pg_config"));
	if (r == -EBADMSG)
		(void)nt_input_refuse_at(dump->error, path, dump->text, "pg_config", SIZE_MAX,
					 "pg_config");
	r = r ?: nt_flight_read_entries(dump, json_object_get(root, "entries"));
	return r ?: nt_flight_add_silent(dump);
}

static int read_dump(struct nt_flight *flight, struct nt_flight_rank *out,
		     struct nt_trace_error *error)
{
	__attribute__((cleanup(release_dump))) struct nt_flight_dump dump = {
		.flight = flight, .out = out, .error = error};
	__attribute__((cleanup(release_json))) json_t *root = NULL;
	nt_autobuf struct nt_buf text = {0};
	int r;

	r = nt_input_read(out->path, &text, error);
	if (r < 0)
		return r;
	out->written_ns = time_of_file(out->path);
	dump.text = nt_pickle_is(text.data, text.len) ? NULL : &text;
	if (!dump.text)
		r = nt_pickle_read(out->path, text.data, text.len, &root, error);
	else
		r = nt_input_json(out->path, &text, &root, error);
	return r ?: read_root(&dump, root);
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
		any |= rank->groups > 0;
		if (!rank->world)
			continue;
		if (stated && rank->world != stated->world)
			return nt_trace_refuse(
				error, "%s and %s: not of one job, which had %u or %u ranks",
				stated->path, rank->path, stated->world, rank->world);
		stated = rank;
	}
	if (stated == last && last->rank >= stated->world)
		return nt_trace_refuse(
			error, "%s: of rank %u, and its pg_config says that the job had %u ranks",
			last->path, last->rank, stated->world);
	if (stated && last->rank >= stated->world)
		return nt_trace_refuse(error, "%s and %s: not of one job, which had %u ranks",
				       stated->path, last->path, stated->world);
	if (!any)
		return nt_trace_refuse(
			error,
			"%s: no calls in any of the dumps: was TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE) 0?",
			flight->rank[0].path);
	flight->world = stated ? stated->world : 0;
	/* If no file has the size, a gap in the numbers shows missing ranks. */
	if (!stated && last->rank >= flight->ranks)
		flight->world = last->rank + 1;
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

	if (count == 0 || count > NT_FRAME_MAX_RANKS)
		return -EINVAL;
	trace = calloc(1, sizeof(*trace));
	flight.rank = calloc(count, sizeof(*flight.rank));
	if (!trace || !flight.rank)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		flight.rank[i].path = paths[i];
		flight.ranks = i + 1;
		r = read_dump(&flight, &flight.rank[i], ret_error);
		if (r < 0)
			return r;
	}
	qsort(flight.rank, flight.ranks, sizeof(*flight.rank), by_rank);
	r = check_ranks(&flight, ret_error);
	if (r < 0)
		return r;
	settle_starts(&flight);
	settle_types(&flight);
	settle_sizes(&flight);
	r = nt_flight_frames(&flight, trace);
	if (r < 0)
		return r;
	trace->hangs = true;
	trace->world = flight.world;
	trace->dropped = flight.dropped;
	*ret_trace = nt_take(trace);
	return 0;
}
