/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs that stand still. */
#include "detect/hang.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/hang_impl.h"
#include "detect/incident_raise.h"
#include "detect/mismatch.h"

/* A thread that works on something of its own, as a checkpoint, is not hung. */
static const double working_part = 0.1;
static const double working_bytes = 1
				    << 17; /* a second: more than a thread writes that only logs */
/* One look may find it between two writes to a slow disk. */
static const uint64_t working_lasts_ns = 5000000000;
static const uint64_t mismatch_after_ns = 2000000000;
/* Agents look once a second: where some have left a call, the others may have, too. */
static const uint64_t leaving_ns = 3000000000;

static bool moves_bytes(const struct nt_frame_rank *seen)
{
	const double window = (double)seen->window_ns;
	const double bytes = (double)seen->read_bytes + (double)seen->write_bytes;

	return seen->state == 'D' || (bytes > 0.0 && bytes * 1e9 >= working_bytes * window) ||
	       (window > 0.0 && (double)seen->io_ns >= working_part * window);
}

static bool is_at_work(const struct nt_frame_rank *seen)
{
	const double window = (double)seen->window_ns;

	return moves_bytes(seen) ||
	       (window > 0.0 && (double)seen->on_cpu_ns >= working_part * window);
}

static bool has_worked(const struct nt_detect *detect, const struct nt_rank *rank)
{
	return rank->worked_ns && detect->end_ns - rank->worked_ns <= working_lasts_ns;
}

void nt_hang_note(struct nt_detect *detect, struct nt_rank *rank, const struct nt_frame_rank *seen)
{
	rank->inside = seen->inside;
	/* From here on the two exclude each other: in_call means a call of a communicator. */
	rank->inside.in_call = seen->inside.in_call && !seen->inside.synchronising;
	rank->sampled = seen->sampled;
	rank->lost_sight = seen->lost_sight;
	rank->seen_ns = detect->end_ns;
	rank->seen_frame = detect->frames;
	if (seen->inside.in_call)
		rank->inside_ns = detect->end_ns;
	if (is_at_work(seen))
		rank->worked_ns = detect->end_ns;
	if (moves_bytes(seen))
		rank->stored_ns = detect->end_ns;
}

uint64_t nt_hang_waited(const struct nt_detect *detect, const struct nt_rank *rank)
{
	const struct nt_frame_inside *inside = &rank->inside;

	if ((!inside->in_call && !inside->synchronising) || !is_live(rank) ||
	    !is_fresh(detect, rank))
		return 0;
	return detect->end_ns > inside->since_ns ? detect->end_ns - inside->since_ns : 0;
}

/* One member of a communicator that somebody waits in. */
struct member {
	struct nt_rank *rank;
	const struct nt_link *link;
	uint64_t number;
	uint64_t waited_ns;
	bool in; /* inside the call of that number, as far as its tier tells */
	bool elsewhere; /* inside a call of another communicator */
};

/* What is found about all the communicators of the job. */
struct stall {
	uint32_t *culprit;
	uint32_t culprits;
	uint64_t since_ns, longest_ns;
	uint64_t comm; /* kind communicator */
	uint32_t *members;
	uint32_t listed;
	enum nt_word cause;
	bool found, working, waiting, moving, inside_all;
	bool gone; /* a process ended and said no good-bye */
	bool going; /* somebody went on a moment ago, and may set going those who wait */
	uint32_t lost_sight; /* ranks that may be inside or outside */
	uint8_t tier;
};

/*
 * Where nobody is late: that all wait may be how the job's first steps are, and what is taken for a
 * step then may be a part of one: all that a host enqueues in its first burst is one round of such.
 * How long everybody stood still at a time tells more, while a job is young.
 */
static uint64_t patience_with_all(const struct nt_detect *detect, uint64_t hang_ns)
{
	const struct nt_step *step = &detect->step;
	const uint64_t twice_ns =
		step->longest_pause_ns < UINT64_MAX / 2 ? 2 * step->longest_pause_ns : UINT64_MAX;
	bool young;

	if (!detect->rules.young_ns)
		return hang_ns;
	young = (double)detect->frames * detect->window_ns < (double)detect->rules.young_ns;
	if (step->step_ns <= 0.0 || (young && !step->past.ready && step->past.count < NT_PAST_FEW))
		return at_least(hang_ns, detect->rules.young_ns);
	if (!step->past.ready)
		hang_ns = at_least(hang_ns, 2 * detect->rules.hang_min_ns);
	return young ? at_least(hang_ns, twice_ns) : hang_ns;
}

