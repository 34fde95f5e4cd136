/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Uneven work is information, and no rank's fault. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

static void a_long_last_stage_is_imbalance_and_names_no_rank(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 4, 2, 61);
	sim.jitter = 0.01;
	sim.rank[6].device *= 1.6;
	sim.rank[7].device *= 1.6;
	sim_pass(&sim, detect, 200);
	finding = sim_firing(detect, 0);
	assert_non_null(finding);
	assert_null(sim_firing(detect, 1));
	assert_int_equal(finding->class, NT_CLASS_IMBALANCE);
	assert_int_equal(finding->severity, NT_SEVERITY_INFO);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_STAGE);
	assert_int_equal(finding->culprit[0].rank_count, 2);
	assert_int_equal(finding->culprit[0].ranks[0], 6);
	assert_int_equal(finding->culprit[0].ranks[1], 7);
	/* Cut anew, it is over. */
	sim.rank[6].device /= 1.6;
	sim.rank[7].device /= 1.6;
	sim_pass(&sim, detect, 300);
	assert_null(sim_firing(detect, 0));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Without communicators each rank is alone, and no role: that its work is uneven nobody can know. */
static void ranks_without_communicators_have_no_role_that_could_be_long(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 8, 64);
	sim.jitter = 0.01;
	sim.rank[5].device *= 1.6;
	sim_pass(&sim, detect, 200);
	assert_null(sim_firing(detect, 0));
	/* But against its own past it shows. */
	sim.rank[2].device *= 1.6;
	sim_pass(&sim, detect, 60);
	assert_names_rank(sim_firing(detect, 0), 2);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_stage_that_is_five_percent_longer_is_cut_well_enough(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 4, 4, 62);
	sim.jitter = 0.005;
	for (uint32_t i = 12; i < 16; i++)
		sim.rank[i].device *= 1.05;
	assert_int_equal(sim_run(&sim, detect, 200), 201);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_slow_rank_of_an_uneven_pipeline_is_still_found(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 4, 4, 63);
	sim.jitter = 0.01;
	for (uint32_t i = 12; i < 16; i++)
		sim.rank[i].device *= 1.5;
	sim.rank[1].device *= 2.3;
	sim_pass(&sim, detect, 60);
	assert_names_rank(sim_firing(detect, 0), 1);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	assert_int_equal(sim_firing(detect, 1)->class, NT_CLASS_IMBALANCE);
	assert_int_equal(sim_firing(detect, 1)->culprit[0].rank_count, 4);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void another_rank_slow_each_time_is_imbalance(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 64);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t slow = (uint32_t)(sim_uniform(&sim) * 8.0);

		sim.rank[slow].device *= 1.5;
		sim_pass(&sim, detect, 1);
		sim.rank[slow].device /= 1.5;
	}
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_IMBALANCE);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* So many others of the eight are slow in each window, and cost less than a tenth of it each. */
static struct nt_detect *take_turns(uint32_t (*ranks)(struct sim *sim))
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	sim_init(&sim, 8, 67);
	sim.jitter = 0.005;
	sim.steps = 2;
	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t first = (uint32_t)(sim_uniform(&sim) * 8.0), n = ranks(&sim);

		for (uint32_t j = 0; j < n; j++)
			sim.rank[(first + 3 * j) % 8].device *= 1.11;
		sim_pass(&sim, detect, 1);
		for (uint32_t j = 0; j < n; j++)
			sim.rank[(first + 3 * j) % 8].device /= 1.11;
	}
	sim_free(&sim);
	return detect;
}

static uint32_t two(struct sim *sim)
{
	(void)sim;
	return 2;
}

static uint32_t one_to_three(struct sim *sim)
{
	return 1 + (uint32_t)(sim_uniform(sim) * 3.0);
}

static void two_turns_in_a_window_are_imbalance(void **state)
{
	struct nt_detect *detect = take_turns(two);

	(void)state;
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_IMBALANCE);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
}

static void hiccups_of_a_window_are_not_its_turns(void **state)
{
	struct nt_detect *detect = take_turns(one_to_three);

	(void)state;
	assert_null(sim_firing(detect, 0));
	nt_detect_free(detect);
}

static void two_halves_since_the_start_are_two_populations(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 65);
	sim.jitter = 0.02;
	for (uint32_t i = 0; i < 4; i++)
		sim.rank[2 * i].device *= 1.3;
	assert_in_range(sim_run(&sim, detect, 60), 20, 30);
	sim_pass(&sim, detect, 200);
	finding = sim_firing(detect, 0);
	assert_int_equal(finding->class, NT_CLASS_UNKNOWN);
	assert_string_equal(finding->cause, "two populations");
	assert_int_equal(finding->culprits, 0);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void two_ranks_that_always_differed_are_two_populations(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 2, 66);
	sim.jitter = 0.02;
	sim.rank[1].device *= 1.5;
	sim_pass(&sim, detect, 100);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_UNKNOWN);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_rank_on_a_busy_processor_is_no_population(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 2, 66);
	sim.jitter = 0.02;
	sim.rank[1].run_queue = sim.rank[1].device / 2;
	sim.rank[1].device *= 1.5;
	sim_pass(&sim, detect, 100);
	assert_null(sim_firing(detect, 0));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Its role is long because it is slow, and that is told already. */
