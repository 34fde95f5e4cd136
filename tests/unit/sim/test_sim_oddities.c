/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Played jobs that are not like the rest: ranks that are numbered across nodes, steps of evaluation,
 * agents that come late, nodes without a plugin.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/cluster/draw.h"
#include "tests/unit/sim/scenarios.h"

/* All that is wanted and nothing else; what was said last is left in `judgement`. */
static void play(const struct cl_scenario *scenario, uint32_t wanted,
		 struct nt_judgement *judgement)
{
	struct cl_outcome outcome;
	const struct cl_score score = scenario_play(scenario, wanted, judgement, &outcome);

	assert_int_equal(score.classed, wanted);
}

static void comes_out_right(struct cl_scenario scenario, uint32_t wanted)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	play(&scenario, wanted, judgement);
}

static void each_rank_has_one_place_on_one_node(void **state)
{
	struct cl_scenario s = cl_scenario_default();

	(void)state;
	s.dp = 23;
	s.node_ranks = 4;
	for (s.stride = 1; s.stride < 23; s.stride++) {
		bool seen[23] = {false};
		uint32_t all = 0;

		assert_null(cl_scenario_check(&s));
		for (uint32_t node = 0; node < cl_scenario_nodes(&s); node++) {
			for (uint32_t i = 0; i < cl_scenario_ranks_on(&s, node); i++) {
				const uint32_t rank = cl_scenario_rank_on(&s, node, i);

				assert_in_range(rank, 0, 22);
				assert_false(seen[rank]);
				assert_int_equal(cl_scenario_node_of(&s, rank), node);
				seen[rank] = true;
				all++;
			}
		}
		assert_int_equal(all, 23);
	}
	s.dp = 24;
	s.stride = 6;
	assert_non_null(cl_scenario_check(&s));
}

static void every_so_many_steps_end_with_an_evaluation(void **state)
{
	struct cl_scenario s = cl_scenario_default();
	uint32_t steps = 0;

	(void)state;
	assert_false(cl_scenario_is_evaluation(&s, 0));
	s.evaluate_every = 10;
	s.evaluation = 3;
	for (uint32_t step = 0; step < 100; step++)
		steps += cl_scenario_is_evaluation(&s, step);
	assert_int_equal(steps, 30);
	assert_false(cl_scenario_is_evaluation(&s, 6));
	assert_true(cl_scenario_is_evaluation(&s, 7));
	assert_true(cl_scenario_is_evaluation(&s, 9));
	assert_false(cl_scenario_is_evaluation(&s, 10));
	s.evaluation = 10;
	assert_non_null(cl_scenario_check(&s));
}

static void every_oddity_is_drawn_and_none_always(void **state)
{
	enum {
		SEEDS = 300,
		KINDS = 6,
	};
	uint32_t of[KINDS] = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct cl_scenario s = cl_draw(seed, 1e6);

		assert_null(cl_scenario_check(&s));
		of[0] += s.stride > 1;
		of[1] += s.evaluate_every > 0;
		of[2] += s.late_agents > 0;
		of[3] += s.start_s > 0;
		of[4] += s.bare > 0;
		of[5] += cl_scenario_ranks(&s) > 512;
		if (s.bare > 0)
			assert_int_equal(s.mode, CL_PLUGIN);
		for (size_t i = 0; i < s.faults; i++)
			assert_true(!s.fault[i].from || s.fault[i].from >= s.late_agents);
	}
	for (int i = 0; i < KINDS; i++)
		assert_in_range(of[i], 3, SEEDS / 2);
}

static void ranks_are_named_with_the_node_that_they_are_on(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_scenario s = scenario_with("compute 5 1.4 from 30");
	char node[32];

	(void)state;
	s.dp = 16;
	s.node_ranks = 4;
	s.stride = 5;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	play(&s, 1, judgement);
	assert_int_equal(cl_scenario_node_of(&s, 5), 2);
	(void)snprintf(node, sizeof(node), "node-%05u", 2U);
	assert_string_equal(judgement->judged[0].incident.culprit[0].node, node);

	s = scenario_with("compute-node 1 1.4 from 30");
	s.dp = 16;
	s.node_ranks = 4;
	s.stride = 5;
	comes_out_right(s, 1);
}

