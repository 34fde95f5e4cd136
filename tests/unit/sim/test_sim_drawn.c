/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Played clusters of kinds that nobody had thought of: drawn ones, and those of them that once came out
 * wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/cluster/draw.h"
#include "tests/sim/cluster/truth/truth.h"
#include "tests/unit/sim/seeds.h"

static struct cl_score judge(const struct cl_scenario *scenario)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_outcome outcome;

	assert_null(cl_scenario_check(scenario));
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(cl_run(scenario, NULL, judgement, &outcome), 0);
	for (size_t i = 0; i < judgement->incidents; i++)
		print_message("%s\n", judgement->judged[i].incident.summary);
	return cl_truth_score(scenario, judgement, &outcome);
}

static void add_fault(struct cl_scenario *scenario, const char *fault)
{
	const char *why;

	if (cl_fault_parse(fault, &scenario->fault[scenario->faults++], &why) < 0)
		fail_msg("%s: %s", fault, why);
}

/* All that is wanted and nothing else. */
static void come_out_right(struct cl_scenario scenario, const char *fault, uint32_t wanted)
{
	struct cl_score score;

	if (fault)
		add_fault(&scenario, fault);
	score = judge(&scenario);
	assert_int_equal(score.wanted, wanted);
	assert_int_equal(score.found, wanted);
	assert_int_equal(score.classed, wanted);
	assert_int_equal(score.wrong, 0);
	assert_int_equal(score.needless, 0);
	assert_int_equal(score.twice, 0);
	assert_int_equal(score.open, 0);
}