/* Somebody else of one of its other communicators has not entered what it waits for there. */
static bool waits_elsewhere(const struct nt_detect *detect, const struct nt_rank *rank,
			    const struct nt_comm *except)
{
	for (uint32_t i = 0; i < rank->links; i++) {
		const struct nt_link *mine = &rank->link[i];

		if (mine->comm == except ||
		    !is_collective(nt_comm_use(mine->comm) == NT_COMM_EXPERT ? NT_FRAME_ALL_TO_ALL
				   : nt_comm_use(mine->comm) == NT_COMM_REDUCING
					   ? NT_FRAME_SYNCHRONISING
					   : NT_FRAME_OTHER))
			continue;
		for (uint32_t j = 0; j < mine->comm->members; j++) {
			const struct nt_rank *other = nt_detect_find(detect, mine->comm->member[j]);
			const struct nt_link *theirs = other ? find_link(other, mine->comm) : NULL;

			if (theirs && other != rank && theirs->epoch == mine->epoch &&
			    theirs->last < mine->last)
				return true;
		}
	}
	return false;
}

static void accuse(const struct nt_detect *detect, struct stall *stall, const struct member *member)
{
	for (uint32_t i = 0; i < stall->culprits; i++)
		if (stall->culprit[i] == member->rank->rank)
			return;
	stall->working = (!stall->culprits || stall->working) && has_worked(detect, member->rank);
	stall->culprit[stall->culprits++] = member->rank->rank;
}

/* What else may hold up those who wait. */
static void look_around(const struct nt_detect *detect, struct stall *stall)
{
	for (uint32_t i = 0; i < detect->comm_count && !stall->going; i++)
		stall->going = is_recent(detect, detect->comm[i]->moved_ns, leaving_ns);
	for (uint32_t i = 0; i < detect->ranks && !stall->gone; i++) {
		const struct nt_rank *rank = &detect->rank[i];

		/* A job that went on without it for long does not wait for it now. */
		stall->gone =
			rank->ended && !rank->finalized &&
			nt_stats_add(rank->ended_ns, detect->rules.hang_min_ns) >= stall->since_ns;
	}
}

/*
 * A rank that waits for its device may wait for another rank there: for what a neighbour in the
 * pipeline sends, or for somebody who waits for a third. Where one is late that waits for nothing, is
 * gone, or has just gone on, that one is why.
 */
static void acquit_waiting(const struct nt_detect *detect, struct stall *stall)
{
	uint32_t kept = 0;
	bool working = true, idle = stall->gone || stall->moving;

	for (uint32_t i = 0; i < stall->culprits && !idle; i++)
		idle = !nt_detect_find(detect, stall->culprit[i])->inside.synchronising;
	if (!idle)
		return;
	for (uint32_t i = 0; i < stall->culprits; i++) {
		const struct nt_rank *rank = nt_detect_find(detect, stall->culprit[i]);

		if (rank->inside.synchronising)
			continue;
		working = working && has_worked(detect, rank);
		stall->culprit[kept++] = rank->rank;
	}
	stall->waiting |= kept < stall->culprits;
	stall->culprits = kept;
	stall->working = working;
}

static void witness(struct stall *stall, const struct member *member)
{
	const uint64_t since = member->rank->inside.since_ns;

	if (!stall->found || since < stall->since_ns)
		stall->since_ns = since;
	if (member->waited_ns > stall->longest_ns)
		stall->longest_ns = member->waited_ns;
	stall->found = true;
	stall->tier = member->rank->tier;
}

/* All are in the same call: if not in the same way, that is why. */
static int compare_entered(struct nt_detect *detect, const struct nt_frame *frame,
			   struct nt_comm *comm, const struct member *member, uint32_t n,
			   bool *ret_differ)
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
								  .count = inside->count};
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
 * Who has just made a call, or come out of one that held it, is on its way; and so is who waits for
 * its device, where one that it may wait for went on a moment ago.
 */
