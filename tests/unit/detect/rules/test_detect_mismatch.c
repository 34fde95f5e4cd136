/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that made different calls of the same number. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/rules/mismatch.h"

enum {
	DATA = 0xda7a,
};

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, 8, 21);
	job->sim.blocking = true;
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 30);
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

static void sides_are_sorted_with_the_largest_last(void **state)
{
	struct nt_mismatch_call call[] = {{.rank = 0, .op = 1, .count = 5},
					  {.rank = 1, .op = 2, .count = 5},
					  {.rank = 2, .op = 1, .count = 5},
					  {.rank = 3, .op = 1, .count = 6}};

	(void)state;
	assert_int_equal(nt_mismatch_sides(call, 4), 2);
	assert_int_equal(call[0].rank, 1);
	assert_int_equal(call[1].rank, 3);
}

static void two_equal_sides_are_both_to_blame(void **state)
{
	struct nt_mismatch_call call[] = {{.rank = 0, .type = 1}, {.rank = 1, .type = 2}};

	(void)state;
	assert_int_equal(nt_mismatch_sides(call, 2), 2);
}

static void equal_calls_have_no_sides(void **state)
{
	struct nt_mismatch_call call[] = {{.rank = 0, .count = 3}, {.rank = 1, .count = 3}};

	(void)state;
	assert_int_equal(nt_mismatch_sides(call, 2), 0);
	assert_int_equal(nt_mismatch_sides(call, 0), 0);
}

static void a_call_is_found_among_the_last_of_its_rank_by_its_number(void **state)
{
	const struct nt_frame_signature recent[] = {{.number = 7, .op = 1, .count = 70, .type = 3},
						    {.number = 8, .op = 2, .count = 80, .type = 4},
						    {.number = 9, .op = 3, .count = 90, .type = 5}};
	const struct nt_frame_comm comm[] = {{.id = 1},
					     {.id = DATA, .recent = recent, .recents = 3}};
	const struct nt_frame_rank rank[] = {{.rank = 0}, {.rank = 5, .comm = comm, .comms = 2}};
	const struct nt_frame frame = {.rank = rank, .ranks = 2};
	struct nt_mismatch_call call = {.count = 42};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_true(nt_frame_find_call(&frame, 5, DATA, 7 + i, &call));
		assert_int_equal(call.rank, 5);
		assert_int_equal(call.op, recent[i].op);
		assert_int_equal(call.type, recent[i].type);
		assert_int_equal(call.count, recent[i].count);
	}
	call.count = 42;
	assert_false(nt_frame_find_call(&frame, 5, DATA, 6, &call));
	assert_false(nt_frame_find_call(&frame, 5, DATA, 10, &call));
	assert_false(nt_frame_find_call(&frame, 5, 1, 7, &call));
	assert_false(nt_frame_find_call(&frame, 5, 2, 7, &call));
	assert_false(nt_frame_find_call(&frame, 0, DATA, 7, &call));
	assert_false(nt_frame_find_call(&frame, 4, DATA, 7, &call));
	assert_int_equal(call.count, 42);
}

static void another_count_in_the_same_call_names_both_sides(void **state)
{
	struct job *job = *state;
	const struct nt_finding *finding;

	sim_stick(&job->sim, DATA, UINT32_MAX);
	job->sim.rank[3].inside_count = 999;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 4, 8);
	finding = sim_firing(job->detect, 0);
	assert_names_rank(finding, 3);
	assert_int_equal(finding->class, NT_CLASS_MISMATCH);
	assert_int_equal(finding->severity, NT_SEVERITY_CRITICAL);
	assert_int_equal(finding->culprit[0].peer_count, 7);
	assert_int_equal(finding->evidences, 2);
	assert_true(finding->evidence[1].value == 999.0);
	assert_true(finding->evidence[1].peers == 1000.0);
	/* It stays one finding when it would also be a hang. */
	sim_pass(&job->sim, job->detect, 60);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_MISMATCH);
	assert_null(sim_firing(job->detect, 1));
}

