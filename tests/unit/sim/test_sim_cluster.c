/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Played clusters through agents, messages, engine and detection: who is named, and who is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim/scenarios.h"
#include "tests/unit/sim/seeds.h"

/* Plays it with each seed. Nobody innocent may be accused; `wanted` faults are to be found. */
static void play(struct cl_scenario scenario, uint32_t wanted)
{
	for (scenario.seed = 101; scenario.seed < 101 + sim_seeds(); scenario.seed++) {
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		struct cl_outcome outcome;
		struct cl_score score;

		assert_int_equal(nt_judgement_new(&judgement), 0);
		score = scenario_play(&scenario, wanted, judgement, &outcome);
		assert_int_equal(score.classed, wanted);
		assert_true(outcome.messages > 0 && outcome.frames > 20);
		assert_int_equal(outcome.refused, 0);
	}
}

static void a_healthy_cluster_is_silent(void **state)
{
	struct cl_scenario scenario = scenario_with(NULL);

	(void)state;
	play(scenario, 0);
	scenario.tp = 2;
	scenario.pp = 2;
	scenario.microbatches = 4;
	scenario.jitter = 0.02;
	play(scenario, 0);
}

static void a_slow_rank_is_named_in_every_layout(void **state)
{
	struct cl_scenario scenario = scenario_with("compute 5 1.3 from 30");

	(void)state;
	play(scenario, 1);
	scenario.tp = 2;
	play(scenario, 1);
	scenario.pp = 2;
	scenario.microbatches = 4;
	play(scenario, 1);
	scenario.pp = scenario.tp = 1;
	scenario.sharded = true;
	play(scenario, 1);
	scenario.sharded = false;
	scenario.dp = 16;
	scenario.ep = 4;
	play(scenario, 1);
}

static void what_asynchronous_hosts_show_is_judged_and_no_more(void **state)
{
	struct cl_scenario scenario = scenario_with("compute 5 1.3 from 30");

	(void)state;
	scenario.mode = CL_LOCAL_SYNC;
	play(scenario, 1);
	scenario.mode = CL_ASYNC;
	play(scenario, 0);
	scenario.mode = CL_LOCAL_SYNC;
	scenario.tp = 2;
	play(scenario, 0);
}

static void where_devices_tell_every_layout_shows_who_is_slow(void **state)
{
	static const char *const faults[] = {"compute 5 1.1 from 30", "loader 5 0.1 from 30",
					     "compute-half 0 1.3 from 30"};
	struct cl_scenario scenario;

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		scenario = scenario_with(faults[i]);
		scenario.mode = CL_PLUGIN;
		play(scenario, 1);
		scenario.tp = 2;
		play(scenario, 1);
		scenario.tp = 1;
		scenario.sharded = true;
		play(scenario, 1);
	}
	scenario = scenario_with("compute 5 1.3 from 30");
	scenario.mode = CL_PLUGIN;
	scenario.pp = 2;
	scenario.microbatches = 4;
	play(scenario, 1);
	scenario = scenario_with(NULL);
	scenario.mode = CL_PLUGIN;
	scenario.jitter = 0.02;
	play(scenario, 0);
	scenario.weather.intervals_lost = 0.01;
	scenario.weather.lost = 0.01;
	play(scenario, 0);
}

/* For seconds of every thirty, and without a pause once the steps are longer. */
static void devices_that_are_measured_in_windows_show_who_is_slow(void **state)
{
	struct cl_scenario scenario = scenario_with("compute 5 1.3 from 90");

	(void)state;
	scenario.mode = CL_PLUGIN;
	scenario.measures = true;
	scenario.steps = 150;
	play(scenario, 1);
	scenario = scenario_with(NULL);
	scenario.mode = CL_PLUGIN;
	scenario.measures = true;
	scenario.steps = 150;
	scenario.jitter = 0.02;
	play(scenario, 0);
}

static void devices_that_transfer_slowly_are_tier_3(void **state)
{
	struct cl_scenario scenario = scenario_with("nic 1 5 from 30");
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_outcome outcome;

	(void)state;
	scenario.mode = CL_PLUGIN;
	scenario.dp = 32;
	scenario.steps = 90;
	play(scenario, 1);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(cl_run(&scenario, NULL, judgement, &outcome), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_int_equal(judgement->judged[0].incident.tier, NT_TIER_T3);
	assert_string_equal(judgement->judged[0].incident.class, "network");
}

/* Windows hold two steps of the device now and none then: no frame has what all members tell. */
static void a_slow_network_shows_in_a_pipeline_of_long_steps(void **state)
{
	struct cl_scenario scenario = scenario_with("nic 1 5 from 30");

	(void)state;
	scenario.mode = CL_PLUGIN;
	scenario.tp = 2;
	scenario.pp = 2;
	scenario.dp = 8;
	scenario.microbatches = 4;
	scenario.node_ranks = 8;
	scenario.steps = 90;
	play(scenario, 1);
}

/* What was lost on the way to a verdict is told with it: windows, and what they are made from. */
static void a_verdict_on_less_than_all_says_so(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct cl_scenario scenario = scenario_with("compute 5 1.3 from 30");
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		struct cl_outcome outcome;
		double completeness;

		scenario.mode = CL_PLUGIN;
		scenario.seed = 101;
		scenario.weather.intervals_lost = i == 1 ? 0.02 : 0;
		scenario.weather.lost = i == 2 ? 0.02 : 0;
		assert_int_equal(nt_judgement_new(&judgement), 0);
		assert_int_equal(cl_run(&scenario, NULL, judgement, &outcome), 0);
		assert_int_equal(judgement->incidents, 1);
		assert_string_equal(judgement->judged[0].incident.class, "compute");
		completeness = judgement->judged[0].incident.completeness;
		if (i)
			assert_true(completeness > 0.9 && completeness < 0.999);
		else
			assert_true(completeness == 1);
	}
}

