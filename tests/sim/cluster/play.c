/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A rank is played until it needs a member of its group that is not there yet; the last to come sets
 * all of them going again. The order of play is not the order of time: each rank carries the clocks
 * of its host and of its two streams.
 */
#include "tests/sim/cluster/play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/chance.h"
#include "tests/sim/cluster/effect.h"
#include "tests/sim/cluster/program.h"

#define US         1000LL
#define REGROUP_NS 3000000000LL /* until communicators are made anew */

enum {
	ENQUEUE_NS = 8000, /* the host's part of an asynchronous call */
	LAUNCH_NS = 5000,
	LAUNCHES = 12, /* kernels of one stretch of compute */
	RETURN_NS = 3000,
	SEND_NS = 20000, /* an eager send: copied, and gone */
	LEAVE_PERCENT = 5, /* of the transfer: how far apart members leave */
};

struct group_state {
	uint32_t arrived;
	int64_t last_ns;
};

struct rank {
	size_t at; /* the act that comes next */
	int64_t host_ns, compute_ns, comm_ns; /* until when each is busy */
	int64_t call_ns, arrive_ns; /* of the call that it is in */
	int64_t start_ns; /* when its process begins */
	double nature; /* how long its kernels take, against the average */
	struct cl_calls calls;
	struct cl_busies busies;
	uint32_t nth[CL_GROUP_END][NT_OP_END]; /* calls so far */
	struct cl_host host; /* not yet told */
	uint32_t launches, sequences;
	bool stalled, gone, stuck; /* waits in play; has ended; will never arrive anywhere */
	bool away; /* belongs to the job at another time, when that has another size */
	uint8_t awaits; /* 1 + direction of the message that it waits for; 0: none */
};

/* What is on its way to a rank, in one direction. */
struct inbox {
	int64_t *at_ns; /* owned, one for each micro-batch */
	uint32_t sent, taken;
};

struct cl_play {
	const struct cl_scenario *s; /* as it is now: one of these */
	struct cl_scenario sized[2];
	struct cl_program *program[2]; /* owned, by stage; of training and of evaluation */
	struct rank *rank; /* owned */
	struct group_state *group[CL_GROUP_END]; /* owned, by first rank */
	struct inbox *inbox[2]; /* owned, by rank; backward and forward */
	uint32_t *runnable, runnables; /* owned */
	double *counted; /* by the ports of each node, owned */
	uint32_t ranks, step;
	uint64_t random;
	bool hung; /* the step did not come to its end, and no other will */
	bool failed; /* no memory */
	int64_t hung_ns;
	int64_t stands_ns; /* since when somebody waits for what never comes */
};

