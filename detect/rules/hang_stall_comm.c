/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stall analysis of one communicator. */
#include "detect/rules/hang_stall_comm.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/model/detector_state.h"
#include "detect/rules/hang.h"
#include "detect/rules/hang_impl.h"
#include "detect/rules/mismatch.h"
#include "detect/thresholds/thresholds.h"

/* Whether a member of another communicator of the rank is behind it there. */
static bool waits_elsewhere(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			    const struct nt_detect_comm *except)
{
	for (uint32_t i = 0; i < rank->links; i++) {
		const struct nt_detect_link *mine = &rank->link[i];

		if (mine->comm == except ||
		    !is_collective(nt_detect_comm_use(mine->comm) == NT_DETECT_COMM_EXPERT
					   ? NT_FRAME_ALL_TO_ALL
				   : nt_detect_comm_use(mine->comm) == NT_DETECT_COMM_REDUCING
					   ? NT_FRAME_SYNCHRONISING
					   : NT_FRAME_OTHER))
			continue;
		for (uint32_t j = 0; j < mine->comm->members; j++) {
			const struct nt_detect_rank *other =
				nt_detect_find(detect, mine->comm->member[j]);
			const struct nt_detect_link *theirs =
				other ? find_link(other, mine->comm) : NULL;

			if (theirs && other != rank && theirs->epoch == mine->epoch &&
			    theirs->last < mine->last)
				return true;
		}
	}
	return false;
}

/* All are in the same call number: compares the calls for a mismatch. */
static int compare_entered(struct nt_detect *detect, const struct nt_frame *frame,
			   struct nt_detect_comm *comm, const struct nt_stall_member *member,
			   uint32_t n, bool *ret_differ)
{
	struct nt_mismatch_call *call = calloc(n, sizeof(*call));
	uint64_t since_ns = UINT64_MAX;
	uint32_t calls = 0;
	size_t blamed;
	int r = 0;

	*ret_differ = false;
	if (!call)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct nt_frame_inside *inside = &member[i].rank->inside;

		if (!member[i].in)
			continue;
		if (inside->in_call)
			call[calls++] = (struct nt_mismatch_call){.rank = member[i].rank->rank,
								  .op = inside->op,
								  .type = inside->type,
								  .count = inside->count,
								  .tensors = inside->tensors};
		else
			calls += nt_frame_find_call(frame, member[i].rank->rank, comm->id,
						    member[i].number, &call[calls]);
		if (inside->since_ns < since_ns)
			since_ns = inside->since_ns;
	}
	blamed = nt_mismatch_sides(call, calls);
	if (calls > 1 && blamed && nt_mismatch_matters(comm, call, calls)) {
		*ret_differ = true;
		r = nt_mismatch_raise(detect, comm, member[0].number, call, calls, blamed,
				      since_ns);
	} else if (member[0].rank->inside.synchronising) {
		r = nt_mismatch_raise_hashes(detect, comm, member[0].number, since_ns, ret_differ);
	}
	free(call);
	return r;
}

/*
 * Accuses the members at the lowest number, for which others wait, unless they wait themselves or
 * did until just now.
 */
