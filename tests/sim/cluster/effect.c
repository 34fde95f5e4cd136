/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/effect.h"

#include <math.h>

#include "common/base/hash.h"
#include "tests/sim/cluster/chance.h"

/* Of this number in this step alone: the same with and without the faults. */
static uint64_t random_of(const struct cl_scenario *s, uint32_t number, uint32_t step,
			  uint64_t what)
{
	return nt_hash_mix(nt_hash_u64(nt_hash_mix(s->seed + what), (uint64_t)step << 32 | number));
}

double cl_effect_of_nature(const struct cl_scenario *s, uint32_t rank)
{
	static const double tail = 0.05, slowest = 0.08, most = 1.09;
	uint64_t random = random_of(s, rank, 0, 0xf1ee7);
	double factor = 1;

	if (s->structure.fleet > 0) {
		factor = exp(s->structure.fleet * cl_gauss(&random));
		if (cl_chance(&random) < tail)
			factor *= 1 + slowest * cl_chance(&random);
	}
	return fmin(factor, most); /* beyond that it is a fault */
}

int64_t cl_effect_of_saving_ns(const struct cl_scenario *s, uint32_t rank, uint32_t step)
{
	uint64_t random = random_of(s, rank, step, 0x5afe);

	return (int64_t)(s->structure.save_s * 1e9 * (0.9 + 0.2 * cl_chance(&random)));
}

/* What is longer in the step without a fault. */
static double effect_of_structure(const struct cl_scenario *s, uint32_t rank, uint32_t step)
{
	const struct cl_structure *t = &s->structure;
	double factor = t->phase && step >= t->phase ? t->phase_factor : 1;

	if (t->shares > 0) {
		uint64_t random = random_of(s, cl_replica_of(s, rank), step, 0x5ea);

		factor *= exp(t->shares * cl_gauss(&random));
	}
	if (step < t->warmup) {
		uint64_t random = random_of(s, rank, step, 0x3a12);

		factor *= 1 + 2 * cl_chance(&random) * (t->warmup - step) / t->warmup;
	}
	return factor;
}

bool cl_effect_hits(const struct cl_scenario *s, const struct cl_fault *fault, uint32_t rank,
		    uint32_t step)
{
	switch (fault->kind) {
	case CL_COMPUTE_NODE:
	case CL_CONTENTION:
		return cl_scenario_node_of(s, rank) == fault->target;
	case CL_COMPUTE_HALF:
		return cl_replica_of(s, rank) % 2 == 0;
	case CL_LATE_STAGE:
		return cl_stage_of(s, rank) == fault->target;
	case CL_UNEVEN:
		return cl_replica_of(s, rank) == step * 2654435761U % s->dp;
	case CL_BATCH:
	case CL_GC_ALL:
	case CL_CHECKPOINT_ALL:
	case CL_NETWORK_HANG:
		return true;
	default:
		return rank == fault->target;
	}
}

double cl_effect_on_work(const struct cl_scenario *s, uint32_t rank, uint32_t step)
{
	double factor = effect_of_structure(s, rank, step);

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];

		if (f->kind <= CL_UNEVEN && cl_effect_hits(s, f, rank, step))
			factor *= 1 + (f->factor - 1) * cl_fault_strength(f, step);
	}
	return factor;
}

static bool is_of_network(enum cl_fault_kind kind)
{
	return kind == CL_NIC || kind == CL_PATH || kind == CL_SWITCH;
}

/* What moves over one of the group's links has this fault. */
static bool falls_on_group(const struct cl_scenario *s, const struct cl_fault *f,
			   const struct cl_group *group)
{
	const uint32_t first = f->target / CL_SWITCH_NODES * CL_SWITCH_NODES;

	if (f->kind != CL_SWITCH)
		return cl_group_is_on(s, group, f->target) &&
		       (f->kind == CL_NIC || cl_group_is_on(s, group, f->peer));
	for (uint32_t i = first; i < first + CL_SWITCH_NODES; i++)
		if (cl_group_is_on(s, group, i))
			return true;
	return false;
}

static bool falls_on_link(const struct cl_fault *f, uint32_t from, uint32_t to)
{
	if (f->kind == CL_SWITCH)
		return from / CL_SWITCH_NODES == f->target / CL_SWITCH_NODES ||
		       to / CL_SWITCH_NODES == f->target / CL_SWITCH_NODES;
	if (f->kind == CL_NIC)
		return from == f->target || to == f->target;
	return (from == f->target && to == f->peer) || (from == f->peer && to == f->target);
}

double cl_effect_on_transfer(const struct cl_scenario *s, const struct cl_group *group,
			     uint32_t step)
{
	double factor = 1;

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];
		double strength = cl_fault_strength(f, step);

		if (!is_of_network(f->kind) || strength <= 0 || !cl_group_spans(s, group) ||
		    !falls_on_group(s, f, group))
			continue;
		if (1 + (f->factor - 1) * strength > factor)
			factor = 1 + (f->factor - 1) * strength;
	}
	return factor;
}

double cl_effect_on_link(const struct cl_scenario *s, uint32_t from, uint32_t to, uint32_t step)
{
	double factor = 1;

	for (size_t i = 0; i < s->faults && from != to; i++) {
		const struct cl_fault *f = &s->fault[i];

		if (is_of_network(f->kind) && falls_on_link(f, from, to))
			factor = fmax(factor, 1 + (f->factor - 1) * cl_fault_strength(f, step));
	}
	return factor;
}

const struct cl_fault *cl_effect_now(const struct cl_scenario *s, enum cl_fault_kind kind,
				     uint32_t rank, uint32_t step)
{
	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];

		if (f->kind == kind && f->from == step && cl_effect_hits(s, f, rank, step))
			return f;
	}
	return NULL;
}
