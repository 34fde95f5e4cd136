/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of PyTorch's flight recorder (torch/csrc/distributed/c10d/FlightRecorder), formats 1.x
 * and 2.x, as JSON or pickled. The dump does not say of which rank it is, nor when
 * it was written: the name of the file and its time do.
 */
#include "cli/flight.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "aggregator/framer.h"
#include "cli/collective.h"
#include "cli/input.h"
#include "cli/pickle.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/num.h"
#include "proto/text.h"
#include "proto/wire.h"

enum {
	MAX_CALLS = 1 << 17, /* of one rank; the recorder keeps 2,000 unless it is told otherwise */
	MAX_CONFIG = 4096, /* process groups that one file lists */
};

static const uint64_t MAX_NS = 1ULL << 62;

/* A process group as pg_config lists it. */
struct listed {
	uint64_t name, ranks_hash, number; /* number: version 1 only, see name_old */
	uint32_t size, place;
};

/* One file while it is read. */
struct dump {
	struct nt_flight *flight;
	struct nt_flight_rank *out;
	const struct nt_buf *text; /* NULL: it is a pickle, which has no lines */
	const json_t *status; /* pg_status, or NULL */
	struct listed *listed;
	size_t listeds;
	bool old; /* version 1, of PyTorch 2.3 */
	struct nt_trace_error *error;
};

static void release_flight(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks; i++) {
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			free(flight->rank[i].group[j].call);
		free(flight->rank[i].group);
	}
	free(flight->rank);
}

static void release_dump(struct dump *dump)
{
	free(dump->listed);
}

static void release_json(json_t **json)
{
	json_decref(*json);
}

/* ---- values ------------------------------------------------------------------------------- */

/* A number, as such or as text. */
static bool read_number(const json_t *value, uint64_t max, uint64_t *ret_number)
{
	const char *text = json_string_value(value);

	if (text)
		return nt_num_u64(text, strlen(text), 0, max, ret_number) == 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > max)
		return false;
	*ret_number = (uint64_t)json_integer_value(value);
	return true;
}

/* A time, which is null or 0 where it is not known. */
static bool read_time(const json_t *value, uint64_t *ret_ns)
{
	if (!value || json_is_null(value)) {
		*ret_ns = 0;
		return true;
	}
	return read_number(value, MAX_NS, ret_ns);
}

static bool add_up(uint64_t *sum, uint64_t more)
{
	return !__builtin_add_overflow(*sum, more, sum);
}

/* Elements of all tensors of [[3, 4], [7]]: 19. A tensor without dimensions has one. */
static bool count_elements(const json_t *sizes, uint64_t *ret_count)
{
	const json_t *tensor, *length;
	uint64_t count = 0;
	size_t i, j;

	if (!json_is_array(sizes))
		return false;
	json_array_foreach(sizes, i, tensor)
	{
		uint64_t elements = 1;

		if (!json_is_array(tensor))
			return false;
		json_array_foreach(tensor, j, length)
		{
			uint64_t of;

			if (!read_number(length, INT64_MAX, &of) ||
			    __builtin_mul_overflow(elements, of, &elements))
				return false;
		}
		if (!add_up(&count, elements))
			return false;
	}
	*ret_count = count;
	return true;
}

/* ---- process groups ----------------------------------------------------------------------- */

/*
 * "[0, 1]", or a list: a hash of its numbers, how many there are, and where the rank is among them
 * (UINT32_MAX: nowhere).
 */
static bool read_ranks(const json_t *value, uint32_t rank, struct listed *out)
{
	const char *text = json_string_value(value);
	const size_t given = json_array_size(value);
	uint64_t hash = NT_HASH_SEED;

	out->place = UINT32_MAX;
	if (!text && !json_is_array(value))
		return false;
	if (text && *text++ != '[')
		return false;
	for (uint32_t n = 0;; n++) {
		uint64_t number = 0;

		if (text)
			text += strspn(text, " ,");
		if (text ? *text == ']' : n == given) {
			out->size = n;
			out->ranks_hash = hash;
			return !text || text[1] == '\0';
		}
		if (n == NT_FRAME_MAX_RANKS)
			return false;
		if (text) {
			const size_t digits = strspn(text, "0123456789");

			if (nt_num_u64(text, digits, 0, NT_FRAME_MAX_RANKS - 1, &number) < 0)
				return false;
			text += digits;
		} else if (!read_number(json_array_get(value, n), NT_FRAME_MAX_RANKS - 1,
					&number)) {
			return false;
		}
		hash = nt_hash_u64(hash, number);
		if (number == rank)
			out->place = n;
	}
}

