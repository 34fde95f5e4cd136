/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One act of a rank: it works, meets its group, sends, receives or waits for its device. */
#include "tests/sim/cluster/play/state.h"

#include "tests/sim/cluster/chance.h"
#include "tests/sim/cluster/effect.h"
#include "tests/sim/cluster/play/network.h"

#define US 1000LL

enum {
	LAUNCH_NS = 5000,
	LAUNCHES = 12, /* kernels of one stretch of compute */
	RETURN_NS = 3000,
	SEND_NS = 20000, /* an eager send: copied, and gone */
	LEAVE_PERCENT = 5, /* of the transfer: how far apart members leave */
};

static void set_going(struct cl_play *play, uint32_t number)
{
	play->rank[number].stalled = false;
	play->runnable[play->runnables++] = number;
}

static void work(struct cl_play *play, struct cl_rank *rank, uint32_t number,
		 const struct cl_act *act)
{
	const struct cl_scenario *s = play->s;
	double factor = rank->nature * cl_effect_on_work(s, number, play->step) *
			(1 + s->jitter * cl_gauss(&play->random));
	int64_t ns, start_ns;

	if (s->hiccups > 0 && cl_chance(&play->random) < s->hiccups)
		factor *= 3;
	ns = (int64_t)((double)act->ns * (factor > 0.1 ? factor : 0.1));
	if (s->mode == CL_BLOCKING) {
		rank->host_ns += ns;
		rank->host.on_cpu_ns += (uint64_t)ns;
		return;
	}
	/* What updates the weights waits for what was reduced: both streams are awaited before it. */
	start_ns = rank->compute_ns > rank->host_ns ? rank->compute_ns : rank->host_ns;
	rank->compute_ns = start_ns + ns;
	if (s->mode == CL_PLUGIN)
		play->failed |= !cl_busies_compute(&rank->busies, rank->host_ns, LAUNCH_NS,
						   LAUNCHES, start_ns, rank->compute_ns);
	rank->host_ns += LAUNCHES * LAUNCH_NS;
	rank->host.on_cpu_ns += LAUNCHES * LAUNCH_NS;
	rank->launches += LAUNCHES;
}

/* The call's end, once it is known when the group is through. */
static void leave(struct cl_play *play, struct cl_rank *rank, const struct cl_act *act,
		  int64_t done_ns)
{
	int64_t ns = done_ns +
		     (int64_t)(cl_chance(&play->random) * LEAVE_PERCENT / 100 * (double)act->ns);

	if (play->s->mode == CL_BLOCKING) {
		cl_record(play, rank, CL_CALL_COLLECTIVE, act, rank->call_ns, ns);
		rank->host_ns = ns;
		return;
	}
	cl_record_busy(play, rank, act, rank->call_ns, rank->arrive_ns, ns);
	if (act->overlaps) {
		cl_record(play, rank, CL_CALL_RECORD, act, rank->call_ns, rank->call_ns);
		cl_record(play, rank, CL_CALL_WAIT, act, rank->call_ns + US, rank->call_ns + US);
		cl_record(play, rank, CL_CALL_COLLECTIVE, act, rank->call_ns + 2 * US,
			  rank->call_ns + 2 * US);
		rank->comm_ns = ns;
		if (act->op == NT_OP_ALL_GATHER)
			rank->gathered_ns = ns;
	} else {
		cl_record(play, rank, CL_CALL_COLLECTIVE, act, rank->call_ns, rank->call_ns);
		rank->compute_ns = ns;
	}
	rank->host_ns = rank->call_ns + ENQUEUE_NS;
	rank->host.on_cpu_ns += ENQUEUE_NS;
}

/* When the rank's part of the call begins, by whichever clock it runs on. */
static int64_t arrival(const struct cl_play *play, const struct cl_rank *rank,
		       const struct cl_act *act)
{
	int64_t ns = rank->host_ns;

	if (play->s->mode == CL_BLOCKING)
		return ns;
	if (rank->compute_ns > ns)
		ns = rank->compute_ns;
	return act->overlaps && rank->comm_ns > ns ? rank->comm_ns : ns;
}

