/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Converts the flight recorders of a job to frames. Three frames show calls on which the members of
 * each group agree, and one the first call that differs, by the numbers of the calls. Further ones
 * show everybody's progress at times ever closer to that of the dumps. The detection does the rest.
 */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/search.h"
#include "engine/frame_builder.h"
#include "proto/arena.h"
#include "proto/wire.h"

enum {
	AGREED = 3, /* of the cuts, before any difference: as many as the detection requires */
	MET = NT_FLIGHT_CUTS, /* calls that two peers are assumed to have in common */
};

/* Before the end; the last ones confirm findings. */
static const uint64_t ages_ns[] = {
	64000000000, 32000000000, 16000000000, 8000000000, 4000000000, 2000000000,
	1000000000,  3000000,     2000000,     1000000,    0,
};

static void release_making(struct nt_flight_making *making)
{
	free(making->member);
	free((void *)making->of_rank);
	free(making->stand);
	free(making->side);
}

/* ---- members of a group ------------------------------------------------------------------- */

static int by_group(const void *a, const void *b)
{
	const struct nt_flight_member *x = a, *y = b;

	if (x->group->id != y->group->id)
		return x->group->id < y->group->id ? -1 : 1;
	return (x->rank->rank > y->rank->rank) - (x->rank->rank < y->rank->rank);
}

static int by_rank(const void *a, const void *b)
{
	const struct nt_flight_member *x = *(struct nt_flight_member *const *)a,
				      *y = *(struct nt_flight_member *const *)b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

/* The number of its calls with numbers up to that one. */
static size_t calls_until(const struct nt_flight_group *group, uint64_t number)
{
	return nt_search_first(0, group->calls, i, group->call[i].number > number);
}

/* The number of its calls made until then. */
static size_t calls_at(const struct nt_flight_group *group, uint64_t ns)
{
	return nt_search_first(0, group->calls, i, group->call[i].created_ns > ns);
}

/*
 * A rank that hangs in a broadcast waits for another one, whatever its usual kind, and members
 * agree on its size.
 */
static uint8_t kind_of(uint8_t op)
{
	const enum nt_frame_kind kind = nt_frame_builder_kind(op);

	return kind == NT_FRAME_ROOTED ? NT_FRAME_SYNCHRONISING : (uint8_t)kind;
}

static int describe_calls(struct nt_trace *trace, struct nt_flight_member *member, uint64_t from)
{
	const struct nt_flight_group *group = member->group;
	uint64_t calls[NT_OP_END] = {0}, hash = NT_HASH_SEED;

	member->signature =
		nt_arena_alloc(&trace->arena, (group->calls + 1) * sizeof(*member->signature));
	member->op = nt_arena_alloc(&trace->arena, NT_OP_END * sizeof(*member->op));
	if (!member->signature || !member->op)
		return -ENOMEM;
	for (size_t i = 0; i < group->calls; i++) {
		struct nt_flight_call *call = &group->call[i];

		member->signature[i] = (struct nt_frame_signature){.number = call->number,
								   .count = call->count,
								   .type = call->type,
								   .tensors = call->tensors,
								   .op = call->op,
								   .entry_ns = call->created_ns};
		calls[call->op]++;
		/* The two sides of sends and receives need not agree. */
		if (call->number < from || group->p2p)
			continue;
		hash = nt_hash_u64(nt_hash_u64(hash, call->number), call->count);
		hash = nt_hash_u64(hash, (uint64_t)call->type << 8 | call->op);
		if (call->tensors)
			hash = nt_hash_u64(hash, call->tensors);
		call->hash = hash;
	}
	for (uint8_t op = 0; op < NT_OP_END; op++) {
		if (!calls[op])
			continue;
		member->op[member->ops++] = (struct nt_frame_op){
			.op = op,
			.kind = kind_of(op),
			.calls = calls[op],
			.first = group->call[0].number,
			.last = group->call[group->calls - 1].number,
		};
	}
	return 0;
}

/* The first call in `from` to `until` that two members made differently, or 0. */
static uint64_t first_difference(const struct nt_flight_member *member, size_t n, uint64_t from,
				 uint64_t until, uint64_t *ret_ns)
{
	const struct nt_flight_group *first = member[0].group;

	for (size_t at = calls_until(first, from - 1); at < first->calls; at++) {
		const struct nt_flight_call *call = &first->call[at];

		if (call->number > until)
			break;
		for (size_t i = 1; i < n; i++) {
			const struct nt_flight_group *group = member[i].group;
			const size_t other = calls_until(group, call->number);

			if (!other || group->call[other - 1].number != call->number ||
			    group->call[other - 1].hash == call->hash)
				continue;
			*ret_ns = call->created_ns;
			return call->number;
		}
	}
	return 0;
}

/* One group: the calls its members have in common, and the first difference. */
static int cut_group(struct nt_flight_making *making, struct nt_flight_member *member, size_t n)
{
	uint64_t from = 1, until = UINT64_MAX, differs, agreed, differ_ns = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		const struct nt_flight_group *group = member[i].group;

		member[i].at = nt_flight_entered(making, &member[i]);
		if (group->calls && group->call[0].number > from)
			from = group->call[0].number;
		if (member[i].at < until)
			until = member[i].at;
	}
	for (size_t i = 0; i < n; i++) {
		r = describe_calls(making->trace, &member[i], from);
		if (r < 0)
			return r;
	}
	/* No call in common is recorded: they agree up to the last one before. */
	for (size_t i = 0; i < n && !member[0].group->p2p; i++)
		for (size_t cut = 0; cut < NT_FLIGHT_CUTS; cut++)
			member[i].cut[cut] = until;
	if (until < from || member[0].group->p2p)
		return 0;
	differs = first_difference(member, n, from, until, &differ_ns);
	agreed = differs ? differs - 1 : until;
	for (size_t i = 0; i < n; i++) {
		uint64_t *cut = member[i].cut;

		/* Members that agree on less may differ by design: no reliable difference. */
		if (agreed - (from - 1) < AGREED)
			continue;
		cut[0] = from;
		cut[1] = from + (agreed - from) / 2;
		cut[2] = agreed;
		/* As far on as its recent calls reach back. */
		if (differs && until - differs >= NT_FRAME_RECENT)
			cut[3] = differs + NT_FRAME_RECENT - 1;
	}
	if (differ_ns && (!making->differ_ns || differ_ns < making->differ_ns))
		making->differ_ns = differ_ns;
	return 0;
}