static void an_evaluation_now_and_then_accuses_nobody(void **state)
{
	struct cl_scenario s = scenario_with(NULL);

	(void)state;
	s.steps = 120;
	s.evaluate_every = 25;
	s.evaluation = 4;
	for (s.mode = CL_BLOCKING; s.mode < CL_MODE_END; s.mode++)
		comes_out_right(s, 0);
	s.mode = CL_BLOCKING;
	s.tp = 2;
	comes_out_right(s, 0);
}

static void who_is_slow_is_named_though_there_are_evaluations(void **state)
{
	struct cl_scenario s = scenario_with("contention 0 0.05 from 60");

	(void)state;
	s.tp = 2;
	s.layers = 12;
	s.steps = 120;
	s.evaluate_every = 35;
	s.evaluation = 5;
	s.node_ranks = 4;
	s.mode = CL_LOCAL_SYNC;
	comes_out_right(s, 1);
	s.mode = CL_BLOCKING;
	comes_out_right(s, 1);
}

/* Equal buckets, or a few equal layers, of which an evaluation makes some or none. */
static void what_ends_is_over_though_there_are_evaluations(void **state)
{
	(void)state;
	for (enum cl_mode mode = CL_BLOCKING; mode < CL_MODE_END; mode++) {
		for (uint32_t buckets = 1; buckets <= 14; buckets += 13) {
			struct cl_scenario s = scenario_with("loader 6 0.3 from 90 until 160");

			s.mode = mode;
			s.dp = 7;
			s.node_ranks = 4;
			s.layers = 13;
			s.buckets = buckets;
			s.step_s = 0.5;
			s.steps = 460;
			s.evaluate_every = 47;
			s.evaluation = 8;
			comes_out_right(s, 1);
		}
	}
}

static struct cl_scenario resized(uint32_t before, uint32_t after, enum cl_mode mode,
				  const char *fault)
{
	struct cl_scenario s = scenario_with(fault);

	s.mode = mode;
	s.node_ranks = 2;
	s.steps = 200;
	s.resize = 60;
	s.dp = before > after ? before : after;
	s.dp_before = before;
	s.dp_after = after;
	return s;
}

/* Who left is not missing where the others go on without him, each waiting for its device in each step. */
static void a_job_that_changes_its_size_accuses_nobody(void **state)
{
	(void)state;
	for (enum cl_mode mode = CL_LOCAL_SYNC; mode < CL_MODE_END; mode++) {
		comes_out_right(resized(8, 6, mode, NULL), 0);
		comes_out_right(resized(8, 7, mode, NULL), 0);
		comes_out_right(resized(4, 8, mode, NULL), 0);
	}
}

static void who_is_slow_or_gone_after_a_change_of_size_is_named(void **state)
{
	(void)state;
	for (enum cl_mode mode = CL_LOCAL_SYNC; mode < CL_MODE_END; mode++) {
		comes_out_right(resized(8, 6, mode, "loader 3 0.3 from 120"), 1);
		comes_out_right(resized(8, 6, mode, "exit 3 1 from 120"), 1);
		comes_out_right(resized(8, 6, mode, "laggard 3 1 from 120"), 1);
		comes_out_right(resized(4, 8, mode, "loader 6 0.3 from 120"), 1);
		comes_out_right(resized(4, 8, mode, "exit 6 1 from 120"), 1);
	}
}

static void agents_that_come_late_name_who_is_slow(void **state)
{
	struct cl_scenario s = scenario_with("compute 5 1.4 from 50");

	(void)state;
	s.node_ranks = 2;
	s.steps = 90;
	s.late_agents = 12;
	for (s.mode = CL_BLOCKING; s.mode < CL_MODE_END; s.mode++)
		comes_out_right(s, s.mode != CL_ASYNC);
}

