/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the governor learns of a process, and what a window states of what the governor did. */
#include "tests/unit/agent/agent_job.h"

static struct nt_tracker_traits traits_of(const struct node *node, uint32_t pid)
{
	struct nt_tracker_traits traits = {0};

	assert_true(nt_tracker_traits(node->tracker, pid, &traits));
	return traits;
}

static void begin(struct node *node)
{
	node_start(node);
	ENVIRON(node, PID, MPI_ENVIRON("0"));
	mpi_process(node, PID, 0, false);
}

static void two_and_a_half_steps_hold_a_whole_one(void **state)
{
	struct nt_tracker_traits traits;
	struct node node;

	(void)state;
	begin(&node);
	assert_false(nt_tracker_traits(node.tracker, PID + 1, &traits));
	traits = traits_of(&node, PID);
	assert_true(traits.owner == 1000000 + PID);
	assert_false(traits.is_rank);
	assert_true(traits.whole_ns == 0);
	mpi_steps(&node, PID, 2);
	assert_true(traits_of(&node, PID).is_rank);
	assert_true(traits_of(&node, PID).whole_ns == 0); /* not known yet */
	mpi_steps(&node, PID, 40); /* of 25 ms */
	assert_in_range(traits_of(&node, PID).whole_ns, 60 * MS, 65 * MS);
	node_stop(&node);
}

/* Two reductions of one kind in a step: which of them begins it is searched anew after a pause. */
static void two_steps(struct node *node, int steps)
{
	for (int i = 0; i < steps; i++) {
		node->now_ns += 10 * MS;
		mpi_reduce(node, PID, WORLD, 1000, MS);
		node->now_ns += 2 * MS;
		mpi_reduce(node, PID, WORLD, 1000, MS);
		node->now_ns += 2 * MS;
		mpi_reduce(node, PID, WORLD, 500000, MS);
		node->now_ns += 2 * MS;
		mpi_reduce(node, PID, WORLD, 500000, MS);
		node->now_ns += 4 * MS;
	}
}

static void five_steps_where_the_place_within_a_step_is_lost(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	two_steps(&node, 60); /* of 20 ms */
	assert_in_range(traits_of(&node, PID).whole_ns, 95 * MS, 105 * MS);
	node_stop(&node);
}

static uint32_t shed_of_next_window(struct node *node)
{
	size_t before = node->windows;

	for (int i = 0; i < 100 && node->windows == before; i++)
		mpi_steps(node, PID, 1);
	assert_int_equal(node->windows, before + 1);
	return node_last(node)->window.shed;
}

static void a_window_states_what_was_not_observed_at_some_time_of_it(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	mpi_steps(&node, PID, 100);
	assert_int_equal(shed_of_next_window(&node), 0);
	mpi_steps(&node, PID, 5);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_LAUNCHES);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_COPIES);
	nt_tracker_shed(node.tracker, PID, 0);
	assert_int_equal(shed_of_next_window(&node), NT_WIRE_SHED_LAUNCHES | NT_WIRE_SHED_COPIES);
	assert_int_equal(shed_of_next_window(&node), 0);
	/* What goes on being shed is stated by each. */
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_LAUNCHES);
	for (int i = 0; i < 2; i++)
		assert_int_equal(shed_of_next_window(&node), NT_WIRE_SHED_LAUNCHES);
	node_stop(&node);
}

/* A burst of four equal reductions at the beginning of a slice, and nothing else of the step. */
static void cut_slices(struct node *node, int slices)
{
	for (int i = 0; i < slices; i++) {
		for (int call = 0; call < 4; call++) {
			node->now_ns += MS / 50;
			mpi_reduce(node, PID, WORLD, 1000, MS / 100);
		}
		node->now_ns += 700 * MS;
		nt_tracker_tick(node->tracker, node->now_ns);
		nt_tracker_paused(node->tracker, PID, node->now_ns);
		node->now_ns += 1300 * MS;
		nt_tracker_tick(node->tracker, node->now_ns);
		nt_tracker_resumed(node->tracker, PID, node->now_ns);
	}
}

static void what_recurs_within_a_step_is_no_step_where_slices_hold_none(void **state)
{
	uint64_t measured;
	struct node node;
	size_t before;

	(void)state;
	begin(&node);
	mpi_steps(&node, PID, 100);
	measured = traits_of(&node, PID).measured;
	assert_in_range(measured, 60, 100);
	cut_slices(&node, 1); /* its window ends with steps of before */
	before = node.windows;
	measured = traits_of(&node, PID).measured;
	cut_slices(&node, 20);
	assert_true(node.windows > before);
	for (size_t i = before; i < node.windows; i++)
		assert_int_equal(node.window[i].window.steps, 0);
	assert_true(traits_of(&node, PID).measured == measured);
	node_stop(&node);
}

static void whole_steps_in_slices_are_sent(void **state)
{
	uint64_t measured;
	struct node node;

	(void)state;
	begin(&node);
	mpi_steps(&node, PID, 100);
	measured = traits_of(&node, PID).measured;
	for (int i = 0; i < 20; i++) {
		nt_tracker_paused(node.tracker, PID, node.now_ns);
		node.now_ns += 1300 * MS;
		nt_tracker_tick(node.tracker, node.now_ns);
		nt_tracker_resumed(node.tracker, PID, node.now_ns);
		mpi_steps(&node, PID, 4);
	}
	assert_in_range(traits_of(&node, PID).measured - measured, 40, 80);
	node_stop(&node);
}

static void a_rank_that_is_found_later_states_it_too(void **state)
{
	struct node node;

	(void)state;
	begin(&node);
	mpi_init(&node, PID);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_FUNCTIONS);
	mpi_steps(&node, PID, 40);
	assert_int_equal(node_last(&node)->window.shed, NT_WIRE_SHED_FUNCTIONS);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_and_a_half_steps_hold_a_whole_one),
		cmocka_unit_test(five_steps_where_the_place_within_a_step_is_lost),
		cmocka_unit_test(a_window_states_what_was_not_observed_at_some_time_of_it),
		cmocka_unit_test(what_recurs_within_a_step_is_no_step_where_slices_hold_none),
		cmocka_unit_test(whole_steps_in_slices_are_sent),
		cmocka_unit_test(a_rank_that_is_found_later_states_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
