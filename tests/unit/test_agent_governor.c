/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/governor.h"
#include "agent/probe.h"
#include "common/clock.h"

enum {
	PID = 7,
	OTHER = 8,
	TICK_MS = 100,
};

/* A process that calls some functions at constant rates, as the governor sees it. */
struct played {
	struct nt_governor *governor;
	uint64_t now_ns, cpu_ns, observed_ns;
	struct nt_process_counters counters;
	double cpu; /* cores */
	uint64_t events; /* that were given */
	uint64_t owner;
	bool is_rank;
	uint64_t measured, whole_ns;
};

static const struct nt_governor_options options = {
	.budget = 0.01,
	.agent_budget = 10, /* of no concern here */
	.count_ns = 500,
	.entry_ns = 700,
	.pair_ns = 1000,
};

static uint16_t row_of(const char *symbol)
{
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		if (strcmp(nt_probe_row(row)->symbol, symbol) == 0)
			return row;
	fail_msg("the table has no %s", symbol);
	return 0;
}

static void begin(struct played *played, const struct nt_governor_options *with)
{
	*played = (struct played){.now_ns = NT_SECOND, .observed_ns = NT_SECOND, .cpu = 1};
	assert_int_equal(nt_governor_new(with, &played->governor), 0);
}

/* Events of one tick, of the share of the time that the plan leaves. */
static void hit(struct played *played, const char *symbol, double calls)
{
	const struct nt_governor_plan *plan = nt_governor_plan(played->governor, PID);
	uint16_t row = row_of(symbol);
	double share = plan ? plan->permille / 1000.0 : 1;

	if (plan && nt_probe_stays(nt_probe_row(row)))
		share = 1;
	if (plan &&
	    (nt_governor_is_hot(plan, row) || (plan->shed >> nt_probe_row(row)->subject & 1)))
		return;
	nt_governor_meet(played->governor, PID);
	for (double n = 0; n < calls * share; n++)
		(void)nt_governor_hit(played->governor, PID, row);
}

/* So long at `calls` a second of the row, of the share of the time that the plan leaves. */
static void play(struct played *played, uint32_t pid, const char *symbol, double calls, int ms)
{
	uint16_t row = row_of(symbol);
	bool counted = nt_probe_row(row)->counter >= 0 && !nt_probe_row(row)->returns;

	nt_governor_meet(played->governor, pid);
	for (int i = 0; i < ms / TICK_MS; i++) {
		const struct nt_governor_plan *plan = nt_governor_plan(played->governor, pid);
		double share = plan ? plan->permille / 1000.0 : 1;
		uint64_t hits;
		struct nt_governor_sample sample;

		if (plan && (nt_governor_is_hot(plan, row) ||
			     (plan->shed >> nt_probe_row(row)->subject & 1)))
			hits = 0;
		else
			hits = (uint64_t)(calls * share * TICK_MS / 1000);
		if (counted)
			played->counters.calls[nt_probe_row(row)->counter] += hits;
		for (uint64_t n = 0; !counted && n < hits; n++)
			(void)nt_governor_hit(played->governor, pid, row);
		played->events += counted ? 0 : hits;
		played->now_ns += TICK_MS * NT_MILLISECOND;
		played->cpu_ns += (uint64_t)(played->cpu * TICK_MS * NT_MILLISECOND);
		played->observed_ns += (uint64_t)(share * TICK_MS * NT_MILLISECOND);
		sample = (struct nt_governor_sample){
			.now_ns = played->now_ns,
			.cpu_ns = played->cpu_ns,
			.observed_ns = played->observed_ns,
			.owner = played->owner,
			.is_rank = played->is_rank,
			.measured = played->measured,
			.whole_ns = played->whole_ns,
			.counters = &played->counters,
		};
		(void)nt_governor_sample(played->governor, pid, &sample);
	}
}

static const struct nt_governor_plan *plan_of(const struct played *played)
{
	const struct nt_governor_plan *plan = nt_governor_plan(played->governor, PID);

	assert_non_null(plan);
	return plan;
}

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
	assert_true(nt_governor_cost(played.governor, PID) <= options.budget);
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
		nt_governor_balance(played.governor, (played.events + other.events) * 1000,
				    NT_SECOND);
		played.events = other.events = 0;
	}
	assert_true(plan_of(&played)->governed);
	assert_in_range(plan_of(&played)->permille, 200, 400);
	assert_false(nt_governor_plan(played.governor, OTHER)->governed);
	nt_governor_free(played.governor);
}

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
		nt_governor_balance(crowd->of[0].governor, events * event_ns, NT_SECOND);
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
	join_crowd(&crowd, governor, OTHER, 1, 4000);
	(void)play_crowd(&crowd, 5000, 3);
	assert_true(nt_governor_plan(governor, OTHER)->governed);
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
		nt_governor_balance(played.governor, 1000, NT_SECOND);
	}
	assert_non_null(nt_governor_plan(played.governor, OTHER));
	play(&played, PID, "MPI_Allreduce", 10, 1000);
	nt_governor_balance(played.governor, 1000, NT_SECOND);
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
		cmocka_unit_test(many_that_are_too_much_together_all_give_way),
		cmocka_unit_test(an_owner_with_many_processes_takes_nothing_from_one_with_few),
		cmocka_unit_test(of_one_owner_the_process_with_the_most_events_gives_way),
		cmocka_unit_test(what_its_own_budget_does_not_leave_a_process_is_no_claim),
		cmocka_unit_test(a_process_that_has_ended_claims_nothing),
		cmocka_unit_test(dear_events_of_one_do_not_take_from_another),
		cmocka_unit_test(an_event_costs_five_microseconds_at_most),
		cmocka_unit_test(what_is_not_known_takes_no_memory),
		cmocka_unit_test(a_process_that_is_not_sampled_for_a_minute_is_forgotten),
		cmocka_unit_test(
			a_new_process_that_calls_at_full_speed_is_found_with_its_second_sample),
		cmocka_unit_test(the_shortest_slice_lasts_100_ms_of_3_s),
		cmocka_unit_test(a_slice_holds_whole_steps),
		cmocka_unit_test(launches_go_where_no_slice_would_hold_a_step),
		cmocka_unit_test(steps_that_are_not_known_are_looked_for_in_longer_slices),
		cmocka_unit_test(what_is_known_of_steps_holds_for_a_while),
		cmocka_unit_test(what_was_taken_for_a_step_and_is_not_measured_was_none),
		cmocka_unit_test(a_slice_goes_on_while_nothing_is_called),
		cmocka_unit_test(pauses_between_bursts_are_observed_in_slices),
		cmocka_unit_test(processes_over_the_cap_are_counted_and_not_governed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