/* Whose parts of the job are alike is not known then, and parts of a pipeline differ. */
static void late_agents_hold_no_stage_against_another(void **state)
{
	struct cl_scenario s = scenario_with("stage 1 1.4 from 0");

	(void)state;
	s.late_agents = 8;
	s.steps = 110;
	s.node_ranks = 4;
	s.dp = 6;
	s.microbatches = 4;
	for (s.pp = 2; s.pp <= 4; s.pp += 2) {
		for (s.tp = 1; s.tp <= 2; s.tp++)
			comes_out_right(s, 1);
	}
}

static void late_agents_hold_a_rank_of_a_pipeline_against_its_past(void **state)
{
	struct cl_scenario s = scenario_with("compute 5 1.4 from 50");

	(void)state;
	s.late_agents = 8;
	s.steps = 110;
	s.node_ranks = 4;
	s.dp = 6;
	s.pp = 4;
	s.microbatches = 4;
	comes_out_right(s, 1);
}

/* What MPI makes of its world before an agent comes, other processes do not know by the same name. */
static void late_agents_tell_who_holds_a_job_that_stands(void **state)
{
	static const char *const faults[] = {"laggard 7 1 from 60", "exit 7 1 from 60",
					     "network-hang 7 1 from 60", "checkpoint 7 40 from 60"};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct cl_scenario s = scenario_with(faults[i]);

		s.late_agents = 10;
		s.steps = 150;
		s.node_ranks = 2;
		comes_out_right(s, 1);
		s.mode = CL_ASYNC;
		comes_out_right(s, 1);
		s.mode = CL_BLOCKING;
		s.pp = 2;
		s.microbatches = 2;
		comes_out_right(s, 1);
	}
}

static void processes_that_begin_one_after_the_other_are_no_hang(void **state)
{
	struct cl_scenario s = scenario_with(NULL);

	(void)state;
	s.start_s = 8;
	for (s.mode = CL_BLOCKING; s.mode < CL_MODE_END; s.mode++)
		comes_out_right(s, 0);
}

/* Rank 8 is on a node with a plugin, rank 2 on one without. */
static void who_has_no_plugin_is_held_against_nobody_who_has(void **state)
{
	struct cl_scenario s = scenario_with("compute 8 1.5 from 30");

	(void)state;
	s.mode = CL_PLUGIN;
	s.dp = 24;
	s.node_ranks = 2;
	s.bare = 0.5;
	while (cl_scenario_is_bare(&s, 4) || !cl_scenario_is_bare(&s, 1))
		s.seed++;
	comes_out_right(s, 1);
	s.fault[0].target = 2;
	comes_out_right(s, 0);
	s.faults = 0;
	comes_out_right(s, 0);
}

/* Jobs whose ranks have one peer or none. */
static const struct {
	uint32_t dp, pp, node_ranks;
	bool ring;
} alone[] = {{8, 1, 2, true}, {1, 4, 1, false}, {2, 1, 1, false}, {2, 4, 2, false}};

static struct cl_scenario alone_with(size_t index, const char *fault)
{
	struct cl_scenario s = scenario_with(fault);

	s.dp = alone[index].dp;
	s.pp = alone[index].pp;
	s.microbatches = s.pp;
	s.node_ranks = alone[index].node_ranks;
	s.rendezvous = s.ring = alone[index].ring;
	s.steps = 120;
	return s;
}

/* What it does in three of five windows is no yardstick of itself. */
static void a_rank_without_peers_that_is_slow_now_and_then_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		struct cl_scenario s = alone_with(i, "compute 1 1.3 from 30 on 3 of 5");
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		struct cl_outcome outcome;
		struct cl_score score;

		assert_int_equal(nt_judgement_new(&judgement), 0);
		assert_int_equal(cl_run(&s, NULL, judgement, &outcome), 0);
		score = cl_truth_score(&s, judgement, &outcome);
		assert_int_equal(score.wrong, 0);
		assert_int_equal(judgement->incidents, 1);
		assert_int_equal(judgement->judged[0].incident.culprits, 1);
		assert_int_equal(judgement->judged[0].incident.culprit[0].rank, 1);
	}
}

