/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who is compared with whom. */
#include "detect/role.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/core.h"

enum {
	MAX_PARTNERS = 256, /* of a rank, that are looked at */
	LARGE_PART = 64, /* calls smaller than this part of the largest carry no gradients */
};

struct nt_comm *nt_roles_find(const struct nt_roles *roles, uint64_t id)
{
	struct nt_comm *comm = NULL;

	HASH_FIND(hh, roles->comm, &id, sizeof(id), comm);
	return comm;
}

struct nt_comm *nt_roles_comm(struct nt_roles *roles, uint64_t id)
{
	struct nt_comm *comm = nt_roles_find(roles, id);

	if (comm || HASH_COUNT(roles->comm) >= NT_ROLE_MAX_COMMS)
		return comm;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return NULL;
	comm->id = id;
	HASH_ADD(hh, roles->comm, id, sizeof(comm->id), comm);
	if (!comm->hh.tbl) {
		free(comm);
		return NULL;
	}
	roles->dirty = true;
	return comm;
}

static void comm_free(struct nt_comm *comm)
{
	free(comm->member);
	free(comm);
}

static int member_add(struct nt_comm *comm, uint32_t rank)
{
	if (comm->members == comm->member_cap) {
		const uint32_t cap = comm->member_cap ? 2 * comm->member_cap : 8;
		uint32_t *grown = realloc(comm->member, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		comm->member = grown;
		comm->member_cap = cap;
	}
	comm->member[comm->members++] = rank;
	return 0;
}

static int link_add(struct nt_detect *detect, struct nt_rank *rank, uint64_t id,
		    struct nt_link **ret_link)
{
	struct nt_comm *comm;
	int r;

	if (rank->links == NT_FRAME_MAX_COMMS) {
		detect->dropped_comms++;
		*ret_link = NULL;
		return 0;
	}
	comm = nt_roles_comm(&detect->roles, id);
	if (!comm && HASH_COUNT(detect->roles.comm) >= NT_ROLE_MAX_COMMS) {
		detect->dropped_comms++;
		*ret_link = NULL;
		return 0;
	}
	if (!comm)
		return -ENOMEM;
	if (rank->links == rank->link_cap) {
		const uint32_t cap = rank->link_cap ? 2 * rank->link_cap : 4;
		struct nt_link *grown = realloc(rank->link, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		rank->link = grown;
		rank->link_cap = cap;
	}
	r = member_add(comm, rank->rank);
	if (r < 0)
		return r;
	detect->roles.dirty = true;
	*ret_link = &rank->link[rank->links++];
	**ret_link = (struct nt_link){.comm = comm};
	return 0;
}

static void compare_hash(struct nt_comm *comm, const struct nt_frame_comm *said, uint64_t frame)
{
	if (comm->heard_frame != frame) {
		comm->heard_frame = frame;
		comm->heard_epoch = said->epoch;
		comm->heard_last = said->last;
		comm->heard_hash = said->rolling_hash;
	} else if (comm->heard_epoch == said->epoch && comm->heard_last == said->last) {
		if (comm->heard_hash == said->rolling_hash)
			comm->agreed_frame = frame;
		else
			comm->differed_frame = frame;
	}
}

int nt_roles_learn(struct nt_detect *detect, struct nt_rank *rank, const struct nt_frame_rank *seen)
{
	for (size_t i = 0; i < seen->comms; i++) {
		const struct nt_frame_comm *said = &seen->comm[i];
		struct nt_link *link = NULL;
		struct nt_comm *comm;
		int r;

		/* The order seldom changes from frame to frame. */
		if (i < rank->links && rank->link[i].comm->id == said->id)
			link = &rank->link[i];
		for (uint32_t j = 0; !link && j < rank->links; j++)
			if (rank->link[j].comm->id == said->id)
				link = &rank->link[j];
		if (!link) {
			r = link_add(detect, rank, said->id, &link);
			if (r < 0)
				return r;
			if (!link)
				continue;
		}
		comm = link->comm;
		if (said->size > comm->size)
			comm->size = said->size;
		if (link->last != said->last || link->epoch != said->epoch || !link->frame)
			link->progress_ns = detect->end_ns;
		link->epoch = said->epoch;
		link->last = said->last;
		link->frame = detect->frames;
		compare_hash(comm, said, detect->frames);
		comm->steps += seen->steps;
		for (size_t j = 0; j < said->ops; j++) {
			const struct nt_frame_op *op = &said->op[j];

			if (op->op < NT_ROLE_OPS && op->kind <= NT_FRAME_POINT_TO_POINT)
				comm->kind_of[op->op] = (uint8_t)(op->kind + 1);
			if (op->kind == NT_FRAME_SYNCHRONISING) {
				comm->sync_calls += (double)op->calls;
				comm->sync_bytes += (double)op->bytes;
			} else if (op->kind == NT_FRAME_ALL_TO_ALL) {
				comm->all_to_all_calls += (double)op->calls;
			} else if (op->kind == NT_FRAME_POINT_TO_POINT) {
				comm->p2p_calls += (double)op->calls;
			}
		}
	}
	return 0;
}

enum nt_comm_use nt_comm_use(const struct nt_comm *comm)
{
	if (comm->all_to_all_calls > 0.0)
		return NT_COMM_EXPERT;
	if (comm->sync_calls > 0.0)
		return NT_COMM_REDUCING;
	if (comm->p2p_calls > 0.0)
		return NT_COMM_PIPELINE;
	return NT_COMM_IDLE;
}

double nt_comm_calls(const struct nt_comm *comm)
{
	return comm->steps > 0.0 ? comm->sync_calls / comm->steps : comm->sync_calls;
}

static double call_bytes(const struct nt_comm *comm)
{
	return comm->sync_calls > 0.0 ? comm->sync_bytes / comm->sync_calls : 0.0;
}

static bool is_member(const struct nt_detect *detect, uint32_t rank, const struct nt_comm *comm)
{
	const struct nt_rank *found = nt_detect_find(detect, rank);

	for (uint32_t i = 0; found && i < found->links; i++)
		if (found->link[i].comm == comm)
			return true;
	return false;
}

/*
 * Whether the communicator also holds a partner of the rank in another dimension: a neighbour in the
 * pipeline, or another expert. Its members then do not have one role (the whole job, or the group
 * of the first and last stage's shared embedding).
 */
static bool holds_partners(const struct nt_detect *detect, const struct nt_rank *rank,
			   const struct nt_comm *comm, enum nt_comm_use use)
{
	uint32_t looked = 0;

	for (uint32_t i = 0; i < rank->links; i++) {
		const struct nt_comm *other = rank->link[i].comm;

		if (other == comm || nt_comm_use(other) != use)
			continue;
		for (uint32_t j = 0; j < other->members && looked < MAX_PARTNERS; j++, looked++)
			if (other->member[j] != rank->rank &&
			    is_member(detect, other->member[j], comm))
				return true;
	}
	return false;
}

/* Fewer calls a step, then more bytes, then more members tell the data-parallel communicator. */
static bool is_better(const struct nt_comm *a, const struct nt_comm *b)
{
	const double calls_a = nt_comm_calls(a), calls_b = nt_comm_calls(b);

	if (calls_a * 1.5 < calls_b || calls_b * 1.5 < calls_a)
		return calls_a < calls_b;
	if (call_bytes(a) * calls_a != call_bytes(b) * calls_b)
		return call_bytes(a) * calls_a > call_bytes(b) * calls_b;
	if (a->members != b->members)
		return a->members > b->members;
	return a->id < b->id;
}

static const struct nt_comm *pick(const struct nt_detect *detect, const struct nt_rank *rank,
				  bool without_experts)
{
	const struct nt_comm *best = NULL;
	double largest = 0.0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < rank->links; i++) {
			const struct nt_comm *comm = rank->link[i].comm;

			if (nt_comm_use(comm) != NT_COMM_REDUCING || comm->members < 2 ||
			    holds_partners(detect, rank, comm, NT_COMM_PIPELINE) ||
			    (without_experts && holds_partners(detect, rank, comm, NT_COMM_EXPERT)))
				continue;
			if (pass == 0) {
				if (call_bytes(comm) > largest)
					largest = call_bytes(comm);
				continue;
			}
			if (call_bytes(comm) * LARGE_PART < largest)
				continue;
			if (!best || is_better(comm, best))
				best = comm;
		}
	}
	return best;
}

