/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one dump of a flight recorder: its calls. */
#include "cli/flight/flight_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/collective.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "engine/frame_builder.h"
#include "proto/text.h"
#include "proto/wire.h"

enum {
	VALUE_BYTES = 40, /* of a refused value */
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

/* ---- calls ----------------------------------------------------------------------------------- */

static int add_call(struct nt_flight_group *group, const struct nt_flight_call *call)
{
	struct nt_flight_call *last = group->calls ? &group->call[group->calls - 1] : NULL;

	/* A recreated group of the same name starts again: its earlier calls are over. */
	if (last && call->number < last->number)
		group->calls = 0;
	else if (last && call->number == last->number) {
		/* Of one coalesced group; only its last entry has the device's progress. */
		if (call->op && (!last->op || call->names))
			last->op = call->op;
		last->type = last->type ? last->type : call->type;
		last->started |= call->started;
		last->done |= call->done;
		last->retired |= call->retired;
		last->sends |= call->sends;
		last->receives |= call->receives;
		if (last->peer == NT_FLIGHT_NO_PEER)
			last->peer = call->peer;
		else if (call->peer != NT_FLIGHT_NO_PEER && call->peer != last->peer)
			last->peer = NT_FLIGHT_PEERS;
		if (!add_up(&last->count, call->count))
			last->count = UINT64_MAX;
		if (__builtin_add_overflow(last->tensors, call->tensors, &last->tensors))
			last->tensors = UINT32_MAX;
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

/* "state is "asleep": not scheduled, started or completed". */
static int refuse_entry(const struct nt_flight_dump *dump, const json_t *entry, const char *key,
			const char *want)
{
	const json_t *value = json_object_get(entry, key);
	char text[VALUE_BYTES + 1] = "";

	if (!value)
		return nt_trace_refuse(dump->error, "%s is not given: expected %s", key, want);
	/* As much of it as there is room for; the rest stays zero. */
	(void)json_dumpb(value, text, VALUE_BYTES, JSON_ENCODE_ANY | JSON_COMPACT);
	return nt_trace_refuse(dump->error, "%s is %s: expected %s", key, text, want);
}

static int refuse_number(const struct nt_flight_dump *dump, const json_t *entry, const char *key,
			 uint64_t max, const char *unit)
{
	char want[64];

	(void)snprintf(want, sizeof(want), "a number from 0 to %" PRIu64 "%s", max, unit);
	return refuse_entry(dump, entry, key, want);
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
		return refuse_entry(dump, entry, "state", "scheduled, started or completed");
	if (!read_time(json_object_get(entry, "time_discovered_started_ns"), &started_ns))
		return refuse_number(dump, entry, "time_discovered_started_ns", NT_FLIGHT_MAX_NS,
				     " ns, or null");
	if (!read_time(json_object_get(entry, "time_discovered_completed_ns"), &completed_ns))
		return refuse_number(dump, entry, "time_discovered_completed_ns", NT_FLIGHT_MAX_NS,
				     " ns, or null");
	call->done = strcmp(state, "completed") == 0;
	call->started = call->done || strcmp(state, "started") == 0;
	dump->flight->timed |= call->started && !call->done;
	if (!has_device) {
		/* Without device events: the call leaves the list when it is done. */
		call->started = true;
		call->retired = json_is_true(json_object_get(entry, "retired"));
		call->done |= call->retired && last_completed(dump, entry) >= call->number;
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
	const bool described = desc && *desc && strcmp(desc, "undefined") != 0;

	if (*group->label)
		return;
	(void)snprintf(text, sizeof(text), "%s%s%s%s", name, described ? " (" : "",
		       described ? desc : "", described ? ")" : "");
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

/* The elements, their type, and the number of tensors: see struct nt_flight_call. */
static int read_tensors(struct nt_flight_dump *dump, const json_t *entry, bool uneven,
			struct nt_flight_call *call)
{
	const char *key = call->op == NT_OP_REDUCE_SCATTER ? "output_sizes" : "input_sizes";
	const char *type =
		json_string_value(json_array_get(json_object_get(entry, "input_dtypes"), 0));
	const json_t *sizes = json_object_get(entry, key);

	if (!count_elements(sizes, &call->count))
		return refuse_entry(
			dump, entry, key,
			"a list of the sizes of tensors, each a list of numbers from 0 on, "
			"of less than 2^64 elements in all");
	call->tensors = (uint32_t)json_array_size(sizes);
	call->names = !call->tensors;
	if (uneven || call->op == NT_OP_ALL_TO_ALL || call->op == NT_OP_GATHER ||
	    call->op == NT_OP_SCATTER || call->op == NT_OP_UNKNOWN)
		call->count = call->tensors = 0;
	call->type = nt_collective_type(type);
	dump->flight->untyped |=
		!type && json_array_size(json_object_get(entry, "input_sizes")) > 0;
	return 0;
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
	bool uneven = false, has_device;
	uint64_t timeout_ms = 0;
	int r;

	if (!json_is_object(entry))
		return nt_trace_refuse(dump->error, "not an object");
	if (!group_name)
		return dump->old ? refuse_number(dump, entry, "pg_id", INT64_MAX, "")
				 : refuse_entry(dump, entry, "process_group",
						"a list of a name and a description");
	if (!name)
		return refuse_entry(dump, entry, "profiling_name", "the name of an operation");
	if (!nt_flight_read_number(json_object_get(entry, key), INT64_MAX, &call.number))
		return refuse_number(dump, entry, key, INT64_MAX, "");
	if (!nt_flight_read_number(json_object_get(entry, "time_created_ns"), NT_FLIGHT_MAX_NS,
				   &call.created_ns))
		return refuse_number(dump, entry, "time_created_ns", NT_FLIGHT_MAX_NS, " ns");
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
			"a send or receive: dumps of version 1 are supported only without them");
	r = read_tensors(dump, entry, uneven, &call);
	if (r < 0)
		return r;
	has_device = strncmp(name, "gloo:", 5) != 0 && strncmp(name, "mpi:", 4) != 0;
	dump->out->uses_gpu |= has_device;
	r = read_state(dump, entry, has_device, &call);
	if (r < 0)
		return r;
	if (call.created_ns > dump->out->newest_ns)
		dump->out->newest_ns = call.created_ns;
	r = nt_flight_find_group(dump, nt_hash_text(NT_HASH_SEED, group_name), p2p, &group);
	if (r < 0 || !group)
		return r;
	desc = dump->old && strcmp(group_name, "0") == 0 ? "default_pg"
							 : json_string_value(json_array_get(pg, 1));
	label_group(group, group_name, desc);
	group->all |= desc && strcmp(desc, "default_pg") == 0;
	if (group->size && group->place == UINT32_MAX)
		return nt_trace_refuse(
			dump->error,
			"rank %u has calls in process group '%.40s', but pg_config does not list it as a member: is the file of another rank?",
			dump->out->rank, group_name);
	return add_call(group, &call);
}

/*
 * pg_status may lag behind for good if a call ends while the next one is enqueued. A rank whose
 * call failed makes no further one.
 */
void nt_flight_settle_retired(struct nt_flight_rank *out)
{
	uint64_t newest_ns = 0;

	for (size_t i = 0; i < out->groups; i++)
		for (size_t j = 0; j < out->group[i].calls; j++)
			if (out->group[i].call[j].created_ns > newest_ns)
				newest_ns = out->group[i].call[j].created_ns;
	for (size_t i = 0; i < out->groups; i++)
		for (size_t j = 0; j < out->group[i].calls; j++)
			out->group[i].call[j].done |= out->group[i].call[j].retired &&
						      out->group[i].call[j].created_ns < newest_ns;
}

int nt_flight_check_entries(struct nt_flight_dump *dump)
{
	if (!dump->is_list)
		return nt_trace_refuse(dump->error, "%s: 'entries' is not a list", dump->out->path);
	if (dump->entries > NT_FLIGHT_MAX_CALLS)
		return nt_trace_refuse(dump->error, "%s: %zu entries: expected at most %d",
				       dump->out->path, dump->entries, NT_FLIGHT_MAX_CALLS);
	dump->out->empty = !dump->entries;
	return 0;
}

int nt_flight_read_entry(struct nt_flight_dump *dump, size_t at, const json_t *entry)
{
	uint64_t first = 0;

	if (!at)
		dump->out->whole = nt_flight_read_number(json_object_get(entry, "record_id"),
							 INT64_MAX, &first) &&
				   first == 0;
	return read_entry(dump, entry);
}