static bool has_moved(const struct nt_detect *detect, const struct nt_rank *rank, uint64_t need_ns)
{
	if (!rank->inside.in_call && !rank->inside.synchronising &&
	    is_recent(detect, rank->inside_ns, need_ns))
		return true;
	for (uint32_t i = 0; i < rank->links; i++)
		if (is_recent(detect, rank->link[i].progress_ns, need_ns) ||
		    (rank->inside.synchronising &&
		     is_recent(detect, rank->link[i].comm->moved_ns, leaving_ns)))
			return true;
	return false;
}

/*
 * The members that others wait for: those at the lowest number, unless they wait themselves, or did
 * until a moment ago.
 */
static void accuse_laggards(struct nt_detect *detect, const struct nt_comm *comm,
			    const struct member *member, uint32_t n, uint64_t highest,
			    uint64_t need_ns, struct stall *stall)
{
	const uint32_t before = stall->culprits;
	uint64_t lowest = highest;
	bool same_call = false;

	for (uint32_t i = 0; i < n; i++)
		if (member[i].number < lowest)
			lowest = member[i].number;
	for (uint32_t i = 0; i < n; i++) {
		if (member[i].number != lowest)
			continue;
		if (member[i].elsewhere || (member[i].rank->inside.synchronising &&
					    waits_elsewhere(detect, member[i].rank, comm))) {
			stall->waiting = true;
			continue;
		}
		if (has_moved(detect, member[i].rank, need_ns)) {
			stall->moving = true;
			continue;
		}
		/* It entered, others came out and it did not. */
		same_call |= member[i].in && member[i].rank->inside.in_call;
		accuse(detect, stall, &member[i]);
	}
	if (stall->culprits == before)
		return;
	/* Most of the members at work on something is a pause of all, not one slow host. */
	if (stall->working && stall->culprits - before > n / 2) {
		stall->culprits = before;
		stall->found = false;
		return;
	}
	stall->cause = same_call ? NT_WORD_NETWORK : NT_WORD_LAGGARD;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The epoch that most of them count in; where several do, the least. */
static uint64_t common_epoch(const struct member *member, uint32_t n, uint64_t *epoch)
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
 * Who is inside for longest, whose number the others' are held against: one of those whose numbers can be
 * compared, if any of them is inside.
 */
static const struct member *find_longest(const struct member *member, uint32_t n, uint64_t *epoch)
{
	const struct member *longest = NULL, *common = NULL;
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

static int check_comm(struct nt_detect *detect, const struct nt_frame *frame, struct nt_comm *comm,
		      uint64_t need_ns, struct member *member, uint64_t *epoch, struct stall *stall)
{
	const struct member *longest = NULL;
	uint32_t n = 0, unknown = 0, lost_sight = 0, in = 0, out = 0, patient = 0;
	uint64_t highest = 0;
	bool lagging = false, together = true, moving = false;

	for (uint32_t i = 0; i < comm->members; i++) {
		struct nt_rank *rank = nt_detect_find(detect, comm->member[i]);
		struct member *at = &member[n];

		if (!rank || rank->ended || rank->finalized)
			return 0; /* gone, not late: that is told elsewhere */
		if (rank->silent || rank->lost_sight || !is_fresh(detect, rank)) {
			unknown++;
			lost_sight += !rank->silent && rank->lost_sight;
			moving |= !rank->silent && rank->lost_sight &&
				  has_moved(detect, rank, need_ns);
			continue;
		}
		*at = (struct member){.rank = rank, .link = find_link(rank, comm)};
		if (!at->link) {
			unknown++;
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
		n++;
	}
	longest = find_longest(member, n, epoch);
	if (!longest)
		return 0;
	unknown += comm->size > comm->members ? comm->size - comm->members : 0;

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
		       !is_recent(detect, member[i].link->progress_ns, leaving_ns);
		patient += member[i].in && member[i].number == highest &&
			   member[i].waited_ns >= need_ns;
	}
	if (together && n > 1 && longest->waited_ns >= mismatch_after_ns &&
	    (patient == n || comm->agreed > 2)) {
		bool differ;
		int r = compare_entered(detect, frame, comm, member, n, &differ);

		if (r < 0 || differ)
			return r;
	}
	if (!patient)
		return 0;
	stall->moving |= moving;
	stall->lost_sight += lost_sight;
	for (uint32_t i = 0; i < n; i++)
		if (member[i].in && member[i].number == highest && member[i].waited_ns >= need_ns)
			witness(stall, &member[i]);
	if (lagging) {
		accuse_laggards(detect, comm, member, n, highest, need_ns, stall);
	} else if (out && longest->rank->inside.in_call) {
		/* Some came out. A host that runs ahead looks the same where calls do not block. */
		for (uint32_t i = 0; i < n; i++)
			if (member[i].in)
				accuse(detect, stall, &member[i]);
		stall->working = false;
		stall->cause = NT_WORD_NETWORK;
	} else if (in == n && patient == n) {
		stall->inside_all = true;
		if (!unknown && longest->rank->inside.in_call) {
			stall->comm = comm->id;
			stall->listed = 0;
			for (uint32_t i = 0; i < n; i++)
				stall->members[stall->listed++] = member[i].rank->rank;
		}
	}
	return 0;
}

/*
 * Where communicators bind nobody to anybody, the job as a whole tells: nobody goes on, and who is in no
 * call while all others wait is whom they wait for. False: somebody goes on, or nobody waits so.
 */
static bool stands_unbound(const struct nt_detect *detect, uint64_t need_ns, struct stall *stall)
{
	uint32_t n = 0;

	if (is_recent(detect, detect->step.moved_ns, need_ns))
		return false;
	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct member at = {.rank = &detect->rank[i]};

		if (at.rank->ended || at.rank->finalized)
			return false; /* told elsewhere */
		if (at.rank->silent || !is_fresh(detect, at.rank))
			continue;
		n++;
		if (at.rank->lost_sight) {
			if (has_moved(detect, at.rank, need_ns))
				return false;
			stall->lost_sight++;
			continue;
		}
		if (!at.rank->inside.in_call && !at.rank->inside.synchronising) {
			if (has_moved(detect, at.rank, need_ns))
				return false;
			accuse(detect, stall, &at);
			continue;
		}
		at.waited_ns = nt_hang_waited(detect, at.rank);
		if (at.waited_ns < need_ns)
			return false;
		if (is_in_unbound(at.rank))
			witness(stall, &at);
	}
	/* It may be one of those. */
	if (stall->lost_sight)
		stall->culprits = 0;
	stall->inside_all = !stall->culprits;
	stall->cause = stall->culprits ? NT_WORD_LAGGARD : NT_WORD_NONE;
	/* Most of the ranks outside of calls are a pause. */
	return stall->found && stall->culprits <= n / 2;
}

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * Somebody that was named is not heard of now, as in a recording's last window: that clears nobody, and
 * makes nobody guilty who only waits for it.
 */
static bool is_out_of_sight(const struct nt_detect *detect, const struct nt_incident *open)
{
	if (open->kind != NT_CULPRIT_RANK)
		return false;
	for (uint32_t i = 0; i < open->listed; i++) {
		const struct nt_rank *rank = nt_detect_find(detect, open->list[i]);

		if (rank && !rank->ended &&
		    (rank->silent || rank->lost_sight || !is_fresh(detect, rank)))
			return true;
	}
	return false;
}

/* Nobody is named, and it may be somebody else all the same. */
static bool may_be_another(const struct stall *stall)
{
	if (stall->moving || stall->gone)
		return true; /* who is gone is told elsewhere */
	if (stall->comm && !stall->waiting)
		return false;
	/* Somebody that is not observed may be the one. */
	return stall->going || (!stall->inside_all && !stall->waiting);
}

static void add_lost_sight(struct nt_proposal *proposal, uint32_t lost_sight, uint32_t ranks)
{
	proposal->evidence[proposal->evidences++] = (struct nt_evidence){
		.what = NT_WORD_LOST_SIGHT,
		.unit = NT_WORD_NUMBER,
		.method = NT_WORD_SAMPLES,
		.value = lost_sight,
		.peers = ranks,
		.windows = 1,
	};
}

static int raise_stall(struct nt_detect *detect, struct stall *stall, uint64_t hang_ns)
{
	struct nt_proposal proposal = {
		.family = NT_FAMILY_STALL,
		.class = NT_CLASS_HANG,
		.cause = stall->cause,
		.kind = NT_CULPRIT_RANK,
		.rank = stall->culprit,
		.ranks = stall->culprits,
		.onset_ns = stall->since_ns,
		.cost = -1.0,
		.tier = stall->tier,
	};
	struct nt_incident *open = nt_incidents_find(detect, NT_FAMILY_STALL, 0);

	/* The calls differ: that says more than that the job stands. */
	if (open && open->class == NT_CLASS_MISMATCH && open->stands)
		return 0;
	if (open && is_out_of_sight(detect, open)) {
		open->stands = true;
		return 0;
	}
	if (stall->culprits) {
		qsort(stall->culprit, stall->culprits, sizeof(*stall->culprit), compare_u32);
		if (stall->working && stall->longest_ns < detect->rules.slow_host_ns) {
			proposal.class = NT_CLASS_HOST;
			proposal.cause = NT_WORD_SLOW_HOST;
			proposal.note = true;
		} else if (stall->working) {
			proposal.cause = NT_WORD_SLOW_HOST;
		}
	} else if (may_be_another(stall)) {
		return 0;
	} else if (stall->comm && !stall->waiting) {
		proposal.cause = NT_WORD_NETWORK;
		proposal.kind = NT_CULPRIT_COMMUNICATOR;
		proposal.comm = stall->comm;
		proposal.rank = stall->members;
		proposal.ranks = stall->listed;
	}
	if (!stall->culprits)
		hang_ns = patience_with_all(detect, hang_ns);
	if (!proposal.note && stall->longest_ns < hang_ns)
		return 0;
	proposal.evidence[proposal.evidences++] = (struct nt_evidence){
		.what = NT_WORD_WAITING,
		.unit = NT_WORD_S,
		.method = NT_WORD_WITNESS,
		.value = (double)stall->longest_ns / 1e9,
		.peers = (double)hang_ns / 1e9,
		.windows = 1,
	};
	if (!stall->culprits && stall->lost_sight)
		add_lost_sight(&proposal, stall->lost_sight, detect->census.here);
	return nt_incidents_raise(detect, &proposal);
}

/*
 * All live ranks are out of sight, or wait: a pause of all looks the same, but nothing will ever show that
 * it is none. Who reads or writes is at work on something, as a checkpoint. Returns how many are out of sight.
 */
static uint32_t count_lost_sight(const struct nt_detect *detect)
{
	uint32_t lost_sight = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_rank *rank = &detect->rank[i];

		if (!is_live(rank))
			continue;
		if (is_recent(detect, rank->stored_ns, SAMPLED_FRESH_NS))
			return 0;
		if (rank->lost_sight || (rank->sampled && !is_fresh(detect, rank)))
			lost_sight++;
		else if (!is_fresh(detect, rank) ||
			 (!rank->inside.in_call && !rank->inside.synchronising))
			return 0;
	}
	return lost_sight;
}

