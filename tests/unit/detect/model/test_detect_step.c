/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What all ranks have together is the job's and no rank's. */
#include "detect/model/detector_state.h"
#include "tests/unit/detect/detect_frames.h"

static void double_all(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->ranks; i++) {
		sim->rank[i].device *= 2.0;
		sim->rank[i].host *= 2.0;
	}
	sim->steps /= 2;
}

static void a_doubled_batch_is_information_and_then_normal(void **state)
{
	struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect = NULL;
	const struct nt_finding *finding;
	uint32_t resolved = 0;
	struct sim sim;

	(void)state;
	rules.new_normal_ns = 120ull * SIM_SECOND;
	assert_int_equal(nt_detect_new(&rules, 1, 1, &detect), 0);
	sim_init(&sim, 8, 51);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	double_all(&sim);
	assert_in_range(sim_run(&sim, detect, 60), 10, 20);
	finding = sim_firing(detect, 0);
	assert_int_equal(finding->class, NT_CLASS_JOB_WIDE);
	assert_int_equal(finding->severity, NT_SEVERITY_INFO);
	assert_int_equal(finding->culprits, 0);
	assert_null(finding->cause);
	assert_true(finding->slowdown > 1.6 && finding->slowdown < 2.1);
	for (int i = 0; i < 600; i++) {
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			resolved += finding[j].state == NT_INCIDENT_RESOLVED;
	}
	assert_int_equal(resolved, 1);
	assert_int_equal(sim_open(detect), 0);
	/* And a slow rank is found in the new normal. */
	sim.rank[2].device *= 1.3;
	assert_in_range(sim_run(&sim, detect, 20), 5, 8);
	assert_names_rank(sim_firing(detect, 0), 2);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void pauses_of_the_collector_on_all_are_named(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 52);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	for (uint32_t i = 0; i < 8; i++) {
		sim.rank[i].host += 30.0 * SIM_MS;
		sim.rank[i].gc = 28.0 * SIM_MS;
	}
	assert_in_range(sim_run(&sim, detect, 60), 10, 20);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_JOB_WIDE);
	assert_string_equal(sim_firing(detect, 0)->cause, "host: garbage collection");
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void ranks_without_peers_are_not_accused_of_what_all_did(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	/* A pipeline: every rank has a role of its own. */
	sim_init_ranks(&sim, 4, 53);
	sim.jitter = 0.02;
	sim_comm_add(&sim, 9, NT_FRAME_POINT_TO_POINT, 8, 1e6, 0.1 * SIM_MS)->world = true;
	sim_pass(&sim, detect, 60);
	double_all(&sim);
	sim_pass(&sim, detect, 100);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_JOB_WIDE);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_rank_without_peers_is_named_by_its_own_past(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 4, 54);
	sim.jitter = 0.02;
	sim_comm_add(&sim, 9, NT_FRAME_POINT_TO_POINT, 8, 1e6, 0.1 * SIM_MS)->world = true;
	sim_pass(&sim, detect, 60);
	sim.rank[1].device *= 1.3;
	assert_in_range(sim_run(&sim, detect, 60), 5, 9);
	assert_names_rank(sim_firing(detect, 0), 1);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].peer_count, 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Two populations before the past is whole: what is known of it by then tells which of them is slow. */
static void who_slows_down_while_pasts_are_learned_is_named(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 8; ranks += 3) {
		for (uint32_t seed = 61; seed < 71; seed++) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			sim_init(&sim, ranks, seed);
			sim.jitter = 0.01;
			assert_int_equal(sim_run(&sim, detect, 12), 13);
			for (uint32_t i = 1; i < ranks; i += 2)
				sim.rank[i].device *= 1.4;
			assert_in_range(sim_run(&sim, detect, 40), 5, 12);
			sim_pass(&sim, detect, 5);
			assert_int_equal(sim_firing(detect, 0)->culprits, ranks / 2);
			for (uint32_t i = 0; i < ranks / 2; i++)
				assert_int_equal(sim_firing(detect, 0)->culprit[i].rank, 2 * i + 1);
			assert_null(sim_firing(detect, 1));
			nt_detect_free(detect);
			sim_free(&sim);
		}
	}
}

