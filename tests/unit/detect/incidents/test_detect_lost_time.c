/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The slow-down of an incident against the step times that the job had. */
#include "tests/unit/detect/detect_frames.h"

static double step_evidence(const struct nt_finding *finding, double *ret_before)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (strcmp(finding->evidence[i].what, "step time") == 0) {
			*ret_before = finding->evidence[i].peers;
			return finding->evidence[i].value;
		}
	fail_msg("no step time");
	return 0.0;
}

/* A fault in one window of three costs the mean of them, not what it costs in its windows. */
static void the_slowdown_is_that_of_the_steps(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	double device, now, before = 1.0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 31);
	sim.jitter = 0.01;
	device = sim.rank[3].device;
	sim_pass(&sim, detect, 40);
	for (uint32_t i = 0; i < 90; i++) {
		sim.rank[3].device = device * (i % 3 ? 1.0 : 2.0);
		sim_pass(&sim, detect, 1);
	}
	finding = sim_firing(detect, 0);
	assert_names_rank(finding, 3);
	now = step_evidence(finding, &before);
	assert_true(now / before > 1.2 && now / before < 1.4);
	assert_true(fabs(finding->slowdown - now / before) < 0.02);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Its own past holds a fault in half of the steps: the steps before its onset are no healthy ones. */
static void a_fault_in_half_of_the_steps_was_always_there(void **state)
{
	static const bool is_on[] = {true, false, true, true, false, true, false, false};
	struct nt_detect *detect = sim_detect();
	double host, step = 0.0, clean;
	struct sim sim;

	(void)state;
	sim_init(&sim, 16, 31);
	sim.jitter = 0.01;
	host = sim.rank[3].host;
	clean = sim_work(&sim).step;
	for (uint32_t i = 0; i < 45; i++) {
		sim.rank[3].host = host + (is_on[i % 8] ? 2.0 * clean : 0.0);
		step += sim_work(&sim).step / 45.0;
		sim_pass(&sim, detect, 1);
	}
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_true(fabs(sim_firing(detect, 0)->slowdown - step / clean) < 0.3);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Once the slow rank of one role is as fast as its peers, the step waits for the longer role. */
static void a_longer_role_bounds_what_a_culprit_costs(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 2, 8, 41);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].device *= i < sim.ranks / 2 ? 1.0 : 1.5;
	/* Ranks of the first role need 80 ms, those of the second 120, and this one 160. */
	sim.rank[3].device *= 2.0;
	sim_pass(&sim, detect, 60);
	for (uint32_t i = 0; sim_firing(detect, i); i++) {
		const struct nt_finding *finding = sim_firing(detect, i);

		if (finding->class != NT_CLASS_COMPUTE)
			continue;
		assert_names_rank(finding, 3);
		assert_true(finding->slowdown > 1.2 && finding->slowdown < 1.35);
		sim_free(&sim);
		nt_detect_free(detect);
		return;
	}
	fail_msg("no rank is named");
}

/* Another phase of the program is no part of what a later fault costs. */
static void a_fault_after_a_change_of_all_costs_what_it_adds(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding, *fault = NULL;
	double phase;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 37);
	sim.jitter = 0.01;
	sim_pass(&sim, detect, 60);
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].device *= 1.5;
	/* Soon after it: the onset is searched for in the steps of that phase alone. */
	sim_pass(&sim, detect, 26);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_JOB_WIDE);
	phase = sim_work(&sim).step;
	sim.rank[3].device *= 1.3;
	sim_pass(&sim, detect, 60);
	for (uint32_t i = 0; (finding = sim_firing(detect, i)); i++)
		if (finding->class == NT_CLASS_COMPUTE)
			fault = finding;
	assert_names_rank(fault, 3);
	assert_true(fabs(fault->slowdown - sim_work(&sim).step / phase) < 0.04);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* One was slow from the start on, and has just recovered as another becomes slow. */
static void a_fault_after_another_costs_no_time_before_it(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	uint64_t onset_ns;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 65);
	sim.jitter = 0.01;
	sim.rank[2].device *= 1.4;
	sim_pass(&sim, detect, 200);
	sim.rank[2].device /= 1.4;
	sim_pass(&sim, detect, 12);
	onset_ns = sim.now_ns;
	sim.rank[6].device *= 1.4;
	for (int i = 0; i < 20 && !finding; i++) {
		sim_pass(&sim, detect, 1);
		for (size_t j = 0; sim_firing(detect, j) && !finding; j++)
			if (sim_firing(detect, j)->culprits &&
			    sim_firing(detect, j)->culprit[0].rank == 6)
				finding = sim_firing(detect, j);
	}
	assert_non_null(finding);
	assert_true(finding->gpu_hours <= 8.0 * (double)(sim.now_ns - onset_ns) / 3600e9);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* All ranks stall in every fifth round, before the fault and since. */
static void stalls_that_the_job_has_anyway_cost_the_fault_nothing(void **state)
{
	struct nt_detect *detect = sim_detect();
	double device, host, with = 0.0, without = 0.0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 66);
	sim.jitter = 0.01;
	device = sim.rank[3].device;
	host = sim.rank[0].host;
	for (uint32_t i = 0; i < 120; i++) {
		for (uint32_t j = 0; j < 8; j++)
			sim.rank[j].host = host + (i % 5 ? 0.0 : 0.2 * sim_work(&sim).step);
		without += i >= 60 ? sim_work(&sim).step : 0.0;
		sim.rank[3].device = device * (i >= 60 ? 1.2 : 1.0);
		with += i >= 60 ? sim_work(&sim).step : 0.0;
		sim_pass(&sim, detect, 1);
		sim.rank[3].device = device;
	}
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_true(fabs(sim_firing(detect, 0)->slowdown - with / without) <
		    0.1 * (with / without - 1.0));
	sim_free(&sim);
	nt_detect_free(detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowdown_is_that_of_the_steps),
		cmocka_unit_test(a_fault_in_half_of_the_steps_was_always_there),
		cmocka_unit_test(stalls_that_the_job_has_anyway_cost_the_fault_nothing),
		cmocka_unit_test(a_longer_role_bounds_what_a_culprit_costs),
		cmocka_unit_test(a_fault_after_a_change_of_all_costs_what_it_adds),
		cmocka_unit_test(a_fault_after_another_costs_no_time_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
