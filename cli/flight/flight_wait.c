/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds which rank waits for which: pairs of sends and receives, and calls of whole groups. */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/search.h"

const struct nt_flight_rank *nt_flight_find_rank(const struct nt_flight *flight, uint32_t rank)
{
	const size_t i = nt_search_first(0, flight->ranks, at, flight->rank[at].rank >= rank);

	return i < flight->ranks && flight->rank[i].rank == rank ? &flight->rank[i] : NULL;
}

uint32_t nt_flight_rank_at(const struct nt_flight *flight, const struct nt_flight_group *group,
			   uint32_t place)
{
	if (group->rank_list)
		return place < group->rank_list->size ? group->rank_list->rank[place] : UINT32_MAX;
	return group->all && place < flight->world ? place : UINT32_MAX;
}

const struct nt_flight_rank *nt_flight_find_peer(const struct nt_flight_making *making,
						 const struct nt_flight_member *member,
						 uint32_t place)
{
	const struct nt_flight_member *end = &making->member[making->members];
	const uint64_t id = member->group->id;

	while (member > making->member && member[-1].group->id == id)
		member--;
	for (; member < end && member->group->id == id; member++)
		if (member->group->size && member->group->place == place)
			return member->rank;
	return NULL;
}

bool nt_flight_fit(const struct nt_flight_call *a, const struct nt_flight_call *b)
{
	return (a->sends && b->receives) || (a->receives && b->sends);
}

/*
 * Whether the waiting side is determined. It is not known in two cases. Both are in the call and
 * device starts are not recorded, as one may not have reached it; or both send or both receive.
 */
static bool is_clear(const struct nt_flight_making *making, const struct nt_flight_stand *stand,
		     const struct nt_flight_stand *other)
{
	return making->flight->timed && nt_flight_fit(stand->call, other->call);
}

static bool has_room(const struct nt_flight_rank *rank, const struct nt_flight_stand *stand)
{
	return rank->groups + stand->pairs < NT_FRAME_MAX_COMMS;
}

static void pair_up(struct nt_flight_making *making, const struct nt_flight_rank *rank)
{
	const struct nt_flight_rank *first = making->flight->rank;
	struct nt_flight_stand *stand = &making->stand[rank - first];
	struct nt_flight_stand *other = &making->stand[stand->peer - first];
	const bool mutual =
		other->peer == rank && other->group && other->group->id == stand->group->id;
	const uint32_t low = rank->rank < stand->peer->rank ? rank->rank : stand->peer->rank;
	const uint32_t high = rank->rank < stand->peer->rank ? stand->peer->rank : rank->rank;

	if (stand->pair || (mutual && !is_clear(making, stand, other)))
		return;
	if (!has_room(rank, stand) || !has_room(stand->peer, other)) {
		making->unpaired++;
		return;
	}
	stand->pairs++;
	other->pairs++;
	stand->pair = nt_hash_mix(nt_hash_u64(nt_hash_u64(stand->group->id, low), high));
	if (mutual)
		other->pair = stand->pair;
	making->side[making->sides++] = (struct nt_flight_side){stand->pair, rank, true};
	making->side[making->sides++] = (struct nt_flight_side){stand->pair, stand->peer, mutual};
}

static int by_side(const void *a, const void *b)
{
	const struct nt_flight_side *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->pair > y->pair) - (x->pair < y->pair);
}

int nt_flight_find_pairs(struct nt_flight_making *making)
{
	const struct nt_flight *flight = making->flight;
	size_t end;

	free(making->side);
	making->sides = making->unpaired = 0;
	making->side = calloc(2 * flight->ranks + 1, sizeof(*making->side));
	if (!making->side)
		return -ENOMEM;
	for (size_t i = 0; i < flight->ranks; i++) {
		making->stand[i].peer = NULL;
		making->stand[i].pair = making->stand[i].pairs = 0;
	}
	for (size_t i = 0; i < making->members; i = end) {
		const struct nt_flight_member *member = &making->member[i];

		for (end = i + 1;
		     end < making->members && making->member[end].group->id == member->group->id;)
			end++;
		for (size_t j = 0; j < end - i && member->group->p2p; j++) {
			struct nt_flight_stand *stand =
				&making->stand[member[j].rank - flight->rank];

			if (stand->group == member[j].group)
				stand->peer =
					nt_flight_find_peer(making, member, stand->call->peer);
			if (stand->peer == member[j].rank)
				stand->peer = NULL;
		}
	}
	for (size_t i = 0; i < flight->ranks; i++)
		if (making->stand[i].peer)
			pair_up(making, &flight->rank[i]);
	if (making->sides)
		qsort(making->side, making->sides, sizeof(*making->side), by_side);
	return 0;
}

/* ---- waits per call ----------------------------------------------------------------------- */