static void the_role_of_a_culprit_is_not_uneven(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 4, 1, 66);
	sim.jitter = 0.01;
	sim_pass(&sim, detect, 60);
	assert_null(sim_firing(detect, 0));
	sim.rank[2].device *= 1.6;
	sim_pass(&sim, detect, 100);
	assert_names_rank(sim_firing(detect, 0), 2);
	assert_int_equal(sim_open(detect), 1);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Random sequence lengths: the work of all ranks varies from step to step, and none is an outlier. */
static void a_wide_spread_in_each_step_is_imbalance(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 32, 69);
	sim.jitter = 0.12;
	sim.steps = 1;
	sim_pass(&sim, detect, 100);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_IMBALANCE);
	assert_int_equal(sim_firing(detect, 0)->culprits, 0);
	/* The slowest of 32 is two sigma from the middle, and all wait for it. */
	assert_true(sim_firing(detect, 0)->slowdown > 1.15 &&
		    sim_firing(detect, 0)->slowdown < 1.4);
	assert_true(sim_firing(detect, 0)->gpu_hours < 0.0);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* A stage of four ranks on a node, in a pipeline of four: each stage has a node. */
static void begin_stages(struct sim *sim, uint64_t seed)
{
	sim_init_layout(sim, 1, 4, 4, seed);
	sim->jitter = 0.01;
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].node = i / 4;
}

