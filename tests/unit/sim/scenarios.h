/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plays a scenario, and compares what is said with the truth. Included after cmocka. */
#ifndef NT_TESTS_UNIT_SIM_SCENARIOS_H
#define NT_TESTS_UNIT_SIM_SCENARIOS_H

#include "tests/sim/cluster/truth/truth.h"

/* The default scenario with a fault, in the syntax of the simulator; NULL: healthy. */
static inline struct cl_scenario scenario_with(const char *fault)
{
	struct cl_scenario scenario = cl_scenario_default();
	const char *why;

	if (fault && cl_fault_parse(fault, &scenario.fault[scenario.faults++], &why) < 0)
		fail_msg("%s: %s", fault, why);
	return scenario;
}

/* Nobody innocent is accused, and `wanted` faults are found. What was said is in `judgement`. */
static inline struct cl_score scenario_play(const struct cl_scenario *scenario, uint32_t wanted,
					    struct nt_judgement *judgement,
					    struct cl_outcome *ret_outcome)
{
	struct cl_score score;

	assert_null(cl_scenario_check(scenario));
	assert_int_equal(cl_run(scenario, NULL, judgement, ret_outcome), 0);
	score = cl_truth_score(scenario, judgement, ret_outcome);
	for (size_t i = 0; i < judgement->incidents; i++)
		print_message("%s\n", judgement->judged[i].incident.summary);
	assert_int_equal(score.wrong, 0);
	assert_int_equal(score.wanted, wanted);
	assert_int_equal(score.found, wanted);
	assert_int_equal(score.needless, 0);
	return score;
}

#endif
