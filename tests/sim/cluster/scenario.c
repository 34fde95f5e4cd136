/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "tests/sim/cluster/chance.h"

static const char *const fault_names[CL_FAULT_END] = {
	[CL_COMPUTE_RANK] = "compute",
	[CL_COMPUTE_NODE] = "compute-node",
	[CL_COMPUTE_HALF] = "compute-half",
	[CL_BATCH] = "batch",
	[CL_LATE_STAGE] = "stage",
	[CL_UNEVEN] = "uneven",
	[CL_LOADER] = "loader",
	[CL_CONTENTION] = "contention",
	[CL_GC_RANK] = "gc",
	[CL_GC_ALL] = "gc-all",
	[CL_CHECKPOINT_RANK] = "checkpoint",
	[CL_CHECKPOINT_ALL] = "checkpoint-all",
	[CL_NIC] = "nic",
	[CL_PATH] = "path",
	[CL_EXIT] = "exit",
	[CL_LAGGARD] = "laggard",
	[CL_MISMATCH] = "mismatch",
	[CL_NETWORK_HANG] = "network-hang",
	[CL_AGENT_DIES] = "agent-dies",
	[CL_AGENT_RESTARTS] = "agent-restarts",
	[CL_COUNTERS] = "counters",
	[CL_SWITCH] = "switch",
};

static const char *const mode_names[CL_MODE_END] = {
	[CL_BLOCKING] = "blocking",
	[CL_LOCAL_SYNC] = "local-sync",
	[CL_ASYNC] = "async",
	[CL_PLUGIN] = "plugin",
};

const char *cl_mode_name(enum cl_mode mode)
{
	return mode < CL_MODE_END ? mode_names[mode] : "";
}

