/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/steps/graph.h"
#include "tests/oom/oom.h"

enum {
	STREAM = 1,
	GRAPH = 2,
	EXEC = 3,
	CALLS = 20,
};

/* What is not remembered for want of memory is counted, like what is over a cap. */
static int capture(void *data)
{
	nt_auto(nt_graph) struct nt_graph *graph = NULL;
	struct nt_graph_stats stats = {0};
	const struct nt_graph_call *call;
	size_t calls;
	int r;

	(void)data;
	r = nt_graph_new(&stats, &graph);
	if (r < 0)
		return r;
	nt_graph_begin(graph, STREAM, 0);
	for (uint64_t i = 0; i < CALLS; i++)
		nt_graph_call(graph, STREAM, &(struct nt_graph_call){.bytes = i, .times = 1});
	nt_graph_end(graph, STREAM, GRAPH);
	nt_graph_copy(graph, EXEC, GRAPH);
	if (!nt_graph_find(graph, EXEC, &call, &calls) || calls < CALLS)
		assert_true(stats.no_memory > 0);
	else
		assert_int_equal(stats.no_memory, 0);
	return 0;
}

static void graphs_survive_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep_lenient(capture, NULL) >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_survive_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