/* All are to blame, each for another call: the first is held against the last. */
static void three_that_all_differ_are_all_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;

	(void)state;
	sim_init(&sim, 3, 22);
	sim.blocking = true;
	sim_pass(&sim, detect, 30);
	sim_stick(&sim, DATA, UINT32_MAX);
	for (uint32_t i = 0; i < 3; i++)
		sim.rank[i].inside_count = 1003 - i;
	assert_in_range(sim_run(&sim, detect, 60), 4, 8);
	finding = sim_firing(detect, 0);
	assert_int_equal(finding->class, NT_CLASS_MISMATCH);
	assert_int_equal(finding->culprits, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(finding->culprit[i].rank, i);
	assert_int_equal(finding->evidences, 2);
	assert_string_equal(finding->evidence[1].what, "elements of the call");
	assert_true(finding->evidence[1].value == 1003.0);
	assert_true(finding->evidence[1].peers == 1001.0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void another_operation_at_t1_is_seen_in_the_last_calls(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, UINT32_MAX);
	for (uint32_t i = 0; i < 8; i++) {
		job->sim.rank[i].in_call = false;
		job->sim.rank[i].synchronising = true;
	}
	job->sim.rank[6].odd_op = 3;
	assert_in_range(sim_run(&job->sim, job->detect, 60), 4, 8);
	assert_names_rank(sim_firing(job->detect, 0), 6);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_MISMATCH);
}

static void a_rolling_hash_that_turns_tells_without_a_hang(void **state)
{
	struct job *job = *state;

	job->sim.rank[2].salt = 5;
	job->sim.rank[2].odd_count = 17;
	assert_in_range(sim_run(&job->sim, job->detect, 10), 2, 2);
	assert_names_rank(sim_firing(job->detect, 0), 2);
	assert_int_equal(sim_firing(job->detect, 0)->class, NT_CLASS_MISMATCH);
	/* The calls are forgotten, the hashes go on to differ. */
	job->sim.rank[2].odd_count = 0;
	sim_pass(&job->sim, job->detect, 20);
	assert_names_rank(sim_firing(job->detect, 0), 2);
	job->sim.rank[2].salt = 0;
	sim_pass(&job->sim, job->detect, 3);
	assert_null(sim_firing(job->detect, 0));
}

static void hashes_that_always_differed_mean_nothing(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 22);
	sim.rank[2].salt = 5;
	sim.rank[2].odd_count = 17;
	assert_int_equal(sim_run(&sim, detect, 50), 51);
	sim.rank[3].salt = 6;
	assert_int_equal(sim_run(&sim, detect, 50), 51);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void sends_and_receives_may_differ(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init_ranks(&sim, 8, 23);
	sim_comm_add(&sim, 5, NT_FRAME_POINT_TO_POINT, 4, 1e6, 0.0)->world = true;
	sim_pass(&sim, detect, 10);
	sim.rank[2].salt = 5;
	sim.rank[2].odd_count = 17;
	assert_int_equal(sim_run(&sim, detect, 50), 51);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void numbers_of_different_epochs_are_not_compared(void **state)
{
	struct job *job = *state;

	sim_stick(&job->sim, DATA, UINT32_MAX);
	job->sim.rank[3].inside_count = 999;
	job->sim.rank[3].epoch = 4;
	sim_pass(&job->sim, job->detect, 60);
	assert_int_not_equal(sim_firing(job->detect, 0)->class, NT_CLASS_MISMATCH);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sides_are_sorted_with_the_largest_last),
		cmocka_unit_test(two_equal_sides_are_both_to_blame),
		cmocka_unit_test(a_call_is_found_among_the_last_of_its_rank_by_its_number),
		cmocka_unit_test(equal_calls_have_no_sides),
		CASE(another_count_in_the_same_call_names_both_sides),
		cmocka_unit_test(three_that_all_differ_are_all_named),
		CASE(another_operation_at_t1_is_seen_in_the_last_calls),
		CASE(a_rolling_hash_that_turns_tells_without_a_hang),
		cmocka_unit_test(hashes_that_always_differed_mean_nothing),
		cmocka_unit_test(sends_and_receives_may_differ),
		CASE(numbers_of_different_epochs_are_not_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