static void a_slow_node_is_one_finding(void **state)
{
	struct cl_scenario scenario = scenario_with("compute-node 2 1.3 from 30");

	(void)state;
	scenario.dp = 64;
	play(scenario, 1);
}

static void a_job_that_stands_names_who_is_missing(void **state)
{
	static const char *const faults[] = {"exit 3 1 from 30", "laggard 3 1 from 30",
					     "mismatch 3 1 from 30", "network-hang 0 1 from 30"};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct cl_scenario scenario = scenario_with(faults[i]);

		scenario.steps = 120;
		play(scenario, 1);
		scenario.mode = CL_ASYNC;
		play(scenario, 1);
	}
}

/* Behind several groups, and where hosts have gone on to wait for their devices long ago. */
static void who_waits_behind_a_pipeline_is_a_victim(void **state)
{
	static const char *const faults[] = {"exit 7 1 from 30", "laggard 6 1 from 30",
					     "mismatch 25 1 from 30"};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct cl_scenario scenario = scenario_with(faults[i]);

		scenario.steps = 120;
		scenario.tp = 2;
		scenario.pp = 2;
		scenario.microbatches = 4;
		for (int mode = CL_BLOCKING; mode < CL_MODE_END; mode++) {
			scenario.mode = (enum cl_mode)mode;
			play(scenario, 1);
		}
	}
}

/* There the laggard itself is not heard of any more: who waits for it a stage further is no other one. */
static void the_last_window_of_a_recording_renames_nobody(void **state)
{
	struct cl_scenario scenario = scenario_with("laggard 3 1 from 60");

	(void)state;
	scenario.steps = 200;
	scenario.step_s = 0.4;
	scenario.tp = scenario.dp = scenario.pp = 2;
	scenario.microbatches = 4;
	scenario.buckets = 3;
	scenario.mode = CL_LOCAL_SYNC;
	play(scenario, 1);
}

/* The call that differs is one of many of its step, and no longer among the last sixteen. */
static void a_mismatch_early_in_the_step_is_told_by_the_hash(void **state)
{
	struct cl_scenario scenario = scenario_with("mismatch 7 1 from 30");

	(void)state;
	scenario.steps = 120;
	scenario.dp = 32;
	scenario.sharded = true;
	scenario.mode = CL_ASYNC;
	play(scenario, 1);
}

/* Where devices end steps, hosts of a small group are hardly ever at the same call. */
static void a_mismatch_is_told_in_small_groups_whose_hosts_run_ahead(void **state)
{
	struct cl_scenario scenario = scenario_with("mismatch 3 1 from 208");

	(void)state;
	scenario.steps = 700;
	scenario.step_s = 0.06;
	scenario.dp = 3;
	scenario.mode = CL_PLUGIN;
	for (scenario.tp = 2; scenario.tp < 4; scenario.tp++)
		play(scenario, 1);
}

static void hiccups_accuse_nobody(void **state)
{
	struct cl_scenario scenario = scenario_with(NULL);

	(void)state;
	scenario.hiccups = 0.01;
	scenario.steps = 400;
	play(scenario, 0);
	scenario.tp = 8;
	scenario.steps = 120;
	play(scenario, 0);
}

static void pauses_of_all_accuse_nobody(void **state)
{
	struct cl_scenario scenario = scenario_with("gc-all 0 0.1 from 30");

	(void)state;
	scenario.steps = 120;
	for (int mode = CL_BLOCKING; mode < CL_MODE_END; mode++) {
		scenario.mode = (enum cl_mode)mode;
		play(scenario, 1);
	}
}

/* Whom it held up is not to blame, and least when it lets them go. */
static void a_checkpoint_of_one_rank_is_its_own(void **state)
{
	struct cl_scenario scenario = scenario_with("checkpoint 0 60 from 30");

	(void)state;
	play(scenario, 1);
	scenario.tp = 8;
	play(scenario, 1);
	scenario.tp = 1;
	scenario.pp = 4;
	scenario.microbatches = 4;
	play(scenario, 1);
}

static void bad_weather_changes_no_verdict(void **state)
{
	struct cl_scenario scenario = scenario_with("compute 5 1.3 from 30");

	(void)state;
	scenario.weather = (struct cl_weather){.lost = 0.01,
					       .doubled = 0.01,
					       .late = 0.05,
					       .late_s = 2,
					       .clock_offset_s = 0.005,
					       .clock_drift = 1e-5};
	play(scenario, 1);
}