static const struct cl_program *program_of(const struct cl_play *play, uint32_t rank)
{
	const bool evaluates = cl_scenario_is_evaluation(play->s, play->step);

	return &play->program[evaluates][cl_stage_of(play->s, rank)];
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void put(struct cl_play *play, struct rank *rank, const struct cl_call *call)
{
	play->failed |= !cl_calls_add(&rank->calls, call);
}

static void tell_host(struct cl_play *play, struct rank *rank, int64_t start_ns, bool asleep)
{
	const struct cl_call call = {
		.kind = CL_CALL_HOST,
		.entry_ns = start_ns,
		.ret_ns = rank->host_ns,
		.asleep = asleep,
		.host = rank->host,
	};

	put(play, rank, &call);
	rank->host = (struct cl_host){0};
}

static void tell(struct cl_play *play, struct rank *rank, enum cl_call_kind kind,
		 const struct cl_act *act, int64_t entry_ns, int64_t ret_ns)
{
	const struct cl_call call = {
		.kind = (uint8_t)kind,
		.entry_ns = entry_ns,
		.ret_ns = ret_ns,
		.count = act ? act->count : 0,
		.launches = rank->launches,
		.group = act ? act->group : 0,
		.op = act ? act->op : 0,
		.overlaps = act && act->overlaps,
		.forward = act && act->forward,
		.generation = play->s == &play->sized[1],
	};

	if (rank->host.on_cpu_ns || rank->host.run_queue_ns)
		tell_host(play, rank, entry_ns, false);
	put(play, rank, &call);
}

static void note_call(struct cl_play *play, struct rank *rank, const struct cl_act *act,
		      int64_t entry_ns, int64_t start_ns, int64_t end_ns)
{
	const struct cl_busy busy = {
		.entry_ns = entry_ns,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.kernels = 1,
		.nth = ++rank->nth[act->group][act->op],
		.group = act->group,
		.op = act->op,
		.communicates = true,
		.overlaps = act->overlaps,
		.generation = play->s == &play->sized[1],
	};

	if (play->s->mode == CL_PLUGIN)
		play->failed |= !cl_busies_add(&rank->busies, &busy);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* What keeps the launching thread at the start of a step. */
static void hold_host(struct cl_play *play, struct rank *rank, uint32_t number)
{
	const struct cl_scenario *s = play->s;

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];
		double strength = cl_fault_strength(f, play->step);
		int64_t ns = (int64_t)(f->factor * strength * 1e9), start = rank->host_ns;

		if (!cl_effect_hits(s, f, number, play->step) || ns <= 0)
			continue;
		switch (f->kind) {
		case CL_LOADER:
			rank->host.read_bytes += (uint64_t)ns; /* a gigabyte a second */
			break;
		case CL_CONTENTION:
			rank->host.run_queue_ns += (uint64_t)ns;
			break;
		case CL_GC_RANK:
		case CL_GC_ALL:
			if ((play->step + (f->kind == CL_GC_ALL ? number : 0)) % 2)
				continue;
			rank->host.on_cpu_ns += (uint64_t)ns;
			rank->host.gc_ns += (uint64_t)ns;
			break;
		case CL_CHECKPOINT_RANK:
		case CL_CHECKPOINT_ALL:
			if (play->step != f->from)
				continue;
			rank->host.write_bytes += (uint64_t)ns;
			rank->host.on_cpu_ns += (uint64_t)(ns / 20);
			break;
		default:
			continue;
		}
		rank->host_ns += ns;
		tell_host(play, rank, start, f->kind != CL_GC_RANK && f->kind != CL_GC_ALL);
	}
}

/* ---- acts ----------------------------------------------------------------------------------- */

static void set_going(struct cl_play *play, uint32_t number)
{
	play->rank[number].stalled = false;
	play->runnable[play->runnables++] = number;
}

static void work(struct cl_play *play, struct rank *rank, uint32_t number, const struct cl_act *act)
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
static void leave(struct cl_play *play, struct rank *rank, const struct cl_act *act,
		  int64_t done_ns)
{
	int64_t ns = done_ns +
		     (int64_t)(cl_chance(&play->random) * LEAVE_PERCENT / 100 * (double)act->ns);

	if (play->s->mode == CL_BLOCKING) {
		tell(play, rank, CL_CALL_COLLECTIVE, act, rank->call_ns, ns);
		rank->host_ns = ns;
		return;
	}
	note_call(play, rank, act, rank->call_ns, rank->arrive_ns, ns);
	if (act->overlaps) {
		tell(play, rank, CL_CALL_RECORD, act, rank->call_ns, rank->call_ns);
		tell(play, rank, CL_CALL_WAIT, act, rank->call_ns + US, rank->call_ns + US);
		tell(play, rank, CL_CALL_COLLECTIVE, act, rank->call_ns + 2 * US,
		     rank->call_ns + 2 * US);
		rank->comm_ns = ns;
	} else {
		tell(play, rank, CL_CALL_COLLECTIVE, act, rank->call_ns, rank->call_ns);
		rank->compute_ns = ns;
	}
	rank->host_ns = rank->call_ns + ENQUEUE_NS;
	rank->host.on_cpu_ns += ENQUEUE_NS;
}

