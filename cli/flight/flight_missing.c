/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ranks without a dump. That others wait in a call of which such a rank is a member shows neither
 * that it is late nor that it is not. It is named if the dumps leave no other explanation.
 */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The members of one group, and the first call that some of them wait in. */
struct missing_call {
	const struct nt_flight_member *member;
	size_t n;
	uint64_t lowest, highest; /* numbers of the calls waited in; highest 0: none */
	bool behind; /* a member with a dump has not entered the last one */
	bool after; /* all that wait in it have earlier sends or receives open */
};

/* A rank without a dump, and a call that it may have left out. */
struct missing_candidate {
	uint32_t rank;
	uint32_t place; /* in the group */
	const struct nt_flight_group *group; /* of a waiting member */
	uint64_t number;
};

struct candidate_list {
	struct missing_candidate *candidate;
	size_t n, cap;
};

static struct missing_call next_call(const struct nt_flight_making *making, size_t from)
{
	struct missing_call call = {
		.member = &making->member[from], .lowest = UINT64_MAX, .after = true};

	while (from + call.n < making->members &&
	       call.member[call.n].group->id == call.member->group->id)
		call.n++;
	for (size_t i = 0; i < call.n && !call.member->group->p2p; i++) {
		const struct nt_flight_stand *stand = nt_flight_stand_of(making, &call.member[i]);

		if (!stand)
			continue;
		call.after = call.after && stand->after;
		if (stand->call->number > call.highest)
			call.highest = stand->call->number;
		if (stand->call->number < call.lowest)
			call.lowest = stand->call->number;
	}
	for (size_t i = 0; i < call.n; i++)
		call.behind |= call.member[i].at < call.highest;
	return call;
}

/*
 * Whether the dumps show a culprit. It waits for no rank and is behind, or its device is stuck in a
 * call that others have left.
 */
static bool shows_culprit(const struct nt_flight_making *making)
{
	struct missing_call call;

	for (size_t i = 0; i < making->flight->ranks; i++)
		if (making->stand[i].left)
			return true;
	for (size_t i = 0; i < making->members; i += call.n) {
		call = next_call(making, i);
		for (size_t j = 0; j < call.n && call.behind; j++)
			if (call.member[j].at < call.highest &&
			    !making->stand[call.member[j].rank - making->flight->rank].group)
				return true;
	}
	return false;
}

/* No more candidates than dumps and their groups are of use: then nobody is named. */
static void add(struct candidate_list *list, const struct missing_candidate *candidate)
{
	if (list->n < list->cap)
		list->candidate[list->n] = *candidate;
	list->n += list->n <= list->cap;
}

static void add_members(const struct nt_flight_making *making, const struct missing_call *call,
			struct candidate_list *list)
{
	const struct nt_flight *flight = making->flight;
	struct missing_candidate candidate = {.group = call->member->group, .number = call->lowest};
	const uint32_t size = candidate.group->size;

	for (uint32_t place = 0; place < size && list->n <= list->cap; place++) {
		candidate.rank = nt_flight_rank_at(flight, candidate.group, place);
		candidate.place = place;
		if (candidate.rank != UINT32_MAX && !nt_flight_find_rank(flight, candidate.rank))
			add(list, &candidate);
	}
}

/* The partners of sends and receives. */
static void add_partners(const struct nt_flight_making *making, struct candidate_list *list)
{
	const struct nt_flight *flight = making->flight;

	for (size_t i = 0; i < flight->ranks; i++) {
		const struct nt_flight_stand *stand = &making->stand[i];
		struct missing_candidate candidate = {.group = stand->group};

		if (!stand->group || !stand->group->p2p || stand->peer)
			continue;
		candidate.place = stand->call->peer;
		candidate.rank = nt_flight_rank_at(flight, stand->group, candidate.place);
		if (candidate.rank != UINT32_MAX && !nt_flight_find_rank(flight, candidate.rank))
			add(list, &candidate);
	}
}

