/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mismatches: different calls under the same call number. */
#include "detect/rules/mismatch.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/incidents/incident_raise.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

bool nt_frame_find_call(const struct nt_frame *frame, uint32_t rank, uint64_t comm, uint64_t number,
			struct nt_mismatch_call *ret_call)
{
	const struct nt_frame_comm *said = nt_frame_find_comm(nt_frame_find(frame, rank), comm, 0);

	for (size_t i = said ? said->recents : 0; i-- > 0;) {
		const struct nt_frame_signature *call = &said->recent[i];

		if (call->number != number)
			continue;
		*ret_call = (struct nt_mismatch_call){
			.rank = rank,
			.op = call->op,
			.type = call->type,
			.count = call->count,
			.tensors = call->tensors,
		};
		return true;
	}
	return false;
}

static int compare_calls(const struct nt_mismatch_call *a, const struct nt_mismatch_call *b)
{
	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	if (a->tensors != b->tensors)
		return a->tensors < b->tensors ? -1 : 1;
	return (a->type > b->type) - (a->type < b->type);
}

static int order_calls(const void *a, const void *b)
{
	const struct nt_mismatch_call *x = a, *y = b;
	const int order = compare_calls(x, y);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int order_ranks(const void *a, const void *b)
{
	const struct nt_mismatch_call *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

size_t nt_mismatch_sides(struct nt_mismatch_call *call, size_t n)
{
	size_t largest = 0, largest_n = 0, rivals = 0;
	struct nt_mismatch_call swap;

	qsort(call, n, sizeof(*call), order_calls);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && compare_calls(&call[i], &call[end]) == 0;)
			end++;
		if (end - i > largest_n) {
			largest = i;
			largest_n = end - i;
			rivals = 0;
		} else if (end - i == largest_n) {
			rivals++;
		}
	}
	if (largest_n == n)
		return 0;
	/* The largest side goes last; the order of the others is irrelevant. */
	for (size_t i = 0; i < largest_n; i++) {
		size_t from = largest + largest_n - 1 - i, to = n - 1 - i;

		swap = call[from];
		call[from] = call[to];
		call[to] = swap;
	}
	n -= rivals ? 0 : largest_n;
	qsort(call, n, sizeof(*call), order_ranks);
	return n;
}

static void add_row(struct nt_proposal *proposal, enum nt_evidence_text what, double value,
		    double peers)
{
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = (uint8_t)what,
		.unit = NT_EVIDENCE_TEXT_NUMBER,
		.method = NT_EVIDENCE_TEXT_SAME_NUMBER,
		.value = value,
		.peers = peers,
		.windows = 1,
	};
}

static struct nt_proposal propose(struct nt_detect *detect, const struct nt_detect_comm *comm,
				  const struct nt_mismatch_call *call, size_t blamed,
				  uint64_t since_ns)
{
	for (size_t i = 0; i < blamed; i++)
		detect->scratch.label[i] = call[i].rank;
	return (struct nt_proposal){
		.family = NT_FAMILY_STALL,
		.class = NT_CLASS_MISMATCH,
		.kind = NT_CULPRIT_RANK,
		.rank = detect->scratch.label,
		.ranks = blamed,
		.comm = comm->id,
		.onset_ns = since_ns,
		.cost = -1.0,
		.tier = NT_FRAME_T1,
	};
}