/* When what the one sends to the next is there. */
static int64_t passed_ns(struct cl_play *play, const struct cl_group *group, uint32_t place,
			 const struct cl_act *act)
{
	const uint32_t from = cl_group_member(group, place % group->size);
	const uint32_t to = cl_group_member(group, (place + 1) % group->size);
	const int64_t sent_ns = play->rank[from].arrive_ns, wanted_ns = play->rank[to].arrive_ns;

	return (sent_ns > wanted_ns ? sent_ns : wanted_ns) +
	       (int64_t)((double)act->ns * cl_network_pair_factor(play, from, to));
}

/* Each sends to the next and receives from the one before. All have come. */
static void exchange(struct cl_play *play, const struct cl_group *group, const struct cl_act *act)
{
	for (uint32_t i = 0; i < group->size; i++) {
		const int64_t sent_ns = passed_ns(play, group, i, act);
		const int64_t got_ns = passed_ns(play, group, i + group->size - 1, act);
		const uint32_t member = cl_group_member(group, i);
		struct cl_rank *rank = &play->rank[member];

		leave(play, rank, act, sent_ns > got_ns ? sent_ns : got_ns);
		rank->at++;
		set_going(play, member);
	}
}

static void arrive(struct cl_play *play, struct cl_rank *rank, uint32_t number,
		   const struct cl_act *act)
{
	struct cl_group group = cl_group_of(play->s, (enum cl_group_kind)act->group, number);
	struct cl_group_state *state = &play->group[act->group][group.first];

	rank->call_ns = rank->host_ns;
	rank->arrive_ns = arrival(play, rank, act);
	rank->stalled = true;
	if (rank->arrive_ns > state->last_ns)
		state->last_ns = rank->arrive_ns;
	if (++state->arrived < group.size)
		return;
	int64_t done_ns =
		state->last_ns + (int64_t)((double)act->ns * cl_network_factor(play, act, &group));

	*state = (struct cl_group_state){0};
	if (act->op == NT_OP_SEND_RECV) {
		exchange(play, &group, act);
		return;
	}
	cl_network_collective(play, act, &group, done_ns);
	for (uint32_t i = 0; i < group.size; i++) {
		uint32_t member = cl_group_member(&group, i);
		struct cl_rank *other = &play->rank[member];

		leave(play, other, &cl_play_program(play, member)->act[other->at], done_ns);
		other->at++;
		set_going(play, member);
	}
}

static bool is_rendezvous(const struct cl_play *play)
{
	return play->s->rendezvous && play->s->mode == CL_BLOCKING;
}

/* Who waits for the message goes on. */
static void wake(struct cl_play *play, uint32_t to, const struct cl_act *act)
{
	if (play->rank[to].awaits == 1 + act->forward) {
		play->rank[to].awaits = 0;
		set_going(play, to);
	}
}

/* False: the sender waits until it is received. */
static bool send(struct cl_play *play, struct cl_rank *rank, uint32_t number,
		 const struct cl_act *act)
{
	uint32_t stage_ranks = play->s->tp * play->s->dp;
	uint32_t to = act->forward ? number + stage_ranks : number - stage_ranks;
	struct cl_inbox *inbox = &play->inbox[act->forward][to];
	int64_t ns = arrival(play, rank, act);

	if (is_rendezvous(play)) {
		rank->call_ns = ns;
		rank->stalled = true;
		inbox->at_ns[inbox->sent++] = ns;
		wake(play, to, act);
		return false;
	}
	inbox->at_ns[inbox->sent++] =
		ns + (int64_t)((double)act->ns * cl_network_pair_factor(play, number, to));
	cl_network_send(play, act, number, to, inbox->at_ns[inbox->sent - 1]);
	if (play->s->mode == CL_BLOCKING) {
		cl_record(play, rank, CL_CALL_COLLECTIVE, act, ns, ns + SEND_NS);
		rank->host_ns = ns + SEND_NS;
	} else {
		cl_record(play, rank, CL_CALL_COLLECTIVE, act, rank->host_ns, rank->host_ns);
		cl_record_busy(play, rank, act, rank->host_ns, ns, ns + SEND_NS);
		rank->host_ns += ENQUEUE_NS;
	}
	wake(play, to, act);
	return true;
}