static void a_fault_after_a_restart_of_the_agent_is_named(void **state)
{
	struct cl_scenario scenario = scenario_with("agent-restarts 1 1 from 20");
	const char *why;

	(void)state;
	assert_int_equal(
		cl_fault_parse("compute 5 1.3 from 50", &scenario.fault[scenario.faults++], &why),
		0);
	scenario.node_ranks = 4;
	scenario.steps = 90;
	play(scenario, 1);
	scenario.mode = CL_LOCAL_SYNC;
	play(scenario, 1);
}

static void a_fault_that_is_no_fault_is_refused(void **state)
{
	static const char *const faults[] = {"",
					     "none 1 1 from 2",
					     "compute",
					     "compute x 1 from 2",
					     "compute 1 1",
					     "compute 1 1 from 2 then",
					     "compute 1.5 1 from 2",
					     "compute 1 1 from 2 on 3"};
	struct cl_fault fault;
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_true(cl_fault_parse(faults[i], &fault, &why) < 0);
}

/* Nodes of two ranks: the exchange of neighbours crosses from each to the next. */
static struct cl_scenario scenario_of_nodes(const char *fault)
{
	struct cl_scenario scenario = scenario_with(fault);

	scenario.dp = 12;
	scenario.node_ranks = 2;
	scenario.steps = 70;
	return scenario;
}

static void times_by_peer_tell_the_nic_from_the_path(void **state)
{
	struct cl_scenario scenario = scenario_of_nodes("nic 3 5 from 30");

	(void)state;
	scenario.ring = true;
	play(scenario, 1);
	scenario.rendezvous = true;
	scenario.dp = 4;
	scenario.pp = 3;
	scenario.microbatches = 4;
	play(scenario, 1);
	scenario = scenario_of_nodes("path 3,4 5 from 30");
	scenario.ring = true;
	play(scenario, 1);
	scenario = scenario_of_nodes(NULL);
	scenario.ring = true;
	scenario.jitter = 0.02;
	play(scenario, 0);
}

static void counters_tell_the_nic_of_an_asynchronous_job_too(void **state)
{
	struct cl_scenario scenario = scenario_of_nodes("nic 3 5 from 30");

	(void)state;
	scenario.counters = true;
	for (int mode = 0; mode < CL_MODE_END; mode++) {
		scenario.mode = (enum cl_mode)mode;
		play(scenario, 1);
	}
	scenario = scenario_of_nodes("path 3,0 5 from 30");
	scenario.counters = true;
	scenario.mode = CL_ASYNC;
	play(scenario, 1);
	/* They may turn for nothing. */
	scenario = scenario_of_nodes("counters 2 5000 from 30");
	scenario.counters = true;
	scenario.mode = CL_ASYNC;
	play(scenario, 0);
}

static void two_communicators_tell_the_nic_that_they_share(void **state)
{
	struct cl_scenario scenario = scenario_of_nodes("nic 3 5 from 30");

	(void)state;
	scenario.tp = 4;
	scenario.dp = 4;
	play(scenario, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_by_peer_tell_the_nic_from_the_path),
		cmocka_unit_test(counters_tell_the_nic_of_an_asynchronous_job_too),
		cmocka_unit_test(two_communicators_tell_the_nic_that_they_share),
		cmocka_unit_test(a_healthy_cluster_is_silent),
		cmocka_unit_test(a_slow_rank_is_named_in_every_layout),
		cmocka_unit_test(what_asynchronous_hosts_show_is_judged_and_no_more),
		cmocka_unit_test(where_devices_tell_every_layout_shows_who_is_slow),
		cmocka_unit_test(devices_that_transfer_slowly_are_tier_3),
		cmocka_unit_test(a_slow_network_shows_in_a_pipeline_of_long_steps),
		cmocka_unit_test(a_verdict_on_less_than_all_says_so),
		cmocka_unit_test(a_slow_node_is_one_finding),
		cmocka_unit_test(a_job_that_stands_names_who_is_missing),
		cmocka_unit_test(who_waits_behind_a_pipeline_is_a_victim),
		cmocka_unit_test(the_last_window_of_a_recording_renames_nobody),
		cmocka_unit_test(a_mismatch_early_in_the_step_is_told_by_the_hash),
		cmocka_unit_test(a_mismatch_is_told_in_small_groups_whose_hosts_run_ahead),
		cmocka_unit_test(hiccups_accuse_nobody),
		cmocka_unit_test(pauses_of_all_accuse_nobody),
		cmocka_unit_test(a_checkpoint_of_one_rank_is_its_own),
		cmocka_unit_test(bad_weather_changes_no_verdict),
		cmocka_unit_test(a_fault_after_a_restart_of_the_agent_is_named),
		cmocka_unit_test(a_fault_that_is_no_fault_is_refused),
		cmocka_unit_test(devices_that_are_measured_in_windows_show_who_is_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
