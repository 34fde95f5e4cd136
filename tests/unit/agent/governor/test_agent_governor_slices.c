/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slices: when a process is observed, and how long. */
#include "tests/unit/agent/governor_play.h"

/* Calls come in bursts: the first milliseconds after a pause are no measure of the rate. */
static void a_rate_weighs_as_much_as_the_time_it_was_observed_for(void **state)
{
	struct played played;
	struct nt_governor_sample sample;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Allreduce", 1000, 5000);
	for (int i = 0; i < 120; i++)
		(void)nt_governor_hit(played.governor, PID, row_of("MPI_Allreduce"));
	sample = (struct nt_governor_sample){
		.now_ns = played.now_ns + 6 * NT_SECOND,
		.cpu_ns = played.cpu_ns + 6 * NT_SECOND,
		.observed_ns = played.observed_ns + 10 * NT_MILLISECOND,
		.counters = &played.counters,
	};
	(void)nt_governor_sample(played.governor, PID, &sample);
	assert_false(plan_of(&played)->governed);
	nt_governor_free(played.governor);
}

static uint64_t slice_of(const struct nt_governor_plan *plan)
{
	return plan->period_ns / NT_GOVERNOR_WHOLE * plan->permille;
}

static void the_shortest_slice_lasts_100_ms_of_3_s(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	/* 26 % of a core in two functions, neither of which is hot. */
	for (int i = 0; i < 100; i++) {
		hit(&played, "MPI_Allreduce", 13000);
		play(&played, PID, "MPI_Send", 130000, 100);
	}
	assert_int_equal(plan_of(&played)->hot_count, 0);
	assert_int_equal(plan_of(&played)->period_ns, 3 * NT_SECOND);
	assert_in_range(slice_of(plan_of(&played)), 100 * NT_MILLISECOND, 150 * NT_MILLISECOND);
	nt_governor_free(played.governor);
}

static void a_slice_holds_whole_steps(void **state)
{
	static const struct {
		uint64_t whole_ms, period_s;
	} tried[] = {{0, 2}, {300, 2}, {600, 4}, {1300, 8}, {2250, 16}};
	struct played played;

	(void)state;
	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		begin(&played, &options);
		played.whole_ns = tried[i].whole_ms * NT_MILLISECOND;
		play(&played, PID, "MPI_Allreduce", 35000, 10000); /* a fifth is observed */
		assert_int_equal(plan_of(&played)->period_ns, tried[i].period_s * NT_SECOND);
		assert_true(slice_of(plan_of(&played)) >= played.whole_ns);
		nt_governor_free(played.governor);
	}
}

static void launches_go_where_no_slice_would_hold_a_step(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	played.is_rank = true;
	played.whole_ns = 2 * NT_SECOND;
	/* 7 % in launches, 2 % in communication. */
	for (int i = 0; i < 40; i++) {
		hit(&played, "MPI_Allreduce", 2000);
		play(&played, PID, "cudaLaunchKernel", 140000, 100);
	}
	assert_true(plan_of(&played)->shed & 1U << NT_SUBJECT_LAUNCH);
	assert_false(plan_of(&played)->shed & 1U << NT_SUBJECT_COMM);
	assert_true(slice_of(plan_of(&played)) >= played.whole_ns);
	nt_governor_free(played.governor);
	/* They are kept where even that would not do. */
	begin(&played, &options);
	played.is_rank = true;
	played.whole_ns = 60 * NT_SECOND;
	for (int i = 0; i < 40; i++) {
		hit(&played, "MPI_Allreduce", 2000);
		play(&played, PID, "cudaLaunchKernel", 140000, 100);
	}
	assert_int_equal(plan_of(&played)->shed, 0);
	assert_int_equal(plan_of(&played)->period_ns, 16 * NT_SECOND);
	nt_governor_free(played.governor);
}

/* So many seconds in which all steps are measured, if slices last so long. */
static uint64_t play_steps(struct played *played, uint64_t whole_ms, int seconds)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < seconds; i++) {
		play(played, PID, "MPI_Allreduce", 35000, 1000);
		if (whole_ms && slice_of(plan_of(played)) >= whole_ms * NT_MILLISECOND)
			played->measured++;
		if (plan_of(played)->period_ns > longest_ns)
			longest_ns = plan_of(played)->period_ns;
	}
	return longest_ns;
}