/* A window or two are no past: who was slow from the start looks like that, too. */
static void a_few_windows_accuse_nobody(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < NT_PAST_SOME; before++) {
		struct nt_detect *detect = sim_detect();
		const bool is_past = before >= NT_PAST_FEW;
		struct sim sim;

		sim_init(&sim, 2, 71);
		sim.jitter = 0.01;
		sim_pass(&sim, detect, before);
		sim.rank[1].device *= 1.4;
		sim_pass(&sim, detect, 60);
		assert_int_equal(sim_firing(detect, 0)->class,
				 is_past ? NT_CLASS_COMPUTE : NT_CLASS_UNKNOWN);
		if (is_past)
			assert_names_rank(sim_firing(detect, 0), 1);
		assert_null(sim_firing(detect, 1));
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* Two that agree outvote the third, if that is the slower one: nobody waits for a faster one. */
static void one_of_three_that_is_slow_from_the_start_is_named(void **state)
{
	static const double factor[] = {1.35, 1.6, 2.5, 0.7};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 3, 73);
		sim.jitter = 0.01;
		sim.rank[1].device *= factor[i];
		sim_pass(&sim, detect, 30);
		if (factor[i] > 1.0) {
			assert_names_rank(sim_firing(detect, 0), 1);
			assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
		} else {
			assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_UNKNOWN);
			assert_string_equal(sim_firing(detect, 0)->cause, "two populations");
		}
		assert_null(sim_firing(detect, 1));
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* What peers differ by from window to window averages out, what they differ by for long does not. */
static void peers_that_vary_are_certain_in_the_long_run(void **state)
{
	int named = 0;

	(void)state;
	for (uint32_t seed = 90; seed < 110; seed++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 4, seed);
		sim.jitter = 0.06;
		sim.rank[1].device *= 1.25;
		sim_pass(&sim, detect, 80);
		named += sim_firing(detect, 0) && sim_firing(detect, 0)->culprits == 1 &&
			 sim_firing(detect, 0)->culprit[0].rank == 1;
		nt_detect_free(detect);
		sim_free(&sim);
	}
	assert_true(named >= 15);
}

static const struct nt_finding *find_compute(const struct nt_detect *detect)
{
	const struct nt_finding *finding;

	for (size_t i = 0; (finding = sim_firing(detect, i)); i++)
		if (finding->class == NT_CLASS_COMPUTE)
			return finding;
	return NULL;
}

/* What all ranks of a role do from then on is the program's, whether it is more or less. */
static void who_slows_down_in_a_later_phase_is_named(void **state)
{
	static const double phase[] = {1.4, 0.7};

	(void)state;
	for (uint32_t ranks = 2; ranks <= 3; ranks++) {
		for (size_t i = 0; i < 2; i++) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			sim_init(&sim, ranks, 81);
			sim.jitter = 0.01;
			sim_pass(&sim, detect, 40);
			for (uint32_t j = 0; j < ranks; j++)
				sim.rank[j].device *= phase[i];
			sim_pass(&sim, detect, 30);
			sim.rank[1].device *= 1.3;
			sim_pass(&sim, detect, 15);
			assert_names_rank(find_compute(detect), 1);
			sim.rank[1].device /= 1.3;
			sim_pass(&sim, detect, 150);
			assert_null(find_compute(detect));
			nt_detect_free(detect);
			sim_free(&sim);
		}
	}
}