/* The communicator whose members have this rank's role, or NULL. */
static const struct nt_comm *choose(const struct nt_detect *detect, const struct nt_rank *rank)
{
	const struct nt_comm *best = pick(detect, rank, true);

	if (!best)
		best = pick(detect, rank, false);
	/* All-to-all within the only group that there is: its members are replicas. */
	for (uint32_t i = 0; !best && i < rank->links; i++) {
		const struct nt_comm *comm = rank->link[i].comm;

		if (nt_comm_use(comm) == NT_COMM_EXPERT && comm->members >= 2 &&
		    !holds_partners(detect, rank, comm, NT_COMM_PIPELINE))
			best = comm;
	}
	return best;
}

struct key {
	uint8_t kind;
	uint64_t id;
	uint32_t index;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static struct key key_of(const struct nt_detect *detect, uint32_t index)
{
	const struct nt_rank *rank = &detect->rank[index];
	const struct nt_comm *comm;

	if (rank->stage >= 0)
		return (struct key){NT_GROUP_STAGE, (uint64_t)rank->stage, index};
	comm = choose(detect, rank);
	if (comm)
		return (struct key){NT_GROUP_COMM, comm->id, index};
	return (struct key){NT_GROUP_ALONE, rank->rank, index};
}

/* What a rank's numbers meant changes with its peers. */
static void forget(struct nt_rank *rank)
{
	for (int i = 0; i < NT_SERIES_END; i++)
		rank->track[i] = (struct nt_track){0};
	rank->evidence = (struct nt_case){0};
	rank->rounds = 0;
}

static void adopt(struct nt_group *group, struct nt_group *old)
{
	const uint32_t first = group->first, members = group->members;

	*group = *old;
	group->first = first;
	group->members = members;
	old->past = NULL;
}

int nt_roles_derive(struct nt_detect *detect)
{
	struct nt_roles *roles = &detect->roles;
	const uint32_t n = detect->ranks;
	struct key *key = calloc(n + 1, sizeof(*key));
	struct nt_group *group = calloc(n + 1, sizeof(*group));
	uint32_t *member = calloc(n + 1, sizeof(*member));
	uint32_t *peer = calloc(2 * (size_t)n + 1, sizeof(*peer));
	uint32_t groups = 0;
	bool failed = !key || !group || !member || !peer;

	for (uint32_t i = 0; !failed && i < n; i++)
		key[i] = key_of(detect, i);
	if (!failed)
		qsort(key, n, sizeof(*key), compare_keys);
	for (uint32_t i = 0, end; !failed && i < n; i = end) {
		struct nt_group *made = &group[groups++];

		for (end = i; end < n && key[end].kind == key[i].kind && key[end].id == key[i].id;)
			end++;
		*made = (struct nt_group){.kind = key[i].kind,
					  .id = key[i].id,
					  .first = i,
					  .members = end - i,
					  .median = {-1.0, -1.0}};
		made->past = made->members > 1 ? calloc(1, sizeof(*made->past)) : NULL;
		failed = made->members > 1 && !made->past;
	}
	if (failed) {
		for (uint32_t i = 0; group && i < groups; i++)
			free(group[i].past);
		free(key);
		free(group);
		free(member);
		free(peer);
		return -ENOMEM;
	}

	for (uint32_t i = 0, at = 0; i < groups; i++) {
		bool spans = false;

		while (at < roles->groups && (roles->group[at].kind < group[i].kind ||
					      (roles->group[at].kind == group[i].kind &&
					       roles->group[at].id < group[i].id)))
			at++;
		if (at < roles->groups && roles->group[at].kind == group[i].kind &&
		    roles->group[at].id == group[i].id && roles->group[at].past && group[i].past) {
			free(group[i].past);
			adopt(&group[i], &roles->group[at]);
		}
		for (uint32_t j = 0; j < group[i].members; j++) {
			const uint32_t first = group[i].first;
			struct nt_rank *rank = &detect->rank[key[first + j].index];

			member[first + j] = key[first + j].index;
			peer[2 * (size_t)first + j] = rank->rank;
			peer[2 * (size_t)first + group[i].members + j] = rank->rank;
			if (rank->group_kind != group[i].kind || rank->group_id != group[i].id)
				forget(rank);
			rank->group_kind = group[i].kind;
			rank->group_id = group[i].id;
			rank->group = i;
			rank->place = j;
			spans |= rank->node != detect->rank[key[first].index].node;
		}
		group[i].spans_nodes = spans;
	}
	for (uint32_t i = 0; i < roles->groups; i++)
		free(roles->group[i].past);
	free(roles->group);
	free(roles->member);
	free(roles->peer);
	free(key);
	roles->group = group;
	roles->groups = groups;
	roles->member = member;
	roles->peer = peer;
	roles->dirty = false;
	return 0;
}

const uint32_t *nt_role_peers(const struct nt_detect *detect, const struct nt_rank *rank,
			      size_t *ret_n)
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

void nt_roles_free(struct nt_roles *roles)
{
	struct nt_comm *comm, *next;

	HASH_ITER(hh, roles->comm, comm, next)
	{
		HASH_DEL(roles->comm, comm);
		comm_free(comm);
	}
	for (uint32_t i = 0; i < roles->groups; i++)
		free(roles->group[i].past);
	free(roles->group);
	free(roles->member);
	free(roles->peer);
	*roles = (struct nt_roles){0};
}
