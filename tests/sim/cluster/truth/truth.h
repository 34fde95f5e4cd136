/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is right to say of a scenario, and how what was said compares. */
#ifndef NT_SIM_CLUSTER_TRUTH_H
#define NT_SIM_CLUSTER_TRUTH_H

#include "cli/replay/replay.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/scenario.h"

struct cl_score {
	uint32_t wanted; /* faults that can be seen at this tier, and are worth a word */
	uint32_t found; /* of them, those whose culprit was named */
	uint32_t classed; /* of these, with the right class */
	uint32_t accused,
		wrong; /* ranks, nodes and links that were accused, and of them the innocent */
	uint32_t needless; /* incidents that nobody wanted, though they accuse nobody */
	uint32_t twice; /* further ones that name the culprit of a fault which has one */
	uint32_t open; /* that go on long after all that they name is over */
	double seconds; /* from the first fault to the word; negative: none */
	/* What was said that all of it cost ÷ what it cost; NAN: said not to be known; < 0: no measure. */
	double cost;
	/* The slowdown of the only fault as said ÷ as it was; < 0: no measure. */
	double slowdown;
};

struct cl_score cl_truth_score(const struct cl_scenario *scenario,
			       const struct nt_judgement *judgement,
			       const struct cl_outcome *outcome);

#endif