/* When the rank's part of the call begins, by whichever clock it runs on. */
static int64_t arrival(const struct cl_play *play, const struct rank *rank,
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
static int64_t passed_ns(const struct cl_play *play, const struct cl_group *group, uint32_t place,
			 const struct cl_act *act)
{
	const uint32_t from = cl_group_member(group, place % group->size);
	const uint32_t to = cl_group_member(group, (place + 1) % group->size);
	const int64_t sent_ns = play->rank[from].arrive_ns, asked_ns = play->rank[to].arrive_ns;
	const struct cl_group pair = {from < to ? from : to, from < to ? to - from : from - to, 2};

	return (sent_ns > asked_ns ? sent_ns : asked_ns) +
	       (int64_t)((double)act->ns * cl_effect_on_transfer(play->s, &pair, play->step));
}

/* Each sends to the next and receives from the one before. All have come. */
static void exchange(struct cl_play *play, const struct cl_group *group, const struct cl_act *act)
{
	for (uint32_t i = 0; i < group->size; i++) {
		const int64_t sent_ns = passed_ns(play, group, i, act);
		const int64_t got_ns = passed_ns(play, group, i + group->size - 1, act);
		const uint32_t member = cl_group_member(group, i);
		struct rank *rank = &play->rank[member];

		leave(play, rank, act, sent_ns > got_ns ? sent_ns : got_ns);
		rank->at++;
		set_going(play, member);
	}
}

static void arrive(struct cl_play *play, struct rank *rank, uint32_t number,
		   const struct cl_act *act)
{
	struct cl_group group = cl_group_of(play->s, (enum cl_group_kind)act->group, number);
	struct group_state *state = &play->group[act->group][group.first];

	rank->call_ns = rank->host_ns;
	rank->arrive_ns = arrival(play, rank, act);
	rank->stalled = true;
	if (rank->arrive_ns > state->last_ns)
		state->last_ns = rank->arrive_ns;
	if (++state->arrived < group.size)
		return;
	int64_t done_ns =
		state->last_ns +
		(int64_t)((double)act->ns * cl_effect_on_transfer(play->s, &group, play->step));

	*state = (struct group_state){0};
	if (act->op == NT_OP_SEND_RECV) {
		exchange(play, &group, act);
		return;
	}
	for (uint32_t i = 0; i < group.size; i++) {
		uint32_t member = cl_group_member(&group, i);
		struct rank *other = &play->rank[member];

		leave(play, other, &program_of(play, member)->act[other->at], done_ns);
		other->at++;
		set_going(play, member);
	}
}

static bool is_rendezvous(const struct cl_play *play)
{
	return play->s->rendezvous && play->s->mode == CL_BLOCKING;
}

static double pair_factor(const struct cl_play *play, uint32_t a, uint32_t b)
{
	const struct cl_group pair = {a < b ? a : b, a < b ? b - a : a - b, 2};

	return cl_effect_on_transfer(play->s, &pair, play->step);
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
static bool send(struct cl_play *play, struct rank *rank, uint32_t number, const struct cl_act *act)
{
	uint32_t stage_ranks = play->s->tp * play->s->dp;
	uint32_t to = act->forward ? number + stage_ranks : number - stage_ranks;
	struct inbox *inbox = &play->inbox[act->forward][to];
	int64_t ns = arrival(play, rank, act);

	if (is_rendezvous(play)) {
		rank->call_ns = ns;
		rank->stalled = true;
		inbox->at_ns[inbox->sent++] = ns;
		wake(play, to, act);
		return false;
	}
	inbox->at_ns[inbox->sent++] =
		ns + (int64_t)((double)act->ns * pair_factor(play, number, to));
	if (play->s->mode == CL_BLOCKING) {
		tell(play, rank, CL_CALL_COLLECTIVE, act, ns, ns + SEND_NS);
		rank->host_ns = ns + SEND_NS;
	} else {
		tell(play, rank, CL_CALL_COLLECTIVE, act, rank->host_ns, rank->host_ns);
		note_call(play, rank, act, rank->host_ns, ns, ns + SEND_NS);
		rank->host_ns += ENQUEUE_NS;
	}
	wake(play, to, act);
	return true;
}

/* False: it is not sent yet. */
static bool receive(struct cl_play *play, struct rank *rank, uint32_t number,
		    const struct cl_act *act)
{
	struct inbox *inbox = &play->inbox[act->forward][number];
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
		struct rank *sender = &play->rank[from];

		ns += (int64_t)((double)act->ns * pair_factor(play, number, from));
		leave(play, sender, &program_of(play, from)->act[sender->at], ns);
		sender->at++;
		set_going(play, from);
	}
	leave(play, rank, act, ns);
	return true;
}

static void synchronise(struct cl_play *play, struct rank *rank, const struct cl_act *act)
{
	bool all = act->kind == CL_SYNC_ALL;
	int64_t entry_ns = rank->host_ns, ns = entry_ns + RETURN_NS;

	if (rank->compute_ns > ns)
		ns = rank->compute_ns;
	if (all && rank->comm_ns > ns)
		ns = rank->comm_ns;
	tell(play, rank, all ? CL_CALL_SYNC_ALL : CL_CALL_SYNC_LOCAL, NULL, entry_ns, ns);
	rank->host_ns = ns;
}

/* False: the rank goes no further. */
static bool go_on(struct cl_play *play, struct rank *rank, uint32_t number,
		  const struct cl_act *act)
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
		if (rank->comm_ns > rank->compute_ns)
			rank->compute_ns = rank->comm_ns;
		break;
	default:
		synchronise(play, rank, act);
		break;
	}
	rank->at++;
	return true;
}

