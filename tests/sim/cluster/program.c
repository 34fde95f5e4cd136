/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/program.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/sim/cluster/traffic.h"

/* Shares of a healthy step. What is left is waiting. */
#define HOST_SHARE     0.03
#define COMPUTE_SHARE  0.75
#define TRANSFER_SHARE 0.15
#define UPDATE_SHARE   0.02

enum {
	LOSS_ELEMENTS = 4,
	LOSS_NS = 60000,
};

struct builder {
	const struct cl_scenario *s;
	struct cl_program program;
	uint32_t stage;
	bool failed;
};

static void add(struct builder *b, struct cl_act act)
{
	struct cl_program *p = &b->program;

	if (p->acts == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		struct cl_act *grown = reallocarray(p->act, room, sizeof(*grown));

		if (!grown) {
			b->failed = true;
			return;
		}
		p->act = grown;
		p->room = room;
	}
	p->act[p->acts++] = act;
}

static int64_t share(const struct builder *b, double part, uint32_t of)
{
	return (int64_t)(b->s->step_s * 1e9 * part / of);
}

static void collective(struct builder *b, enum cl_group_kind group, enum nt_op op, uint32_t count,
		       int64_t ns, bool overlaps)
{
	add(b, (struct cl_act){.kind = CL_COLLECTIVE,
			       .group = (uint8_t)group,
			       .op = (uint8_t)op,
			       .overlaps = overlaps,
			       .count = count,
			       .ns = ns});
}

static void pass(struct builder *b, enum cl_act_kind kind, bool forward)
{
	uint32_t s = b->s->pp;
	bool first = b->stage == 0, last = b->stage == s - 1;

	/* The ends of the pipeline have one neighbour only. */
	if ((kind == CL_SEND) == forward ? last : first)
		return;
	add(b, (struct cl_act){.kind = (uint8_t)kind,
			       .group = CL_PIPELINE,
			       .op = kind == CL_SEND ? NT_OP_SEND : NT_OP_RECV,
			       .forward = forward,
			       .count = CL_LAYER_ELEMENTS,
			       .ns = share(b, 0.01, b->s->microbatches)});
}

/* Where transfers hide behind it there is more of it: steps last about as long with all hosts. */
static double compute_share(const struct cl_scenario *s)
{
	bool hides = s->mode == CL_PLUGIN && s->dp > 1 && !s->sharded;

	return COMPUTE_SHARE + (hides ? TRANSFER_SHARE / 2 : 0);
}

/* How many calls of the layers share the time of transfer. */
static uint32_t layer_calls(const struct cl_scenario *s)
{
	uint32_t each = (s->tp > 1) + (s->ep > 1) + (s->sharded && s->dp > 1);

	return each ? 2 * each * s->layers * s->microbatches : 1;
}

static bool prefetches(const struct cl_scenario *s)
{
	return s->structure.prefetch && s->dp > 1 && s->mode != CL_BLOCKING;
}

/* Weights are there before the kernels, and the next ones are on their way beside them. */
static void gather(struct builder *b, uint32_t index, int64_t ns)
{
	const struct cl_scenario *s = b->s;

	if (!prefetches(s)) {
		collective(b, CL_DATA, NT_OP_ALL_GATHER, CL_LAYER_ELEMENTS, ns, false);
		return;
	}
	if (index == 0)
		collective(b, CL_DATA, NT_OP_ALL_GATHER, CL_LAYER_ELEMENTS, ns, true);
	add(b, (struct cl_act){.kind = CL_JOIN, .gathered = true});
	if (index + 1 < s->layers)
		collective(b, CL_DATA, NT_OP_ALL_GATHER, CL_LAYER_ELEMENTS, ns, true);
}

static void layer(struct builder *b, uint32_t index, bool backward)
{
	const struct cl_scenario *s = b->s;
	int64_t ns = share(b, TRANSFER_SHARE / 2, layer_calls(s));
	/* The backward pass takes twice as long. */
	double part = compute_share(s) * (backward ? 2 : 1) / 3;

	if (s->sharded && s->dp > 1)
		gather(b, index, ns);
	add(b,
	    (struct cl_act){.kind = CL_COMPUTE, .ns = share(b, part, s->layers * s->microbatches)});
	if (s->tp > 1)
		collective(b, CL_TENSOR, NT_OP_ALL_REDUCE, CL_LAYER_ELEMENTS, ns, false);
	if (s->ep > 1)
		collective(b, CL_EXPERT, NT_OP_ALL_TO_ALL, CL_LAYER_ELEMENTS / 2, ns, false);
	if (backward && s->sharded && s->dp > 1)
		collective(b, CL_DATA, NT_OP_REDUCE_SCATTER, CL_LAYER_ELEMENTS, ns, prefetches(s));
}

