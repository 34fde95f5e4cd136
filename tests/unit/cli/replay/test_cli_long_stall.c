/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A long stall of one rank's host is a note, of all ranks it is nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay/long_stall.h"
#include "cli/replay/replay.h"

enum {
	RANKS = 8,
	STEPS = 60,
	STALLED = 40, /* the step with the stall */
	STEP_MS = 100,
};

static struct nt_trace *trace;

static int tear_down(void **state)
{
	(void)state;
	nt_trace_free(trace);
	trace = NULL;
	return 0;
}

/* Steps of 100 ms, 2 ms of them on the host. In one step some ranks, from 3 on, are there for long. */
static void make(uint64_t stall_ms, size_t stalled_ranks, bool no_host)
{
	uint64_t at_ns = 1000000000;

	assert_int_equal(nt_trace_new(RANKS, &trace), 0);
	for (size_t n = 0; n < STEPS; n++) {
		const uint64_t more_ns = n == STALLED ? stall_ms * 1000000 : 0;
		const uint64_t took_ns = STEP_MS * 1000000 + more_ns;
		struct nt_trace_frame *frame = NULL;

		assert_int_equal(nt_trace_frame_add(trace, RANKS, 0, &frame), 0);
		frame->frame.start_ns = at_ns;
		frame->frame.end_ns = at_ns += took_ns;
		frame->frame.ranks = frame->frame.expected_ranks = RANKS;
		frame->frame.completeness = 1.0;
		for (uint32_t i = 0; i < RANKS; i++)
			frame->rank[i] = (struct nt_frame_rank){
				.rank = i,
				.node = NT_FRAME_NO_NODE,
				.own_tier = NT_FRAME_T3,
				.rank_known = true,
				.uses_gpu = true,
				.observed = true,
				.no_host = no_host,
				.stage = -1,
				.replica = -1,
				.steps = 1,
				.step_ns = took_ns,
				.window_ns = took_ns,
				.own_ns = 80000000 + (n * 7 + i * 13) % 11 * 20000,
				.own_blocked_ns = 80000000,
				.host_ns =
					2000000 + (i >= 3 && i < 3 + stalled_ranks ? more_ns : 0),
			};
	}
}

static struct nt_judgement *judge(void)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_judgement *judgement = NULL;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	return judgement;
}

static void one_rank_is_noted_as_a_slow_host(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;

	(void)state;
	make(60000, 1, false);
	judgement = judge();
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->severity, "info");
	assert_string_equal(incident->class, "host");
	assert_string_equal(incident->cause, "slow host");
	assert_string_equal(incident->state, "resolved");
	assert_int_equal(incident->culprits, 1);
	assert_int_equal(incident->culprit[0].rank, 3);
	assert_int_equal(incident->since_real_ns, 5000000000);
	assert_int_equal(incident->until_real_ns, 65100000000);
	assert_int_equal((int)incident->evidence[0].value, 60002);
}

static void a_pause_of_all_is_not(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;

	(void)state;
	make(60000, RANKS - 3, false);
	judgement = judge();
	for (size_t i = 0; i < judgement->incidents; i++)
		assert_int_equal(judgement->judged[i].incident.culprits, 0);
}

static void a_short_stall_is_not(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;

	(void)state;
	make(14000, 1, false);
	judgement = judge();
	assert_int_equal(judgement->incidents, 0);
}

static void host_work_that_is_not_recorded_is_not(void **state)
{
	struct nt_long_stall stall[NT_LONG_STALL_MAX];
	const struct nt_rules rules = nt_rules_default();
	size_t stalls = 1;

	(void)state;
	make(60000, 1, true);
	assert_int_equal(nt_long_stall_find(trace, &rules, stall, &stalls), 0);
	assert_int_equal(stalls, 0);
}

#define CASE(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_rank_is_noted_as_a_slow_host),
		CASE(a_pause_of_all_is_not),
		CASE(a_short_stall_is_not),
		CASE(host_work_that_is_not_recorded_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