static int cut_groups(struct nt_flight_making *making)
{
	size_t end;

	for (size_t i = 0; i < making->members; i = end) {
		int r;

		for (end = i + 1; end < making->members &&
				  making->member[end].group->id == making->member[i].group->id;)
			end++;
		r = cut_group(making, &making->member[i], end - i);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- members ------------------------------------------------------------------------------ */

static int find_members(struct nt_flight_making *making)
{
	const struct nt_flight *flight = making->flight;
	size_t total = 0;

	for (size_t i = 0; i < flight->ranks; i++)
		total += flight->rank[i].groups;
	making->member = calloc(total + 1, sizeof(*making->member));
	making->of_rank = calloc(total + 1, sizeof(*making->of_rank));
	making->stand = calloc(flight->ranks + 1, sizeof(*making->stand));
	if (!making->member || !making->of_rank || !making->stand)
		return -ENOMEM;
	for (size_t i = 0; i < flight->ranks; i++)
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			making->member[making->members++] = (struct nt_flight_member){
				.rank = &flight->rank[i], .group = &flight->rank[i].group[j]};
	if (total)
		qsort(making->member, total, sizeof(*making->member), by_group);
	for (size_t i = 0; i < total; i++)
		making->of_rank[i] = &making->member[i];
	if (total)
		qsort((void *)making->of_rank, total, sizeof(*making->of_rank), by_rank);
	return 0;
}

/* ---- frames ------------------------------------------------------------------------------- */

static struct nt_frame_comm describe_comm(const struct nt_flight_member *member, uint64_t last,
					  bool first)
{
	const struct nt_flight_group *group = member->group;
	const size_t calls = calls_until(group, last);
	const size_t recents = calls < NT_FRAME_RECENT ? calls : NT_FRAME_RECENT;

	return (struct nt_frame_comm){
		.id = group->id,
		.rank = group->place,
		.size = group->size,
		.epoch = 1,
		.last = last,
		.rolling_hash = calls ? group->call[calls - 1].hash : 0,
		.op = member->op,
		.ops = first ? member->ops : 0, /* once: they are summed up */
		.recent = &member->signature[calls - recents],
		.recents = recents,
	};
}

static struct nt_frame_inside describe_stand(const struct nt_flight_stand *stand)
{
	if (stand->pair)
		return (struct nt_frame_inside){
			.in_call = true,
			.comm = stand->pair,
			.number = MET + 1,
			.since_ns = stand->since_ns,
			.op = NT_OP_SEND_RECV,
			.kind = NT_FRAME_SYNCHRONISING,
		};
	return (struct nt_frame_inside){
		.in_call = true,
		.comm = stand->group->id,
		.number = stand->call->number,
		.since_ns = stand->since_ns,
		.count = stand->call->count,
		.type = stand->call->type,
		.op = stand->call->op,
		.queued = !stand->begun,
		.left = stand->left,
		.after = stand->after,
		.tensors = stand->call->tensors,
		.kind = kind_of(stand->call->op),
	};
}

/* Of a pair: each cut is one of their common calls, and the waiting side is in the next one. */
static struct nt_frame_comm describe_pair(const struct nt_flight_side *side, size_t cut)
{
	return (struct nt_frame_comm){
		.id = side->pair,
		.size = 2,
		.epoch = 1,
		.last = cut < NT_FLIGHT_CUTS ? cut + 1 : MET + (side->in ? 1 : 0),
	};
}

/* The member's progress then: by its calls' numbers (cut < NT_FLIGHT_CUTS), or by their times. */
static uint64_t last_at(const struct nt_flight_member *member, size_t cut, uint64_t ns)
{
	const uint64_t floor = member->cut[NT_FLIGHT_CUTS - 1];
	size_t calls;
	uint64_t last;

	if (cut < NT_FLIGHT_CUTS)
		return member->cut[cut];
	if (!member->group->calls)
		return member->at;
	calls = calls_at(member->group, ns);
	last = calls ? member->group->call[calls - 1].number : 0;
	last = last < member->at ? last : member->at;
	return last > floor ? last : floor;
}

static int add_frame(struct nt_flight_making *making, size_t cut, uint64_t start_ns,
		     uint64_t end_ns)
{
	const struct nt_flight *flight = making->flight;
	const bool first = !making->trace->frames;
	struct nt_trace_frame *out = NULL;
	struct nt_frame_comm *comms;
	size_t used = 0, member = 0, side = 0;
	int r;

	r = nt_trace_frame_add(making->trace, flight->ranks, 0, &out);
	if (r < 0)
		return r;
	comms = nt_arena_alloc(&making->trace->arena,
			       (making->members + making->sides + 1) * sizeof(*comms));
	if (!comms)
		return -ENOMEM;
	out->frame.start_ns = start_ns;
	out->frame.end_ns = end_ns;
	out->frame.ranks = flight->ranks;
	out->frame.expected_ranks = flight->world ? flight->world : (uint32_t)flight->ranks;
	out->frame.completeness = (double)flight->given / out->frame.expected_ranks;
	/* The frames begin in the middle of a long wait. */
	if (first && making->since_ns < end_ns)
		out->frame.missed_ns =
			(1.0 - out->frame.completeness) * (double)(end_ns - making->since_ns);
	for (size_t i = 0; i < flight->ranks; i++) {
		const struct nt_flight_rank *rank = &flight->rank[i];
		const struct nt_flight_stand *stand = &making->stand[i];

		out->rank[i] = (struct nt_frame_rank){
			.rank = rank->rank,
			.node = NT_FRAME_NO_NODE,
			.own_tier = NT_FRAME_T1,
			.rank_known = true,
			.observed = true,
			.uses_gpu = rank->uses_gpu,
			.unrecorded = rank->missing,
			.window_ns = end_ns - start_ns,
			.comm = &comms[used],
			.comms = rank->groups,
			.stage = -1,
			.replica = -1,
		};
		if (cut == NT_FLIGHT_CUTS && stand->call && stand->since_ns <= end_ns)
			out->rank[i].inside = describe_stand(stand);
		for (size_t j = 0; j < rank->groups; j++, member++)
			comms[used++] =
				describe_comm(making->of_rank[member],
					      last_at(making->of_rank[member], cut, end_ns), first);
		for (; side < making->sides && making->side[side].rank == rank; side++) {
			comms[used++] = describe_pair(&making->side[side], cut);
			out->rank[i].comms++;
		}
	}
	return 0;
}

static int add_frames(struct nt_flight_making *making)
{
	const uint64_t oldest_ns = making->now_ns > ages_ns[0] ? making->now_ns - ages_ns[0] : 0;
	uint64_t end_ns = oldest_ns > NT_FLIGHT_CUTS ? oldest_ns - NT_FLIGHT_CUTS : 0;
	int r = 0;

	for (size_t cut = 0; cut < NT_FLIGHT_CUTS && r == 0; cut++, end_ns++) {
		const bool differs =
			cut == AGREED && making->differ_ns && making->differ_ns < end_ns;

		r = add_frame(making, cut, differs ? making->differ_ns : end_ns, end_ns);
	}
	for (size_t i = 0; i < sizeof(ages_ns) / sizeof(ages_ns[0]) && r == 0; i++) {
		const uint64_t start_ns = end_ns;
		const uint64_t at_ns =
			making->now_ns > ages_ns[i] ? making->now_ns - ages_ns[i] : 0;

		end_ns = at_ns > end_ns ? at_ns : end_ns;
		r = add_frame(making, NT_FLIGHT_CUTS, start_ns, end_ns);
	}
	return r;
}

/* Everything up to the frames. */
static int prepare(struct nt_flight_making *making)
{
	int r;

	r = find_members(making);
	if (r < 0)
		return r;
	nt_flight_find_stands(making);
	r = cut_groups(making);
	r = r ?: nt_flight_find_pairs(making);
	return r ?: nt_flight_clear_loops(making);
}

int nt_flight_frames(struct nt_flight *flight, struct nt_trace *trace)
{
	__attribute__((cleanup(release_making))) struct nt_flight_making making = {.flight = flight,
										   .trace = trace};
	bool added = false;
	int r;

	r = prepare(&making);
	r = r ?: nt_flight_add_missing(&making, &added);
	if (r == 0 && added) {
		release_making(&making);
		making = (struct nt_flight_making){.flight = flight, .trace = trace};
		r = prepare(&making);
	}
	flight->dropped += making.unpaired;
	r = r ?: nt_flight_add_waits(&making);
	return r ?: add_frames(&making);
}
