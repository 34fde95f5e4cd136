/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transfers that are slow in some rounds only. */
#include "tests/unit/detect/detect_frames.h"

enum {
	DATA = 0xda7a,
	LEARN = 40,
	TIMES = 8, /* as long */
};

/* Eight ranks, so many of which give the times of their devices. */
static struct nt_detect *start(struct sim *sim, uint32_t by_gpu)
{
	sim_init(sim, 8, 47);
	sim->jitter = 0.02;
	sim->blocking = true;
	sim->comm[0].timed = true;
	sim->comm[0].by_gpu = by_gpu;
	sim->lateness = 0.2 * SIM_MS;
	return sim_detect();
}

/* True: it is named within that many windows, of which those for which is_slow() are slow. */
static bool is_named(struct sim *sim, struct nt_detect *detect, int windows, bool (*is_slow)(int i))
{
	for (int i = 0; i < windows; i++) {
		sim->comm[0].transfer *= is_slow(i) ? TIMES : 1;
		sim_pass(sim, detect, 1);
		sim->comm[0].transfer /= is_slow(i) ? TIMES : 1;
		if (!sim_firing(detect, 0))
			continue;
		assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_NETWORK);
		assert_int_equal(sim_firing(detect, 0)->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
		assert_true(sim_firing(detect, 0)->culprit[0].comm == DATA);
		return true;
	}
	return false;
}

/* A fifth of the windows, without a pattern. */
static bool is_fifth(int i)
{
	return ((unsigned int)i * 2654435761U >> 16 & 1023) < 1024 / 5;
}

static bool is_twelfth(int i)
{
	return i % 12 == 5;
}

static bool is_pair(int i)
{
	return i % 20 == 5 || i % 20 == 6;
}

static bool is_rare(int i)
{
	return i % 97 == 5 || i % 101 == 60;
}

static void a_network_slow_in_a_fifth_of_the_rounds_is_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 8);

	(void)state;
	sim_pass(&sim, detect, LEARN);
	assert_true(is_named(&sim, detect, 60, is_fifth));
	/* This round is as usual; shown is the average since the onset. */
	sim_pass(&sim, detect, 1);
	assert_string_equal(sim_firing(detect, 0)->evidence[0].what, "transfer time of the step");
	assert_true(sim_firing(detect, 0)->evidence[0].value >
		    1.5 * sim_firing(detect, 0)->evidence[0].peers);
	sim_pass(&sim, detect, 300);
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void one_that_was_so_from_the_start_is_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 8);

	(void)state;
	assert_true(is_named(&sim, detect, 40, is_fifth));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* The program does it, once or twice in a row, or it is too seldom. */
static void regular_and_rare_rounds_are_no_fault(void **state)
{
	static bool (*const is_slow[])(int i) = {is_twelfth, is_pair, is_rare};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct sim sim;
		struct nt_detect *detect = start(&sim, 8);

		sim_pass(&sim, detect, LEARN);
		assert_false(is_named(&sim, detect, 400, is_slow[i]));
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* They may have waited for something else. */
static void times_of_hosts_do_not_count(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 0);

	(void)state;
	sim_pass(&sim, detect, LEARN);
	assert_false(is_named(&sim, detect, 60, is_fifth));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* In a recording of devices the calls are theirs. */
static void times_at_tier_3_count(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 0);

	(void)state;
	sim.recorded = true;
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].tier = NT_FRAME_T3;
	sim_pass(&sim, detect, LEARN);
	assert_true(is_named(&sim, detect, 60, is_fifth));
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_network_slow_in_a_fifth_of_the_rounds_is_named),
		cmocka_unit_test(one_that_was_so_from_the_start_is_named),
		cmocka_unit_test(regular_and_rare_rounds_are_no_fault),
		cmocka_unit_test(times_of_hosts_do_not_count),
		cmocka_unit_test(times_at_tier_3_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