/* Imbalance does not begin at an instant, on one machine or two. */
static void a_stage_that_turns_slow_is_its_nodes(void **state)
{
	(void)state;
	for (uint32_t nodes = 1; nodes <= 2; nodes++) {
		struct nt_detect *detect = sim_detect();
		const struct nt_finding *finding;
		struct sim sim;

		begin_stages(&sim, 67);
		for (uint32_t i = 0; i < sim.ranks; i++)
			sim.rank[i].node = i * nodes / 4;
		sim_pass(&sim, detect, 60);
		for (uint32_t i = 8; i < 12; i++)
			sim.rank[i].device *= 1.4;
		assert_in_range(sim_run(&sim, detect, 40), 1, 15);
		/* It stays named, and the job is not uneven besides. */
		sim_pass(&sim, detect, 60);
		assert_int_equal(sim_open(detect), 1);
		finding = sim_firing(detect, 0);
		assert_int_equal(finding->class, NT_CLASS_COMPUTE);
		assert_int_equal(finding->culprits, nodes);
		for (uint32_t i = 0; i < nodes; i++) {
			assert_int_equal(finding->culprit[i].kind, NT_CULPRIT_NODE);
			assert_int_equal(finding->culprit[i].node, 2 * nodes + i);
		}
		for (uint32_t i = 8; i < 12; i++)
			sim.rank[i].device /= 1.4;
		sim_pass(&sim, detect, 200);
		assert_int_equal(sim_open(detect), 0);
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/* Sequences of random length: in each window some rank of the slow stage has little more to do. */
static void no_rank_of_a_stage_that_turns_slow_is_accused(void **state)
{
	(void)state;
	for (uint64_t seed = 80; seed < 90; seed++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init_layout(&sim, 1, 2, 8, seed);
		sim.jitter = 0.01;
		for (uint32_t j = 0; j < sim.ranks; j++) {
			sim.rank[j].node = j % 4;
			sim.rank[j].noise = 0.09;
		}
		sim_pass(&sim, detect, 60);
		for (uint32_t j = 8; j < 16; j++)
			sim.rank[j].device *= 1.5;
		for (uint32_t k = 0; k < 60; k++) {
			const struct nt_finding *finding;

			sim_pass(&sim, detect, 1);
			for (size_t n = 0; (finding = sim_firing(detect, n)); n++)
				for (size_t c = 0; c < finding->culprits; c++)
					assert_int_equal(finding->culprit[c].kind,
							 NT_CULPRIT_STAGE);
		}
		assert_non_null(sim_firing(detect, 0));
		sim_free(&sim);
		nt_detect_free(detect);
	}
}

/* Its nodes have ranks of all stages, and are not to blame. A node of a single stage's ranks alone is. */
static void a_stage_of_shared_nodes_that_turns_slow_is_one_incident(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	begin_stages(&sim, 69);
	for (uint32_t j = 0; j < sim.ranks; j++)
		sim.rank[j].node = j % 4;
	sim_pass(&sim, detect, 60);
	for (uint32_t j = 8; j < 12; j++)
		sim.rank[j].device *= 1.4;
	assert_in_range(sim_run(&sim, detect, 40), 1, 15);
	sim_pass(&sim, detect, 100);
	assert_int_equal(sim_open(detect), 1);
	finding = sim_firing(detect, 0);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_true(finding->severity > NT_SEVERITY_INFO);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_STAGE);
	assert_int_equal(finding->culprit[0].rank_count, 4);
	for (uint32_t j = 0; j < 4; j++)
		assert_int_equal(finding->culprit[0].ranks[j], 8 + j);
	/* Of 70 ms on the device and 10 on the host. */
	assert_true(fabs(finding->evidence[0].value / finding->evidence[0].peers - 1.35) < 0.03);
	for (uint32_t j = 8; j < 12; j++)
		sim.rank[j].device /= 1.4;
	sim_pass(&sim, detect, 200);
	assert_int_equal(sim_open(detect), 0);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* One role has a past before the others: what it grew by may be what all did. */
static void what_all_grew_by_is_no_jump_while_it_is_not_known(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_layout(&sim, 1, 4, 2, 70);
	sim.jitter = 0.005;
	sim.rank[0].device *= 1.3;
	sim_pass(&sim, detect, 12);
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].device *= 1.3;
	for (uint32_t i = 0; i < 40; i++) {
		sim_pass(&sim, detect, 1);
		for (uint32_t j = 0; j < detect->roles.groups; j++)
			assert_false(detect->roles.group[j].jumped);
	}
	sim_free(&sim);
	nt_detect_free(detect);
}

/* From the start, or over hours, it is uneven work. */
static void a_stage_that_was_slow_from_the_start_is_uneven(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin_stages(&sim, 68);
	for (uint32_t j = 8; j < 12; j++)
		sim.rank[j].device *= 1.4;
	sim_pass(&sim, detect, 360);
	assert_non_null(sim_firing(detect, 0));
	for (uint32_t j = 0; sim_firing(detect, j); j++)
		assert_int_equal(sim_firing(detect, j)->severity, NT_SEVERITY_INFO);
	sim_free(&sim);
	nt_detect_free(detect);
}

static void a_stage_that_slows_down_gradually_is_named(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	struct sim sim;

	(void)state;
	begin_stages(&sim, 68);
	for (uint32_t j = 0; j < sim.ranks; j++)
		sim.rank[j].node = j % 4;
	sim_pass(&sim, detect, 60);
	for (uint32_t k = 0; k < 300; k++) {
		for (uint32_t j = 8; j < 12; j++)
			sim.rank[j].device *= 1.0012;
		sim_pass(&sim, detect, 1);
	}
	for (uint32_t j = 0; sim_firing(detect, j); j++)
		if (sim_firing(detect, j)->severity > NT_SEVERITY_INFO) {
			assert_null(finding);
			finding = sim_firing(detect, j);
		}
	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_STAGE);
	assert_int_equal(finding->culprit[0].rank_count, 4);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* The noise of one rank of many explains no gap between two halves. */
static void two_halves_of_a_large_role_are_two_populations(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 128, 61);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < 64; i++)
		sim.rank[i].device *= 1.12;
	sim_pass(&sim, detect, 45);
	assert_non_null(sim_firing(detect, 0));
	assert_string_equal(sim_firing(detect, 0)->cause, "two populations");
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wide_spread_in_each_step_is_imbalance),
		cmocka_unit_test(a_stage_that_turns_slow_is_its_nodes),
		cmocka_unit_test(no_rank_of_a_stage_that_turns_slow_is_accused),
		cmocka_unit_test(a_stage_of_shared_nodes_that_turns_slow_is_one_incident),
		cmocka_unit_test(what_all_grew_by_is_no_jump_while_it_is_not_known),
		cmocka_unit_test(a_stage_that_was_slow_from_the_start_is_uneven),
		cmocka_unit_test(a_stage_that_slows_down_gradually_is_named),
		cmocka_unit_test(a_long_last_stage_is_imbalance_and_names_no_rank),
		cmocka_unit_test(ranks_without_communicators_have_no_role_that_could_be_long),
		cmocka_unit_test(a_stage_that_is_five_percent_longer_is_cut_well_enough),
		cmocka_unit_test(the_slow_rank_of_an_uneven_pipeline_is_still_found),
		cmocka_unit_test(another_rank_slow_each_time_is_imbalance),
		cmocka_unit_test(two_turns_in_a_window_are_imbalance),
		cmocka_unit_test(hiccups_of_a_window_are_not_its_turns),
		cmocka_unit_test(two_halves_since_the_start_are_two_populations),
		cmocka_unit_test(the_role_of_a_culprit_is_not_uneven),
		cmocka_unit_test(two_ranks_that_always_differed_are_two_populations),
		cmocka_unit_test(a_rank_on_a_busy_processor_is_no_population),
		cmocka_unit_test(two_halves_of_a_large_role_are_two_populations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
