/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A rank is played until it needs a member of its group that is not there yet; the last to come sets
 * all of them going again. The order of play is not the order of time: each rank carries the clocks
 * of its host and of its two streams.
 */
#include "tests/sim/cluster/play/play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/cluster/chance.h"
#include "tests/sim/cluster/effect.h"
#include "tests/sim/cluster/play/network.h"
#include "tests/sim/cluster/play/state.h"

#define REGROUP_NS 3000000000LL /* until communicators are made anew */

const struct cl_program *cl_play_program(const struct cl_play *play, uint32_t rank)
{
	const enum cl_step_kind kind = cl_scenario_step_kind(play->s, play->step);

	return &play->program[kind][cl_stage_of(play->s, rank)];
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* What keeps the launching thread at the start of a step. */
static void hold_host(struct cl_play *play, struct cl_rank *rank, uint32_t number)
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
		cl_record_host(play, rank, start, f->kind != CL_GC_RANK && f->kind != CL_GC_ALL);
	}
}

/* A checkpoint: each writes its share, and they do not end together. */
static void save(struct cl_play *play, struct cl_rank *rank, uint32_t number)
{
	const int64_t start_ns = rank->host_ns;
	const int64_t ns = cl_effect_of_saving_ns(play->s, number, play->step);

	rank->host.write_bytes += (uint64_t)ns;
	rank->host.on_cpu_ns += (uint64_t)(ns / 20);
	rank->host_ns += ns;
	cl_record_host(play, rank, start_ns, true);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void run(struct cl_play *play, uint32_t number)
{
	const struct cl_program *program = cl_play_program(play, number);
	struct cl_rank *rank = &play->rank[number];

	while (rank->at < program->acts) {
		const struct cl_act *act = &program->act[rank->at];

		if (cl_hang_holds(play, number, act)) {
			rank->call_ns = rank->host_ns;
			return;
		}
		if (!cl_act(play, rank, number, act))
			return;
	}
}

static void begin(struct cl_play *play, uint32_t number)
{
	struct cl_rank *rank = &play->rank[number];

	for (int i = 0; i < 2; i++)
		play->inbox[i][number].sent = play->inbox[i][number].taken = 0;
	if (cl_effect_now(play->s, CL_EXIT, number, play->step)) {
		cl_record(play, rank, CL_CALL_EXIT, NULL, rank->host_ns, rank->host_ns);
		rank->gone = true;
		return;
	}
	rank->at = 0;
	if (cl_scenario_step_kind(play->s, play->step) == CL_STEP_SAVED)
		save(play, rank, number);
	hold_host(play, rank, number);
}

/* ---- size ------------------------------------------------------------------------------------ */

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
		struct cl_rank *rank = &play->rank[i];

		if (!rank->away && !belongs(play, i))
			cl_record(play, rank, CL_CALL_EXIT, NULL, rank->host_ns, rank->host_ns);
		if (rank->away && belongs(play, i))
			rank->start_ns = last_ns + REGROUP_NS / 2;
		rank->away = !belongs(play, i);
		rank->host_ns = rank->compute_ns = rank->comm_ns = last_ns + REGROUP_NS;
		memset(rank->nth, 0, sizeof(rank->nth));
	}
}

/* ---- counters -------------------------------------------------------------------------------- */

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
	cl_network_step(play);
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
		ended &=
			play->rank[i].away ||
			(play->rank[i].at == cl_play_program(play, i)->acts && !play->rank[i].gone);
	if (!ended)
		cl_hang_all(play);
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

struct cl_sents *cl_play_sent(struct cl_play *play, uint32_t rank)
{
	return &play->rank[rank].sent;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make_inboxes(struct cl_play *play)
{
	for (int i = 0; i < 2; i++) {
		play->inbox[i] = calloc(play->ranks, sizeof(struct cl_inbox));
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

	for (int kind = 0; kind < CL_STEP_END && r == 0; kind++)
		r = cl_programs_build(play->s, (enum cl_step_kind)kind, &play->program[kind]);
	return r;
}

static int make(struct cl_play *play)
{
	for (int i = 0; i < CL_GROUP_END; i++) {
		play->group[i] = calloc(play->ranks, sizeof(struct cl_group_state));
		if (!play->group[i])
			return -ENOMEM;
	}
	/* Of all nodes that it ever has, and those are no more. */
	play->counted = calloc(play->ranks, sizeof(*play->counted));
	if (!play->counted || !cl_network_new(play))
		return -ENOMEM;
	play->rank = calloc(play->ranks, sizeof(*play->rank));
	play->runnable = calloc(play->ranks, sizeof(*play->runnable));
	if (!play->rank || !play->runnable)
		return -ENOMEM;
	for (uint32_t i = 0; i < play->ranks; i++) {
		play->rank[i].nature = (1 + play->s->spread * cl_gauss(&play->random)) *
				       cl_effect_of_nature(play->s, i);
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
	for (int kind = 0; kind < CL_STEP_END; kind++)
		cl_programs_free(play->program[kind], play->s->pp);
	for (uint32_t i = 0; i < play->ranks; i++) {
		if (play->rank) {
			free(play->rank[i].calls.call);
			free(play->rank[i].busies.busy);
			free(play->rank[i].sent.sent);
		}
		for (int d = 0; d < 2; d++) {
			if (play->inbox[d])
				free(play->inbox[d][i].at_ns);
		}
	}
	cl_network_free(play);
	for (int i = 0; i < CL_GROUP_END; i++)
		free(play->group[i]);
	free(play->inbox[0]);
	free(play->inbox[1]);
	free(play->runnable);
	free(play->counted);
	free(play->rank);
	free(play);
}