static void the_same_seed_draws_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++) {
		const struct cl_scenario a = cl_draw(seed, 3e5), b = cl_draw(seed, 3e5);

		assert_null(cl_scenario_check(&a));
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void nobody_innocent_is_named_in_drawn_clusters(void **state)
{
	(void)state;
	for (uint64_t seed = 9001; seed < 9001 + 5 * sim_seeds(); seed++) {
		const struct cl_scenario scenario = cl_draw(seed, 1e5);

		assert_int_equal(judge(&scenario).wrong, 0);
	}
}

static void steps_of_many_seconds_show_who_is_slow(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.mode = CL_PLUGIN;
	s.steps = 80;
	s.step_s = 5;
	come_out_right(s, "compute 2 1.5 from 40", 1);
	s.step_s = 20;
	come_out_right(s, "compute 2 1.5 from 40", 1);
	s.dp = 5;
	s.node_ranks = 1;
	s.jitter = 0.002;
	s.steps = 97;
	s.step_s = 1.2;
	s.seed = 224;
	come_out_right(s, "loader 2 0.108 from 47", 1);
}

static void the_first_long_steps_are_no_hang(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.mode = CL_PLUGIN;
	s.tp = 4;
	s.dp = 9;
	s.node_ranks = 3;
	s.layers = 38;
	s.microbatches = 2;
	s.step_s = 21.5;
	s.steps = 40;
	come_out_right(s, NULL, 0);
}

/* All sends and receives of the first step are enqueued in a burst, and look like steps of their own. */
static void a_first_burst_of_calls_is_no_measure_of_a_hang(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.mode = CL_PLUGIN;
	s.dp = 3;
	s.pp = 5;
	s.microbatches = 8;
	s.layers = 1;
	s.buckets = 8;
	s.aligned_end = false;
	s.step_s = 28;
	s.steps = 12;
	come_out_right(s, NULL, 0);
}

/* The stages in the middle of a pipeline take the same step for one as its ends do. */
static void a_stage_is_not_long_whose_calls_come_in_bursts(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.mode = CL_PLUGIN;
	s.dp = 8;
	s.pp = 5;
	s.microbatches = 5;
	s.layers = 6;
	s.buckets = 1;
	s.step_s = 2;
	s.steps = 60;
	come_out_right(s, NULL, 0);
}

/* Times by device come late where hosts run ahead: pasts are half learned when the fault begins. */
static void who_becomes_slow_early_among_three_is_named(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.mode = CL_PLUGIN;
	s.tp = 8;
	s.dp = 3;
	s.microbatches = 2;
	s.layers = 13;
	s.buckets = 1;
	s.aligned_end = false;
	s.step_s = 1.1;
	s.steps = 80;
	come_out_right(s, "compute 5 1.43 from 31", 1);
}

static void all_whose_fault_ended_are_told(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 6;
	s.pp = 4;
	s.microbatches = 7;
	s.layers = 2;
	s.sharded = true;
	s.node_ranks = 2;
	s.step_s = 0.45;
	s.jitter = 0.016;
	s.spread = 0.012;
	s.steps = 512;
	s.seed = 578;
	come_out_right(s, "compute-half 0 1.67 from 67 until 180", 1);
}

static void parts_of_steps_are_no_past(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 10;
	s.pp = 4;
	s.microbatches = 8;
	s.layers = 3;
	s.buckets = 3;
	s.rendezvous = s.ring = true;
	s.aligned_end = false;
	s.node_ranks = 4;
	s.step_s = 6.1;
	s.jitter = 0.008;
	s.steps = 60;
	s.seed = 471;
	come_out_right(s, NULL, 0);
}

static void what_was_taken_off_for_starving_is_no_fast_network(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 48;
	s.layers = 1;
	s.buckets = 6;
	s.step_s = 0.308;
	s.jitter = 0.0034;
	s.steps = 400;
	s.weather.lost = 0.0189;
	s.seed = 558;
	come_out_right(s, "contention 4 0.024 from 98 until 205", 1);
}

static void a_fault_that_ended_is_not_put_down_to_counters(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.tp = 4;
	s.dp = 5;
	s.pp = 3;
	s.microbatches = 3;
	s.layers = 2;
	s.buckets = 13;
	s.sharded = s.counters = true;
	s.step_s = 1.375;
	s.jitter = 0.0077;
	s.spread = 0.0056;
	s.steps = 189;
	s.seed = 567;
	add_fault(&s, "counters 0 1669 from 51");
	come_out_right(s, "compute-node 6 1.405 from 49 until 80", 1);
}

/* Counters of another node turn a little later, grow, and stay when the fault is over. */
static void a_nic_that_is_named_hands_over_to_no_innocent_one(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.mode = CL_PLUGIN;
	s.dp = 5;
	s.layers = 2;
	s.buckets = 1;
	s.node_ranks = 2;
	s.stride = 3;
	s.counters = true;
	s.aligned_end = false;
	s.steps = 266;
	s.step_s = 0.77;
	s.jitter = 0.0056;
	s.seed = 20122;
	add_fault(&s, "counters 2 858 from 32 ramp 6");
	come_out_right(s, "nic 1 4.17 from 29 until 72", 1);
}

static void who_waits_in_a_ring_is_no_path(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 4;
	s.layers = 13;
	s.buckets = 1;
	s.rendezvous = s.ring = true;
	s.aligned_end = false;
	s.node_ranks = 3;
	s.step_s = 2.7;
	s.jitter = 0.011;
	s.spread = 0.0034;
	s.steps = 124;
	s.seed = 602;
	come_out_right(s, "compute 2 1.435 from 53 ramp 21", 1);
}

static void whoever_counts_most_is_waited_for(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.tp = 3;
	s.dp = 6;
	s.microbatches = 2;
	s.layers = 1;
	s.buckets = 5;
	s.sharded = s.counters = true;
	s.mode = CL_LOCAL_SYNC;
	s.node_ranks = 1;
	s.step_s = 0.183146369;
	s.jitter = 0.010270643;
	s.steps = 500;
	s.seed = 177;
	come_out_right(s, "nic 2 3.14 from 107 until 239", 1);
}

static void who_waits_for_a_rank_that_goes_on_is_no_laggard(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 15;
	s.pp = 4;
	s.microbatches = 3;
	s.layers = 24;
	s.buckets = 3;
	s.mode = CL_LOCAL_SYNC;
	s.node_ranks = 3;
	s.step_s = 0.532;
	s.jitter = 0.017;
	s.steps = 94;
	s.seed = 2045;
	come_out_right(s, "checkpoint 32 39.8 from 44", 1);
}

static void more_work_for_all_is_nobodys_past_when_it_ends(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 5;
	s.microbatches = 2;
	s.layers = s.buckets = 1;
	s.rendezvous = s.ring = true;
	s.node_ranks = 3;
	s.step_s = 0.338;
	s.jitter = 0.003;
	s.spread = 0.009;
	s.steps = 400;
	s.seed = 2050;
	come_out_right(s, "batch 3 1.148 from 85 until 226 ramp 40", 1);
}

static void who_was_slower_by_nature_has_a_fault_since_it_began(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_scenario s = cl_scenario_default();
	struct cl_outcome outcome;

	(void)state;
	s.dp = 5;
	s.microbatches = 2;
	s.layers = 6;
	s.buckets = 5;
	s.rendezvous = true;
	s.aligned_end = false;
	s.node_ranks = 4;
	s.step_s = 0.895;
	s.jitter = 0.0039;
	s.spread = 0.011;
	s.steps = 100;
	s.seed = 186;
	add_fault(&s, "compute-node 1 1.485 from 39");
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(cl_run(&s, NULL, judgement, &outcome), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "compute");
	assert_in_range(judgement->judged[0].incident.since_real_ns,
			(uint64_t)outcome.fault_ns - 3000000000,
			(uint64_t)outcome.fault_ns + 3000000000);
}

static void who_is_named_and_left_alone_is_not_the_whole_job(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 10;
	s.layers = 34;
	s.buckets = 5;
	s.sharded = true;
	s.steps = 255;
	s.step_s = 0.254;
	s.jitter = 0.0158;
	s.seed = 20134;
	add_fault(&s, "agent-dies 0 1 from 155");
	come_out_right(s, "compute-node 1 1.2775 from 90", 1);
}

/* Hosts run ahead, and agents hear of the call at other times than of the wait for it. */
static void a_mismatch_is_told_once(void **state)
{
	(void)state;
	for (enum cl_mode mode = CL_BLOCKING; mode < CL_MODE_END; mode++) {
		for (uint32_t seed = 1; seed <= 4; seed++) {
			struct cl_scenario s = cl_scenario_default();

			s.mode = mode;
			s.seed = seed;
			s.node_ranks = 1 + seed;
			s.step_s = 0.2 * seed;
			s.steps = 120;
			come_out_right(s, "mismatch 3 1 from 70", 1);
		}
	}
}

/* All its devices wait; and one that was slow before has made the steps until then longer. */
static void a_job_that_stands_costs_all_its_gpus(void **state)
{
	static const char *const faults[] = {"laggard 3 1 from 70", "exit 3 1 from 70",
					     "network-hang 3 1 from 70", "mismatch 3 1 from 70",
					     "checkpoint 3 60 from 70"};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		for (int slow = 0; slow < 2; slow++) {
			struct cl_scenario s = cl_scenario_default();
			struct cl_score score;

			s.mode = CL_PLUGIN;
			s.node_ranks = 4;
			s.steps = 260;
			add_fault(&s, faults[i]);
			if (slow)
				add_fault(&s, "compute 5 1.5 from 30");
			score = judge(&s);
			assert_int_equal(score.found, 1 + slow);
			if (score.cost < 0.95 || score.cost > 1.05)
				fail_msg("%s: told / lost %.3f", faults[i], score.cost);
		}
	}
}

