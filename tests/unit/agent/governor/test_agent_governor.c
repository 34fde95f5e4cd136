/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The budget of a process, and which functions give way. */
#include "tests/unit/agent/governor_play.h"

static void a_process_under_its_budget_is_observed_all_the_time(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Allreduce", 9000, 5000); /* 0.9 % of a core */
	assert_false(plan_of(&played)->governed);
	assert_int_equal(plan_of(&played)->permille, NT_GOVERNOR_WHOLE);
	nt_governor_free(played.governor);
}

static void a_budget_is_of_the_processors_that_the_process_uses(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	played.cpu = 4;
	play(&played, PID, "MPI_Allreduce", 36000, 5000);
	assert_false(plan_of(&played)->governed);
	nt_governor_free(played.governor);
	/* One that sleeps is held to that share of one core. */
	begin(&played, &options);
	played.cpu = 0.01;
	play(&played, PID, "MPI_Allreduce", 9000, 5000);
	assert_false(plan_of(&played)->governed);
	play(&played, PID, "MPI_Allreduce", 12000, 5000);
	assert_true(plan_of(&played)->governed);
	nt_governor_free(played.governor);
}

static void what_is_called_too_often_is_observed_in_slices(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Allreduce", 35000, 10000); /* 3.5 % */
	assert_true(plan_of(&played)->governed);
	assert_int_equal(plan_of(&played)->hot_count, 0);
	assert_int_equal(plan_of(&played)->shed, 0);
	assert_in_range(plan_of(&played)->permille, 150, 250);
	/* Slices do not make the calls fewer: it stays so. */
	play(&played, PID, "MPI_Allreduce", 35000, 60000);
	assert_in_range(plan_of(&played)->permille, 150, 250);
	nt_governor_free(played.governor);
}

static void a_burst_is_waited_for_and_a_flood_is_not(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Allreduce", 1000, 2000);
	play(&played, PID, "MPI_Allreduce", 30000, 100);
	assert_false(plan_of(&played)->governed);
	play(&played, PID, "MPI_Allreduce", 1000, 3000);
	assert_false(plan_of(&played)->governed);
	play(&played, PID, "MPI_Allreduce", 600000, 200);
	assert_int_equal(plan_of(&played)->hot_count, 1);
	assert_true(nt_governor_is_hot(plan_of(&played), row_of("MPI_Allreduce")));
	nt_governor_free(played.governor);
}

static void what_a_step_launches_at_once_is_no_flood(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	played.is_rank = true;
	for (int i = 0; i < 20; i++) {
		play(&played, PID, "cudaLaunchKernel", 450000, 100);
		assert_int_equal(plan_of(&played)->hot_count, 0);
		play(&played, PID, "cudaLaunchKernel", 0, 900);
	}
	nt_governor_free(played.governor);
}

static void a_flood_without_events_is_seen_too(void **state)
{
	struct played played;
	uint16_t row = row_of("MPI_Allreduce");

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Send", 100, 300);
	for (int i = 0; i < 3; i++) {
		played.counters.unseen[row] += 60000; /* in 100 ms: nested, or over its share */
		play(&played, PID, "MPI_Send", 100, 100);
	}
	assert_true(nt_governor_is_hot(plan_of(&played), row));
	assert_false(nt_governor_is_hot(plan_of(&played), row_of("MPI_Send")));
	nt_governor_free(played.governor);
}

static void a_hot_function_comes_back_when_a_look_finds_it_calm(void **state)
{
	struct played played;
	uint16_t row = row_of("MPI_Allreduce");

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Allreduce", 600000, 1000);
	assert_true(nt_governor_is_hot(plan_of(&played), row));
	for (int i = 0; i < 6000; i++)
		(void)nt_governor_hit(played.governor, PID, row);
	assert_false(
		nt_governor_looked(played.governor, PID, 10 * NT_MILLISECOND, &played.counters));
	assert_true(nt_governor_is_hot(plan_of(&played), row));
	(void)nt_governor_hit(played.governor, PID, row);
	assert_true(
		nt_governor_looked(played.governor, PID, 10 * NT_MILLISECOND, &played.counters));
	assert_int_equal(plan_of(&played)->hot_count, 0);
	/* And nothing is shed after ten calm seconds. */
	play(&played, PID, "MPI_Allreduce", 100, 12000);
	assert_false(plan_of(&played)->governed);
	nt_governor_free(played.governor);
}

static void launches_go_before_communication(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	/* Each of many functions is under what makes one hot; together even slices cost too much. */
	for (int i = 0; i < 40; i++) {
		hit(&played, "cudaEventRecord", 19000);
		hit(&played, "cudaStreamSynchronize", 13000);
		hit(&played, "MPI_Allreduce", 13000);
		play(&played, PID, "MPI_Send", 10, 100);
	}
	assert_true(plan_of(&played)->governed);
	assert_true(plan_of(&played)->shed & 1U << NT_SUBJECT_ORDER);
	assert_false(plan_of(&played)->shed & 1U << NT_SUBJECT_COMM);
	nt_governor_free(played.governor);
}

