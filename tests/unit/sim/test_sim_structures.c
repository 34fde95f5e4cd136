/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What real jobs do beside computing and reducing: the simulator does it, and it accuses nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim/cluster/effect.h"
#include "tests/sim/cluster/play/play.h"
#include "tests/sim/cluster/program.h"
#include "tests/unit/sim/scenarios.h"
#include "tests/unit/sim/seeds.h"

/* Nobody innocent is accused, and `wanted` faults are found. */
static void comes_out_right(struct cl_scenario scenario, uint32_t wanted)
{
	for (scenario.seed = 101; scenario.seed < 101 + sim_seeds(); scenario.seed++) {
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		struct cl_outcome outcome;

		assert_int_equal(nt_judgement_new(&judgement), 0);
		(void)scenario_play(&scenario, wanted, judgement, &outcome);
	}
}

/* How long the job takes, ns. */
static int64_t time_of(const struct cl_scenario *s)
{
	struct cl_play *play;
	int64_t ns;

	assert_null(cl_scenario_check(s));
	assert_int_equal(cl_play_new(s, &play), 0);
	for (uint32_t step = 0; step < s->steps; step++)
		assert_int_equal(cl_play_step(play), 0);
	ns = cl_play_known_ns(play);
	cl_play_free(play);
	return ns;
}

static void weights_that_are_gathered_ahead_hide_behind_kernels(void **state)
{
	struct cl_scenario s = scenario_with(NULL);
	int64_t plain_ns;

	(void)state;
	s.mode = CL_PLUGIN;
	s.sharded = true;
	plain_ns = time_of(&s);
	s.structure.prefetch = true;
	assert_in_range(time_of(&s), plain_ns / 2, plain_ns * 19 / 20);
	s.mode = CL_BLOCKING;
	plain_ns = time_of(&s);
	s.structure.prefetch = false;
	assert_int_equal(time_of(&s), plain_ns);
	s.sharded = false;
	s.structure.prefetch = true;
	assert_non_null(cl_scenario_check(&s));
}

static void hosts_that_run_ahead_wait_once_in_so_many_steps(void **state)
{
	struct cl_scenario s = scenario_with(NULL);

	(void)state;
	s.structure.ahead = 4;
	for (s.mode = CL_BLOCKING; s.mode < CL_MODE_END; s.mode++) {
		const bool ahead = s.mode == CL_ASYNC || s.mode == CL_PLUGIN;

		assert_int_equal(cl_scenario_step_kind(&s, 2),
				 ahead ? CL_STEP_AHEAD : CL_STEP_TRAINING);
		assert_int_equal(cl_scenario_step_kind(&s, 3), CL_STEP_TRAINING);
	}
}

static void what_is_between_steps_takes_its_time(void **state)
{
	struct cl_scenario s = scenario_with(NULL);
	const int64_t plain_ns = time_of(&s);

	(void)state;
	s.structure.save_every = 20;
	s.structure.save_s = 3;
	assert_int_equal(cl_scenario_step_kind(&s, 0), CL_STEP_TRAINING);
	assert_int_equal(cl_scenario_step_kind(&s, 20), CL_STEP_SAVED);
	/* Twice, until the slowest has written. */
	assert_in_range(time_of(&s) - plain_ns, 6000000000, 6700000000);
}

static void natures_shares_and_phases_are_as_large_as_said(void **state)
{
	enum {
		MANY = 4000,
	};
	struct cl_scenario s = scenario_with(NULL);
	double low = 2, high = 0, sum = 0;

	(void)state;
	s.dp = MANY;
	s.structure.fleet = 0.02;
	for (uint32_t i = 0; i < MANY; i++) {
		const double nature = cl_effect_of_nature(&s, i);

		low = nature < low ? nature : low;
		high = nature > high ? nature : high;
		sum += nature / MANY;
	}
	assert_true(low > 0.9 && low < 0.96);
	assert_true(high > 1.08 && high < 1.1);
	assert_true(sum > 1 && sum < 1.005);

	s = scenario_with(NULL);
	s.structure.phase = 50;
	s.structure.phase_factor = 1.4;
	s.structure.warmup = 10;
	assert_true(cl_effect_on_work(&s, 0, 0) > 1 && cl_effect_on_work(&s, 0, 0) < 3);
	assert_true(cl_effect_on_work(&s, 0, 49) == 1 && cl_effect_on_work(&s, 0, 50) == 1.4);
	s = scenario_with(NULL);
	s.tp = 2;
	s.structure.shares = 0.15;
	/* Ranks 0 and 1 are one replica, and have one batch. */
	assert_true(cl_effect_on_work(&s, 0, 7) == cl_effect_on_work(&s, 1, 7));
	assert_true(cl_effect_on_work(&s, 0, 7) != cl_effect_on_work(&s, 2, 7));
	assert_true(cl_effect_on_work(&s, 0, 7) != cl_effect_on_work(&s, 0, 8));
}

/* One structure at a time. */
static struct cl_scenario structured(int which, const char *fault)
{
	struct cl_scenario s = scenario_with(fault);

	s.steps = 90;
	switch (which) {
	case 0:
		s.sharded = s.structure.prefetch = true;
		break;
	case 1:
		s.structure.ahead = 5;
		s.steps = 160;
		break;
	case 2:
		s.structure.save_every = s.evaluate_every = 25;
		s.structure.save_s = 3;
		s.evaluation = 4;
		break;
	case 3:
		s.buckets = 12;
		s.aligned_end = false;
		break;
	case 4:
		s.structure.shares = 0.15;
		s.steps = 120;
		break;
	case 5:
		s.structure.warmup = 10;
		break;
	case 6:
		s.structure.phase = 40;
		s.structure.phase_factor = 1.4;
		s.steps = 120;
		break;
	default:
		s.structure.fleet = 0.02;
		break;
	}
	return s;
}

enum {
	STRUCTURES = 8,
};

static void structures_accuse_nobody(void **state)
{
	(void)state;
	for (int i = 0; i < STRUCTURES; i++) {
		struct cl_scenario s = structured(i, NULL);

		for (s.mode = CL_BLOCKING; s.mode < CL_MODE_END; s.mode++) {
			print_message("structure %d, %s\n", i, cl_mode_name(s.mode));
			comes_out_right(s, 0);
		}
	}
}

static void who_is_slow_is_named_beside_structures(void **state)
{
	(void)state;
	for (int i = 0; i < STRUCTURES; i++) {
		struct cl_scenario s = structured(i, "compute 5 1.6 from 55");

		for (s.mode = CL_BLOCKING; s.mode < CL_MODE_END; s.mode++) {
			print_message("structure %d, %s\n", i, cl_mode_name(s.mode));
			comes_out_right(s, s.mode != CL_ASYNC &&
						   !(s.mode == CL_LOCAL_SYNC && s.sharded));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_that_are_gathered_ahead_hide_behind_kernels),
		cmocka_unit_test(hosts_that_run_ahead_wait_once_in_so_many_steps),
		cmocka_unit_test(what_is_between_steps_takes_its_time),
		cmocka_unit_test(natures_shares_and_phases_are_as_large_as_said),
		cmocka_unit_test(structures_accuse_nobody),
		cmocka_unit_test(who_is_slow_is_named_beside_structures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
