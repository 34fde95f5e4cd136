/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/fabric.h"

#include <math.h>

#include "common/base/hash.h"
#include "tests/sim/cluster/chance.h"

enum {
	RAILS = 4, /* cards of a node */
	SOON = 4, /* steps in which most ranks have a send refused */
};

/* Shares of jobs and ranks; seconds. */
static const double sockets = 0.2, late = 0.04, never = 0.03;
static const double between_bursts_s = 15, longest_burst_s = 3, write_back_s = 4;

static uint64_t random_of(const struct cl_scenario *s, uint64_t what, uint64_t number)
{
	return nt_hash_mix(nt_hash_u64(nt_hash_mix(s->seed + what), number));
}

static double longer(double a, double b)
{
	return a > b ? a : b;
}

/* The burst that began in that step, if there is one, as far as it lasts until `step`. */
static void burst(const struct cl_scenario *s, uint32_t began, uint32_t step,
		  struct cl_strain *strain)
{
	uint64_t random = random_of(s, 0xb0057, began);
	struct cl_strain *on;
	double factor;

	if (cl_chance(&random) >= fmin(0.5, s->step_s / between_bursts_s))
		return;
	if ((step - began) * s->step_s > longest_burst_s * pow(cl_chance(&random), 2))
		return;
	on = &strain[(uint32_t)(cl_chance(&random) * cl_scenario_nodes(s))];
	/* A heavy tail: one in ten is above 1.8, one in 180 above 4. */
	factor = 1.2 + 0.4 * (pow(cl_chance(&random) + 1e-3, -0.4) - 1);
	/* Mostly many send to one. */
	if (cl_chance(&random) < 0.7)
		on->entering = longer(on->entering, factor);
	else
		on->leaving = longer(on->leaving, factor);
}

/* What was saved is written on while the job computes. */
static double write_back(const struct cl_scenario *s, uint32_t node, uint32_t step)
{
	const uint32_t every = s->structure.save_every;
	uint64_t random;

	if (!every || step < every || (step % every) * s->step_s > write_back_s)
		return 1;
	random = random_of(s, 0x3b17e, (uint64_t)(step / every) << 32 | node);
	return 1.1 + 0.7 * cl_chance(&random);
}

void cl_fabric_strain(const struct cl_scenario *s, uint32_t step, struct cl_strain *ret_strain)
{
	const uint32_t back = (uint32_t)ceil(longest_burst_s / s->step_s);
	uint64_t random = random_of(s, 0x71de, 0);
	const double phase = 2 * M_PI * cl_chance(&random),
		     period_s = 40 + 200 * cl_chance(&random);
	const double others = 1 + 0.04 * (1 + sin(2 * M_PI * step * s->step_s / period_s + phase));

	for (uint32_t i = 0; i < cl_scenario_nodes(s); i++) {
		const double all = others * write_back(s, i, step);

		ret_strain[i] = (struct cl_strain){all, all};
	}
	for (uint32_t i = step > back ? step - back : 0; i <= step; i++)
		burst(s, i, step, ret_strain);
}

double cl_fabric_rail(const struct cl_scenario *s, uint32_t rank)
{
	const uint32_t node = cl_scenario_node_of(s, rank);
	uint64_t of_node = random_of(s, 0x2a11, node), of_rail = random_of(s, 0x2a12, rank % RAILS);

	/* One node in eight has faster cards, and rails differ. */
	return (cl_chance(&of_node) < 0.125 ? 0.5 : 1) * (0.8 + 0.2 * cl_chance(&of_rail));
}

/* The step in which the first of the rank's sends is refused. */
static uint32_t refused_at(const struct cl_scenario *s, uint32_t rank)
{
	uint64_t of_job = random_of(s, 0x50c7, 0), random = random_of(s, 0x2ef5, rank);
	double chance;

	if (cl_chance(&of_job) < sockets)
		return UINT32_MAX;
	chance = cl_chance(&random);
	if (chance < never)
		return UINT32_MAX;
	return (uint32_t)(cl_chance(&random) * (chance < never + late ? s->steps : SOON));
}

bool cl_fabric_has_refused(const struct cl_scenario *s, uint32_t rank, uint32_t step)
{
	return step >= refused_at(s, rank);
}

bool cl_fabric_reports(const struct cl_scenario *s, uint32_t rank)
{
	return refused_at(s, rank) < SOON;
}
