/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hosts that work longer than those of their peers, which hardly work outside of calls. */
#include "tests/unit/detect/detect_frames.h"

enum {
	RANKS = 8,
	SLOW = 3,
};

static struct nt_detect *start(struct sim *sim)
{
	sim_init(sim, RANKS, 52);
	sim->jitter = 0.01;
	sim->recorded = true;
	for (uint32_t i = 0; i < RANKS; i++) {
		sim->rank[i].tier = NT_FRAME_T3;
		sim->rank[i].host = 0.5 * SIM_MS;
	}
	return sim_detect();
}

static void end(struct sim *sim, struct nt_detect *detect)
{
	nt_detect_free(detect);
	sim_free(sim);
}

/* 6 % of the step, and no history of its own without it. */
static void one_from_the_start_is_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	sim.rank[SLOW].host = 7.0 * SIM_MS;
	assert_in_range(sim_run(&sim, detect, 60), 1, 40);
	assert_names_rank(sim_firing(detect, 0), SLOW);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HOST);
	end(&sim, detect);
}

/* Hosts differ where they all work for longer. */
static void where_hosts_differ_none_is_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	for (uint32_t i = 0; i < RANKS; i++)
		sim.rank[i].host = (1.0 + i) * SIM_MS;
	assert_int_equal(sim_run(&sim, detect, 100), 101);
	end(&sim, detect);
}

/* Outliers of a millisecond in each tenth window, of any rank. Without them it takes as long. */
static void outliers_that_cost_nothing_delay_no_verdict(void **state)
{
	(void)state;
	for (int has_outliers = 0; has_outliers < 2; has_outliers++) {
		struct sim sim;
		struct nt_detect *detect = start(&sim);
		unsigned int seed = 7;

		for (int i = 0; i < 60; i++) {
			for (uint32_t j = 0; j < RANKS; j++)
				sim.rank[j].host = has_outliers && rand_r(&seed) % 10 == 0
							   ? 1.5 * SIM_MS
							   : 0.5 * SIM_MS;
			sim_pass(&sim, detect, 1);
		}
		assert_null(sim_firing(detect, 0));
		sim.rank[SLOW].host = 40.0 * SIM_MS;
		assert_in_range(sim_run(&sim, detect, 20), 5, 7);
		assert_names_rank(sim_firing(detect, 0), SLOW);
		end(&sim, detect);
	}
}

/* Own work of all is observed with their hosts, and from rank `first` on it takes 1.2 times as long. */
static void slow_group(struct sim *sim, uint32_t first)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		sim->rank[i].tier = NT_FRAME_T2;
		sim->rank[i].device *= i < first ? 1.0 : 1.2;
	}
}

/* Which of two groups is normal is unknown if they differ from the start: own work proves nothing. */
static void a_host_is_judged_where_own_work_shows_two_groups(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	slow_group(&sim, RANKS / 2);
	sim.rank[SLOW].host = 40.0 * SIM_MS;
	sim_pass(&sim, detect, 60);
	for (size_t i = 0; sim_firing(detect, i); i++)
		if (sim_firing(detect, i)->culprits) {
			assert_names_rank(sim_firing(detect, i), SLOW);
			assert_int_equal(sim_firing(detect, i)->class, NT_CLASS_HOST);
			end(&sim, detect);
			return;
		}
	fail_msg("no rank is named");
}

/* The ranks of the slower group work longer than the one with a late host: the job does not wait for that. */
static void a_late_host_of_the_faster_group_is_not_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	slow_group(&sim, RANKS / 2 + 1);
	sim.rank[SLOW].host = 12.0 * SIM_MS;
	sim_pass(&sim, detect, 60);
	for (size_t i = 0; sim_firing(detect, i); i++)
		assert_int_equal(sim_firing(detect, i)->culprits, 0);
	end(&sim, detect);
}

/* Its past so far accuses it, and shows by how much: its peers' median is as long as its work now. */
static void a_rank_that_joins_the_slower_group_is_compared_with_its_past(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim);

	(void)state;
	slow_group(&sim, RANKS / 2);
	sim_pass(&sim, detect, 12);
	sim.rank[SLOW].device *= 1.2;
	assert_in_range(sim_run(&sim, detect, 30), 3, 20);
	assert_names_rank(sim_firing(detect, 0), SLOW);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	assert_true(sim_firing(detect, 0)->evidence[0].peers < 72.0);
	end(&sim, detect);
}

