/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults that show in some steps only. */
#include "detect/math/far_rate.h"
#include "tests/unit/detect/detect_frames.h"

enum {
	LEARN = 40,
	LONG = 300, /* windows */
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
	double device;
	uint64_t random;
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, 8, 31);
	job->sim.jitter = 0.01;
	job->detect = sim_detect();
	job->device = job->sim.rank[3].device;
	job->random = 17;
	*state = job;
	return 0;
}

static int end(void **state)
{
	struct job *job = *state;

	nt_detect_free(job->detect);
	sim_free(&job->sim);
	free(job);
	return 0;
}

static bool is_on(struct job *job, double part)
{
	struct sim draw = {.seed = job->random++};

	return sim_uniform(&draw) < part;
}

/* Windows until it is found; LONG: it is not. */
static uint32_t play(struct job *job, double part, double factor, uint32_t windows)
{
	for (uint32_t i = 0; i < windows; i++) {
		job->sim.rank[3].device = job->device * (is_on(job, part) ? factor : 1.0);
		sim_pass(&job->sim, job->detect, 1);
		if (sim_firing(job->detect, 0))
			return i;
	}
	return LONG;
}

static void one_step_in_ten_twice_as_long_is_found(void **state)
{
	struct job *job = *state;
	uint64_t began;

	sim_pass(&job->sim, job->detect, LEARN);
	began = job->sim.now_ns;
	assert_in_range(play(job, 0.1, 2.0, LONG), 20, 150);
	assert_names_rank(sim_firing(job->detect, 0), 3);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_COMPUTE);
	assert_true(sim_firing(job->detect, 0)->since_ns >= began);
}

static void a_third_of_the_steps_is_found_from_the_start_on(void **state)
{
	struct job *job = *state;

	assert_in_range(play(job, 0.3, 2.0, LONG), 8, 60);
	assert_names_rank(sim_firing(job->detect, 0), 3);
}

/* Its peers wait for it in these steps; in the others it waits for them. */
static void one_that_is_else_faster_than_its_peers_is_found(void **state)
{
	struct job *job = *state;

	job->device *= 0.96;
	job->sim.rank[3].device = job->device;
	sim_pass(&job->sim, job->detect, LEARN);
	assert_in_range(play(job, 0.2, 1.4, LONG), 10, 100);
	assert_names_rank(sim_firing(job->detect, 0), 3);
}

static void what_costs_little_in_the_mean_is_left_alone(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, LEARN);
	assert_int_equal(play(job, 0.1, 1.2, LONG), LONG);
}

static void hiccups_of_all_ranks_accuse_none(void **state)
{
	struct job *job = *state;
	uint64_t random = 1;

	for (uint32_t i = 0; i < 3 * LONG; i++) {
		for (uint32_t j = 0; j < 8; j++) {
			struct sim draw = {.seed = 1000 + random++};

			job->sim.rank[j].device =
				job->device * (sim_uniform(&draw) < 0.05 ? 2.0 : 1.0);
		}
		sim_pass(&job->sim, job->detect, 1);
		assert_null(sim_firing(job->detect, 0));
	}
}

static void one_disturbance_of_some_steps_is_no_fault(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, LEARN);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(play(job, 1.0, 2.0, 3), LONG);
		assert_int_equal(play(job, 0.0, 1.0, 60), LONG);
	}
}

/* Whether a rank is accused; turns themselves are uneven work. */
static bool accuses_rank(const struct nt_detect *detect, uint32_t rank)
{
	for (size_t i = 0; sim_firing(detect, i); i++) {
		const struct nt_finding *finding = sim_firing(detect, i);

		if (finding->class == NT_CLASS_IMBALANCE || !finding->culprits)
			continue;
		assert_names_rank(finding, rank);
		return true;
	}
	return false;
}

/*
 * One rank after the other is disturbed for a window, such as by its garbage collection. Returns
 * the windows until rank 3 is accused; LONG: it is not.
 */
static uint32_t play_turns(struct job *job, double slow, uint32_t windows)
{
	for (uint32_t i = 0; i < windows; i++) {
		for (uint32_t j = 0; j < 8; j++)
			job->sim.rank[j].device =
				job->device * (i % 6 == j % 6 ? 1.3 : 1.0) * (j == 3 ? slow : 1.0);
		sim_pass(&job->sim, job->detect, 1);
		if (accuses_rank(job->detect, 3))
			return i;
	}
	return LONG;
}

static void a_rank_that_is_always_far_is_found_among_turns(void **state)
{
	struct job *job = *state;

	assert_int_equal(play_turns(job, 1.0, 4 * LEARN), LONG);
	assert_in_range(play_turns(job, 1.5, LONG), 5, 15);
}

