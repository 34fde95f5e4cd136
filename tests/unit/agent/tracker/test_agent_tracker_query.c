/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks of NCCL jobs whose programs query an event before and after each collective. */
#include "tests/unit/agent/agent_job.h"

enum {
	STEP_MS = 128,
	WORK_MS = 96,
	COMM = 0x5000,
	START = 0x100,
	END = 0x140,
	QUERY_MAX = 2000, /* a second */
};

struct program {
	struct node node;
	uint64_t queries;
	uint64_t comm; /* handle; a second one makes the process two ranks */
};

static bool told(struct program *program, uint64_t event, bool is_complete)
{
	const struct nt_event_query query = {
		.h = {.type = NT_EVENT_QUERY,
		      .size = sizeof(query),
		      .flags = is_complete ? NT_QUERY_COMPLETE : 0,
		      .pid = PID,
		      .tid = PID,
		      .entry_ns = program->node.now_ns},
		.event = event,
		.queries = ++program->queries,
	};

	return nt_tracker_query(program->node.tracker, &query);
}

static void record(struct program *program, uint64_t event)
{
	struct nt_event_call call =
		node_call(&program->node, PID, PID, "cudaEventRecord", NT_LIBRARY_CUDART, 0);

	call.word[0] = event;
	call.word[1] = STREAM + 1;
	node_event(&program->node, &call);
}

/* The device works for WORK_MS and then reduces; the host enqueues the next reduction before. */
static void run_steps(struct program *program, int steps)
{
	struct node *node = &program->node;

	for (int i = 0; i < steps; i++) {
		node->counters.calls[NT_COUNTER_LAUNCH] += 100;
		record(program, START);
		nccl_reduce(node, PID, PID, program->comm, 1 << 20, STREAM + 1);
		record(program, END);
		for (int ms = 0; ms < STEP_MS; ms++) {
			node->now_ns += MS / 2;
			if (ms == WORK_MS)
				assert_true(told(program, START, true));
			assert_true(told(program, ms < WORK_MS ? START : END, false));
			node->now_ns += MS / 2;
		}
		assert_true(told(program, END, true));
		nt_tracker_tick(node->tracker, node->now_ns);
	}
}

static void start(struct program *program)
{
	struct node *node = &program->node;

	*program = (struct program){.comm = COMM};
	node_start(node);
	ENVIRON(node, PID, "PATH=/bin\0");
	node_map(node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(node, PID, PID, COMM, 0, 2, 0x11);
}

static const struct nt_window *last_with_steps(const struct node *node)
{
	for (size_t i = node->windows; i-- > 0;)
		if (node->window[i].window.steps)
			return &node->window[i].window;
	fail_msg("no window has steps");
	return NULL;
}

static struct nt_tracker_stats stats_of(const struct program *program)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(program->node.tracker, &stats);
	return stats;
}

static void a_rank_that_only_enqueues_has_own_work_by_its_queries(void **state)
{
	const struct nt_window *window;
	struct program program;

	(void)state;
	start(&program);
	run_steps(&program, 20);
	assert_int_equal(last_with_steps(&program.node)->own_tier, NT_TIER_T1);
	assert_int_equal(last_with_steps(&program.node)->own_ns, 0);
	run_steps(&program, 80);
	window = last_with_steps(&program.node);
	assert_int_equal(window->own_tier, NT_TIER_T2);
	assert_int_equal(window->own_source, NT_OWN_SOURCE_QUERIES);
	assert_in_range(window->own_ns, window->steps * (WORK_MS - 2) * MS,
			window->steps * (WORK_MS + 2) * MS);
	assert_int_equal(window->own_blocked_ns, window->own_ns);
	assert_true(stats_of(&program).completion.measured >= 3);
	assert_true(stats_of(&program).completion.inside > 0);
	/* What is left when the process is gone. */
	nt_tracker_exited(program.node.tracker, PID, 1, program.node.now_ns);
	nt_tracker_tick(program.node.tracker, program.node.now_ns + NT_MINUTE);
	assert_true(stats_of(&program).completion.measured >= 3);
	node_stop(&program.node);
}