/*
 * The gradients of a bucket, beside the computing of the next layers where hosts run ahead; else all
 * of them behind it.
 */
static void reduce(struct builder *b, uint32_t buckets)
{
	const struct cl_scenario *s = b->s;

	for (uint32_t i = 0; i < buckets && s->dp > 1 && !s->sharded; i++)
		collective(b, CL_DATA, cl_traffic_is_ring(s) ? NT_OP_SEND_RECV : NT_OP_ALL_REDUCE,
			   CL_GRADIENT_ELEMENTS / s->buckets,
			   share(b, TRANSFER_SHARE / 2, s->buckets), true);
}

/* How many buckets are full after so many layers backward. */
static uint32_t full_buckets(const struct cl_scenario *s, uint32_t layers)
{
	return s->mode == CL_PLUGIN ? layers * s->buckets / s->layers : 0;
}

static void build(struct builder *b, enum cl_step_kind kind)
{
	const struct cl_scenario *s = b->s;
	const bool joins = s->mode == CL_PLUGIN || kind == CL_STEP_AHEAD || prefetches(s);
	uint32_t reduced = 0;

	if (kind == CL_STEP_SAVED)
		collective(b, CL_WORLD, NT_OP_ALL_REDUCE, 1, LOSS_NS, false);

	add(b, (struct cl_act){.kind = CL_HOST, .ns = share(b, HOST_SHARE, 1)});
	for (int backward = 0; backward < 2; backward++) {
		for (uint32_t m = 0; m < s->microbatches; m++) {
			pass(b, CL_RECV, !backward);
			for (uint32_t l = 0; l < s->layers; l++) {
				layer(b, l, backward);
				if (!backward || m + 1 < s->microbatches)
					continue;
				reduce(b, full_buckets(s, l + 1) - reduced);
				reduced = full_buckets(s, l + 1);
			}
			pass(b, CL_SEND, !backward);
		}
	}
	if (s->mode == CL_LOCAL_SYNC)
		add(b, (struct cl_act){.kind = CL_SYNC_LOCAL});
	reduce(b, s->buckets - reduced);
	if (joins)
		add(b, (struct cl_act){.kind = CL_JOIN});
	else if (s->mode != CL_BLOCKING)
		add(b, (struct cl_act){.kind = CL_SYNC_ALL});
	add(b, (struct cl_act){.kind = CL_COMPUTE, .ns = share(b, UPDATE_SHARE, 1)});
	if (s->aligned_end)
		collective(b, CL_WORLD, NT_OP_ALL_REDUCE, LOSS_ELEMENTS, LOSS_NS, false);
	if (s->mode != CL_BLOCKING && kind != CL_STEP_AHEAD)
		add(b, (struct cl_act){.kind = CL_SYNC_ALL});
}

/* Forward alone, and what came of it is summed up. */
static void evaluate(struct builder *b)
{
	const struct cl_scenario *s = b->s;

	add(b, (struct cl_act){.kind = CL_HOST, .ns = share(b, HOST_SHARE, 1)});
	for (uint32_t m = 0; m < s->microbatches; m++) {
		pass(b, CL_RECV, true);
		for (uint32_t l = 0; l < s->layers; l++)
			layer(b, l, false);
		pass(b, CL_SEND, true);
	}
	collective(b, CL_WORLD, NT_OP_ALL_REDUCE, LOSS_ELEMENTS, LOSS_NS, false);
	if (s->mode != CL_BLOCKING)
		add(b, (struct cl_act){.kind = CL_SYNC_ALL});
}

static int build_stage(const struct cl_scenario *scenario, uint32_t stage, enum cl_step_kind kind,
		       struct cl_program *ret_program)
{
	struct builder b = {.s = scenario, .stage = stage};

	if (kind == CL_STEP_EVALUATION)
		evaluate(&b);
	else
		build(&b, kind);
	if (b.failed) {
		free(b.program.act);
		return -ENOMEM;
	}
	*ret_program = b.program;
	return 0;
}

void cl_programs_free(struct cl_program *programs, uint32_t stages)
{
	for (uint32_t i = 0; programs && i < stages; i++)
		free(programs[i].act);
	free(programs);
}

int cl_programs_build(const struct cl_scenario *scenario, enum cl_step_kind kind,
		      struct cl_program **ret_programs)
{
	struct cl_program *programs = calloc(scenario->pp, sizeof(*programs));
	int r = programs ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < scenario->pp && r == 0; i++)
		r = build_stage(scenario, i, kind, &programs[i]);
	if (r < 0) {
		cl_programs_free(programs, scenario->pp);
		return r;
	}
	*ret_programs = programs;
	return 0;
}