static void a_rank_that_becomes_faster_makes_no_other_slow(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 3; ranks++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, ranks, 82);
		sim.jitter = 0.01;
		sim_pass(&sim, detect, 40);
		sim.rank[0].device *= 0.8;
		for (uint32_t i = 0; i < 60; i++) {
			sim_pass(&sim, detect, 1);
			assert_null(find_compute(detect));
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* Each rank's past holds what all did, for longer where hiccups let sums grow high. */
static void what_all_did_is_no_evidence_against_one_when_it_is_over(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 4, 58);
	sim.jitter = 0.005;
	sim.steps = 60;
	sim_comm_add(&sim, 9, NT_FRAME_POINT_TO_POINT, 8, 1e6, 0.1 * SIM_MS)->world = true;
	sim_pass(&sim, detect, 60);
	for (uint32_t i = 0; i < 4; i++)
		sim.rank[i].device *= 1.4;
	sim_pass(&sim, detect, 60);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_JOB_WIDE);
	for (uint32_t i = 0; i < 4; i++) {
		detect->roles.group[i].tail[NT_SERIES_OWN] =
			(struct nt_adaptation){.windows = 100.0, .entries = 20.0};
		detect->rank[i].track[NT_SERIES_OWN].shift.sum = 100.0;
		sim.rank[i].device /= 1.4;
	}
	for (uint32_t frame = 0; sim_open(detect); frame++) {
		assert_true(frame < 40);
		sim_pass(&sim, detect, 1);
	}
	sim.rank[2].device *= 1.25;
	sim_pass(&sim, detect, 2);
	sim.rank[2].device /= 1.25;
	sim_pass(&sim, detect, 10);
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void one_rank_alone_that_slows_down_is_the_job(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 1, 55);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	sim.rank[0].device *= 1.5;
	sim_pass(&sim, detect, 60);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_JOB_WIDE);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void rebaseline_takes_what_is_now_as_normal(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 56);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	sim.rank[5].device *= 1.4;
	sim_pass(&sim, detect, 20);
	assert_names_rank(sim_firing(detect, 0), 5);
	nt_detect_rebaseline(detect);
	assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
	assert_int_equal(findings, 1);
	assert_int_equal(finding[0].state, NT_INCIDENT_RESOLVED);
	assert_int_equal(sim_run(&sim, detect, 300), 301);
	/* Worse than that is a finding again, and another rank's as well. */
	sim.rank[5].device *= 1.3;
	assert_in_range(sim_run(&sim, detect, 20), 5, 9);
	assert_names_rank(sim_firing(detect, 0), 5);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_step_is_the_median_of_the_ranks(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 57);
	assert_true(nt_detect_step_ns(detect) == 0.0);
	sim_pass(&sim, detect, 1);
	assert_true(fabs(nt_detect_step_ns(detect) - 90.0 * SIM_MS) < 1000.0);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Ranks that make no steps, such as those that serve a model, are not part of what all did. */
static void ranks_without_steps_do_not_hide_what_the_others_did(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;
	size_t findings;

	(void)state;
	sim_init(&sim, 8, 57);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < 120; i++) {
		if (i == 60)
			for (uint32_t j = 0; j < sim.ranks; j++)
				sim.rank[j].device *= 1.5;
		(void)sim_next(&sim);
		for (uint32_t j = 5; j < sim.ranks; j++)
			sim.out[j].steps = 0;
		assert_int_equal(nt_detect_step(detect, &sim.frame, &finding, &findings), 0);
		if (i > 61)
			assert_true(detect->step.job_wide[NT_SERIES_OWN].growth > 0.3);
	}
	sim_free(&sim);
	nt_detect_free(detect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_doubled_batch_is_information_and_then_normal),
		cmocka_unit_test(pauses_of_the_collector_on_all_are_named),
		cmocka_unit_test(ranks_without_peers_are_not_accused_of_what_all_did),
		cmocka_unit_test(a_rank_without_peers_is_named_by_its_own_past),
		cmocka_unit_test(who_slows_down_while_pasts_are_learned_is_named),
		cmocka_unit_test(a_few_windows_accuse_nobody),
		cmocka_unit_test(one_of_three_that_is_slow_from_the_start_is_named),
		cmocka_unit_test(peers_that_vary_are_certain_in_the_long_run),
		cmocka_unit_test(who_slows_down_in_a_later_phase_is_named),
		cmocka_unit_test(a_rank_that_becomes_faster_makes_no_other_slow),
		cmocka_unit_test(what_all_did_is_no_evidence_against_one_when_it_is_over),
		cmocka_unit_test(one_rank_alone_that_slows_down_is_the_job),
		cmocka_unit_test(rebaseline_takes_what_is_now_as_normal),
		cmocka_unit_test(the_step_is_the_median_of_the_ranks),
		cmocka_unit_test(ranks_without_steps_do_not_hide_what_the_others_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
