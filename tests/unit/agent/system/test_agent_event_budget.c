/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether the tracepoints of system events stay attached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/system/event_budget.h"
#include "common/system/clock.h"

/* 1 % of a core is 10 ms a second: 40,000 switches at 250 ns. */
static struct nt_event_budget make(void)
{
	return (struct nt_event_budget){
		.budget = 0.01,
		.costs = {.switch_ns = 250, .side_ns = 500, .hit_ns = 1000},
	};
}

/* A second with so many switches, sides and hits. */
static enum nt_event_budget_state pass(struct nt_event_budget *budget,
				       struct nt_event_budget_load *load, uint64_t switches,
				       uint64_t sides, uint64_t hits)
{
	load->now_ns += NT_SECOND;
	load->switches += switches;
	load->sides += sides;
	load->hits += hits;
	return nt_event_budget_take(budget, load);
}

static void the_cost_is_hits_times_their_cost(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};

	(void)state;
	(void)pass(&budget, &load, 0, 0, 0);
	(void)pass(&budget, &load, 1000, 200, 30);
	assert_true(budget.cost == 1000 * 250.0 + 200 * 500.0 + 30 * 1000.0);
}

static void interrupts_are_let_go_first_then_switches_then_all(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};

	(void)state;
	assert_int_equal(pass(&budget, &load, 0, 0, 0), NT_EVENT_BUDGET_ALL);
	assert_int_equal(pass(&budget, &load, 40000, 0, 0), NT_EVENT_BUDGET_ALL);
	assert_int_equal(pass(&budget, &load, 40001, 0, 0), NT_EVENT_BUDGET_NO_INTERRUPTS);
	nt_event_budget_changed(&budget);
	assert_int_equal(pass(&budget, &load, 50000, 0, 0), NT_EVENT_BUDGET_NO_INTERRUPTS);
	assert_int_equal(pass(&budget, &load, 50000, 0, 0), NT_EVENT_BUDGET_BETWEEN);
	assert_int_equal(pass(&budget, &load, 0, 0, 10001), NT_EVENT_BUDGET_NOTHING);
	assert_int_equal(budget.sheds, 3);
}

/* Mean cost of ten minutes in ns a second, where a second with switches costs so much. */
static double mean_of(uint64_t switches, uint64_t hits, uint64_t *ret_slices)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};
	double spent = 0.0;

	budget.state = NT_EVENT_BUDGET_NO_INTERRUPTS;
	(void)pass(&budget, &load, 0, 0, 0);
	while (pass(&budget, &load, switches, 0, hits) != NT_EVENT_BUDGET_BETWEEN)
		;
	for (int i = 0; i < 600; i++) {
		const bool observed = budget.state == NT_EVENT_BUDGET_SLICE;

		(void)pass(&budget, &load, observed ? switches : 0, 0, hits);
		assert_int_not_equal(budget.state, NT_EVENT_BUDGET_NOTHING);
		spent += budget.cost / 600;
	}
	*ret_slices = budget.slices;
	return spent;
}

static void slices_keep_the_mean_within_the_budget(void **state)
{
	uint64_t slices;

	(void)state;
	assert_in_range((uint64_t)mean_of(200000, 0, &slices), 8e6, 12e6);
	assert_in_range(slices, 100, 140);
	/* What runs all the time leaves less for slices. */
	assert_in_range((uint64_t)mean_of(200000, 5000, &slices), 8e6, 12e6);
	assert_in_range(slices, 45, 75);
	/* Not so rarely that what happens in phases is missed, although that costs more. */
	(void)mean_of(4000000, 0, &slices);
	assert_in_range(slices, 19, 25);
}

static void what_is_cheap_again_is_observed_all_the_time(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};
	unsigned int slices = 0;

	(void)state;
	budget.state = NT_EVENT_BUDGET_NO_INTERRUPTS;
	(void)pass(&budget, &load, 0, 0, 0);
	while (pass(&budget, &load, 80000, 0, 0) != NT_EVENT_BUDGET_BETWEEN)
		;
	for (int i = 0; i < 60 && budget.state != NT_EVENT_BUDGET_NO_INTERRUPTS; i++) {
		const bool observed = budget.state == NT_EVENT_BUDGET_SLICE;

		slices += observed;
		(void)pass(&budget, &load, observed ? 30000 : 0, 0, 0);
	}
	assert_int_equal(budget.state, NT_EVENT_BUDGET_NO_INTERRUPTS);
	assert_int_equal(slices, 3);
}

static void a_busy_node_has_more_to_spend(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {.busy_cores = 2.0};

	(void)state;
	(void)pass(&budget, &load, 0, 0, 0);
	assert_int_equal(pass(&budget, &load, 80000, 0, 0), NT_EVENT_BUDGET_ALL);
	assert_int_equal(pass(&budget, &load, 80001, 0, 0), NT_EVENT_BUDGET_NO_INTERRUPTS);
}

static void without_a_budget_all_stays(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};

	(void)state;
	budget.budget = 0.0;
	for (int i = 0; i < 10; i++)
		assert_int_equal(pass(&budget, &load, 10000000, 0, 0), NT_EVENT_BUDGET_ALL);
}

/* Runs until all is let go, and returns the seconds until it is tried again. */
static unsigned int pause_of(struct nt_event_budget *budget, struct nt_event_budget_load *load)
{
	unsigned int seconds = 0;

	while (pass(budget, load, 0, 0, 1000000) != NT_EVENT_BUDGET_NOTHING)
		;
	nt_event_budget_changed(budget);
	while (pass(budget, load, 0, 0, 0) == NT_EVENT_BUDGET_NOTHING)
		seconds++;
	assert_int_equal(budget->state, NT_EVENT_BUDGET_NO_INTERRUPTS);
	nt_event_budget_changed(budget);
	return seconds + 1;
}

static void it_is_tried_again_after_longer_and_longer_pauses(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};

	(void)state;
	assert_int_equal(pause_of(&budget, &load), 60);
	assert_int_equal(pause_of(&budget, &load), 120);
	assert_int_equal(pause_of(&budget, &load), 240);
	for (int i = 0; i < 5; i++)
		(void)pause_of(&budget, &load);
	assert_int_equal(pause_of(&budget, &load), 1800);
}

static void readings_too_close_say_nothing(void **state)
{
	struct nt_event_budget budget = make();
	struct nt_event_budget_load load = {0};

	(void)state;
	(void)pass(&budget, &load, 0, 0, 0);
	load.now_ns += 50 * NT_MILLISECOND;
	load.switches += 1000000;
	assert_int_equal(nt_event_budget_take(&budget, &load), NT_EVENT_BUDGET_ALL);
	assert_true(budget.cost == 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cost_is_hits_times_their_cost),
		cmocka_unit_test(interrupts_are_let_go_first_then_switches_then_all),
		cmocka_unit_test(slices_keep_the_mean_within_the_budget),
		cmocka_unit_test(what_is_cheap_again_is_observed_all_the_time),
		cmocka_unit_test(a_busy_node_has_more_to_spend),
		cmocka_unit_test(without_a_budget_all_stays),
		cmocka_unit_test(it_is_tried_again_after_longer_and_longer_pauses),
		cmocka_unit_test(readings_too_close_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