/*
 * Of calls that all members with a dump have entered, and not behind a send or receive. If there
 * are none, of all.
 */
static void list_candidates(const struct nt_flight_making *making, struct candidate_list *list)
{
	add_partners(making, list);
	for (int all = 0; all < 2 && !list->n; all++) {
		struct missing_call call;

		for (size_t i = 0; i < making->members; i += call.n) {
			call = next_call(making, i);
			if (call.highest && (all || (!call.behind && !call.after)))
				add_members(making, &call, list);
		}
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct missing_candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->group->id > y->group->id) - (x->group->id < y->group->id);
}

static int by_number(const void *a, const void *b)
{
	const struct nt_flight_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The candidates of one rank become its groups: it has entered the calls before. */
static int make_rank(const struct missing_candidate *candidate, size_t n,
		     struct nt_flight_rank *rank)
{
	*rank = (struct nt_flight_rank){
		.path = "", .rank = candidate->rank, .written_ns = UINT64_MAX, .missing = true};
	if (n > NT_FRAME_MAX_COMMS)
		n = NT_FRAME_MAX_COMMS;
	rank->group = calloc(n, sizeof(*rank->group));
	if (!rank->group)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct nt_flight_group *group = &rank->group[rank->groups];
		const uint64_t before = candidate[i].number ? candidate[i].number - 1 : 0;

		if (i && candidate[i].group->id == candidate[i - 1].group->id)
			continue;
		*group = *candidate[i].group;
		group->place = candidate[i].place;
		group->call = NULL;
		group->calls = 0;
		group->counted = !group->p2p;
		group->enqueued = group->completed = before;
		rank->groups++;
	}
	return 0;
}

static int add_ranks(struct nt_flight *flight, const struct candidate_list *list)
{
	struct nt_flight_rank *grown =
		reallocarray(flight->rank, flight->ranks + list->n, sizeof(*grown));
	size_t end;
	int r = 0;

	if (!grown)
		return -ENOMEM;
	flight->rank = grown;
	for (size_t i = 0; i < list->n && r == 0; i = end) {
		for (end = i + 1;
		     end < list->n && list->candidate[end].rank == list->candidate[i].rank;)
			end++;
		r = make_rank(&list->candidate[i], end - i, &grown[flight->ranks]);
		flight->ranks += r == 0;
	}
	qsort(grown, flight->ranks, sizeof(*grown), by_number);
	return r;
}

int nt_flight_list_missing(const struct nt_flight *flight, struct nt_trace *trace)
{
	uint32_t *missing = nt_arena_alloc(&trace->arena, NT_TRACE_MAX_MISSING * sizeof(*missing));

	if (!missing)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < flight->world && trace->missings < NT_TRACE_MAX_MISSING;
	     rank++)
		if (!nt_flight_find_rank(flight, rank))
			missing[trace->missings++] = rank;
	trace->missing = missing;
	return 0;
}

int nt_flight_add_missing(struct nt_flight_making *making, bool *ret_added)
{
	struct nt_flight *flight = making->flight;
	struct candidate_list list = {.cap = making->members};
	uint32_t ranks = 0;
	int r = 0;

	if (flight->world <= flight->given || shows_culprit(making))
		return 0;
	list.candidate = calloc(list.cap + 1, sizeof(*list.candidate));
	if (!list.candidate)
		return -ENOMEM;
	list_candidates(making, &list);
	if (list.n && list.n <= list.cap) {
		qsort(list.candidate, list.n, sizeof(*list.candidate), by_rank);
		for (size_t i = 0; i < list.n; i++)
			ranks += !i || list.candidate[i].rank != list.candidate[i - 1].rank;
	}
	/* Of a job of which most dumps are not there, nothing is known. */
	if (ranks && ranks <= flight->given) {
		r = add_ranks(flight, &list);
		*ret_added = r == 0;
	}
	free(list.candidate);
	return r;
}
