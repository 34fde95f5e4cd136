/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The call in which each rank hangs, and whether it waits there for others. */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/frame_builder.h"

enum {
	MAX_STEPS = 1 << 20, /* of the search for loops */
};

static size_t index_of(const struct nt_flight_making *making, const struct nt_flight_rank *rank)
{
	return (size_t)(rank - making->flight->rank);
}

const struct nt_flight_stand *nt_flight_stand_of(const struct nt_flight_making *making,
						 const struct nt_flight_member *member)
{
	const struct nt_flight_stand *stand = &making->stand[index_of(making, member->rank)];

	return stand->group == member->group ? stand : NULL;
}

/* A call queued behind others on the device has not been entered. */
uint64_t nt_flight_entered(const struct nt_flight_making *making,
			   const struct nt_flight_member *member)
{
	const struct nt_flight_call *open = nt_flight_first_open(member->group);

	if (!open)
		return nt_flight_enqueued(member->group);
	if (nt_flight_stand_of(making, member))
		return open->number;
	return open->number ? open->number - 1 : 0;
}

/* ---- where ranks hang ----------------------------------------------------------------- */

/* Of each group, the last call that any member has completed. */
static void find_left(struct nt_flight_making *making)
{
	size_t end;

	for (size_t i = 0; i < making->members; i = end) {
		struct nt_flight_member *member = &making->member[i];
		uint64_t left = 0;

		for (end = i;
		     end < making->members && making->member[end].group->id == member->group->id;
		     end++) {
			const uint64_t done = nt_flight_completed(making->member[end].group);

			left = done > left ? done : left;
		}
		for (size_t j = i; j < end && !member->group->p2p; j++)
			making->member[j].left = left;
	}
}

/*
 * Whether another member has completed the call, which none can before all have entered it. The
 * root of a broadcast can, and in an all-to-all of uneven sizes a rank that receives nothing.
 */
static bool is_left(const struct nt_flight_member *member, const struct nt_flight_call *call)
{
	return call->number <= member->left &&
	       nt_frame_builder_kind(call->op) == NT_FRAME_SYNCHRONISING;
}

size_t nt_flight_earlier(const struct nt_flight_rank *rank, const struct nt_flight_stand *stand,
			 size_t from)
{
	for (; from < rank->groups; from++) {
		const struct nt_flight_call *open = nt_flight_first_open(&rank->group[from]);

		if (rank->group[from].p2p && open && open->created_ns < stand->call->created_ns)
			break;
	}
	return from;
}

/* Of calls that others have left, then of other collectives, then of sends and receives. */
static bool is_before(const struct nt_flight_stand *a, const struct nt_flight_stand *b)
{
	if (!b->call)
		return true;
	if (a->left != b->left)
		return a->left;
	if (a->group->p2p != b->group->p2p)
		return !a->group->p2p;
	return a->call->created_ns < b->call->created_ns;
}

/* `member`: of the rank, by the order of its groups. */
static struct nt_flight_stand find_stand(const struct nt_flight *flight,
					 const struct nt_flight_rank *rank,
					 struct nt_flight_member *const *member)
{
	struct nt_flight_stand best = {0};

	for (size_t i = 0; i < rank->groups; i++) {
		const struct nt_flight_group *group = &rank->group[i];
		const struct nt_flight_call *call = nt_flight_first_open(group);
		struct nt_flight_stand stand = {.group = group, .call = call};

		if (!call)
			continue;
		stand.left = is_left(member[i], call);
		stand.begun = flight->timed || !rank->uses_gpu;
		if ((call->started || stand.left) && is_before(&stand, &best))
			best = stand;
	}
	best.after = best.group && !best.group->p2p && !best.left &&
		     nt_flight_earlier(rank, &best, 0) < rank->groups;
	return best;
}

/*
 * Sets the current time: the newest time in any dump, or when the first file was written. It is at
 * most the time at which calls time out, as a copied file is younger than its dump. A rank whose
 * dump is older than later calls of others has waited up to its own dump only.
 */