static void calls_that_were_missed_void_it(void **state)
{
	struct program program;

	(void)state;
	start(&program);
	run_steps(&program, 100);
	assert_int_equal(last_with_steps(&program.node)->own_tier, NT_TIER_T2);
	nt_tracker_paused(program.node.tracker, PID, program.node.now_ns);
	program.node.now_ns += NT_SECOND;
	nt_tracker_resumed(program.node.tracker, PID, program.node.now_ns);
	run_steps(&program, 20);
	assert_int_equal(last_with_steps(&program.node)->own_tier, NT_TIER_T1);
	node_stop(&program.node);
}

/* Its own work is what that proves, in all windows. */
static void a_rank_that_synchronises_keeps_that_measure(void **state)
{
	const struct nt_window *window;
	struct program program;

	(void)state;
	start(&program);
	nccl_steps(&program.node, PID, COMM, true, 60, (STEP_MS - 22) * MS);
	nt_tracker_tick(program.node.tracker, program.node.now_ns);
	assert_int_equal(last_with_steps(&program.node)->own_tier, NT_TIER_T2);
	/* It synchronises less now, so nothing is proved. */
	run_steps(&program, 100);
	assert_true(stats_of(&program).completion.measured >= 3);
	window = last_with_steps(&program.node);
	assert_int_equal(window->own_tier, NT_TIER_T1);
	node_stop(&program.node);
}

static void events_are_of_one_rank_alone(void **state)
{
	struct program program;

	(void)state;
	start(&program);
	nccl_init(&program.node, PID, PID + 1, COMM + 0x1000, 1, 2, 0x11);
	nccl_reduce(&program.node, PID, PID, COMM, 1, STREAM + 1);
	nccl_reduce(&program.node, PID, PID + 1, COMM + 0x1000, 1, STREAM + 1);
	assert_int_equal(stats_of(&program).ranks, 2);
	assert_true(told(&program, START, false));
	assert_int_equal(stats_of(&program).queries_unowned, 1);
	node_stop(&program.node);
}

static void queries_of_no_rank_are_counted(void **state)
{
	struct program program;

	(void)state;
	start(&program);
	assert_true(told(&program, START, false));
	assert_int_equal(stats_of(&program).queries_unowned, 1);
	node_stop(&program.node);
}

/* At the cap, and one more a second. */
static void a_program_that_asks_too_often_is_let_go(void **state)
{
	struct program program;

	(void)state;
	start(&program);
	nccl_reduce(&program.node, PID, PID, COMM, 1, STREAM + 1);
	for (int second = 0; second < 3; second++) {
		assert_true(told(&program, START, false));
		program.queries += QUERY_MAX - 1;
		program.node.now_ns += NT_SECOND;
	}
	assert_true(told(&program, START, false));
	assert_int_equal(stats_of(&program).queries_over_rate, 0);
	program.queries += QUERY_MAX;
	program.node.now_ns += NT_SECOND - 1;
	assert_true(told(&program, START, false)); /* not yet a second */
	program.node.now_ns += 1;
	program.queries -= 1;
	assert_false(told(&program, START, false));
	assert_int_equal(stats_of(&program).queries_over_rate, 1);
	/* A count that goes back is no rate. */
	program.queries = 0;
	program.node.now_ns += NT_SECOND;
	assert_true(told(&program, START, false));
	node_stop(&program.node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_only_enqueues_has_own_work_by_its_queries),
		cmocka_unit_test(calls_that_were_missed_void_it),
		cmocka_unit_test(a_rank_that_synchronises_keeps_that_measure),
		cmocka_unit_test(events_are_of_one_rank_alone),
		cmocka_unit_test(queries_of_no_rank_are_counted),
		cmocka_unit_test(a_program_that_asks_too_often_is_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
