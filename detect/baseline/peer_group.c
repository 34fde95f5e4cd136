/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derives the peer groups. */
#include "detect/baseline/peer_group.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

static bool is_member(const struct nt_detect *detect, uint32_t rank,
		      const struct nt_detect_comm *comm)
{
	const struct nt_detect_rank *found = nt_detect_find(detect, rank);

	for (uint32_t i = 0; found && i < found->links; i++)
		if (found->link[i].comm == comm)
			return true;
	return false;
}

/*
 * Whether the rank is in a communicator with unknown members, because its agent attached late. In a
 * job that is not fully observed the other members are just unobserved.
 */
static bool is_unbound(const struct nt_detect *detect, const struct nt_detect_rank *rank,
		       const struct nt_detect_comm *comm)
{
	for (uint32_t i = 0; i < rank->links; i++)
		if (rank->link[i].comm->size > detect->ranks)
			return false;
	return comm->members < 2 && comm->size >= 2 && comm->size < detect->ranks;
}

/*
 * Whether the communicator also contains a partner of the rank in another dimension: a pipeline
 * neighbour or another expert. Its members then have different roles (the whole job, or the shared
 * embedding of the first and last stage).
 */
static bool holds_partners(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			   const struct nt_detect_comm *comm, enum nt_detect_comm_use use)
{
	uint32_t looked = 0;

	for (uint32_t i = 0; i < rank->links; i++) {
		const struct nt_detect_comm *other = rank->link[i].comm;

		if (other == comm || nt_detect_comm_use(other) != use)
			continue;
		/* The whole job contains all partners. */
		if (use == NT_DETECT_COMM_PIPELINE && comm->members == detect->ranks &&
		    is_unbound(detect, rank, other))
			return true;
		for (uint32_t j = 0; j < other->members && looked < NT_ROLE_PARTNERS; j++, looked++)
			if (other->member[j] != rank->rank &&
			    is_member(detect, other->member[j], comm))
				return true;
	}
	return false;
}

/* The data-parallel communicator has fewer calls per step, then more bytes, then more members. */
static bool is_better(const struct nt_detect_comm *a, const struct nt_detect_comm *b)
{
	const double calls_a = nt_detect_comm_calls(a), calls_b = nt_detect_comm_calls(b);

	if (calls_a * NT_ROLE_CALLS < calls_b || calls_b * NT_ROLE_CALLS < calls_a)
		return calls_a < calls_b;
	if (nt_detect_comm_call_bytes(a) * calls_a != nt_detect_comm_call_bytes(b) * calls_b)
		return nt_detect_comm_call_bytes(a) * calls_a >
		       nt_detect_comm_call_bytes(b) * calls_b;
	if (a->members != b->members)
		return a->members > b->members;
	return a->id < b->id;
}

static const struct nt_detect_comm *pick(const struct nt_detect *detect,
					 const struct nt_detect_rank *rank, bool without_experts)
{
	const struct nt_detect_comm *best = NULL;
	double largest = 0.0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < rank->links; i++) {
			const struct nt_detect_comm *comm = rank->link[i].comm;

			const bool unbound = is_unbound(detect, rank, comm);

			if (nt_detect_comm_use(comm) != NT_DETECT_COMM_REDUCING ||
			    (comm->members < 2 && !unbound) ||
			    holds_partners(detect, rank, comm, NT_DETECT_COMM_PIPELINE) ||
			    (without_experts &&
			     holds_partners(detect, rank, comm, NT_DETECT_COMM_EXPERT)))
				continue;
			if (pass == 0) {
				if (nt_detect_comm_call_bytes(comm) > largest)
					largest = nt_detect_comm_call_bytes(comm);
				continue;
			}
			if (unbound ||
			    nt_detect_comm_call_bytes(comm) * NT_ROLE_LARGE_PART < largest)
				continue;
			if (!best || is_better(comm, best))
				best = comm;
		}
	}
	return best;
}