/* ---- hangs ---------------------------------------------------------------------------------- */

/*
 * The rank waits for what never comes. A blocking host is inside that call; another goes on to
 * enqueue, until it waits for its device.
 */
static void hang(struct cl_play *play, struct rank *rank, uint32_t number)
{
	const struct cl_program *program = program_of(play, number);
	const struct cl_fault *mismatch = cl_effect_now(play->s, CL_MISMATCH, number, play->step);

	rank->host_ns = rank->awaits ? rank->host_ns : rank->call_ns;
	if (rank->host_ns < play->stands_ns)
		play->stands_ns = rank->host_ns;
	for (bool first = true; rank->at < program->acts; rank->at++, first = false) {
		struct cl_act act = program->act[rank->at];

		if (act.kind == CL_SYNC_LOCAL || act.kind == CL_SYNC_ALL) {
			tell(play, rank,
			     act.kind == CL_SYNC_ALL ? CL_CALL_SYNC_ALL : CL_CALL_SYNC_LOCAL, NULL,
			     rank->host_ns, CL_NEVER);
			return;
		}
		if (act.kind != CL_COLLECTIVE && act.kind != CL_SEND && act.kind != CL_RECV)
			continue;
		if (first && mismatch)
			act.count *= 2;
		if (play->s->mode == CL_BLOCKING) {
			tell(play, rank, CL_CALL_COLLECTIVE, &act, rank->host_ns, CL_NEVER);
			return;
		}
		tell(play, rank, CL_CALL_COLLECTIVE, &act, rank->host_ns, rank->host_ns);
		rank->host_ns += ENQUEUE_NS;
	}
}

static void hang_all(struct cl_play *play)
{
	play->hung = true;
	play->stands_ns = INT64_MAX;
	for (uint32_t i = 0; i < play->ranks; i++) {
		struct rank *rank = &play->rank[i];

		if (rank->away)
			continue;
		if (!rank->gone && !rank->stuck && rank->at < program_of(play, i)->acts)
			hang(play, rank, i);
		if (rank->host_ns > play->hung_ns)
			play->hung_ns = rank->host_ns;
	}
}