/* Adds the call of those members of one group that wait in the same one. */
static int add_wait(struct nt_flight_making *making, const struct nt_flight_member *member,
		    size_t n, uint64_t number, struct nt_trace_wait *wait)
{
	uint32_t *rank = nt_arena_alloc(&making->trace->arena, n * sizeof(*rank));
	uint32_t *absent = nt_arena_alloc(&making->trace->arena, n * sizeof(*absent));
	uint64_t *at = nt_arena_alloc(&making->trace->arena, n * sizeof(*at));

	if (!rank || !absent || !at)
		return -ENOMEM;
	*wait = (struct nt_trace_wait){
		.number = number, .rank = rank, .absent = absent, .absent_at = at};
	for (size_t i = 0; i < n; i++) {
		const struct nt_flight_stand *stand = nt_flight_stand_of(making, &member[i]);

		if (member[i].at < number) {
			const struct nt_flight_group *group = member[i].group;
			const bool known =
				(group->calls || group->counted) && !member[i].rank->missing;

			at[wait->absents] = known ? member[i].at : UINT64_MAX;
			absent[wait->absents++] = member[i].rank->rank;
		}
		if (!stand || stand->call->number != number)
			continue;
		if (making->now_ns - stand->since_ns > wait->wait_ns)
			wait->wait_ns = making->now_ns - stand->since_ns;
		wait->mixed |= wait->ranks && wait->op != stand->call->op;
		wait->op = stand->call->op;
		memcpy(wait->group, member[i].group->label, sizeof(wait->group));
		rank[wait->ranks++] = member[i].rank->rank;
	}
	return 0;
}

/* Individually: another member's send of that number is another call. */
static int add_p2p_wait(struct nt_flight_making *making, const struct nt_flight_member *member,
			struct nt_trace_wait *wait)
{
	const struct nt_flight_stand *stand = nt_flight_stand_of(making, member);
	uint32_t *rank = nt_arena_alloc(&making->trace->arena, 2 * sizeof(*rank));
	uint64_t *at = nt_arena_alloc(&making->trace->arena, sizeof(*at));
	const struct nt_flight_stand *other;

	if (!rank || !at)
		return -ENOMEM;
	at[0] = UINT64_MAX;
	rank[0] = member->rank->rank;
	*wait = (struct nt_trace_wait){.number = stand->call->number,
				       .wait_ns = making->now_ns - stand->since_ns,
				       .op = stand->call->op,
				       .rank = rank,
				       .ranks = 1,
				       .absent = &rank[1],
				       .absent_at = at};
	memcpy(wait->group, member->group->label, sizeof(wait->group));
	if (!stand->peer)
		return 0;
	other = &making->stand[stand->peer - making->flight->rank];
	rank[1] = stand->peer->rank;
	wait->absents = other->peer != member->rank;
	return 0;
}

/* Once for each call of the group: if no earlier member waits in it. */
static bool is_first_in(const struct nt_flight_making *making,
			const struct nt_flight_member *member, size_t at)
{
	const struct nt_flight_stand *stand = nt_flight_stand_of(making, &member[at]), *other;

	for (size_t i = 0; stand && !stand->group->p2p && i < at; i++) {
		other = nt_flight_stand_of(making, &member[i]);
		if (other && other->call->number == stand->call->number)
			return false;
	}
	return stand != NULL;
}

static int longest_first(const void *a, const void *b)
{
	const struct nt_trace_wait *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns > y->wait_ns ? -1 : 1;
	return (x->rank[0] > y->rank[0]) - (x->rank[0] < y->rank[0]);
}

int nt_flight_add_waits(struct nt_flight_making *making)
{
	struct nt_trace *trace = making->trace;
	struct nt_trace_wait *wait =
		nt_arena_alloc(&trace->arena, NT_TRACE_MAX_WAITS * sizeof(*trace->wait));
	size_t end;

	if (!wait)
		return -ENOMEM;
	trace->wait = wait;
	for (size_t i = 0; i < making->members; i = end) {
		const struct nt_flight_member *member = &making->member[i];

		for (end = i + 1;
		     end < making->members && making->member[end].group->id == member->group->id;)
			end++;
		for (size_t j = 0; j < end - i; j++) {
			int r;

			if (!is_first_in(making, member, j))
				continue;
			if (trace->waits == NT_TRACE_MAX_WAITS) {
				trace->waits_dropped++;
				continue;
			}
			if (member->group->p2p)
				r = add_p2p_wait(making, &member[j], &wait[trace->waits++]);
			else
				r = add_wait(making, member, end - i,
					     nt_flight_stand_of(making, &member[j])->call->number,
					     &wait[trace->waits++]);
			if (r < 0)
				return r;
		}
	}
	if (trace->waits)
		qsort(wait, trace->waits, sizeof(*wait), longest_first);
	return 0;
}