static int read_config(struct dump *dump, const json_t *config)
{
	json_t *iterate = (json_t *)config; /* jansson's iterator writes nothing */
	const json_t *group;
	const char *name;

	if (!config)
		return 0;
	if (!json_is_object(config) || json_object_size(config) > MAX_CONFIG)
		return nt_trace_refuse(dump->error, "no object of at most %d process groups",
				       MAX_CONFIG);
	dump->listed = calloc(json_object_size(config) + 1, sizeof(*dump->listed));
	if (!dump->listed)
		return -ENOMEM;
	json_object_foreach(iterate, name, group)
	{
		const char *desc = json_string_value(json_object_get(group, "desc"));
		const json_t *ranks = dump->old ? group : json_object_get(group, "ranks");
		struct listed *listed = &dump->listed[dump->listeds];

		listed->name = nt_hash_text(NT_HASH_SEED, name);
		/* Gloo lists the group that it made last under no name. */
		if (!*name)
			continue;
		if (dump->old && nt_num_u64(name, strlen(name), 0, INT64_MAX, &listed->number) < 0)
			return nt_trace_refuse(dump->error, "'%.40s' is no number of a group",
					       name);
		if (!read_ranks(ranks, dump->out->rank, listed))
			return nt_trace_refuse(
				dump->error,
				"the ranks of process group '%.40s' are no list of numbers from 0 to %d",
				name, NT_FRAME_MAX_RANKS - 1);
		if (!listed->size)
			continue;
		dump->listeds++;
		if (dump->old ? !listed->number : desc && strcmp(desc, "default_pg") == 0)
			dump->out->world = listed->size;
	}
	return 0;
}

/*
 * Version 1 numbers groups in the order in which the process made those that it is in: another one
 * on each rank. Of groups of the same ranks all members made the same one first.
 */
static uint64_t name_old(const struct dump *dump, const struct listed *listed)
{
	uint64_t before = 0;

	for (size_t i = 0; i < dump->listeds; i++)
		before += dump->listed[i].ranks_hash == listed->ranks_hash &&
			  dump->listed[i].number < listed->number;
	return nt_hash_u64(NT_HASH_SEED, before);
}

/* The group of that name, new where it is; NULL at the cap. */
static int find_group(struct dump *dump, uint64_t name, bool p2p,
		      struct nt_flight_group **ret_group)
{
	struct nt_flight_rank *out = dump->out;
	struct nt_flight_group *group;
	const struct listed *listed = NULL;

	*ret_group = NULL;
	for (size_t i = 0; i < out->groups; i++) {
		if (out->group[i].name == name && out->group[i].p2p == p2p) {
			*ret_group = &out->group[i];
			return 0;
		}
	}
	if (out->groups == NT_FRAME_MAX_COMMS) {
		dump->flight->dropped++;
		return 0;
	}
	if (!out->group)
		out->group = calloc(NT_FRAME_MAX_COMMS, sizeof(*out->group));
	if (!out->group)
		return -ENOMEM;
	for (size_t i = 0; i < dump->listeds && !listed; i++)
		if (dump->listed[i].name == name)
			listed = &dump->listed[i];
	group = &out->group[out->groups++];
	*group = (struct nt_flight_group){.name = name, .p2p = p2p};
	group->id = nt_hash_u64(name, p2p);
	if (listed) {
		group->size = listed->size;
		group->place = listed->place;
		if (dump->old)
			group->id = nt_hash_u64(name_old(dump, listed), p2p);
		group->id = nt_hash_u64(group->id, listed->ranks_hash);
	}
	group->id = nt_hash_mix(group->id);
	*ret_group = group;
	return 0;
}

/*
 * Groups of which the rank is a member and in which it has not called yet. Where calls have been
 * overwritten nobody can say that there were none.
 */