static void it_ends_when_no_step_is_long_any_more(void **state)
{
	struct job *job = *state;
	uint64_t ended;

	sim_pass(&job->sim, job->detect, LEARN);
	assert_in_range(play(job, 0.3, 2.0, LONG), 8, 45);
	ended = job->sim.now_ns;
	job->sim.rank[3].device = job->device;
	for (uint32_t i = 0; i < LONG && sim_firing(job->detect, 0); i++)
		sim_pass(&job->sim, job->detect, 1);
	assert_null(sim_firing(job->detect, 0));
	assert_true(job->sim.now_ns - ended < 130e9);
	/* Nor does it come back by itself. */
	assert_int_equal(play(job, 0.0, 1.0, LONG), LONG);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* The first firing incident with a culprit, which uneven work has not. NULL: there is none. */
static const struct nt_finding *accusation(const struct job *job)
{
	for (size_t i = 0; sim_firing(job->detect, i); i++)
		if (sim_firing(job->detect, i)->culprits)
			return sim_firing(job->detect, i);
	return NULL;
}

/* Two ranks, each slow in a part of the windows. True: a rank is accused, and it is rank 1. */
static bool pair_accuses(double part_of_0, double part_of_1, uint64_t seed)
{
	struct job job = {.detect = sim_detect(), .random = 1000 * seed};
	bool found = false;

	sim_init(&job.sim, 2, seed);
	job.sim.jitter = 0.01;
	job.device = job.sim.rank[1].device;
	for (uint32_t i = 0; i < LONG && !found; i++) {
		job.sim.rank[0].device = job.device * (is_on(&job, part_of_0) ? 2.0 : 1.0);
		job.sim.rank[1].device = job.device * (is_on(&job, part_of_1) ? 2.0 : 1.0);
		sim_pass(&job.sim, job.detect, 1);
		found = accusation(&job);
	}
	if (found)
		assert_names_rank(accusation(&job), 1);
	nt_detect_free(job.detect);
	sim_free(&job.sim);
	return found;
}

/* Rank 3 works longer in each n-th window. Returns whether it is accused within LONG windows. */
static bool is_accused_for_each(struct job *job, uint32_t n)
{
	for (uint32_t i = 0; i < LONG; i++) {
		job->sim.rank[3].host = (i % n ? 5.0 : 150.0) * SIM_MS;
		sim_pass(&job->sim, job->detect, 1);
		if (sim_firing(job->detect, 0))
			return true;
	}
	return false;
}

/* As a rank that writes the checkpoints, or evaluates, while the others wait. */
static void what_one_rank_does_every_so_many_steps_is_no_fault(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].host = 5.0 * SIM_MS;
	job->sim.steps = 1;
	assert_false(is_accused_for_each(job, 17));
}

/* A checkpoint may be followed by a barrier, which is a step to those that count calls. */
static void such_a_window_may_hold_a_step_more(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].host = 5.0 * SIM_MS;
	for (uint32_t i = 0; i < LONG; i++) {
		job->sim.steps = i % 12 ? 1 : 2;
		job->sim.rank[3].host = (i % 12 ? 5.0 : 75.0) * SIM_MS;
		sim_pass(&job->sim, job->detect, 1);
		assert_accuses_nobody(job->detect);
	}
}

/* Such distances are often equal by chance. */
static void what_it_does_in_every_few_steps_is_one(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].host = 5.0 * SIM_MS;
	job->sim.steps = 1;
	assert_true(is_accused_for_each(job, 5));
}

/* What is known to be a pause of the collector is said, however regular it is. */
static void a_regular_pause_with_a_cause_is_named(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < 8; i++)
		job->sim.rank[i].host = 5.0 * SIM_MS;
	job->sim.steps = 1;
	for (uint32_t i = 0; i < LONG && !sim_firing(job->detect, 0); i++) {
		job->sim.rank[3].host = (i % 17 ? 5.0 : 150.0) * SIM_MS;
		job->sim.rank[3].gc = i % 17 ? 0.0 : 145.0 * SIM_MS;
		sim_pass(&job->sim, job->detect, 1);
	}
	assert_non_null(sim_firing(job->detect, 0));
	assert_string_equal(sim_firing(job->detect, 0)->cause, "garbage collection");
}

/* Rank 5 looks far in some windows in which rank 3 is slow, as its partner in a pipeline may. */
static void a_rank_that_is_far_with_another_one_only_is_not_named(void **state)
{
	struct job *job = *state;
	bool is_named = false;

	for (uint32_t i = 0; i < LONG; i++) {
		const bool slow = is_on(job, 0.5);

		job->sim.rank[3].device = job->device * (slow ? 3.0 : 1.0);
		job->sim.rank[5].device = job->device * (slow && is_on(job, 0.3) ? 2.0 : 1.0);
		sim_pass(&job->sim, job->detect, 1);
		for (uint32_t j = 0; sim_firing(job->detect, j); j++) {
			assert_names_rank(sim_firing(job->detect, j), 3);
			is_named = true;
		}
	}
	assert_true(is_named);
}