/* The communicator whose members have this rank's role, or NULL. */
static const struct nt_detect_comm *choose(const struct nt_detect *detect,
					   const struct nt_detect_rank *rank)
{
	const struct nt_detect_comm *best = pick(detect, rank, true);

	if (!best)
		best = pick(detect, rank, false);
	/* All-to-all within the only group: its members are replicas. */
	for (uint32_t i = 0; !best && i < rank->links; i++) {
		const struct nt_detect_comm *comm = rank->link[i].comm;

		if (nt_detect_comm_use(comm) == NT_DETECT_COMM_EXPERT && comm->members >= 2 &&
		    !holds_partners(detect, rank, comm, NT_DETECT_COMM_PIPELINE))
			best = comm;
	}
	return best;
}

struct key {
	uint8_t kind;
	uint64_t id;
	uint32_t index;
};

static int compare_ids(uint8_t kind, uint64_t id, uint8_t other_kind, uint64_t other_id)
{
	if (kind != other_kind)
		return (kind > other_kind) - (kind < other_kind);
	return (id > other_id) - (id < other_id);
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	const int order = compare_ids(x->kind, x->id, y->kind, y->id);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static struct key key_of(const struct nt_detect *detect, uint32_t index)
{
	const struct nt_detect_rank *rank = &detect->rank[index];
	const struct nt_detect_comm *comm;

	if (rank->stage >= 0)
		return (struct key){NT_GROUP_STAGE, (uint64_t)rank->stage, index};
	comm = choose(detect, rank);
	if (comm)
		return (struct key){NT_GROUP_COMM, comm->id, index};
	return (struct key){NT_GROUP_ALONE, rank->rank, index};
}

/* Resets a rank's tracks, whose meaning depends on its peers. */
static void forget(struct nt_detect_rank *rank)
{
	for (int i = 0; i < NT_SERIES_END; i++)
		rank->track[i] = (struct nt_track){0};
	rank->evidence = (struct nt_rank_evidence){0};
	rank->rounds = 0;
}

/* Makes one group per run of equal keys. On -ENOMEM the caller frees the partial result. */
static int cut_groups(struct nt_peer_groups *made, const struct key *key, uint32_t n)
{
	for (uint32_t i = 0, end; i < n; i = end) {
		struct nt_group *group = &made->group[made->groups];

		for (end = i + 1;
		     end < n && key[end].kind == key[i].kind && key[end].id == key[i].id;)
			end++;
		*group = (struct nt_group){.kind = key[i].kind,
					   .id = key[i].id,
					   .first = i,
					   .members = end - i,
					   .median = {-1.0, -1.0}};
		if (group->members > 1) {
			group->past = calloc(1, sizeof(*group->past));
			if (!group->past)
				return -ENOMEM;
		}
		made->groups++;
	}
	return 0;
}

/* A group that existed before keeps its learned state. */
static void inherit(struct nt_group *group, struct nt_group *old)
{
	struct nt_group_past *const fresh = group->past;
	const uint32_t first = group->first, members = group->members;

	*group = *old;
	group->first = first;
	group->members = members;
	group->past = fresh;
	if (fresh && old->past)
		*fresh = *old->past;
}

static void inherit_all(struct nt_peer_groups *made, struct nt_peer_groups *old)
{
	for (uint32_t i = 0, at = 0; i < made->groups; i++) {
		struct nt_group *group = &made->group[i];

		while (at < old->groups && compare_ids(old->group[at].kind, old->group[at].id,
						       group->kind, group->id) < 0)
			at++;
		if (at < old->groups && compare_ids(old->group[at].kind, old->group[at].id,
						    group->kind, group->id) == 0)
			inherit(group, &old->group[at]);
	}
}

static void place_ranks(struct nt_detect *detect, struct nt_peer_groups *made,
			const struct key *key)
{
	for (uint32_t i = 0; i < made->groups; i++) {
		struct nt_group *group = &made->group[i];
		const struct key *mine = &key[group->first];

		group->spans_nodes = false;
		for (uint32_t j = 0; j < group->members; j++) {
			struct nt_detect_rank *rank = &detect->rank[mine[j].index];

			made->member[group->first + j] = mine[j].index;
			made->peer[2 * (size_t)group->first + j] = rank->rank;
			made->peer[2 * (size_t)group->first + group->members + j] = rank->rank;
			if (rank->group_kind != group->kind || rank->group_id != group->id)
				forget(rank);
			rank->group_kind = group->kind;
			rank->group_id = group->id;
			rank->group = i;
			rank->place = j;
			group->spans_nodes |= rank->node != detect->rank[mine[0].index].node;
		}
	}
}

int nt_peer_groups_derive(struct nt_detect *detect)
{
	const uint32_t n = detect->ranks;
	struct key *key = calloc((size_t)n + 1, sizeof(*key));
	struct nt_peer_groups made = {
		.group = calloc((size_t)n + 1, sizeof(*made.group)),
		.member = calloc((size_t)n + 1, sizeof(*made.member)),
		.peer = calloc(2 * (size_t)n + 1, sizeof(*made.peer)),
	};
	int r = key && made.group && made.member && made.peer ? 0 : -ENOMEM;

	if (r == 0) {
		for (uint32_t i = 0; i < n; i++)
			key[i] = key_of(detect, i);
		qsort(key, n, sizeof(*key), compare_keys);
		r = cut_groups(&made, key, n);
	}
	if (r == 0) {
		inherit_all(&made, &detect->roles);
		place_ranks(detect, &made, key);
		nt_peer_groups_free(&detect->roles);
		detect->roles = made;
	} else {
		nt_peer_groups_free(&made);
	}
	free(key);
	return r;
}

const uint32_t *nt_peer_group_peers(const struct nt_detect *detect,
				    const struct nt_detect_rank *rank, size_t *ret_n)
{
	const struct nt_group *group;

	*ret_n = 0;
	if (rank->group >= detect->roles.groups)
		return NULL;
	group = &detect->roles.group[rank->group];
	if (group->members < 2)
		return NULL;
	*ret_n = group->members - 1;
	return &detect->roles.peer[2 * (size_t)group->first + rank->place + 1];
}

bool nt_peer_group_is_blamed(const struct nt_detect *detect, const struct nt_group *group)
{
	uint32_t blamed = 0;

	for (uint32_t i = 0; i < group->members; i++)
		blamed += detect->rank[detect->roles.member[group->first + i]].in_incident;
	return 2 * blamed >= group->members;
}

/* Whether it also contains another member of the rank's group: then it is no dimension beside it. */
static bool holds_peers(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			const struct nt_detect_comm *comm)
{
	size_t n;
	const uint32_t *peer = nt_peer_group_peers(detect, rank, &n);

	for (size_t i = 0; i < n; i++)
		if (is_member(detect, peer[i], comm))
			return true;
	return false;
}

const struct nt_detect_comm *nt_peer_group_partners(const struct nt_detect *detect,
						    const struct nt_detect_rank *rank)
{
	const struct nt_group *group = &detect->roles.group[rank->group];
	const struct nt_detect_comm *best = NULL;

	for (uint32_t i = 0; i < rank->links; i++) {
		const struct nt_detect_comm *comm = rank->link[i].comm;

		if (nt_detect_comm_use(comm) != NT_DETECT_COMM_REDUCING ||
		    (group->kind == NT_GROUP_COMM && comm->id == group->id) || comm->members < 2 ||
		    comm->members > NT_ROLE_PARTNERS_MOST ||
		    (best && best->members >= comm->members) || holds_peers(detect, rank, comm) ||
		    holds_partners(detect, rank, comm, NT_DETECT_COMM_PIPELINE) ||
		    holds_partners(detect, rank, comm, NT_DETECT_COMM_EXPERT))
			continue;
		best = comm;
	}
	return best;
}

const struct nt_detect_rank *nt_peer_group_partner(const struct nt_detect *detect,
						   const struct nt_detect_rank *rank,
						   const struct nt_detect_comm *comm, uint32_t at)
{
	const struct nt_detect_rank *partner = nt_detect_find(detect, comm->member[at]);

	return partner && partner->group != rank->group && !partner->ended &&
			       partner->tier == rank->tier
		       ? partner
		       : NULL;
}