static void accuse_laggards(struct nt_detect *detect, const struct nt_detect_comm *comm,
			    const struct nt_stall_member *member, uint32_t n, uint64_t highest,
			    uint64_t need_ns, struct nt_stall *stall)
{
	const uint32_t before = stall->culprits;
	uint64_t lowest = highest;
	bool same_call = false;

	for (uint32_t i = 0; i < n; i++) {
		stall->waiting |= member[i].elsewhere && member[i].number < highest;
		if (member[i].number < lowest && !member[i].elsewhere)
			lowest = member[i].number;
	}
	for (uint32_t i = 0; i < n; i++) {
		const bool left = member[i].in && member[i].rank->inside.left;

		if ((member[i].number != lowest || lowest == highest) && !left)
			continue;
		if (member[i].elsewhere)
			continue;
		if (member[i].rank->inside.synchronising &&
		    waits_elsewhere(detect, member[i].rank, comm)) {
			stall->waiting = true;
			continue;
		}
		if (nt_stall_has_moved(detect, member[i].rank, need_ns)) {
			stall->moving = true;
			continue;
		}
		/* It entered and did not return, others did. */
		same_call |= member[i].in && member[i].rank->inside.in_call;
		nt_stall_accuse(detect, stall, &member[i]);
	}
	if (stall->culprits == before)
		return;
	/* If most members are busy, it is a pause of all, not a slow host. */
	if (stall->working && stall->culprits - before > n / 2) {
		stall->culprits = before;
		stall->found = false;
		return;
	}
	stall->cause = same_call ? NT_EVIDENCE_TEXT_DEVICE_OR_LINK : NT_EVIDENCE_TEXT_LAGGARD;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The most common epoch of the members; the lowest on a tie. */
static uint64_t common_epoch(const struct nt_stall_member *member, uint32_t n, uint64_t *epoch)
{
	uint32_t most = 0;
	uint64_t best = 0;

	for (uint32_t i = 0; i < n; i++)
		epoch[i] = member[i].link->epoch;
	qsort(epoch, n, sizeof(*epoch), compare_u64);
	for (uint32_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && epoch[to] == epoch[from];)
			to++;
		if (to - from <= most)
			continue;
		most = to - from;
		best = epoch[from];
	}
	return best;
}

/*
 * The member that is in a call for longest, whose number is the reference. Members with comparable
 * numbers are preferred.
 */
static const struct nt_stall_member *find_longest(const struct nt_stall_member *member, uint32_t n,
						  uint64_t *epoch)
{
	const struct nt_stall_member *longest = NULL, *common = NULL;
	bool one = true;
	uint64_t most;

	for (uint32_t i = 0; i < n; i++) {
		one = one && member[i].link->epoch == member[0].link->epoch;
		if (member[i].in && (!longest || member[i].waited_ns > longest->waited_ns))
			longest = &member[i];
	}
	if (one || !longest)
		return longest;
	most = common_epoch(member, n, epoch);
	for (uint32_t i = 0; i < n; i++)
		if (member[i].in && member[i].link->epoch == most &&
		    (!common || member[i].waited_ns > common->waited_ns))
			common = &member[i];
	return common ? common : longest;
}

/* All members are inside. Others may wait for them elsewhere: the earliest wait counts. */
static void name_comm(const struct nt_detect_comm *comm, const struct nt_stall_member *member,
		      uint32_t n, uint64_t since_ns, struct nt_stall *stall)
{
	bool after = true;

	for (uint32_t i = 0; i < n; i++)
		after = after && member[i].rank->inside.after;
	if (after || (stall->comm && stall->comm_since_ns <= since_ns))
		return;
	stall->comm = comm->id;
	stall->comm_since_ns = since_ns;
	stall->queued = false;
	stall->listed = 0;
	for (uint32_t i = 0; i < n; i++) {
		stall->queued |= member[i].rank->inside.queued;
		stall->members[stall->listed++] = member[i].rank->rank;
	}
}

/* The observed members of a communicator, and the state of the others. */
struct roll {
	uint32_t n, unknown, lost_sight;
	bool moving; /* an unobserved member made progress just now */
};