int nt_mismatch_raise(struct nt_detect *detect, const struct nt_detect_comm *comm, uint64_t number,
		      const struct nt_mismatch_call *call, size_t n, size_t blamed,
		      uint64_t since_ns)
{
	struct nt_proposal proposal = propose(detect, comm, call, blamed, since_ns);
	const struct nt_mismatch_call *one = &call[0], *other = &call[n - 1];

	/* All are to blame: show any two that differ. */
	for (size_t i = 0; i < n && compare_calls(one, other) == 0; i++)
		other = &call[i];
	add_row(&proposal, NT_EVIDENCE_TEXT_CALL, (double)number, (double)number);
	if (one->op != other->op)
		add_row(&proposal, NT_EVIDENCE_TEXT_OPERATION, one->op, other->op);
	if (one->count != other->count)
		add_row(&proposal, NT_EVIDENCE_TEXT_COUNT, (double)one->count,
			(double)other->count);
	if (one->tensors != other->tensors)
		add_row(&proposal, NT_EVIDENCE_TEXT_TENSORS, one->tensors, other->tensors);
	if (one->type != other->type)
		add_row(&proposal, NT_EVIDENCE_TEXT_TYPE, one->type, other->type);
	return nt_incidents_raise(detect, &proposal);
}

bool nt_mismatch_matters(const struct nt_detect_comm *comm, const struct nt_mismatch_call *call,
			 size_t n)
{
	bool collective = true, same_op = true;

	for (size_t i = 0; i < n; i++) {
		const uint8_t op = call[i].op;
		const int kind = op < NT_DETECT_COMM_OPS ? comm->kind_of[op] - 1 : -1;

		if (kind == NT_FRAME_POINT_TO_POINT || kind == NT_FRAME_OTHER)
			return false;
		collective = collective &&
			     (kind == NT_FRAME_SYNCHRONISING || kind == NT_FRAME_ALL_TO_ALL);
		same_op = same_op && op == call[0].op;
	}
	return collective || !same_op;
}

/* Whether its members agreed so far. */
static bool is_trusted(const struct nt_detect_comm *comm)
{
	return comm->agreed >= NT_DETECT_COMM_TRUSTED || comm->matched >= NT_DETECT_COMM_TRUSTED;
}

/* Whether members must agree on all its operations. */
static bool is_collective_only(const struct nt_detect_comm *comm)
{
	bool any = false;

	for (int i = 0; i < NT_DETECT_COMM_OPS; i++) {
		const int kind = comm->kind_of[i] - 1;

		if (kind >= 0 && kind != NT_FRAME_SYNCHRONISING && kind != NT_FRAME_ALL_TO_ALL)
			return false;
		any |= kind >= 0;
	}
	return any;
}

int nt_mismatch_raise_hashes(struct nt_detect *detect, const struct nt_detect_comm *comm,
			     uint64_t number, uint64_t since_ns, bool *ret_differ)
{
	struct nt_mismatch_call *call;
	uint64_t epoch = 0;
	size_t n = 0, blamed;
	bool same = true;
	int r = 0;

	*ret_differ = false;
	if (comm->varies || !is_trusted(comm) || !is_collective_only(comm))
		return 0;
	call = calloc(comm->members, sizeof(*call));
	if (!call)
		return -ENOMEM;
	for (uint32_t i = 0; i < comm->members && same; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);

		for (uint32_t j = 0; rank && j < rank->links; j++) {
			const struct nt_detect_link *link = &rank->link[j];

			if (link->comm != comm)
				continue;
			same = link->last == number && (!n || link->epoch == epoch);
			epoch = link->epoch;
			/* The hash stands for the differing call. */
			call[n++] =
				(struct nt_mismatch_call){.rank = rank->rank, .count = link->hash};
		}
	}
	blamed = same && n == comm->members ? nt_mismatch_sides(call, n) : 0;
	if (blamed) {
		struct nt_proposal proposal = propose(detect, comm, call, blamed, since_ns);

		add_row(&proposal, NT_EVIDENCE_TEXT_CALLS_UNTIL, (double)number, (double)number);
		proposal.evidence[0].method = NT_EVIDENCE_TEXT_HASH;
		*ret_differ = true;
		r = nt_incidents_raise(detect, &proposal);
	}
	free(call);
	return r;
}

/* The lowest number with relevant differences. False: none. */
static bool search(const struct nt_frame *frame, const struct nt_detect_comm *comm,
		   struct nt_mismatch_call *call, size_t *ret_n, uint64_t *ret_number)
{
	const struct nt_frame_comm *first = NULL;

