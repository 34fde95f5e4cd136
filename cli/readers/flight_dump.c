/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one dump of a flight recorder: process groups and calls. */
#include "cli/readers/flight_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/collective.h"
#include "cli/readers/input.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "engine/frame_builder.h"
#include "proto/text.h"
#include "proto/wire.h"

enum {
	MAX_CALLS = 1 << 17, /* of one rank; the recorder keeps 2,000 by default */
	MAX_CONFIG = 4096, /* process groups that one file lists */
};

/* ---- values ---------------------------------------------------------------------------------- */

/* A number, or a string of one. */
bool nt_flight_read_number(const json_t *value, uint64_t max, uint64_t *ret_number)
{
	const char *text = json_string_value(value);

	if (text)
		return nt_parse_u64(text, strlen(text), 0, max, ret_number) == 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > max)
		return false;
	*ret_number = (uint64_t)json_integer_value(value);
	return true;
}

/* A time; null or 0 if unknown. */
static bool read_time(const json_t *value, uint64_t *ret_ns)
{
	if (!value || json_is_null(value)) {
		*ret_ns = 0;
		return true;
	}
	return nt_flight_read_number(value, NT_FLIGHT_MAX_NS, ret_ns);
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

			if (!nt_flight_read_number(length, INT64_MAX, &of) ||
			    __builtin_mul_overflow(elements, of, &elements))
				return false;
		}
		if (!add_up(&count, elements))
			return false;
	}
	*ret_count = count;
	return true;
}

/* ---- process groups -------------------------------------------------------------------------- */

/*
 * Reads "[0, 1]", or a list: a hash of its numbers, their count, and the index of the rank among
 * them (UINT32_MAX: none).
 */
static bool read_ranks(const json_t *value, uint32_t rank, struct nt_flight_listed *out)
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

			if (nt_parse_u64(text, digits, 0, NT_FRAME_MAX_RANKS - 1, &number) < 0)
				return false;
			text += digits;
		} else if (!nt_flight_read_number(json_array_get(value, n), NT_FRAME_MAX_RANKS - 1,
						  &number)) {
			return false;
		}
		hash = nt_hash_u64(hash, number);
		if (number == rank)
			out->place = n;
	}
}