static void distances_are_equal_within_a_window(void **state)
{
	struct nt_far_rhythm rhythm = {0};

	(void)state;
	nt_far_rhythm_add(&rhythm, 100.0, 1.0, 0.5);
	assert_false(nt_far_rhythm_is_regular(&rhythm, 1.0));
	nt_far_rhythm_add(&rhythm, 117.0, 1.0, 0.5);
	/* The next one may come after 17 more. */
	assert_true(nt_far_rhythm_is_regular(&rhythm, 1.0));
	nt_far_rhythm_add(&rhythm, 135.0, 1.0, 0.5);
	assert_true(nt_far_rhythm_is_regular(&rhythm, 1.0));
	/* With windows of four steps it may have been any of these. */
	assert_false(nt_far_rhythm_is_regular(&rhythm, 4.0));
	nt_far_rhythm_add(&rhythm, 150.0, 1.0, 0.5);
	assert_false(nt_far_rhythm_is_regular(&rhythm, 1.0));
	nt_far_rhythm_add(&rhythm, 200.0, 5.0, 0.5);
	nt_far_rhythm_add(&rhythm, 254.0, 5.0, 0.5);
	assert_false(nt_far_rhythm_is_regular(&rhythm, 5.0));
	nt_far_rhythm_add(&rhythm, 309.0, 5.0, 0.5);
	assert_true(nt_far_rhythm_is_regular(&rhythm, 5.0));
	/* One was missed before: it cost less, as another rank was late as well. */
	rhythm = (struct nt_far_rhythm){0};
	nt_far_rhythm_add(&rhythm, 22.0, 1.0, 0.98);
	nt_far_rhythm_add(&rhythm, 43.0, 1.0, 0.28);
	nt_far_rhythm_add(&rhythm, 65.0, 1.0, 0.98);
	nt_far_rhythm_add(&rhythm, 87.0, 1.0, 0.98);
	assert_true(nt_far_rhythm_is_regular(&rhythm, 1.0));
	/* The half of it is another one. */
	nt_far_rhythm_add(&rhythm, 98.0, 1.0, 0.98);
	assert_false(nt_far_rhythm_is_regular(&rhythm, 1.0));
	nt_far_rhythm_add(&rhythm, 113.0, 1.0, 0.98);
	assert_false(nt_far_rhythm_is_regular(&rhythm, 1.0));
}

static void of_two_ranks_the_one_that_is_slow_at_times_is_named(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		assert_true(pair_accuses(0.0, 0.2, seed));
		assert_true(pair_accuses(0.0, 0.5, seed));
		assert_true(pair_accuses(0.0, 0.7, seed));
	}
}

static void two_ranks_that_take_turns_are_not_accused(void **state)
{
	static const double part[] = {0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9};

	(void)state;
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		for (uint64_t seed = 1; seed <= 10; seed++)
			assert_false(pair_accuses(part[i], part[i], seed));
}

/* The turns before are no reason to leave out the one that is now always behind. */
static void after_turns_the_one_of_two_that_turns_slow_is_named(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct job job = {.detect = sim_detect(), .random = 1000 * seed};
		uint32_t i = 0;

		sim_init(&job.sim, 2, seed);
		job.sim.jitter = 0.01;
		job.device = job.sim.rank[1].device;
		for (; i < 4 * LEARN; i++) {
			job.sim.rank[0].device = job.device * (is_on(&job, 0.2) ? 2.0 : 1.0);
			job.sim.rank[1].device = job.device * (is_on(&job, 0.2) ? 2.0 : 1.0);
			sim_pass(&job.sim, job.detect, 1);
		}
		assert_null(accusation(&job));
		job.sim.rank[0].device = job.device;
		job.sim.rank[1].device = 1.5 * job.device;
		for (i = 0; i < LONG && !accusation(&job); i++)
			sim_pass(&job.sim, job.detect, 1);
		assert_in_range(i, 8, 12);
		assert_names_rank(accusation(&job), 1);
		nt_detect_free(job.detect);
		sim_free(&job.sim);
	}
}

static void nothing_shows_which_of_two_is_normal_that_never_agree(void **state)
{
	(void)state;
	assert_false(pair_accuses(0.0, 1.0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_step_in_ten_twice_as_long_is_found),
		CASE(a_third_of_the_steps_is_found_from_the_start_on),
		CASE(one_that_is_else_faster_than_its_peers_is_found),
		CASE(what_costs_little_in_the_mean_is_left_alone),
		CASE(hiccups_of_all_ranks_accuse_none),
		CASE(one_disturbance_of_some_steps_is_no_fault),
		CASE(a_rank_that_is_always_far_is_found_among_turns),
		CASE(it_ends_when_no_step_is_long_any_more),
		CASE(what_one_rank_does_every_so_many_steps_is_no_fault),
		CASE(a_rank_that_is_far_with_another_one_only_is_not_named),
		CASE(such_a_window_may_hold_a_step_more),
		CASE(what_it_does_in_every_few_steps_is_one),
		CASE(a_regular_pause_with_a_cause_is_named),
		cmocka_unit_test(distances_are_equal_within_a_window),
		cmocka_unit_test(of_two_ranks_the_one_that_is_slow_at_times_is_named),
		cmocka_unit_test(two_ranks_that_take_turns_are_not_accused),
		cmocka_unit_test(after_turns_the_one_of_two_that_turns_slow_is_named),
		cmocka_unit_test(nothing_shows_which_of_two_is_normal_that_never_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