/* Each in its own time, so that one window shows it of half of them. */
static void pauses_that_all_make_accuse_no_rank_without_peers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		struct cl_scenario s = alone_with(i, "gc-all 0 0.1 from 30");
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		struct cl_outcome outcome;

		assert_int_equal(nt_judgement_new(&judgement), 0);
		assert_int_equal(cl_run(&s, NULL, judgement, &outcome), 0);
		assert_int_equal(cl_truth_score(&s, judgement, &outcome).wrong, 0);
	}
}

/* GPU hours told ÷ lost, NAN: not known. */
static double cost_of(const struct cl_scenario *s)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_outcome outcome;
	struct cl_score score;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(cl_run(s, NULL, judgement, &outcome), 0);
	score = cl_truth_score(s, judgement, &outcome);
	assert_int_equal(score.found, 1);
	return score.cost;
}

static void what_is_slow_from_the_start_is_charged_as_the_job_lost_it(void **state)
{
	struct cl_scenario s = scenario_with("compute 4 2 from 0");

	(void)state;
	s.mode = CL_PLUGIN;
	s.seed = 3;
	s.tp = s.pp = 2;
	s.microbatches = 4;
	s.aligned_end = false;
	/* Its evidence begins anew after some slow steps, which are no job without the fault. */
	assert_true(fabs(cost_of(&s) - 1.0) < 0.05);
	/* Its hosts have called for steps by then that are told and charged later. */
	s.tp = 8;
	s.pp = s.microbatches = 1;
	s.fault[0].factor = 1.1;
	assert_true(fabs(cost_of(&s) - 1.0) < 0.05);
}

static void two_halves_of_a_pipeline_have_no_price(void **state)
{
	struct cl_scenario s = scenario_with("compute-half 0 1.3 from 0");

	(void)state;
	s.mode = CL_PLUGIN;
	s.seed = 3;
	assert_true(fabs(cost_of(&s) - 1.0) < 0.05);
	s.pp = s.microbatches = 4;
	assert_true(isnan(cost_of(&s)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rank_has_one_place_on_one_node),
		cmocka_unit_test(every_so_many_steps_end_with_an_evaluation),
		cmocka_unit_test(every_oddity_is_drawn_and_none_always),
		cmocka_unit_test(ranks_are_named_with_the_node_that_they_are_on),
		cmocka_unit_test(an_evaluation_now_and_then_accuses_nobody),
		cmocka_unit_test(who_is_slow_is_named_though_there_are_evaluations),
		cmocka_unit_test(what_ends_is_over_though_there_are_evaluations),
		cmocka_unit_test(a_job_that_changes_its_size_accuses_nobody),
		cmocka_unit_test(who_is_slow_or_gone_after_a_change_of_size_is_named),
		cmocka_unit_test(agents_that_come_late_name_who_is_slow),
		cmocka_unit_test(late_agents_hold_no_stage_against_another),
		cmocka_unit_test(late_agents_hold_a_rank_of_a_pipeline_against_its_past),
		cmocka_unit_test(late_agents_tell_who_holds_a_job_that_stands),
		cmocka_unit_test(processes_that_begin_one_after_the_other_are_no_hang),
		cmocka_unit_test(a_rank_without_peers_that_is_slow_now_and_then_is_named),
		cmocka_unit_test(pauses_that_all_make_accuse_no_rank_without_peers),
		cmocka_unit_test(what_is_slow_from_the_start_is_charged_as_the_job_lost_it),
		cmocka_unit_test(two_halves_of_a_pipeline_have_no_price),
		cmocka_unit_test(who_has_no_plugin_is_held_against_nobody_who_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