static void what_makes_communicators_is_never_in_slices(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	/* 0.3 %: under the budget, but not together with 2 % of others. */
	for (int i = 0; i < 30; i++) {
		hit(&played, "MPI_Comm_dup", 300);
		play(&played, PID, "MPI_Allreduce", 20000, 100);
	}
	assert_true(plan_of(&played)->governed);
	assert_false(nt_governor_is_hot(plan_of(&played), row_of("MPI_Comm_dup")));
	assert_true(nt_probe_stays(nt_probe_row(row_of("MPI_Comm_dup"))));
	assert_false(nt_probe_stays(nt_probe_row(row_of("MPI_Comm_rank"))));
	/* One that alone takes more than half of the budget is hot all the same. */
	for (int i = 0; i < 30; i++) {
		hit(&played, "MPI_Comm_dup", 2000);
		play(&played, PID, "MPI_Allreduce", 20000, 100);
	}
	assert_true(nt_governor_is_hot(plan_of(&played), row_of("MPI_Comm_dup")));
	nt_governor_free(played.governor);
}

static void the_agents_budget_takes_from_the_one_with_the_most_events(void **state)
{
	struct nt_governor_options tight = options;
	struct played played, other;

	(void)state;
	tight.budget = 1; /* of no concern */
	tight.agent_budget = 0.02;
	begin(&played, &tight);
	other = played;
	for (int i = 0; i < 50; i++) {
		play(&played, PID, "MPI_Allreduce", 50000, 100);
		play(&other, OTHER, "MPI_Allreduce", 1000, 100);
		if (i % 10 != 9)
			continue;
		/* 1 us an event: 16,000 a second are 80 % of the budget. */
		nt_governor_budget(played.governor, (played.events + other.events) * 1000,
				   NT_SECOND);
		played.events = other.events = 0;
	}
	assert_true(plan_of(&played)->governed);
	assert_in_range(plan_of(&played)->permille, 200, 400);
	assert_false(nt_governor_plan(played.governor, OTHER)->governed);
	nt_governor_free(played.governor);
}

static void what_is_not_known_takes_no_memory(void **state)
{
	struct nt_governor_stats stats;
	struct played played;

	(void)state;
	begin(&played, &options);
	for (uint32_t pid = 1; pid <= 3 * NT_GOVERNOR_PROCESSES; pid++)
		assert_false(nt_governor_hit(played.governor, pid, 0));
	assert_null(nt_governor_plan(played.governor, 1));
	nt_governor_stats(played.governor, &stats);
	assert_int_equal(stats.over_cap, 0);
	nt_governor_meet(played.governor, PID);
	assert_true(nt_governor_hit(played.governor, PID, 0));
	assert_non_null(nt_governor_plan(played.governor, PID));
	nt_governor_free(played.governor);
}

static void a_process_that_is_not_sampled_for_a_minute_is_forgotten(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	nt_governor_meet(played.governor, OTHER);
	for (int i = 0; i < 59; i++) {
		play(&played, PID, "MPI_Allreduce", 10, 1000);
		nt_governor_budget(played.governor, 1000, NT_SECOND);
	}
	assert_non_null(nt_governor_plan(played.governor, OTHER));
	play(&played, PID, "MPI_Allreduce", 10, 1000);
	nt_governor_budget(played.governor, 1000, NT_SECOND);
	assert_null(nt_governor_plan(played.governor, OTHER));
	assert_non_null(nt_governor_plan(played.governor, PID));
	nt_governor_free(played.governor);
}

static void a_new_process_that_calls_at_full_speed_is_found_with_its_second_sample(void **state)
{
	struct played played;

	(void)state;
	begin(&played, &options);
	play(&played, PID, "MPI_Allreduce", 600000, 2 * TICK_MS);
	assert_true(nt_governor_is_hot(plan_of(&played), row_of("MPI_Allreduce")));
	nt_governor_free(played.governor);
}

static void processes_over_the_cap_are_counted_and_not_governed(void **state)
{
	struct nt_governor_stats stats;
	struct played played;

	(void)state;
	begin(&played, &options);
	for (uint32_t pid = 1; pid <= NT_GOVERNOR_PROCESSES + 3; pid++)
		nt_governor_meet(played.governor, pid);
	nt_governor_stats(played.governor, &stats);
	assert_int_equal(stats.over_cap, 3);
	assert_null(nt_governor_plan(played.governor, NT_GOVERNOR_PROCESSES + 1));
	nt_governor_end(played.governor, 1);
	nt_governor_meet(played.governor, NT_GOVERNOR_PROCESSES + 1);
	assert_non_null(nt_governor_plan(played.governor, NT_GOVERNOR_PROCESSES + 1));
	nt_governor_free(played.governor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_under_its_budget_is_observed_all_the_time),
		cmocka_unit_test(a_budget_is_of_the_processors_that_the_process_uses),
		cmocka_unit_test(what_is_called_too_often_is_observed_in_slices),
		cmocka_unit_test(a_burst_is_waited_for_and_a_flood_is_not),
		cmocka_unit_test(what_a_step_launches_at_once_is_no_flood),
		cmocka_unit_test(a_flood_without_events_is_seen_too),
		cmocka_unit_test(a_hot_function_comes_back_when_a_look_finds_it_calm),
		cmocka_unit_test(launches_go_before_communication),
		cmocka_unit_test(what_makes_communicators_is_never_in_slices),
		cmocka_unit_test(the_agents_budget_takes_from_the_one_with_the_most_events),
		cmocka_unit_test(what_is_not_known_takes_no_memory),
		cmocka_unit_test(a_process_that_is_not_sampled_for_a_minute_is_forgotten),
		cmocka_unit_test(
			a_new_process_that_calls_at_full_speed_is_found_with_its_second_sample),
		cmocka_unit_test(processes_over_the_cap_are_counted_and_not_governed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