	for (uint32_t i = 0; i < comm->members && (!first || !first->recents); i++)
		first = nt_frame_find_comm(nt_frame_find(frame, comm->member[i]), comm->id, 0);
	for (size_t at = 0; first && at < first->recents; at++) {
		const uint64_t number = first->recent[at].number;
		bool differ = false;
		size_t n = 0;

		for (uint32_t i = 0; i < comm->members; i++) {
			const struct nt_frame_comm *said = nt_frame_find_comm(
				nt_frame_find(frame, comm->member[i]), comm->id, 0);

			if (!said || said->epoch != first->epoch ||
			    !nt_frame_find_call(frame, comm->member[i], comm->id, number, &call[n]))
				continue;
			differ |= n && compare_calls(&call[0], &call[n]) != 0;
			n++;
		}
		if (differ) {
			*ret_n = n;
			*ret_number = number;
			return nt_mismatch_matters(comm, call, n);
		}
	}
	return false;
}

static bool is_mismatch(const struct nt_detect_incident *incident)
{
	return incident && incident->class == NT_CLASS_MISMATCH;
}

/*
 * Keeps the incident open without new evidence. It ends when the members make progress in their
 * communicator, or the job makes progress without it.
 */
static void hold(struct nt_detect *detect)
{
	struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_STALL, 0);
	const struct nt_detect_comm *comm =
		is_mismatch(open) ? nt_detect_comm_find(detect->comms, open->comm) : NULL;

	if (comm && comm->moved_ns < detect->end_ns &&
	    detect->step.moved_ns <= nt_stats_add(comm->moved_ns, detect->rules.hang_min_ns))
		open->stands = true;
}

int nt_mismatch_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	hold(detect);
	for (uint32_t i = 0; i < detect->comm_count; i++) {
		struct nt_detect_comm *comm = detect->comm[i];
		struct nt_mismatch_call *call;
		uint64_t number = 0;
		size_t n = 0, blamed;
		int r = 0;

		if (comm->agreed_frame == detect->frames &&
		    comm->differed_frame != detect->frames) {
			comm->agreed += comm->agreed < NT_DETECT_COMM_TRUSTED;
			comm->differed_last = 0;
			comm->differed_moves = 0;
		}
		if (comm->matched_frame == detect->frames && comm->unlike_frame != detect->frames &&
		    comm->differed_frame != detect->frames)
			comm->matched += comm->matched < NT_DETECT_COMM_TRUSTED;
		if (comm->differed_frame != detect->frames || comm->varies)
			continue;
		/* Differences mean nothing in a communicator whose members always differ. */
		if (!is_trusted(comm)) {
			comm->varies = true;
			continue;
		}
		call = calloc(comm->members, sizeof(*call));
		if (!call)
			return -ENOMEM;
		if (search(frame, comm, call, &n, &number)) {
			blamed = nt_mismatch_sides(call, n);
			if (blamed)
				r = nt_mismatch_raise(detect, comm, number, call, n, blamed,
						      detect->start_ns);
		} else if (is_mismatch(nt_incidents_find(detect, NT_FAMILY_STALL, 0))) {
			/*
			 * The calls are no longer among the recent ones, but the hashes still
			 * differ.
			 */
			nt_incidents_find(detect, NT_FAMILY_STALL, 0)->stands = true;
		} else if (is_collective_only(comm) && comm->differed_moves < NT_MISMATCH_AHEAD) {
			/* No call shows the difference. If the job stops, this is the cause. */
			comm->differed_moves += comm->differed_last != comm->first_last;
			comm->differed_last = comm->first_last;
		} else {
			/* It continues despite the difference, or uses sends and receives. */
			comm->varies = true;
		}
		free(call);
		if (r < 0)
			return r;
	}
	return 0;
}
