/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's own budget, divided among owners and their processes. */
#include "tests/unit/agent/governor_play.h"

enum {
	MANY = 20,
	FIRST = 100, /* of the many */
	SECOND_PARTY = 1000, /* pids of another owner */
};

/* A second of many processes, each on its own clock, in ticks; then a balance at 1 us an event. */
struct crowd {
	struct played of[128];
	uint32_t pid[128];
	double calls[128]; /* a second */
	size_t count;
};

static void join_crowd(struct crowd *crowd, struct nt_governor *governor, uint32_t pid,
		       uint64_t owner, double calls)
{
	struct played *played = &crowd->of[crowd->count];

	*played = (struct played){
		.governor = governor, .now_ns = NT_SECOND, .observed_ns = NT_SECOND, .cpu = 1};
	played->owner = owner;
	crowd->pid[crowd->count] = pid;
	crowd->calls[crowd->count++] = calls;
}

/* Returns the events of the last second. */
static uint64_t play_crowd(struct crowd *crowd, uint64_t event_ns, int seconds)
{
	uint64_t events = 0;

	for (int i = 0; i < seconds; i++) {
		events = 0;
		for (size_t n = 0; n < crowd->count; n++) {
			crowd->of[n].events = 0;
			play(&crowd->of[n], crowd->pid[n], "MPI_Allreduce", crowd->calls[n], 1000);
			events += crowd->of[n].events;
		}
		nt_governor_budget(crowd->of[0].governor, events * event_ns, NT_SECOND);
	}
	return events;
}

static struct nt_governor_options tight_options(void)
{
	struct nt_governor_options tight = options;

	tight.budget = 1; /* of no concern */
	tight.agent_budget = 0.02; /* at 1 us an event 16,000 a second are aimed at */
	return tight;
}

static void many_that_are_too_much_together_all_give_way(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};
	uint64_t events;

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	for (uint32_t i = 0; i < MANY; i++)
		join_crowd(&crowd, governor, FIRST + i, FIRST + i, 4000);
	events = play_crowd(&crowd, 1000, 20);
	assert_in_range(events, 10000, 20000);
	for (uint32_t i = 0; i < MANY; i++)
		assert_in_range(nt_governor_plan(governor, FIRST + i)->permille, 140, 260);
}

static void an_owner_with_many_processes_takes_nothing_from_one_with_few(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	for (uint32_t i = 0; i < 100; i++)
		join_crowd(&crowd, governor, FIRST + i, 1, 1000);
	for (uint32_t i = 0; i < 8; i++)
		join_crowd(&crowd, governor, SECOND_PARTY + i, 2, 900);
	(void)play_crowd(&crowd, 1000, 10);
	for (uint32_t i = 0; i < 8; i++)
		assert_false(nt_governor_plan(governor, SECOND_PARTY + i)->governed);
	for (uint32_t i = 0; i < 100; i++)
		assert_in_range(nt_governor_plan(governor, FIRST + i)->permille, 34, 150);
}

static void a_claim_that_the_slack_covers_is_not_limited(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	join_crowd(&crowd, governor, PID, 1, 40000);
	join_crowd(&crowd, governor, OTHER, 2, 9500); /* its half is 8,000 */
	(void)play_crowd(&crowd, 1000, 10);
	assert_in_range(nt_governor_plan(governor, PID)->permille, 120, 240);
	assert_false(nt_governor_plan(governor, OTHER)->governed);
}

static void of_one_owner_the_process_with_the_most_events_gives_way(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	join_crowd(&crowd, governor, PID, 1, 40000);
	join_crowd(&crowd, governor, OTHER, 1, 4000);
	join_crowd(&crowd, governor, SECOND_PARTY, 2, 2000);
	(void)play_crowd(&crowd, 1000, 10);
	assert_in_range(nt_governor_plan(governor, PID)->permille, 180, 320);
	assert_false(nt_governor_plan(governor, OTHER)->governed);
	assert_false(nt_governor_plan(governor, SECOND_PARTY)->governed);
}

static void what_its_own_budget_does_not_leave_a_process_is_no_claim(void **state)
{
	struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	tight.budget = 0.01;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	/* 7,000 of its 100,000 calls are events already. */
	join_crowd(&crowd, governor, PID, 1, 100000);
	join_crowd(&crowd, governor, OTHER, 2, 8500);
	(void)play_crowd(&crowd, 1000, 20);
	assert_in_range(nt_governor_plan(governor, PID)->permille, 50, 90);
	assert_false(nt_governor_plan(governor, OTHER)->governed);
}

