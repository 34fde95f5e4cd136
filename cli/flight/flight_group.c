/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the process groups of one dump of a flight recorder. */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/parse_number.h"

enum {
	MAX_CONFIG = 4096, /* process groups that one file lists */
};

/* Appends to the list; its array grows at powers of two. */
static int add_rank(struct nt_flight_rank_list *rank_list, uint32_t rank)
{
	if ((rank_list->size & (rank_list->size - 1)) == 0) {
		uint32_t *grown = reallocarray(
			rank_list->rank, rank_list->size ? rank_list->size * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		rank_list->rank = grown;
	}
	rank_list->rank[rank_list->size++] = rank;
	return 0;
}

/* Reads "[0, 1]", or a list. -EBADMSG: it is neither. */
static int read_ranks(const json_t *value, struct nt_flight_rank_list *rank_list)
{
	const char *text = json_string_value(value);
	const size_t given = json_array_size(value);
	int r = 0;

	rank_list->id = NT_HASH_SEED;
	if (!text && !json_is_array(value))
		return -EBADMSG;
	if (text && *text++ != '[')
		return -EBADMSG;
	for (uint32_t n = 0; r == 0; n++) {
		uint64_t number = 0;

		if (text)
			text += strspn(text, " ,");
		if (text ? *text == ']' : n == given)
			return !text || text[1] == '\0' ? 0 : -EBADMSG;
		if (n == NT_FRAME_MAX_RANKS)
			return -EBADMSG;
		if (text) {
			const size_t digits = strspn(text, "0123456789");

			if (nt_parse_u64(text, digits, 0, NT_FRAME_MAX_RANKS - 1, &number) < 0)
				return -EBADMSG;
			text += digits;
		} else if (!nt_flight_read_number(json_array_get(value, n), NT_FRAME_MAX_RANKS - 1,
						  &number)) {
			return -EBADMSG;
		}
		rank_list->id = nt_hash_u64(rank_list->id, number);
		r = add_rank(rank_list, (uint32_t)number);
	}
	return r;
}

static void release_rank_list(struct nt_flight_rank_list **rank_list)
{
	if (*rank_list)
		free((*rank_list)->rank);
	free(*rank_list);
}

/* Reads the ranks of a group. Equal ones are kept once in the flight. */
static int list_ranks(struct nt_flight_dump *dump, const json_t *value,
		      struct nt_flight_listed *listed)
{
	__attribute__((cleanup(release_rank_list))) struct nt_flight_rank_list *rank_list =
		calloc(1, sizeof(*rank_list));
	struct nt_flight *flight = dump->flight;
	struct nt_flight_rank_list *known = NULL;
	int r;

	if (!rank_list)
		return -ENOMEM;
	r = read_ranks(value, rank_list);
	if (r < 0)
		return r;
	listed->place = UINT32_MAX;
	for (uint32_t i = 0; i < rank_list->size; i++) {
		if (rank_list->rank[i] == dump->out->rank)
			listed->place = i;
		if (rank_list->rank[i] >= flight->listed)
			flight->listed = rank_list->rank[i] + 1;
	}
	listed->size = rank_list->size;
	listed->ranks_hash = rank_list->id;
	HASH_FIND(hh, flight->rank_list, &rank_list->id, sizeof(rank_list->id), known);
	if (!known) {
		HASH_ADD(hh, flight->rank_list, id, sizeof(rank_list->id), rank_list);
		if (!nt_table_has(rank_list))
			return -ENOMEM;
		known = rank_list;
		rank_list = NULL;
	}
	listed->rank_list = known;
	return 0;
}

int nt_flight_read_config(struct nt_flight_dump *dump, const json_t *config)
{
	json_t *iterate = (json_t *)config; /* jansson's iterator does not modify it */
	const json_t *group;
	const char *name;

	if (!config)
		return 0;
	if (!json_is_object(config) || json_object_size(config) > MAX_CONFIG)
		return nt_trace_refuse(dump->error, "not an object of at most %d process groups",
				       MAX_CONFIG);
	dump->listed = calloc(json_object_size(config) + 1, sizeof(*dump->listed));
	if (!dump->listed)
		return -ENOMEM;
	json_object_foreach(iterate, name, group)
	{
		const char *desc = json_string_value(json_object_get(group, "desc"));
		const json_t *ranks = dump->old ? group : json_object_get(group, "ranks");
		struct nt_flight_listed *listed = &dump->listed[dump->listeds];
		int r;

		*listed = (struct nt_flight_listed){.pg_id = UINT64_MAX};
		listed->name = nt_hash_text(NT_HASH_SEED, name);
		/* Gloo lists its last group without a name. */
		if (!*name)
			continue;
		if (nt_parse_u64(name, strlen(name), 0, INT64_MAX, &listed->number) < 0)
			listed->number = UINT64_MAX;
		if (dump->old && listed->number == UINT64_MAX)
			return nt_trace_refuse(
				dump->error, "'%.40s' is not the number of a process group", name);
		r = list_ranks(dump, ranks, listed);
		if (r == -EBADMSG)
			return nt_trace_refuse(
				dump->error,
				"the ranks of process group '%.40s' are not a list of numbers from 0 to %d",
				name, NT_FRAME_MAX_RANKS - 1);
		if (r < 0)
			return r;
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

int nt_flight_find_group(struct nt_flight_dump *dump, uint64_t name, bool p2p,
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
		group->rank_list = listed->rank_list;
		if (!p2p)
			nt_flight_count(dump, listed, group);
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
 * had some, which only pg_status shows. A dump without entries is of a rank that waits in no call.
 */
int nt_flight_add_silent(struct nt_flight_dump *dump)
{
	struct nt_flight_rank *out = dump->out;
	struct nt_flight_group *group;

	for (size_t i = 0; i < out->groups; i++)
		if (!out->group[i].p2p && out->group[i].call[0].number > 1)
			out->whole = false;
	for (size_t i = 0; i < dump->listeds && out->groups < NT_FRAME_MAX_COMMS; i++) {
		const struct nt_flight_listed *listed = &dump->listed[i];
		int r;

		if (listed->place == UINT32_MAX ||
		    (!out->whole && !out->empty && !nt_flight_status_of(dump, listed)))
			continue;
		r = nt_flight_find_group(dump, listed->name, false, &group);
		if (r < 0)
			return r;
	}
	return 0;
}