/* False: it is not sent yet. */
static bool receive(struct cl_play *play, struct cl_rank *rank, uint32_t number,
		    const struct cl_act *act)
{
	struct cl_inbox *inbox = &play->inbox[act->forward][number];
	int64_t ns;

	if (inbox->taken == inbox->sent) {
		rank->awaits = (uint8_t)(1 + act->forward);
		rank->stalled = true;
		return false;
	}
	rank->call_ns = rank->host_ns;
	ns = rank->arrive_ns = arrival(play, rank, act);
	if (inbox->at_ns[inbox->taken] > ns)
		ns = inbox->at_ns[inbox->taken];
	inbox->taken++;
	if (is_rendezvous(play)) {
		const uint32_t stage_ranks = play->s->tp * play->s->dp;
		const uint32_t from = act->forward ? number - stage_ranks : number + stage_ranks;
		struct cl_rank *sender = &play->rank[from];

		ns += (int64_t)((double)act->ns * cl_network_pair_factor(play, from, number));
		leave(play, sender, &cl_play_program(play, from)->act[sender->at], ns);
		sender->at++;
		set_going(play, from);
	}
	leave(play, rank, act, ns);
	return true;
}

/* Kernels wait for an event behind what was gathered, or behind all. */
static void join(struct cl_play *play, struct cl_rank *rank, const struct cl_act *act)
{
	const int64_t ns = act->gathered ? rank->gathered_ns : rank->comm_ns;

	if (ns > rank->compute_ns)
		rank->compute_ns = ns;
	if (play->s->mode == CL_PLUGIN && !act->gathered)
		return;
	cl_record(play, rank, CL_CALL_RECORD, act, rank->host_ns, rank->host_ns);
	cl_record(play, rank, CL_CALL_WAIT, act, rank->host_ns + US, rank->host_ns + US);
	rank->host_ns += 2 * US;
}

static void synchronise(struct cl_play *play, struct cl_rank *rank, const struct cl_act *act)
{
	bool all = act->kind == CL_SYNC_ALL;
	int64_t entry_ns = rank->host_ns, ns = entry_ns + RETURN_NS;

	if (rank->compute_ns > ns)
		ns = rank->compute_ns;
	if (all && rank->comm_ns > ns)
		ns = rank->comm_ns;
	cl_record(play, rank, all ? CL_CALL_SYNC_ALL : CL_CALL_SYNC_LOCAL, NULL, entry_ns, ns);
	rank->host_ns = ns;
}

bool cl_act(struct cl_play *play, struct cl_rank *rank, uint32_t number, const struct cl_act *act)
{
	switch (act->kind) {
	case CL_HOST:
		rank->host.on_cpu_ns += (uint64_t)act->ns;
		rank->host_ns += (int64_t)((double)act->ns *
					   (1 + play->s->jitter * cl_gauss(&play->random)));
		break;
	case CL_COMPUTE:
		work(play, rank, number, act);
		break;
	case CL_COLLECTIVE: {
		const struct cl_fault *laggard =
			cl_effect_now(play->s, CL_LAGGARD, number, play->step);

		if (laggard) {
			rank->stuck = true;
			return false;
		}
		arrive(play, rank, number, act);
		return false; /* the last to come set it going again, itself too */
	}
	case CL_SEND:
		if (!send(play, rank, number, act))
			return false;
		break;
	case CL_RECV:
		if (!receive(play, rank, number, act))
			return false;
		break;
	case CL_JOIN:
		join(play, rank, act);
		break;
	default:
		synchronise(play, rank, act);
		break;
	}
	rank->at++;
	return true;
}
