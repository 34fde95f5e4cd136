/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The whole step on jobs made of numbers: who is named, when, and who never is. */
#include "tests/unit/detect/detect_frames.h"

static void one_slow_rank_fires_within_seven_windows_as_compute(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 1);
	sim.jitter = 0.02;
	assert_int_equal(sim_run(&sim, detect, 60), 61);
	sim.rank[5].device *= 1.3;
	assert_in_range(sim_run(&sim, detect, 20), 5, 7);
	assert_names_rank(sim_firing(detect, 0), 5);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_stalled_loader_is_the_hosts(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 2);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	sim.rank[2].host += 30.0 * SIM_MS;
	assert_in_range(sim_run(&sim, detect, 20), 5, 8);
	assert_names_rank(sim_firing(detect, 0), 2);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HOST);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_fault_that_ends_is_resolved_once(void **state)
{
	struct nt_detect *detect = sim_detect();
	uint32_t resolved = 0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 3);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 30);
	assert_names_rank(sim_firing(detect, 0), 1);
	sim.rank[1].device /= 2.0;
	for (int i = 0; i < 300; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			resolved += finding[j].state == NT_INCIDENT_RESOLVED;
	}
	assert_int_equal(resolved, 1);
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_rank_slow_from_the_first_step_is_found(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 4);
	sim.jitter = 0.02;
	sim.rank[7].device *= 1.3;
	assert_in_range(sim_run(&sim, detect, 20), 5, 8);
	assert_names_rank(sim_firing(detect, 0), 7);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void healthy_jobs_are_met_with_silence(void **state)
{
	static const uint32_t sizes[] = {8, 64};

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			sim_init(&sim, sizes[i], seed);
			sim.jitter = 0.02;
			assert_int_equal(sim_run(&sim, detect, 1000), 1001);
			nt_detect_free(detect);
			sim_free(&sim);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_slow_rank_fires_within_seven_windows_as_compute),
		cmocka_unit_test(a_stalled_loader_is_the_hosts),
		cmocka_unit_test(a_fault_that_ends_is_resolved_once),
		cmocka_unit_test(a_rank_slow_from_the_first_step_is_found),
		cmocka_unit_test(healthy_jobs_are_met_with_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