int nt_flight_read_config(struct nt_flight_dump *dump, const json_t *config)
{
	json_t *iterate = (json_t *)config; /* jansson's iterator does not modify it */
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
		struct nt_flight_listed *listed = &dump->listed[dump->listeds];

		listed->name = nt_hash_text(NT_HASH_SEED, name);
		/* Gloo lists its last group without a name. */
		if (!*name)
			continue;
		if (dump->old &&
		    nt_parse_u64(name, strlen(name), 0, INT64_MAX, &listed->number) < 0)
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
 * Version 1 numbers groups in the order in which a process created its own: the number differs
 * between ranks. Among groups of the same ranks, the order of creation is the same on all members.
 */
static uint64_t name_old(const struct nt_flight_dump *dump, const struct nt_flight_listed *listed)
{
	uint64_t before = 0;

	for (size_t i = 0; i < dump->listeds; i++)
		before += dump->listed[i].ranks_hash == listed->ranks_hash &&
			  dump->listed[i].number < listed->number;
	return nt_hash_u64(NT_HASH_SEED, before);
}

/* Finds the group of that name, or adds it; NULL at the cap. */
static int find_group(struct nt_flight_dump *dump, uint64_t name, bool p2p,
		      struct nt_flight_group **ret_group)
{
	struct nt_flight_rank *out = dump->out;
	struct nt_flight_group *group;
	const struct nt_flight_listed *listed = NULL;

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
 * Adds groups of which the rank is a member and has no call. If calls were overwritten, it may have
 * had some.
 */
int nt_flight_add_silent(struct nt_flight_dump *dump)
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

/* ---- calls ----------------------------------------------------------------------------------- */

static int add_call(struct nt_flight_group *group, const struct nt_flight_call *call)
{
	struct nt_flight_call *last = group->calls ? &group->call[group->calls - 1] : NULL;

	/* A recreated group of the same name starts again: its earlier calls are over. */
	if (last && call->number < last->number)
		group->calls = 0;
	else if (last && call->number == last->number) {
		/* Of one coalesced group; only its last entry has the device's progress. */
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
	/* Grows at powers of two, so that no capacity is stored. */
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

static int refuse_entry(const struct nt_flight_dump *dump, const char *key, const char *want)
{
	return nt_trace_refuse(dump->error, "%s is not %s", key, want);
}

/* The last call that is complete by the group's status. */
static uint64_t last_completed(const struct nt_flight_dump *dump, const json_t *entry)
{
	uint64_t pg = 0, number = 0;
	char key[32];

	if (!dump->status ||
	    !nt_flight_read_number(json_object_get(entry, "pg_id"), INT64_MAX, &pg))
		return UINT64_MAX;
	(void)snprintf(key, sizeof(key), "%" PRIu64, pg);
	if (!nt_flight_read_number(json_object_get(json_object_get(dump->status, key),
						   "last_completed_collective"),
				   INT64_MAX, &number))
		return UINT64_MAX;
	return number;
}

static int read_state(const struct nt_flight_dump *dump, const json_t *entry, bool has_device,
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
		/* Without device events: the call leaves the list when it is done. */
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

/* "0 (default_pg)", "tp": printable. */
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
static const char *group_of(const struct nt_flight_dump *dump, const json_t *entry, char *text,
			    size_t size)
{
	uint64_t number;

	if (!dump->old)
		return json_string_value(
			json_array_get(json_object_get(entry, "process_group"), 0));
	if (!nt_flight_read_number(json_object_get(entry, "pg_id"), INT64_MAX, &number))
		return NULL;
	(void)snprintf(text, size, "%" PRIu64, number);
	return text;
}

/* "nccl:send 0->1", "nccl:recv 1<-0": the peer, by its index in the group. */
static void find_peer(const char *name, struct nt_flight_call *call)
{
	const char *to = strstr(name, "->"), *from = strstr(name, "<-");
	const char *peer = to ? to + 2 : from ? from + 2 : "";
	uint32_t place = 0;

	call->peer = NT_FLIGHT_NO_PEER;
	if (nt_parse_u32(peer, strlen(peer), 0, NT_FRAME_MAX_RANKS - 1, &place) < 0)
		return;
	call->peer = place;
	call->sends = to != NULL;
	call->receives = !to;
}

static int read_entry(struct nt_flight_dump *dump, const json_t *entry)
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
	if (!nt_flight_read_number(json_object_get(entry, key), INT64_MAX, &call.number))
		return refuse_entry(dump, key, "a number");
	if (!nt_flight_read_number(json_object_get(entry, "time_created_ns"), NT_FLIGHT_MAX_NS,
				   &call.created_ns))
		return refuse_entry(dump, "time_created_ns", "a time in nanoseconds");
	call.expires_ns = UINT64_MAX;
	if (nt_flight_read_number(json_object_get(entry, "timeout_ms"),
				  NT_FLIGHT_MAX_NS / NT_MILLISECOND, &timeout_ms))
		call.expires_ns = call.created_ns + timeout_ms * NT_MILLISECOND;
	call.op = (uint8_t)nt_collective_op(name, &uneven);
	find_peer(name, &call);
	/* They are numbered with the collectives, so numbers then differ between members. */
	if (dump->old && nt_frame_builder_kind(call.op) == NT_FRAME_POINT_TO_POINT)
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

int nt_flight_read_entries(struct nt_flight_dump *dump, const json_t *entries)
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
	dump->out->whole =
		json_array_size(entries) &&
		nt_flight_read_number(json_object_get(json_array_get(entries, 0), "record_id"),
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