void nt_flight_find_stands(struct nt_flight_making *making)
{
	const struct nt_flight *flight = making->flight;
	uint64_t first_ns = UINT64_MAX, expires_ns = 0;
	size_t member = 0;

	making->since_ns = UINT64_MAX;
	find_left(making);
	for (size_t i = 0; i < flight->ranks; i++) {
		const struct nt_flight_rank *rank = &flight->rank[i];

		if (rank->newest_ns > making->now_ns)
			making->now_ns = rank->newest_ns;
		if (rank->written_ns < first_ns)
			first_ns = rank->written_ns;
		making->stand[i] = find_stand(flight, rank, &making->of_rank[member]);
		member += rank->groups;
		if (making->stand[i].call && making->stand[i].call->expires_ns > expires_ns)
			expires_ns = making->stand[i].call->expires_ns;
	}
	if (first_ns > expires_ns)
		first_ns = expires_ns;
	if (first_ns > making->now_ns)
		making->now_ns = first_ns;
	for (size_t i = 0; i < flight->ranks; i++) {
		const struct nt_flight_rank *rank = &flight->rank[i];
		struct nt_flight_stand *stand = &making->stand[i];
		uint64_t written_ns = rank->written_ns;

		if (!stand->call)
			continue;
		if (written_ns < rank->newest_ns)
			written_ns = rank->newest_ns;
		if (written_ns > making->now_ns)
			written_ns = making->now_ns;
		stand->since_ns = making->now_ns - (written_ns - stand->call->created_ns);
		if (stand->since_ns < making->since_ns)
			making->since_ns = stand->since_ns;
	}
}

/* ---- loops -------------------------------------------------------------------------------- */

/* A search from rank to rank along their waits. */
struct wait_search {
	const struct nt_flight_making *making;
	size_t *first; /* by rank: its first member in of_rank */
	size_t *queue, queued;
	size_t *seen; /* by rank: the start of the search that reached it, plus 1 */
	size_t steps; /* of all searches */
};

static void reach(struct wait_search *search, size_t from, size_t rank)
{
	if (search->seen[rank] == from + 1)
		return;
	search->seen[rank] = from + 1;
	search->queue[search->queued++] = rank;
}

/* The members of its group that have not entered the call in which the rank waits. */
static void follow(struct wait_search *search, size_t from, size_t rank)
{
	const struct nt_flight_making *making = search->making;
	const struct nt_flight_stand *stand = &making->stand[rank];
	const struct nt_flight_member *end = &making->member[making->members];
	const size_t place = (size_t)(stand->group - making->flight->rank[rank].group);
	const struct nt_flight_member *member = making->of_rank[search->first[rank] + place];

	while (member > making->member && member[-1].group->id == stand->group->id)
		member--;
	for (; member < end && member->group->id == stand->group->id; member++) {
		search->steps++;
		if (member->at < stand->call->number)
			reach(search, from, index_of(making, member->rank));
	}
}

/* NULL: unknown, or several. */
static const struct nt_flight_rank *partner_of(const struct nt_flight *flight,
					       const struct nt_flight_group *group, uint32_t place)
{
	const uint32_t rank = nt_flight_rank_at(flight, group, place);

	return rank == UINT32_MAX ? NULL : nt_flight_find_rank(flight, rank);
}

/* Its partners in sends and receives that were enqueued before the collective it is in. */
static void follow_earlier(struct wait_search *search, size_t from, size_t at)
{
	const struct nt_flight_making *making = search->making;
	const struct nt_flight_rank *rank = &making->flight->rank[at];
	const struct nt_flight_stand *stand = &making->stand[at];

	for (size_t i = nt_flight_earlier(rank, stand, 0); i < rank->groups;
	     i = nt_flight_earlier(rank, stand, i + 1)) {
		const struct nt_flight_call *open = nt_flight_first_open(&rank->group[i]);
		const struct nt_flight_rank *peer =
			partner_of(making->flight, &rank->group[i], open->peer);

		search->steps++;
		if (peer)
			reach(search, from, index_of(making, peer));
	}
}