/* Does this large collective hold its members for good? */
static bool holds(const struct cl_play *play, uint32_t number, const struct cl_act *act)
{
	const struct cl_group group = cl_group_of(play->s, (enum cl_group_kind)act->group, number);

	if (act->kind != CL_COLLECTIVE || act->count <= 1000)
		return false;
	for (size_t i = 0; i < play->s->faults; i++) {
		const struct cl_fault *f = &play->s->fault[i];

		if (f->from != play->step)
			continue;
		if (f->kind == CL_NETWORK_HANG ||
		    (f->kind == CL_MISMATCH && cl_group_has(&group, f->target)))
			return true;
	}
	return false;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void run(struct cl_play *play, uint32_t number)
{
	const struct cl_program *program = program_of(play, number);
	struct rank *rank = &play->rank[number];

	while (rank->at < program->acts) {
		const struct cl_act *act = &program->act[rank->at];

		if (holds(play, number, act)) {
			rank->call_ns = rank->host_ns;
			return;
		}
		if (!go_on(play, rank, number, act))
			return;
	}
}

static void begin(struct cl_play *play, uint32_t number)
{
	struct rank *rank = &play->rank[number];

	for (int i = 0; i < 2; i++)
		play->inbox[i][number].sent = play->inbox[i][number].taken = 0;
	if (cl_effect_now(play->s, CL_EXIT, number, play->step)) {
		tell(play, rank, CL_CALL_EXIT, NULL, rank->host_ns, rank->host_ns);
		rank->gone = true;
		return;
	}
	rank->at = 0;
	hold_host(play, rank, number);
}

/* ---- size ----------------------------------------------------------------------------------- */

static bool belongs(const struct cl_play *play, uint32_t number)
{
	return number < cl_scenario_ranks(play->s);
}

/* Those who leave end, those who stay make their communicators anew with those who come. */
static void resize(struct cl_play *play)
{
	int64_t last_ns = 0;

	play->s = &play->sized[1];
	for (uint32_t i = 0; i < play->ranks; i++)
		if (!play->rank[i].away && play->rank[i].host_ns > last_ns)
			last_ns = play->rank[i].host_ns;
	for (uint32_t i = 0; i < play->ranks; i++) {
		struct rank *rank = &play->rank[i];

		if (!rank->away && !belongs(play, i))
			tell(play, rank, CL_CALL_EXIT, NULL, rank->host_ns, rank->host_ns);
		if (rank->away && belongs(play, i))
			rank->start_ns = last_ns + REGROUP_NS / 2;
		rank->away = !belongs(play, i);
		rank->host_ns = rank->compute_ns = rank->comm_ns = last_ns + REGROUP_NS;
		memset(rank->nth, 0, sizeof(rank->nth));
	}
}

/* ---- counters ------------------------------------------------------------------------------- */

/* A second of the step's length; those who send to a node that drops packets send again, too. */
static void count(struct cl_play *play)
{
	static const double often = 2000, seldom = 150, usual = 6;
	const struct cl_scenario *s = play->s;

	for (uint32_t node = 0; node < cl_scenario_nodes(s) && s->counters; node++) {
		double rate = usual * cl_chance(&play->random);

		for (size_t i = 0; i < s->faults; i++) {
			const struct cl_fault *f = &s->fault[i];
			const double strength = cl_fault_strength(f, play->step);
			const bool is_end =
				node == f->target || (f->kind == CL_PATH && node == f->peer);

			if (f->kind == CL_COUNTERS && node == f->target)
				rate += f->factor * strength;
			else if ((f->kind == CL_NIC || f->kind == CL_PATH) && is_end)
				rate += often * strength * (0.7 + 0.6 * cl_chance(&play->random));
			else if (f->kind == CL_NIC)
				rate += seldom * strength * cl_chance(&play->random);
		}
		play->counted[node] += rate * s->step_s;
	}
}

uint64_t cl_play_counted(const struct cl_play *play, uint32_t node)
{
	return (uint64_t)play->counted[node];
}

int cl_play_step(struct cl_play *play)
{
	bool ended = true;

	if (play->hung) {
		play->hung_ns += (int64_t)(play->s->step_s * 1e9);
		play->step++;
		return 0;
	}
	if (play->s->resize && play->step == play->s->resize)
		resize(play);
	count(play);
	for (uint32_t i = 0; i < play->ranks; i++)
		if (!play->rank[i].away)
			begin(play, i);
	play->runnables = 0;
	/* Nobody runs before all have begun: messages must not be swept away. */
	for (uint32_t i = play->ranks; i-- > 0;) {
		if (!play->rank[i].gone && !play->rank[i].away)
			play->runnable[play->runnables++] = i;
	}
	while (play->runnables)
		run(play, play->runnable[--play->runnables]);
	for (uint32_t i = 0; i < play->ranks; i++)
		ended &= play->rank[i].away ||
			 (play->rank[i].at == program_of(play, i)->acts && !play->rank[i].gone);
	if (!ended)
		hang_all(play);
	play->step++;
	return play->failed ? -ENOMEM : 0;
}

int64_t cl_play_known_ns(const struct cl_play *play)
{
	int64_t known = INT64_MAX;

	if (play->hung)
		return play->hung_ns;
	for (uint32_t i = 0; i < play->ranks; i++) {
		if (!play->rank[i].away && play->rank[i].host_ns < known)
			known = play->rank[i].host_ns;
	}
	return known;
}

bool cl_play_stands(const struct cl_play *play, int64_t *ret_since_ns)
{
	*ret_since_ns = play->stands_ns;
	return play->hung;
}

int64_t cl_play_start_ns(const struct cl_play *play, uint32_t rank)
{
	return play->rank[rank].start_ns;
}

struct cl_calls *cl_play_calls(struct cl_play *play, uint32_t rank)
{
	return &play->rank[rank].calls;
}

struct cl_busies *cl_play_busies(struct cl_play *play, uint32_t rank)
{
	return &play->rank[rank].busies;
}

/* ---- making --------------------------------------------------------------------------------- */

static int make_inboxes(struct cl_play *play)
{
	for (int i = 0; i < 2; i++) {
		play->inbox[i] = calloc(play->ranks, sizeof(struct inbox));
		if (!play->inbox[i])
			return -ENOMEM;
		for (uint32_t r = 0; r < play->ranks; r++) {
			play->inbox[i][r].at_ns = calloc(play->s->microbatches, sizeof(int64_t));
			if (!play->inbox[i][r].at_ns)
				return -ENOMEM;
		}
	}
	return 0;
}

static int make_programs(struct cl_play *play)
{
	int r = 0;

	for (int evaluates = 0; evaluates < 2 && r == 0; evaluates++)
		r = cl_programs_build(play->s, evaluates, &play->program[evaluates]);
	return r;
}

static int make(struct cl_play *play)
{
	for (int i = 0; i < CL_GROUP_END; i++) {
		play->group[i] = calloc(play->ranks, sizeof(struct group_state));
		if (!play->group[i])
			return -ENOMEM;
	}
	/* Of all nodes that it ever has, and those are no more. */
	play->counted = calloc(play->ranks, sizeof(*play->counted));
	if (!play->counted)
		return -ENOMEM;
	play->rank = calloc(play->ranks, sizeof(*play->rank));
	play->runnable = calloc(play->ranks, sizeof(*play->runnable));
	if (!play->rank || !play->runnable)
		return -ENOMEM;
	for (uint32_t i = 0; i < play->ranks; i++) {
		play->rank[i].nature = 1 + play->s->spread * cl_gauss(&play->random);
		play->rank[i].host_ns =
			(int64_t)(cl_chance(&play->random) *
				  (play->s->start_s > 0 ? play->s->start_s * 1e9 : 5e6));
		play->rank[i].start_ns = play->s->start_s > 0 ? play->rank[i].host_ns : 0;
		play->rank[i].away = !belongs(play, i);
		if (play->rank[i].away)
			play->rank[i].start_ns = INT64_MAX;
	}
	return make_programs(play) < 0 ? -ENOMEM : make_inboxes(play);
}

int cl_play_new(const struct cl_scenario *scenario, struct cl_play **ret_play)
{
	struct cl_play *play = calloc(1, sizeof(*play));
	int r;

	if (!play)
		return -ENOMEM;
	for (int i = 0; i < 2; i++)
		play->sized[i] = cl_scenario_sized(scenario, i);
	play->s = &play->sized[0];
	play->ranks = cl_scenario_ranks(scenario);
	play->random = scenario->seed * 0x2545f4914f6cdd1dULL;
	r = make(play);
	if (r < 0) {
		cl_play_free(play);
		return r;
	}
	*ret_play = play;
	return 0;
}

void cl_play_free(struct cl_play *play)
{
	if (!play)
		return;
	for (int evaluates = 0; evaluates < 2; evaluates++)
		cl_programs_free(play->program[evaluates], play->s->pp);
	for (uint32_t i = 0; i < play->ranks; i++) {
		if (play->rank) {
			free(play->rank[i].calls.call);
			free(play->rank[i].busies.busy);
		}
		for (int d = 0; d < 2; d++) {
			if (play->inbox[d])
				free(play->inbox[d][i].at_ns);
		}
	}
	for (int i = 0; i < CL_GROUP_END; i++)
		free(play->group[i]);
	free(play->inbox[0]);
	free(play->inbox[1]);
	free(play->runnable);
	free(play->counted);
	free(play->rank);
	free(play);
}
