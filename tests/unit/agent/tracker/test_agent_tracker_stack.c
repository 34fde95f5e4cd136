/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks of ranks: of which threads they are wanted, and which window sends them. */
#include "agent/profile/window_profile.h"
#include "agent/stack/window_stack.h"
#include "agent/tracker/tracker_impl.h"
#include "tests/unit/agent/agent_job.h"

static struct node node;

static int set_up(void **state)
{
	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	node_stop(&node);
	return 0;
}

static struct nt_window_stack *make_stack(uint64_t request)
{
	static struct nt_stack stack;
	struct nt_window_stack *window;

	nt_window_stack_fail(PID, 5, NT_STACK_NO_PYTHON, &stack);
	assert_int_equal(nt_window_stack_new(&stack, request, &window), 0);
	return window;
}

static void run(int steps)
{
	mpi_steps(&node, PID, steps);
	nt_tracker_tick(node.tracker, node.now_ns);
}

static void begin_job(void)
{
	mpi_init(&node, PID);
	run(50);
	assert_true(node.windows > 0);
}

static size_t count_stacks(size_t from)
{
	size_t n = 0;

	for (size_t i = from; i < node.windows; i++)
		n += node.window[i].window.stacks;
	return n;
}

static void the_next_window_has_the_stack_and_no_other(void **state)
{
	size_t before;

	(void)state;
	begin_job();
	before = node.windows;
	assert_int_equal(count_stacks(0), 0);
	assert_true(nt_tracker_stack_read(node.tracker, PID, PID, make_stack(0x77)));
	run(50);
	assert_true(node.windows > before);
	assert_int_equal(count_stacks(before), 1);
	assert_int_equal(node.window[before].window.stacks, 1);
	assert_int_equal(node.window[before].stack.request, 0x77);
	assert_int_equal(node.window[before].stack.tid, PID);
}

static void a_hung_rank_sends_it_too(void **state)
{
	size_t before;

	(void)state;
	begin_job();
	before = node.windows;
	assert_true(nt_tracker_stack_read(node.tracker, PID, PID, make_stack(1)));
	for (int i = 0; i < 30; i++) {
		node.now_ns += 100 * MS;
		nt_tracker_tick(node.tracker, node.now_ns);
	}
	assert_int_equal(count_stacks(before), 1);
}

static void a_newer_one_replaces_it_and_that_is_counted(void **state)
{
	struct nt_tracker_stats stats;
	size_t before;

	(void)state;
	begin_job();
	before = node.windows;
	assert_true(nt_tracker_stack_read(node.tracker, PID, PID, make_stack(1)));
	assert_true(nt_tracker_stack_read(node.tracker, PID, PID, make_stack(2)));
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.stacks_replaced, 1);
	run(50);
	assert_int_equal(count_stacks(before), 1);
	assert_int_equal(node.window[before].stack.request, 2);
}

static void other_processes_have_none(void **state)
{
	uint32_t tid[NT_STACK_THREADS];

	(void)state;
	assert_false(nt_tracker_stack_threads(node.tracker, PID, PID, tid)); /* no rank yet */
	begin_job();
	assert_true(nt_tracker_stack_threads(node.tracker, PID, PID, tid));
	assert_int_equal(tid[0], PID);
	assert_int_equal(tid[1], 0);
	assert_false(nt_tracker_stack_threads(node.tracker, PID, PID + 1, tid));
	assert_false(nt_tracker_stack_threads(node.tracker, PID + 1, PID + 1, tid));
	assert_false(nt_tracker_stack_read(node.tracker, PID, PID + 1, make_stack(1)));
	assert_false(nt_tracker_stack_read(node.tracker, PID + 1, PID + 1, make_stack(1)));
}

static void what_no_window_sent_is_freed_with_its_process(void **state)
{
	(void)state;
	begin_job();
	assert_true(nt_tracker_stack_read(node.tracker, PID, PID, make_stack(1)));
	/* tear_down() frees the tracker; leaks are for the sanitizer to find. */
}

static struct nt_window_profile *make_profile(uint64_t request, bool is_running)
{
	static const struct nt_profile_wish wish = {.seconds = 1, .hz = 49};
	struct nt_window_profile *profile;

	assert_int_equal(nt_window_profile_state(request, &wish, is_running, "", &profile), 0);
	return profile;
}

/* The requests of the profiles in windows from `first` on, as digits; a window has one at most. */
static void requests_sent(size_t first, char *ret_digits)
{
	for (size_t i = first; i < node.windows; i++) {
		assert_in_range(node.window[i].window.profiles, 0, 1);
		if (node.window[i].window.profiles)
			*ret_digits++ = (char)('0' + node.window[i].profile.request);
	}
	*ret_digits = '\0';
}

static void each_profile_is_in_one_window(void **state)
{
	struct nt_tracker_stats stats;
	char sent[16];
	size_t before;

	(void)state;
	begin_job();
	before = node.windows;
	assert_false(nt_tracker_profile_taken(node.tracker, PID, PID + 1, make_profile(1, true)));
	assert_true(nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(1, true)));
	/* Its result takes the place of the statement that it has begun. */
	assert_true(nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(1, false)));
	assert_true(nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(2, false)));
	run(80);
	requests_sent(before, sent);
	assert_string_equal(sent, "12");
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.profiles_replaced, 0);
}

static void profiles_over_the_cap_replace_the_oldest(void **state)
{
	struct nt_tracker_stats stats;
	char sent[16];
	size_t before;

	(void)state;
	begin_job();
	before = node.windows;
	for (uint64_t i = 1; i <= NT_PROCESS_PROFILES + 1; i++)
		assert_true(
			nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(i, false)));
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.profiles_replaced, 1);
	run(200);
	requests_sent(before, sent);
	assert_string_equal(sent, "2345");
}

static void what_the_last_window_cannot_hold_is_counted(void **state)
{
	struct nt_tracker_stats stats;
	char sent[16];
	size_t before;

	(void)state;
	begin_job();
	before = node.windows;
	assert_true(nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(1, false)));
	assert_true(nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(2, false)));
	assert_true(nt_tracker_profile_taken(node.tracker, PID, PID, make_profile(3, true)));
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	nt_tracker_tick(node.tracker, node.now_ns);
	requests_sent(before, sent);
	assert_string_equal(sent, "1");
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.profiles_left, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_next_window_has_the_stack_and_no_other, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_hung_rank_sends_it_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_newer_one_replaces_it_and_that_is_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_processes_have_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_profile_is_in_one_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(profiles_over_the_cap_replace_the_oldest, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_the_last_window_cannot_hold_is_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_no_window_sent_is_freed_with_its_process,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