static void follow_partner(struct wait_search *search, size_t from, size_t at)
{
	const struct nt_flight_stand *stand = &search->making->stand[at];
	const struct nt_flight_rank *peer =
		partner_of(search->making->flight, stand->group, stand->call->peer);

	if (peer)
		reach(search, from, index_of(search->making, peer));
}

/*
 * Whether the waits that begin with its partner lead back to the rank. It is then not the partner
 * that keeps it from its next call.
 */
static bool is_loop(struct wait_search *search, size_t rank)
{
	const struct nt_flight_stand *stand = search->making->stand;

	search->queued = 0;
	follow_partner(search, rank, rank);
	for (size_t i = 0; i < search->queued && search->steps < MAX_STEPS; i++) {
		const size_t at = search->queue[i];

		search->steps++;
		if (at == rank)
			return true;
		/* It waits for nobody, or its device is stuck. */
		if (!stand[at].group || stand[at].left)
			continue;
		if (!stand[at].group->p2p) {
			follow(search, rank, at);
			follow_earlier(search, rank, at);
		} else if (stand[at].peer != &search->making->flight->rank[rank] ||
			   !nt_flight_fit(stand[at].call, stand[rank].call)) {
			follow_partner(search, rank, at);
		}
	}
	return false;
}

/* The ranks that have not entered a collective in which another one waits. */
static void find_late(const struct nt_flight_making *making, bool *late)
{
	size_t end;

	for (size_t i = 0; i < making->members; i = end) {
		const struct nt_flight_member *member = &making->member[i];
		uint64_t highest = 0;

		for (end = i;
		     end < making->members && making->member[end].group->id == member->group->id;
		     end++) {
			const struct nt_flight_stand *stand =
				nt_flight_stand_of(making, &making->member[end]);

			if (stand && !stand->group->p2p && stand->call->number > highest)
				highest = stand->call->number;
		}
		for (size_t j = i; j < end; j++)
			late[index_of(making, making->member[j].rank)] |=
				making->member[j].at < highest;
	}
}

static int clear_loops(struct nt_flight_making *making, struct wait_search *search, bool *loop)
{
	const size_t ranks = making->flight->ranks;
	bool any = false;

	for (size_t i = 0, first = 0; i < ranks; i++) {
		search->first[i] = first;
		first += making->flight->rank[i].groups;
	}
	find_late(making, loop);
	for (size_t i = 0; i < ranks && search->steps < MAX_STEPS; i++) {
		loop[i] = loop[i] && making->stand[i].group && making->stand[i].group->p2p &&
			  is_loop(search, i);
		any |= loop[i];
	}
	if (!any || search->steps >= MAX_STEPS)
		return 0;
	for (size_t i = 0; i < ranks; i++)
		if (loop[i])
			making->stand[i] = (struct nt_flight_stand){0};
	for (size_t i = 0; i < making->members; i++)
		making->member[i].at = nt_flight_entered(making, &making->member[i]);
	return nt_flight_find_pairs(making);
}

int nt_flight_clear_loops(struct nt_flight_making *making)
{
	const size_t ranks = making->flight->ranks;
	struct wait_search search = {.making = making};
	bool *loop = calloc(ranks + 1, sizeof(*loop));
	int r = -ENOMEM;

	search.first = calloc(ranks + 1, sizeof(*search.first));
	search.queue = calloc(ranks + 1, sizeof(*search.queue));
	search.seen = calloc(ranks + 1, sizeof(*search.seen));
	if (loop && search.first && search.queue && search.seen)
		r = clear_loops(making, &search, loop);
	free(search.first);
	free(search.queue);
	free(search.seen);
	free(loop);
	return r;
}
