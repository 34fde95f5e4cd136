/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Faults of a recording that is shorter than the time after which a live incident resolves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "cli/replay/replay.h"

enum {
	RANKS = 8,
	SLOW = 3,
	STEPS = 220,
	WORK_NS = 80000000,
};

/* Two faults: it computes half as long again in the steps 40 to 59, and a quarter longer in 150 to 179. */
static uint64_t work_of(size_t step, uint32_t rank)
{
	uint64_t work = WORK_NS + (step * 7 + rank * 13) % 11 * 20000;

	if (rank == SLOW && step >= 40 && step < 60)
		work += work / 2;
	if (rank == SLOW && step >= 150 && step < 180)
		work += work / 4;
	return work;
}

static void make(struct nt_trace *trace)
{
	uint64_t at_ns = 1000000000;

	for (size_t n = 0; n < STEPS; n++) {
		const uint64_t took_ns = work_of(n, SLOW) + 20000000;
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
				.stage = -1,
				.replica = -1,
				.steps = 1,
				.step_ns = took_ns,
				.window_ns = took_ns,
				.own_ns = work_of(n, i),
				.own_blocked_ns = work_of(n, i),
				.host_ns = 2000000,
			};
	}
}

/* They are two incidents, each with an end and a cost of its own. */
static void two_faults_of_one_rank_are_two_incidents(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	double slowdown[2];

	(void)state;
	assert_int_equal(nt_trace_new(RANKS, &trace), 0);
	make(trace);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;

		assert_string_equal(incident->state, "resolved");
		assert_int_equal(incident->culprits, 1);
		assert_int_equal(incident->culprit[0].rank, SLOW);
		slowdown[i] = incident->slowdown;
	}
	assert_true(slowdown[0] > 1.3 && slowdown[0] < 1.5);
	assert_true(slowdown[1] > 1.15 && slowdown[1] < 1.25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_faults_of_one_rank_are_two_incidents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