static void steps_that_are_not_known_are_looked_for_in_longer_slices(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	played.is_rank = true;
	/* There may be none: then it begins again with the shortest. */
	assert_int_equal(play_steps(&played, 0, 124), 16 * NT_SECOND);
	assert_int_equal(plan_of(&played)->period_ns, 2 * NT_SECOND);
	nt_governor_free(played.governor);
	/* Where they are measured it goes on, and for a while where they are lost with each pause. */
	begin(&played, &options);
	played.is_rank = true;
	assert_int_equal(play_steps(&played, 1300, 30), 8 * NT_SECOND);
	assert_int_equal(play_steps(&played, 1300, 60), 8 * NT_SECOND);
	assert_int_equal(plan_of(&played)->period_ns, 8 * NT_SECOND);
	nt_governor_free(played.governor);
}

static void what_is_known_of_steps_holds_for_a_while(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	played.is_rank = true;
	played.whole_ns = 1300 * NT_MILLISECOND;
	(void)play_steps(&played, 1300, 5);
	played.whole_ns = 0;
	assert_int_equal(play_steps(&played, 1300, 60), 8 * NT_SECOND);
	assert_int_equal(plan_of(&played)->period_ns, 8 * NT_SECOND);
	nt_governor_free(played.governor);
}

static void what_was_taken_for_a_step_and_is_not_measured_was_none(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	played.is_rank = true;
	played.whole_ns = NT_MILLISECOND;
	assert_int_equal(play_steps(&played, 1300, 60), 8 * NT_SECOND);
	assert_int_equal(plan_of(&played)->period_ns, 8 * NT_SECOND);
	/* Steps that have become shorter are looked at in shorter slices after a while. */
	(void)play_steps(&played, 1, 120);
	assert_int_equal(plan_of(&played)->period_ns, 2 * NT_SECOND);
	nt_governor_free(played.governor);
}

/* Nothing is called for so long, of which so much is observed. */
static void hang(struct played *played, int ms, int observed_ms)
{
	struct nt_governor_sample sample;

	played->now_ns += (uint64_t)ms * NT_MILLISECOND;
	played->observed_ns += (uint64_t)observed_ms * NT_MILLISECOND;
	sample = (struct nt_governor_sample){
		.now_ns = played->now_ns,
		.cpu_ns = played->cpu_ns,
		.observed_ns = played->observed_ns,
		.counters = &played->counters,
	};
	(void)nt_governor_sample(played->governor, PID, &sample);
}

static void a_slice_goes_on_while_nothing_is_called(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	for (int i = 0; i < 50; i++) {
		hit(&played, "MPI_Allreduce", 13000);
		play(&played, PID, "MPI_Send", 130000, 100);
	}
	assert_in_range(plan_of(&played)->permille, 34, 50);
	/* Two slices: what it cost while it called says that it can be observed no longer. */
	for (int i = 0; i < 2; i++) {
		hang(&played, 100, 100);
		hang(&played, 2900, 0);
	}
	assert_true(plan_of(&played)->governed);
	assert_int_equal(plan_of(&played)->permille, NT_GOVERNOR_WHOLE);
	/* Until it calls. */
	hit(&played, "MPI_Allreduce", 13000);
	play(&played, PID, "MPI_Send", 130000, 100);
	assert_in_range(plan_of(&played)->permille, 34, 60);
	nt_governor_free(played.governor);
}

static void pauses_between_bursts_are_observed_in_slices(void **state)
{
	struct played played;
	int wholes = 0;

	(void)state;
	begin(&played, &options);
	for (int i = 0; i < 50; i++)
		play(&played, PID, "MPI_Send", 130000, 100);
	for (int burst = 0; burst < 30; burst++) {
		hang(&played, 300, 300);
		wholes += plan_of(&played)->permille == NT_GOVERNOR_WHOLE;
		play(&played, PID, "MPI_Send", 130000, 200);
	}
	assert_in_range(wholes, 1, 3);
	nt_governor_free(played.governor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_weighs_as_much_as_the_time_it_was_observed_for),
		cmocka_unit_test(the_shortest_slice_lasts_100_ms_of_3_s),
		cmocka_unit_test(a_slice_holds_whole_steps),
		cmocka_unit_test(launches_go_where_no_slice_would_hold_a_step),
		cmocka_unit_test(steps_that_are_not_known_are_looked_for_in_longer_slices),
		cmocka_unit_test(what_is_known_of_steps_holds_for_a_while),
		cmocka_unit_test(what_was_taken_for_a_step_and_is_not_measured_was_none),
		cmocka_unit_test(a_slice_goes_on_while_nothing_is_called),
		cmocka_unit_test(pauses_between_bursts_are_observed_in_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