static int check_pause(struct nt_detect *detect, bool moved, bool inside)
{
	const struct nt_rules *rules = &detect->rules;
	struct nt_step *step = &detect->step;
	uint64_t patience_ns, paused_ns;
	uint32_t lost_sight = 0;
	struct nt_proposal proposal = {
		.family = NT_FAMILY_PAUSE,
		.class = NT_CLASS_HANG,
		.onset_ns = step->moved_ns,
		.cost = -1.0,
		.tier = NT_FRAME_T1,
	};

	if (step->moved_ns && !nt_detect_is_heard(detect)) {
		/* It may move or not: time that nobody sees is no pause. */
		step->moved_ns += detect->end_ns - detect->start_ns;
		return 0;
	}
	if (!step->moved_ns || moved) {
		paused_ns = step->moved_ns ? detect->end_ns - step->moved_ns : 0;
		if (paused_ns > step->longest_pause_ns)
			step->longest_pause_ns = paused_ns;
		step->moved_ns = detect->end_ns;
		return 0;
	}
	patience_ns =
		step->longest_pause_ns > UINT64_MAX / 10 ? UINT64_MAX : 10 * step->longest_pause_ns;
	paused_ns = detect->end_ns - step->moved_ns;
	if (paused_ns >= rules->lost_sight_ns)
		lost_sight = count_lost_sight(detect);
	if (lost_sight)
		patience_ns =
			patience_with_all(detect, at_least(patience_ns, rules->lost_sight_ns));
	else
		patience_ns = at_least(patience_ns, rules->silence_floor_ns);
	/* Where some wait in sight, it may have been told. */
	if ((inside && !lost_sight) || paused_ns < patience_ns ||
	    nt_incidents_find(detect, NT_FAMILY_STALL, 0))
		return 0;
	proposal.evidence[proposal.evidences++] = (struct nt_evidence){
		.what = NT_WORD_STEP,
		.unit = NT_WORD_S,
		.method = NT_WORD_OWN_PAST,
		.value = (double)paused_ns / 1e9,
		.peers = (double)step->longest_pause_ns / 1e9,
		.windows = 1,
	};
	if (lost_sight)
		add_lost_sight(&proposal, lost_sight, detect->census.here);
	return nt_incidents_raise(detect, &proposal);
}