int cl_mode_parse(const char *text, enum cl_mode *ret_mode)
{
	for (int i = 0; i < CL_MODE_END; i++) {
		if (strcmp(text, mode_names[i]) == 0) {
			*ret_mode = (enum cl_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *cl_fault_name(enum cl_fault_kind kind)
{
	return kind < CL_FAULT_END ? fault_names[kind] : "";
}

struct cl_scenario cl_scenario_default(void)
{
	return (struct cl_scenario){
		.seed = 1,
		.tp = 1,
		.dp = 8,
		.pp = 1,
		.ep = 1,
		.aligned_end = true,
		.node_ranks = 8,
		.stride = 1,
		.mode = CL_BLOCKING,
		.steps = 60,
		.layers = 8,
		.microbatches = 1,
		.buckets = 4,
		.step_s = 0.6,
		.jitter = 0.002,
		.window_s = 0.5,
		.weather = {.late_s = 2},
	};
}

uint32_t cl_scenario_ranks(const struct cl_scenario *scenario)
{
	return scenario->tp * scenario->dp * scenario->pp;
}

uint32_t cl_scenario_nodes(const struct cl_scenario *scenario)
{
	return (cl_scenario_ranks(scenario) + scenario->node_ranks - 1) / scenario->node_ranks;
}

uint32_t cl_scenario_node_of(const struct cl_scenario *scenario, uint32_t rank)
{
	const uint64_t place = (uint64_t)rank * scenario->stride % cl_scenario_ranks(scenario);

	return (uint32_t)place / scenario->node_ranks;
}

uint32_t cl_scenario_ranks_on(const struct cl_scenario *scenario, uint32_t node)
{
	const uint32_t first = node * scenario->node_ranks;
	const uint32_t left = cl_scenario_ranks(scenario) - first;

	return left < scenario->node_ranks ? left : scenario->node_ranks;
}

/* What times `n` is 1, modulo `of`; 0: nothing, they have a divisor in common. By Euclid. */
static uint32_t inverse(uint32_t n, uint32_t of)
{
	int64_t before = of, now = n % of, factor_before = 0, factor = 1;

	while (now > 0) {
		const int64_t times = before / now, rest = before % now;
		const int64_t next = factor_before - times * factor;

		before = now;
		now = rest;
		factor_before = factor;
		factor = next;
	}
	if (before != 1)
		return 0;
	return (uint32_t)((factor_before % of + of) % of);
}

uint32_t cl_scenario_rank_on(const struct cl_scenario *scenario, uint32_t node, uint32_t place)
{
	const uint32_t ranks = cl_scenario_ranks(scenario);
	const uint64_t at = (uint64_t)node * scenario->node_ranks + place;

	if (scenario->stride == 1)
		return (uint32_t)at;
	return (uint32_t)(at * inverse(scenario->stride, ranks) % ranks);
}

/* Of this node alone, the same in every run. */
static uint64_t node_chance(const struct cl_scenario *scenario, uint32_t node, uint64_t what)
{
	return nt_hash_mix(nt_hash_u64(nt_hash_mix(scenario->seed + what), node));
}

bool cl_scenario_can_have_proxies(const struct cl_scenario *scenario)
{
	return scenario->mode == CL_PLUGIN || scenario->mode == CL_ASYNC;
}

bool cl_scenario_is_bare(const struct cl_scenario *scenario, uint32_t node)
{
	return (double)(node_chance(scenario, node, 0xba) >> 11) * 0x1p-53 < scenario->bare;
}

uint32_t cl_scenario_agent_step(const struct cl_scenario *scenario, uint32_t node)
{
	if (!scenario->late_agents)
		return 0;
	return 1 + (uint32_t)(node_chance(scenario, node, 0x1a) % scenario->late_agents);
}

bool cl_scenario_is_evaluation(const struct cl_scenario *scenario, uint32_t step)
{
	const uint32_t every = scenario->evaluate_every;

	return every && step % every + scenario->evaluation >= every;
}

enum cl_step_kind cl_scenario_step_kind(const struct cl_scenario *scenario, uint32_t step)
{
	const struct cl_structure *t = &scenario->structure;
	const bool runs_ahead = scenario->mode == CL_ASYNC || scenario->mode == CL_PLUGIN;

	if (cl_scenario_is_evaluation(scenario, step))
		return CL_STEP_EVALUATION;
	if (t->save_every && step && step % t->save_every == 0)
		return CL_STEP_SAVED;
	if (t->ahead && runs_ahead && (step + 1) % t->ahead)
		return CL_STEP_AHEAD;
	return CL_STEP_TRAINING;
}

struct cl_scenario cl_scenario_sized(const struct cl_scenario *scenario, bool afterwards)
{
	struct cl_scenario sized = *scenario;

	if (scenario->resize)
		sized.dp = afterwards ? scenario->dp_after : scenario->dp_before;
	return sized;
}

/* Ranks keep their numbers and nodes, as those that come or go are the last ones. */
static bool can_resize(const struct cl_scenario *s)
{
	return s->dp_before && s->dp_after &&
	       s->dp == (s->dp_before > s->dp_after ? s->dp_before : s->dp_after) && s->pp == 1 &&
	       s->ep == 1 && s->stride == 1 && s->mode != CL_BLOCKING;
}

const char *cl_scenario_check(const struct cl_scenario *s)
{
	uint64_t ranks = (uint64_t)s->tp * s->dp * s->pp;

	if (!s->tp || !s->dp || !s->pp || ranks > CL_MAX_RANKS)
		return "tp x dp x pp must be 1 to 131072 ranks";
	if (!s->ep || s->dp % s->ep)
		return "ep must divide dp";
	if (!s->node_ranks || s->node_ranks > 64)
		return "a node has 1 to 64 ranks";
	if (s->stride != 1 && !inverse(s->stride, (uint32_t)ranks))
		return "stride and ranks must have no divisor in common";
	if (s->evaluate_every && s->evaluation >= s->evaluate_every)
		return "there must be steps between evaluations";
	if (!(s->bare >= 0 && s->bare <= 1) || !(s->start_s >= 0 && s->start_s < 3600))
		return "bare is a share, and the start takes less than an hour";
	if (s->resize && !can_resize(s))
		return "what changes its size has replicas alone, numbered by node, and no MPI";
	if (!s->steps || !s->layers || !s->microbatches || !s->buckets)
		return "steps, layers, microbatches and buckets must be 1 at least";
	if (s->structure.prefetch && !s->sharded)
		return "only sharded weights are gathered ahead";
	if (!(s->structure.shares < 1) || !(s->structure.fleet < 0.1) ||
	    !(s->structure.save_s < 3600))
		return "shares are below 1, a fleet's spread below 0.1, and a checkpoint takes less "
		       "than an hour";
	if (s->structure.phase && !(s->structure.phase_factor > 0.1))
		return "a phase has a factor";
	if (s->proxies && !s->fabric)
		return "what proxies send goes over a fabric";
	if (s->fabric && !cl_scenario_can_have_proxies(s))
		return "only jobs of NCCL whose hosts run ahead have a fabric";
	if (!(s->step_s > 0) || !(s->jitter >= 0 && s->jitter < 0.5))
		return "a step takes some time, and jitter is less than a half";
	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];
		bool of_node = f->kind == CL_COMPUTE_NODE || f->kind == CL_CONTENTION ||
			       f->kind == CL_NIC || f->kind == CL_PATH ||
			       f->kind == CL_AGENT_DIES || f->kind == CL_AGENT_RESTARTS ||
			       f->kind == CL_COUNTERS || f->kind == CL_SWITCH;
		uint32_t targets = of_node                    ? cl_scenario_nodes(s)
				   : f->kind == CL_LATE_STAGE ? s->pp
							      : (uint32_t)ranks;

		if (f->target >= targets || f->peer >= targets)
			return "a fault's target does not exist";
	}
	return NULL;
}

static bool read_number(char **at, double *ret_number)
{
	char *end;

	*ret_number = strtod(*at, &end);
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static bool read_count(char **at, uint32_t *ret_count)
{
	double number;

	if (!read_number(at, &number) || !(number >= 0 && number < UINT32_MAX) ||
	    number != (double)(uint32_t)number)
		return false;
	*ret_count = (uint32_t)number;
	return true;
}

static bool read_word(char **at, const char *word)
{
	size_t len = strlen(word);

	while (**at == ' ')
		++*at;
	if (strncmp(*at, word, len) != 0 || ((*at)[len] && (*at)[len] != ' '))
		return false;
	*at += len;
	return true;
}

int cl_fault_parse(const char *text, struct cl_fault *ret_fault, const char **why)
{
	struct cl_fault fault = {.kind = CL_FAULT_END, .until = UINT32_MAX};
	char copy[256], *at = copy;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	for (int i = 0; i < CL_FAULT_END && fault.kind == CL_FAULT_END; i++) {
		if (read_word(&at, fault_names[i]))
			fault.kind = (enum cl_fault_kind)i;
	}
	*why = "no such fault";
	if (fault.kind == CL_FAULT_END)
		return -EINVAL;
	*why = "NAME TARGET[,PEER] FACTOR from STEP [until STEP] [ramp STEPS] [on N of M [at random]]";
	if (!read_count(&at, &fault.target))
		return -EINVAL;
	if (*at == ',') {
		at++;
		if (!read_count(&at, &fault.peer))
			return -EINVAL;
	}
	if (!read_number(&at, &fault.factor) || !read_word(&at, "from") ||
	    !read_count(&at, &fault.from))
		return -EINVAL;
	if (read_word(&at, "until") && !read_count(&at, &fault.until))
		return -EINVAL;
	if (read_word(&at, "ramp") && !read_count(&at, &fault.ramp))
		return -EINVAL;
	if (read_word(&at, "on")) {
		if (!read_count(&at, &fault.on) || !read_word(&at, "of") ||
		    !read_count(&at, &fault.of))
			return -EINVAL;
		fault.random = read_word(&at, "at random");
	}
	while (*at == ' ')
		at++;
	if (*at)
		return -EINVAL;
	*ret_fault = fault;
	return 0;
}

/* Of this step, from 0 to `of`: by turns, or drawn. */
static uint32_t place_in_turn(const struct cl_fault *fault, uint32_t age)
{
	uint64_t random = nt_hash_mix(((uint64_t)fault->target << 32) + fault->from);

	if (!fault->random)
		return age % fault->of;
	random = nt_hash_mix(random + age);
	return (uint32_t)(cl_chance(&random) * fault->of);
}

double cl_fault_strength(const struct cl_fault *fault, uint32_t step)
{
	uint32_t age;

	if (step < fault->from || step >= fault->until)
		return 0;
	age = step - fault->from;
	if (fault->of && place_in_turn(fault, age) >= fault->on)
		return 0;
	return age < fault->ramp ? (age + 1.0) / (fault->ramp + 1.0) : 1;
}
