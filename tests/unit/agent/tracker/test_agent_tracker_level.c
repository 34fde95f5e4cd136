/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which processes the levels of a node reach. */
#include "control/level_table.h"
#include "tests/unit/agent/agent_job.h"

static struct node node;
static struct nt_level_table *table;
static size_t changes;
static uint32_t level;

static int set_up(void **state)
{
	(void)state;
	changes = 0;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	mpi_process(&node, PID, 0, false);
	return nt_level_table_new(&table);
}

static int tear_down(void **state)
{
	(void)state;
	nt_level_table_free(table);
	node_stop(&node);
	return 0;
}

static void change(void *data, uint32_t pid, uint64_t start_boot_ns, uint32_t to)
{
	(void)data;
	assert_int_equal(pid, PID);
	changes++;
	level = to;
	assert_int_equal(nt_tracker_set_level(node.tracker, pid, start_boot_ns, to), 0);
}

static void take(uint32_t least)
{
	const struct nt_tracker_requests requests = {.least = least, .changed = change};

	nt_tracker_take_requests(node.tracker, table, node.now_ns, &requests);
}

/* There may be a thousand of them. */
static void a_process_that_only_maps_a_library_has_no_level(void **state)
{
	(void)state;
	take(3);
	assert_int_equal(changes, 0);
}

static void a_rank_has_the_least_level_once(void **state)
{
	(void)state;
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 5);
	take(3);
	take(3);
	assert_int_equal(changes, 1);
	assert_int_equal(level, 3);
	take(0);
	assert_int_equal(changes, 2);
	assert_int_equal(level, 0);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static struct {
	size_t asked;
	uint64_t id;
	bool is_taken; /* the answer */
} stack;

static bool want_stack(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t id)
{
	(void)data, (void)start_boot_ns;
	assert_int_equal(pid, PID);
	stack.asked++;
	stack.id = id;
	return stack.is_taken;
}

static void take_stacks(void)
{
	const struct nt_tracker_requests requests = {.changed = change, .stack = want_stack};

	nt_tracker_take_requests(node.tracker, table, node.now_ns, &requests);
}

static void request_stack(uint64_t id, uint64_t ttl_ns)
{
	char target[NT_LEVEL_TARGET];
	const struct nt_control control = {
		.target = target,
		.request = NT_REQUEST_STACK,
		.set_real_ns = node.now_ns,
		.expires_real_ns = node.now_ns + ttl_ns,
		.id = id,
		.reason = "",
	};

	(void)snprintf(target, sizeof(target), "rank:user/7/mpi:77/0");
	assert_true(nt_level_table_take(table, &control, node.now_ns) >= 0);
}

/* The agent refuses more than a few a second: the request is made again while it is in force. */
static void a_stack_that_is_refused_is_wanted_again_until_it_is_taken(void **state)
{
	(void)state;
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 30);
	memset(&stack, 0, sizeof(stack));
	take_stacks();
	assert_int_equal(stack.asked, 0);
	request_stack(7, NT_MINUTE);
	take_stacks();
	take_stacks();
	assert_int_equal(stack.asked, 2);
	assert_int_equal(stack.id, 7);
	stack.is_taken = true;
	take_stacks();
	take_stacks();
	assert_int_equal(stack.asked, 3); /* once it is taken no more */
	node.now_ns++;
	request_stack(8, NT_MINUTE);
	take_stacks();
	assert_int_equal(stack.asked, 4);
	assert_int_equal(stack.id, 8);
}

static void a_stack_is_not_wanted_after_its_time(void **state)
{
	(void)state;
	mpi_init(&node, PID);
	mpi_steps(&node, PID, 30);
	memset(&stack, 0, sizeof(stack));
	request_stack(7, NT_SECOND);
	take_stacks();
	assert_int_equal(stack.asked, 1);
	node.now_ns += 2 * NT_SECOND;
	take_stacks();
	assert_int_equal(stack.asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_process_that_only_maps_a_library_has_no_level,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rank_has_the_least_level_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_stack_that_is_refused_is_wanted_again_until_it_is_taken, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_stack_is_not_wanted_after_its_time, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
