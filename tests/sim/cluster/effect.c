/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/effect.h"

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
	double factor = 1;

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];

		if (f->kind <= CL_UNEVEN && cl_effect_hits(s, f, rank, step))
			factor *= 1 + (f->factor - 1) * cl_fault_strength(f, step);
	}
	return factor;
}

double cl_effect_on_transfer(const struct cl_scenario *s, const struct cl_group *group,
			     uint32_t step)
{
	double factor = 1;

	for (size_t i = 0; i < s->faults; i++) {
		const struct cl_fault *f = &s->fault[i];
		double strength = cl_fault_strength(f, step);

		if ((f->kind != CL_NIC && f->kind != CL_PATH) || strength <= 0 ||
		    !cl_group_spans(s, group) || !cl_group_is_on(s, group, f->target) ||
		    (f->kind == CL_PATH && !cl_group_is_on(s, group, f->peer)))
			continue;
		if (1 + (f->factor - 1) * strength > factor)
			factor = 1 + (f->factor - 1) * strength;
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