/* The kernel side counts their hits, so they are no hits of events; the agent's time for them counts. */
static void a_flood_of_verbs_gives_way_too(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	assert_false(nt_governor_event(governor, PID)); /* not known */
	join_crowd(&crowd, governor, PID, 1, 100);
	join_crowd(&crowd, governor, OTHER, 2, 1000);
	for (int i = 0; i < 10; i++) {
		(void)play_crowd(&crowd, 1000, 1);
		/* Seen with the first sample of the next second. */
		for (int n = 0; n < 4000; n++) {
			assert_true(nt_governor_event(governor, PID));
			nt_governor_spend(governor, PID, 20000);
		}
	}
	assert_true(nt_governor_plan(governor, PID)->governed);
	assert_false(nt_governor_plan(governor, OTHER)->governed);
}

static void a_process_that_has_ended_claims_nothing(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0}, alive = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	join_crowd(&alive, governor, OTHER, 2, 12000);
	join_crowd(&crowd, governor, PID, 1, 40000);
	(void)play_crowd(&crowd, 1000, 5);
	(void)play_crowd(&alive, 1000, 1);
	/* Nothing is known of its end: it is not sampled any more. */
	(void)play_crowd(&alive, 1000, 30);
	assert_int_equal(nt_governor_plan(governor, OTHER)->permille, NT_GOVERNOR_WHOLE);
}

static void dear_events_of_one_do_not_take_from_another(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	join_crowd(&crowd, governor, PID, 1, 2000);
	join_crowd(&crowd, governor, OTHER, 2, 1500);
	for (int i = 0; i < 10; i++) {
		nt_governor_spend(governor, PID, 2000); /* 4 ms a second, of 16 */
		nt_governor_spend(governor, OTHER, 50000); /* 75 ms */
		(void)play_crowd(&crowd, 20000, 1);
	}
	assert_false(nt_governor_plan(governor, PID)->governed);
	assert_true(nt_governor_plan(governor, OTHER)->governed);
	assert_in_range(nt_governor_plan(governor, OTHER)->permille, 100, 200); /* 12 of 75 ms */
}

static void the_first_events_of_a_process_are_no_measure_of_its_cost(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	join_crowd(&crowd, governor, PID, 1, 1500);
	join_crowd(&crowd, governor, OTHER, 1, 1500);
	for (int i = 0; i < 10; i++) {
		nt_governor_spend(governor, PID, i < 2 ? 50000 : 1000);
		nt_governor_spend(governor, OTHER, i < 2 ? 50000 : 1000);
		(void)play_crowd(&crowd, 1000, 1);
		assert_false(nt_governor_plan(governor, PID)->governed);
		assert_false(nt_governor_plan(governor, OTHER)->governed);
	}
}

static void an_event_costs_five_microseconds_at_most(void **state)
{
	const struct nt_governor_options tight = tight_options();
	nt_auto(nt_governor) struct nt_governor *governor = NULL;
	struct crowd crowd = {0};

	(void)state;
	assert_int_equal(nt_governor_new(&tight, &governor), 0);
	join_crowd(&crowd, governor, PID, 1, 3000);
	(void)play_crowd(&crowd, 5000, 10); /* 3,200 a second are allowed */
	assert_false(nt_governor_plan(governor, PID)->governed);
	(void)play_crowd(&crowd, 100000, 10);
	assert_false(nt_governor_plan(governor, PID)->governed);
	nt_governor_end(governor, PID);
	crowd = (struct crowd){0};
	join_crowd(&crowd, governor, OTHER, 1, 4400); /* a quarter more than allowed, and over */
	(void)play_crowd(&crowd, 5000, 3);
	assert_true(nt_governor_plan(governor, OTHER)->governed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_that_are_too_much_together_all_give_way),
		cmocka_unit_test(an_owner_with_many_processes_takes_nothing_from_one_with_few),
		cmocka_unit_test(a_claim_that_the_slack_covers_is_not_limited),
		cmocka_unit_test(of_one_owner_the_process_with_the_most_events_gives_way),
		cmocka_unit_test(what_its_own_budget_does_not_leave_a_process_is_no_claim),
		cmocka_unit_test(a_flood_of_verbs_gives_way_too),
		cmocka_unit_test(a_process_that_has_ended_claims_nothing),
		cmocka_unit_test(dear_events_of_one_do_not_take_from_another),
		cmocka_unit_test(the_first_events_of_a_process_are_no_measure_of_its_cost),
		cmocka_unit_test(an_event_costs_five_microseconds_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