static struct nt_detect *start_pairs(struct sim *sim, uint32_t pairs)
{
	sim_init_layout(sim, pairs, 1, 2, 53);
	sim->jitter = 0.01;
	sim->recorded = true;
	for (uint32_t i = 0; i < 2 * pairs; i++) {
		sim->rank[i].tier = NT_FRAME_T3;
		sim->rank[i].host = 0.5 * SIM_MS;
	}
	return sim_detect();
}

/* Roles of two. The host of one rank works for 40 ms, and that of one of another role for `another`. */
static struct nt_detect *run_pairs(uint32_t pairs, double another)
{
	struct sim sim;
	struct nt_detect *detect = start_pairs(&sim, pairs);

	sim.rank[SLOW].host = 40.0 * SIM_MS;
	sim.rank[0].host = another;
	sim_pass(&sim, detect, 60);
	sim_free(&sim);
	return detect;
}

static bool is_accused(const struct nt_detect *detect, uint32_t rank)
{
	for (size_t i = 0; sim_firing(detect, i); i++)
		for (uint32_t j = 0; j < sim_firing(detect, i)->culprits; j++)
			if (sim_firing(detect, i)->severity != NT_SEVERITY_INFO &&
			    sim_firing(detect, i)->culprit[j].rank == rank)
				return true;
	return false;
}

/* Which of two works too long, the hosts of other roles show, if they are six or more. */
static void one_of_two_is_named_if_it_exceeds_all_hosts(void **state)
{
	struct nt_detect *detect = run_pairs(4, 0.5 * SIM_MS);

	(void)state;
	assert_true(is_accused(detect, SLOW));
	assert_names_rank(sim_firing(detect, 0), SLOW);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_HOST);
	nt_detect_free(detect);
	detect = run_pairs(3, 0.5 * SIM_MS);
	assert_false(is_accused(detect, SLOW));
	nt_detect_free(detect);
	/* So may the work of hosts be. */
	detect = run_pairs(4, 45.0 * SIM_MS);
	assert_false(is_accused(detect, SLOW));
	nt_detect_free(detect);
}

/* One rank of each node loads data. The other host's work is no measure of one that has become late. */
static void a_known_past_says_more_than_other_hosts(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start_pairs(&sim, 4);

	(void)state;
	sim.rank[SLOW].host = 30.0 * SIM_MS;
	sim.rank[0].host = 32.0 * SIM_MS;
	sim_pass(&sim, detect, 60);
	assert_false(is_accused(detect, SLOW));
	sim.rank[SLOW].host = 60.0 * SIM_MS;
	sim_pass(&sim, detect, 15);
	assert_true(is_accused(detect, SLOW));
	end(&sim, detect);
}

/* Both hosts of a stage load data, and vary: that they work longer than others is no reason for a verdict. */
static void hosts_that_vary_are_not_late(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start_pairs(&sim, 4);

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		sim.rank[SLOW].host = (17.0 + 6.0 * sim_uniform(&sim)) * SIM_MS;
		sim.rank[SLOW + 4].host = (17.0 + 6.0 * sim_uniform(&sim)) * SIM_MS;
		sim_pass(&sim, detect, 1);
		assert_false(is_accused(detect, SLOW) || is_accused(detect, SLOW + 4));
	}
	end(&sim, detect);
}

/* Two hosts differ by much of their work now and then, and by little of the step. */
static void small_differences_of_hosts_are_no_turns(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start_pairs(&sim, 4);
	bool named = false;

	(void)state;
	for (uint32_t i = 0; i < 100 && !named; i++) {
		for (uint32_t j = 0; j < RANKS; j++)
			sim.rank[j].host = (sim_uniform(&sim) < 0.2 ? 2.5 : 0.5) * SIM_MS;
		if (i >= 40 && sim_uniform(&sim) < 0.3)
			sim.rank[SLOW].host = 40.0 * SIM_MS;
		sim_pass(&sim, detect, 1);
		named = is_accused(detect, SLOW);
	}
	assert_true(named);
	assert_names_rank(sim_firing(detect, 0), SLOW);
	end(&sim, detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_from_the_start_is_named),
		cmocka_unit_test(where_hosts_differ_none_is_named),
		cmocka_unit_test(outliers_that_cost_nothing_delay_no_verdict),
		cmocka_unit_test(a_host_is_judged_where_own_work_shows_two_groups),
		cmocka_unit_test(a_late_host_of_the_faster_group_is_not_named),
		cmocka_unit_test(one_of_two_is_named_if_it_exceeds_all_hosts),
		cmocka_unit_test(a_known_past_says_more_than_other_hosts),
		cmocka_unit_test(hosts_that_vary_are_not_late),
		cmocka_unit_test(small_differences_of_hosts_are_no_turns),
		cmocka_unit_test(a_rank_that_joins_the_slower_group_is_compared_with_its_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