static int add_silent(struct dump *dump)
{
	struct nt_flight_group *group;

	for (size_t i = 0; i < dump->out->groups; i++)
		if (!dump->out->group[i].p2p && dump->out->group[i].call[0].number > 1)
			dump->out->whole = false;
	for (size_t i = 0; i < dump->listeds && dump->out->whole; i++) {
		int r;

		if (dump->listed[i].place == UINT32_MAX)
			continue;
		r = find_group(dump, dump->listed[i].name, false, &group);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- calls -------------------------------------------------------------------------------- */

static int add_call(struct nt_flight_group *group, const struct nt_flight_call *call)
{
	struct nt_flight_call *last = group->calls ? &group->call[group->calls - 1] : NULL;

	/* A group made anew under its name begins anew: what was before is over. */
	if (last && call->number < last->number)
		group->calls = 0;
	else if (last && call->number == last->number) {
		/* Of one coalesced group; only its last entry knows how far the device is. */
		last->op = last->op ? last->op : call->op;
		last->type = last->type ? last->type : call->type;
		last->started |= call->started;
		last->done |= call->done;
		last->sends |= call->sends;
		last->receives |= call->receives;
		if (last->peer == NT_FLIGHT_NO_PEER)
			last->peer = call->peer;
		else if (call->peer != NT_FLIGHT_NO_PEER && call->peer != last->peer)
			last->peer = NT_FLIGHT_PEERS;
		if (!add_up(&last->count, call->count))
			last->count = UINT64_MAX;
		return 0;
	}
	/* Grows at the powers of two: no capacity to carry. */
	if ((group->calls & (group->calls - 1)) == 0) {
		struct nt_flight_call *grown = reallocarray(
			group->call, group->calls ? group->calls * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		group->call = grown;
	}
	assert(group->call);
	group->call[group->calls++] = *call;
	return 0;
}

static int refuse_entry(const struct dump *dump, const char *key, const char *want)
{
	return nt_trace_refuse(dump->error, "%s is not %s", key, want);
}

/* The last call that the group's status says to be complete. */
static uint64_t last_completed(const struct dump *dump, const json_t *entry)
{
	uint64_t pg = 0, number = 0;
	char key[32];

	if (!dump->status || !read_number(json_object_get(entry, "pg_id"), INT64_MAX, &pg))
		return UINT64_MAX;
	(void)snprintf(key, sizeof(key), "%" PRIu64, pg);
	if (!read_number(json_object_get(json_object_get(dump->status, key),
					 "last_completed_collective"),
			 INT64_MAX, &number))
		return UINT64_MAX;
	return number;
}

static int read_state(const struct dump *dump, const json_t *entry, bool has_device,
		      struct nt_flight_call *call)
{
	const char *state = json_string_value(json_object_get(entry, "state"));
	uint64_t started_ns, completed_ns;

	if (!state || (strcmp(state, "scheduled") != 0 && strcmp(state, "started") != 0 &&
		       strcmp(state, "completed") != 0))
		return refuse_entry(dump, "state", "scheduled, started or completed");
	if (!read_time(json_object_get(entry, "time_discovered_started_ns"), &started_ns) ||
	    !read_time(json_object_get(entry, "time_discovered_completed_ns"), &completed_ns))
		return refuse_entry(dump, "time_discovered_started_ns or …_completed_ns",
				    "a time in nanoseconds");
	call->done = strcmp(state, "completed") == 0;
	call->started = call->done || strcmp(state, "started") == 0;
	dump->flight->timed |= call->started && !call->done;
	if (!has_device) {
		/* No events of a device tell: the call leaves the list when it is done. */
		call->started = true;
		call->done |= json_is_true(json_object_get(entry, "retired")) &&
			      last_completed(dump, entry) >= call->number;
	}
	if (started_ns > dump->out->newest_ns)
		dump->out->newest_ns = started_ns;
	if (completed_ns > dump->out->newest_ns)
		dump->out->newest_ns = completed_ns;
	return 0;
}

/* "0 (default_pg)", "tp": fit for printing. */
static void label_group(struct nt_flight_group *group, const char *name, const char *desc)
{
	char text[sizeof(group->label)];
	const bool tells = desc && *desc && strcmp(desc, "undefined") != 0;

	if (*group->label)
		return;
	(void)snprintf(text, sizeof(text), "%s%s%s%s", name, tells ? " (" : "", tells ? desc : "",
		       tells ? ")" : "");
	(void)nt_text_clean(text, strlen(text), group->label, sizeof(group->label) - 1);
}

/* The name of the entry's group; version 1 has a number. NULL: it has none. */
static const char *group_of(const struct dump *dump, const json_t *entry, char *text, size_t size)
{
	uint64_t number;

	if (!dump->old)
		return json_string_value(
			json_array_get(json_object_get(entry, "process_group"), 0));
	if (!read_number(json_object_get(entry, "pg_id"), INT64_MAX, &number))
		return NULL;
	(void)snprintf(text, size, "%" PRIu64, number);
	return text;
}

/* "nccl:send 0->1", "nccl:recv 1<-0": with whom, by places in the group. */
static void find_peer(const char *name, struct nt_flight_call *call)
{
	const char *to = strstr(name, "->"), *from = strstr(name, "<-");
	const char *peer = to ? to + 2 : from ? from + 2 : "";
	uint32_t place = 0;

	call->peer = NT_FLIGHT_NO_PEER;
	if (nt_num_u32(peer, strlen(peer), 0, NT_FRAME_MAX_RANKS - 1, &place) < 0)
		return;
	call->peer = place;
	call->sends = to != NULL;
	call->receives = !to;
}

static int read_entry(struct dump *dump, const json_t *entry)
{
	char number[24];
	const json_t *pg = json_object_get(entry, "process_group");
	const char *group_name = group_of(dump, entry, number, sizeof(number));
	const char *name = json_string_value(json_object_get(entry, "profiling_name"));
	const bool p2p = json_is_true(json_object_get(entry, "is_p2p"));
	const char *key = dump->old ? "seq_id" : p2p ? "p2p_seq_id" : "collective_seq_id", *desc;
	struct nt_flight_group *group = NULL;
	struct nt_flight_call call = {0};
	bool uneven = false, has_device, scatters;
	const char *type;
	uint64_t timeout_ms = 0;
	int r;

	if (!json_is_object(entry))
		return nt_trace_refuse(dump->error, "no object");
	if (!group_name)
		return dump->old ? refuse_entry(dump, "pg_id", "a number")
				 : refuse_entry(dump, "process_group", "a name and a description");
	if (!name)
		return refuse_entry(dump, "profiling_name", "the name of an operation");
	if (!read_number(json_object_get(entry, key), INT64_MAX, &call.number))
		return refuse_entry(dump, key, "a number");
	if (!read_number(json_object_get(entry, "time_created_ns"), MAX_NS, &call.created_ns))
		return refuse_entry(dump, "time_created_ns", "a time in nanoseconds");
	call.expires_ns = UINT64_MAX;
	if (read_number(json_object_get(entry, "timeout_ms"), MAX_NS / NT_MILLISECOND, &timeout_ms))
		call.expires_ns = call.created_ns + timeout_ms * NT_MILLISECOND;
	call.op = (uint8_t)nt_collective_op(name, &uneven);
	find_peer(name, &call);
	/* They are numbered with the collectives, which other members then number otherwise. */
	if (dump->old && nt_framer_kind(call.op) == NT_FRAME_POINT_TO_POINT)
		return nt_trace_refuse(
			dump->error,
			"a send or receive: with them the calls of version 1 cannot be compared");
	scatters = call.op == NT_OP_REDUCE_SCATTER;
	if (!count_elements(json_object_get(entry, scatters ? "output_sizes" : "input_sizes"),
			    &call.count))
		return refuse_entry(dump, scatters ? "output_sizes" : "input_sizes",
				    "a list of the sizes of tensors");
	if (uneven || call.op == NT_OP_ALL_TO_ALL || call.op == NT_OP_GATHER ||
	    call.op == NT_OP_SCATTER || call.op == NT_OP_UNKNOWN)
		call.count = 0;
	type = json_string_value(json_array_get(json_object_get(entry, "input_dtypes"), 0));
	call.type = nt_collective_type(type);
	dump->flight->untyped |=
		!type && json_array_size(json_object_get(entry, "input_sizes")) > 0;
	has_device = strncmp(name, "gloo:", 5) != 0 && strncmp(name, "mpi:", 4) != 0;
	dump->out->uses_gpu |= has_device;
	r = read_state(dump, entry, has_device, &call);
	if (r < 0)
		return r;
	if (call.created_ns > dump->out->newest_ns)
		dump->out->newest_ns = call.created_ns;
	r = find_group(dump, nt_hash_text(NT_HASH_SEED, group_name), p2p, &group);
	if (r < 0 || !group)
		return r;
	desc = dump->old && strcmp(group_name, "0") == 0 ? "default_pg"
							 : json_string_value(json_array_get(pg, 1));
	label_group(group, group_name, desc);
	group->all |= desc && strcmp(desc, "default_pg") == 0;
	if (group->size && group->place == UINT32_MAX)
		return nt_trace_refuse(
			dump->error,
			"rank %u calls in process group '%.40s', of which pg_config says that it is no member: is the file of another rank?",
			dump->out->rank, group_name);
	return add_call(group, &call);
}

static int read_entries(struct dump *dump, const json_t *entries)
{
	const json_t *entry;
	uint64_t first = 0;
	size_t i;

	if (!entries)
		return 0;
	if (!json_is_array(entries))
		return nt_trace_refuse(dump->error, "%s: 'entries' is no list", dump->out->path);
	if (json_array_size(entries) > MAX_CALLS)
		return nt_trace_refuse(dump->error, "%s: more than %d entries", dump->out->path,
				       MAX_CALLS);
	dump->out->whole = json_array_size(entries) &&
			   read_number(json_object_get(json_array_get(entries, 0), "record_id"),
				       INT64_MAX, &first) &&
			   first == 0;
	json_array_foreach(entries, i, entry)
	{
		int r = read_entry(dump, entry);

		if (r == -EBADMSG)
			(void)nt_input_refuse_at(dump->error, dump->out->path, dump->text,
						 "entries", i, "entry");
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- one file ----------------------------------------------------------------------------- */

/* The number behind the last "rank" in the file's name, else the last number in it. */
static bool rank_of_name(const char *path, uint64_t *ret_rank)
{
	const char *base = strrchr(path, '/');
	const char *at, *digits = NULL;
	bool told = false;
	size_t len;

	base = base ? base + 1 : path;
	for (at = base; (at = strstr(at, "rank")); at += strlen("rank")) {
		const char *number = at + strlen("rank");

		number += strspn(number, "-_.=");
		if (!isdigit((unsigned char)*number))
			continue;
		digits = number;
		told = true;
	}
	for (at = base; !told && *(at += strcspn(at, "0123456789"));) {
		digits = at;
		at += strspn(at, "0123456789");
	}
	if (!digits)
		return false;
	len = strspn(digits, "0123456789");
	return nt_num_u64(digits, len, 0, NT_FRAME_MAX_RANKS - 1, ret_rank) == 0;
}

static int find_rank(struct dump *dump, const json_t *root)
{
	const json_t *told = json_object_get(root, "rank");
	uint64_t rank = 0;

	if (told ? !read_number(told, NT_FRAME_MAX_RANKS - 1, &rank)
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
	    (uint64_t)st.st_mtim.tv_sec > MAX_NS / 1000000000)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

static int read_root(struct dump *dump, const json_t *root)
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
	r = read_config(dump, json_object_get(root, "pg_config"));
	if (r == -EBADMSG)
		(void)nt_input_refuse_at(dump->error, path, dump->text, "pg_config", SIZE_MAX,
					 "pg_config");
	r = r ?: read_entries(dump, json_object_get(root, "entries"));
	return r ?: add_silent(dump);
}

static int read_dump(struct nt_flight *flight, struct nt_flight_rank *out,
		     struct nt_trace_error *error)
{
	__attribute__((cleanup(release_dump))) struct dump dump = {
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

/* Each rank is there once, and all are of one job. */
static int check_ranks(struct nt_flight *flight, struct nt_trace_error *error)
{
	const struct nt_flight_rank *told = NULL;
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
		if (told && rank->world != told->world)
			return nt_trace_refuse(
				error, "%s and %s: not of one job, which had %u or %u ranks",
				told->path, rank->path, told->world, rank->world);
		told = rank;
	}
	if (told == last && last->rank >= told->world)
		return nt_trace_refuse(
			error, "%s: of rank %u, and its pg_config says that the job had %u ranks",
			last->path, last->rank, told->world);
	if (told && last->rank >= told->world)
		return nt_trace_refuse(error, "%s and %s: not of one job, which had %u ranks",
				       told->path, last->path, told->world);
	if (!any)
		return nt_trace_refuse(
			error,
			"%s: no calls in any of the dumps: was TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE) 0?",
			flight->rank[0].path);
	flight->world = told ? told->world : 0;
	/* Where no file says it, a gap in the numbers does. */
	if (!told && last->rank >= flight->ranks)
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

/* Only some jobs record when the device starts a call. In the others a call that is there has. */
static void settle_starts(struct nt_flight *flight)
{
	for (size_t i = 0; i < flight->ranks && !flight->timed; i++)
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			for (size_t k = 0; k < flight->rank[i].group[j].calls; k++)
				flight->rank[i].group[j].call[k].started = true;
}

/* What one dump does not say is no difference between two ranks. */
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