/* Somebody ended a step or went on in a communicator. */
static bool is_moving(const struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_rank *rank = &detect->rank[i];

		if (!is_live(rank) || !is_fresh(detect, rank))
			continue;
		if (rank->steps || rank->round_frame == detect->frames)
			return true;
		for (uint32_t j = 0; j < rank->links; j++)
			if (rank->link[j].progress_ns == detect->end_ns)
				return true;
	}
	return false;
}

int nt_hang_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const uint64_t period_ns = usual_periods(detect, detect->rules.hang_periods);
	const uint64_t hang_ns = at_least(detect->rules.hang_min_ns, period_ns);
	const uint64_t note_ns = at_least(detect->rules.checkpoint_note_ns, period_ns);
	const uint64_t need_ns = note_ns < hang_ns ? note_ns : hang_ns;
	struct stall stall = {.culprit = detect->scratch.index};
	const bool moved = is_moving(detect);
	const uint64_t longest_ns = detect->census.longest_wait_ns;
	const bool is_long = longest_ns >= need_ns || longest_ns >= mismatch_after_ns;
	struct member *member = NULL;
	uint64_t *epoch = NULL;
	int r = 0;

	/* Before the first rank there is no scratch. */
	if (!detect->ranks)
		return 0;
	stall.members = &detect->scratch.index[detect->scratch.cap];

	for (uint32_t i = 0; i < detect->ranks && is_long && r == 0; i++) {
		const struct nt_rank *rank = &detect->rank[i];
		const uint64_t wait_ns = nt_hang_waited(detect, rank);

		if (!is_live(rank) || !is_fresh(detect, rank) ||
		    (wait_ns < need_ns && wait_ns < mismatch_after_ns))
			continue;
		for (uint32_t j = 0; j < rank->links && r == 0; j++) {
			struct nt_comm *comm = rank->link[j].comm;

			if (comm->checked_frame == detect->frames || comm->members < 2 ||
			    (rank->inside.in_call && (rank->inside.comm != comm->id ||
						      !is_collective(rank->inside.kind))) ||
			    (!rank->inside.in_call && nt_comm_use(comm) != NT_COMM_REDUCING &&
			     nt_comm_use(comm) != NT_COMM_EXPERT))
				continue;
			comm->checked_frame = detect->frames;
			if (!member)
				member = calloc(detect->ranks, sizeof(*member));
			if (!epoch)
				epoch = calloc(detect->ranks, sizeof(*epoch));
			r = member && epoch ? check_comm(detect, frame, comm, need_ns, member,
							 epoch, &stall)
					    : -ENOMEM;
		}
	}
	free(member);
	free(epoch);
	if (r == 0 && !stall.found) {
		struct stall unbound = {.culprit = stall.culprit, .members = stall.members};

		if (stands_unbound(detect, need_ns, &unbound))
			stall = unbound;
	}
	if (r == 0 && stall.found) {
		look_around(detect, &stall);
		acquit_waiting(detect, &stall);
		r = raise_stall(detect, &stall, hang_ns);
	}
	if (r == 0)
		r = check_pause(detect, moved, longest_ns > 0);
	return r;
}