/* Nobody has peers by which a network is held against others': all depends on the past. */
static void what_begins_before_the_past_is_whole_is_told(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 8;
	s.node_ranks = 2;
	s.step_s = 0.5;
	s.steps = 120;
	come_out_right(s, "nic 1 5 from 24", 1);
	s.mode = CL_LOCAL_SYNC;
	come_out_right(s, "nic 1 5 from 24", 1);
	s.mode = CL_ASYNC;
	come_out_right(s, "gc-all 0 0.1 from 24", 1);
	s.counters = true;
	come_out_right(s, "nic 1 5 from 24", 1);
	s.mode = CL_PLUGIN;
	come_out_right(s, "path 1,2 5 from 24", 1);
	s.mode = CL_BLOCKING;
	s.counters = false;
	s.rendezvous = s.ring = true;
	come_out_right(s, "nic 1 5 from 24", 1);
}

static void many_ranks_noise_hides_no_slow_network(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 64;
	s.node_ranks = 2;
	s.mode = CL_LOCAL_SYNC;
	s.step_s = 0.5;
	s.jitter = 0.02;
	s.steps = 90;
	come_out_right(s, "nic 1 2 from 35", 1);
}

static void who_costs_little_explains_no_slow_path(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 9;
	s.node_ranks = 8;
	s.layers = 1;
	s.microbatches = 2;
	s.counters = true;
	s.late_agents = 18;
	s.step_s = 0.116;
	s.steps = 600;
	add_fault(&s, "compute 8 1.06 from 190");
	come_out_right(s, "path 1,0 2.86 from 215", 2);
}

static void more_work_for_all_devices_hides_no_late_host(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 8;
	s.node_ranks = 2;
	s.mode = CL_PLUGIN;
	s.step_s = 0.6;
	s.steps = 140;
	add_fault(&s, "batch 0 1.25 from 40");
	come_out_right(s, "contention 3 0.06 from 45", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_draws_the_same),
		cmocka_unit_test(nobody_innocent_is_named_in_drawn_clusters),
		cmocka_unit_test(steps_of_many_seconds_show_who_is_slow),
		cmocka_unit_test(the_first_long_steps_are_no_hang),
		cmocka_unit_test(a_first_burst_of_calls_is_no_measure_of_a_hang),
		cmocka_unit_test(a_stage_is_not_long_whose_calls_come_in_bursts),
		cmocka_unit_test(who_becomes_slow_early_among_three_is_named),
		cmocka_unit_test(all_whose_fault_ended_are_told),
		cmocka_unit_test(parts_of_steps_are_no_past),
		cmocka_unit_test(what_was_taken_off_for_starving_is_no_fast_network),
		cmocka_unit_test(a_fault_that_ended_is_not_put_down_to_counters),
		cmocka_unit_test(a_nic_that_is_named_hands_over_to_no_innocent_one),
		cmocka_unit_test(who_waits_in_a_ring_is_no_path),
		cmocka_unit_test(whoever_counts_most_is_waited_for),
		cmocka_unit_test(who_waits_for_a_rank_that_goes_on_is_no_laggard),
		cmocka_unit_test(more_work_for_all_is_nobodys_past_when_it_ends),
		cmocka_unit_test(who_was_slower_by_nature_has_a_fault_since_it_began),
		cmocka_unit_test(who_is_named_and_left_alone_is_not_the_whole_job),
		cmocka_unit_test(a_mismatch_is_told_once),
		cmocka_unit_test(a_job_that_stands_costs_all_its_gpus),
		cmocka_unit_test(what_begins_before_the_past_is_whole_is_told),
		cmocka_unit_test(many_ranks_noise_hides_no_slow_network),
		cmocka_unit_test(who_costs_little_explains_no_slow_path),
		cmocka_unit_test(more_work_for_all_devices_hides_no_late_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