/* False: a member has ended, which is reported elsewhere. */
static bool call_roll(const struct nt_detect *detect, const struct nt_detect_comm *comm,
		      uint64_t need_ns, struct nt_stall_member *member, struct roll *roll)
{
	for (uint32_t i = 0; i < comm->members; i++) {
		struct nt_detect_rank *rank = nt_detect_find(detect, comm->member[i]);
		struct nt_stall_member *at = &member[roll->n];

		if (!rank || rank->ended || rank->finalized)
			return false; /* ended, not late */
		if (rank->silent || rank->lost_sight || !is_fresh(detect, rank)) {
			roll->unknown++;
			roll->lost_sight += !rank->silent && rank->lost_sight;
			roll->moving |= !rank->silent && rank->lost_sight &&
					nt_stall_has_moved(detect, rank, need_ns);
			continue;
		}
		*at = (struct nt_stall_member){.rank = rank, .link = find_link(rank, comm)};
		if (!at->link) {
			roll->unknown++;
			continue;
		}
		at->number = at->link->last;
		if (rank->inside.in_call && rank->inside.comm == comm->id) {
			at->in = true;
			at->number = rank->inside.number;
		} else if (rank->inside.synchronising) {
			at->in = true;
		}
		at->elsewhere = rank->inside.in_call && rank->inside.comm != comm->id;
		at->waited_ns = at->in ? nt_hang_waited(detect, rank) : 0;
		roll->n++;
	}
	return true;
}

int nt_stall_check_comm(struct nt_detect *detect, const struct nt_frame *frame,
			struct nt_detect_comm *comm, uint64_t need_ns,
			struct nt_stall_member *member, uint64_t *epoch, struct nt_stall *stall)
{
	const struct nt_stall_member *longest = NULL;
	struct roll roll = {0};
	uint32_t n, in = 0, out = 0, patient = 0;
	uint64_t highest = 0;
	bool lagging = false, together = true;

	if (!call_roll(detect, comm, need_ns, member, &roll))
		return 0;
	n = roll.n;
	longest = find_longest(member, n, epoch);
	if (!longest)
		return 0;
	roll.unknown += comm->size > comm->members ? comm->size - comm->members : 0;

	/* Numbers of another epoch cannot be compared: such a member is late if it is outside. */
	for (uint32_t i = 0; i < n; i++) {
		if (member[i].link->epoch != longest->link->epoch) {
			together = false;
			member[i].number = longest->number;
			if (!member[i].in && longest->number)
				member[i].number--;
		}
		if (member[i].in && member[i].waited_ns >= need_ns && member[i].number > highest)
			highest = member[i].number;
	}
	for (uint32_t i = 0; i < n; i++) {
		together = together && member[i].in && member[i].number == longest->number;
		lagging |= member[i].number < highest;
		in += member[i].in && member[i].number == highest;
		out += !member[i].in && member[i].number >= highest &&
		       !is_recent(detect, member[i].link->progress_ns, NT_LEAVING_NS);
		patient += member[i].in && member[i].number == highest &&
			   member[i].waited_ns >= need_ns;
	}
	if (together && n > 1 && longest->waited_ns >= NT_MISMATCH_AFTER_NS &&
	    (patient == n || comm->agreed >= NT_DETECT_COMM_TRUSTED)) {
		bool differ;
		int r = compare_entered(detect, frame, comm, member, n, &differ);

		if (r < 0 || differ)
			return r;
	}
	if (!patient)
		return 0;
	stall->moving |= roll.moving;
	stall->lost_sight += roll.lost_sight;
	for (uint32_t i = 0; i < n; i++)
		if (member[i].in && member[i].number == highest && member[i].waited_ns >= need_ns)
			nt_stall_witness(stall, &member[i]);
	if (lagging) {
		accuse_laggards(detect, comm, member, n, highest, need_ns, stall);
	} else if (out && longest->rank->inside.in_call) {
		/* Some returned. Hosts that run ahead look the same if calls do not block. */
		for (uint32_t i = 0; i < n; i++)
			if (member[i].in)
				nt_stall_accuse(detect, stall, &member[i]);
		stall->working = false;
		stall->cause = NT_EVIDENCE_TEXT_DEVICE_OR_LINK;
	} else if (in == n && patient == n) {
		stall->inside_all = true;
		if (!roll.unknown && longest->rank->inside.in_call)
			name_comm(comm, member, n, longest->rank->inside.since_ns, stall);
	}
	return 0;
}
