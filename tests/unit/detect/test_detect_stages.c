/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a frame goes through stops at a stage that fails, so that one which finds nothing says 0. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/baseline/communicator_learn.h"
#include "detect/baseline/peer_deviation.h"
#include "detect/baseline/peer_deviation_round.h"
#include "detect/baseline/peer_group.h"
#include "detect/incidents/findings.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "detect/model/detector_state.h"
#include "detect/model/network.h"
#include "detect/model/step.h"
#include "detect/rules/hang.h"
#include "detect/rules/hang_check.h"
#include "detect/rules/hang_missing.h"
#include "detect/rules/imbalance.h"
#include "detect/rules/mismatch.h"
#include "detect/rules/network_check.h"
#include "detect/rules/step_judge.h"
#include "detect/rules/verdict.h"

static int derive(struct nt_detect *detect, const struct nt_frame *frame)
{
	(void)frame;
	return nt_peer_groups_derive(detect);
}

static int answer(struct nt_detect *detect, const struct nt_frame *frame)
{
	(void)frame;
	return nt_findings_make(detect);
}

static int close_all(struct nt_detect *detect, const struct nt_frame *frame)
{
	(void)frame;
	return nt_incidents_close(detect, NT_FAMILY_END);
}

static int make_room(struct nt_detect *detect, const struct nt_frame *frame)
{
	(void)frame;
	return nt_detect_make_room(detect, detect->ranks);
}

static int learn(struct nt_detect *detect, const struct nt_frame *frame)
{
	for (size_t i = 0; i < frame->ranks; i++) {
		struct nt_detect_rank *rank = nt_detect_find(detect, frame->rank[i].rank);
		const int r = rank ? nt_detect_comm_learn(detect, rank, &frame->rank[i]) : 0;

		if (r != 0)
			return r;
	}
	return 0;
}

static int (*const stages[])(struct nt_detect *detect, const struct nt_frame *frame) = {
	make_room,
	learn,
	derive,
	nt_peer_deviation_rounds,
	nt_detect_step_learn,
	nt_verdict_slow,
	nt_network_check,
	nt_imbalance_check,
	nt_detect_step_check,
	nt_mismatch_check,
	nt_hang_check,
	nt_hang_missing,
	nt_incidents_settle,
	answer,
	close_all,
};

static void assert_all_say_0(struct nt_detect *detect, const struct nt_frame *frame)
{
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		if (stages[i](detect, frame) != 0)
			fail_msg("stage %zu does not say 0", i);
}

static void without_ranks_there_is_nothing_to_find(void **state)
{
	const struct nt_frame frame = {.completeness = 1.0};
	struct nt_detect *detect = sim_detect();

	(void)state;
	assert_all_say_0(detect, &frame);
	nt_detect_free(detect);
}

static void in_a_healthy_job_there_is_nothing_to_find(void **state)
{
	static const uint8_t tiers[] = {NT_FRAME_T1, NT_FRAME_T2, NT_FRAME_T3};

	(void)state;
	for (size_t i = 0; i < sizeof(tiers); i++) {
		for (uint32_t ranks = 1; ranks < 10; ranks++) {
			struct nt_detect *detect = sim_detect();
			struct sim sim;

			sim_init(&sim, ranks, 71);
			sim.comm[0].timed = i > 0;
			for (uint32_t j = 0; j < ranks; j++)
				sim.rank[j].tier = tiers[i];
			sim_pass(&sim, detect, 25);
			assert_all_say_0(detect, &sim.frame);
			/* Nobody is heard of, then nobody is there. */
			for (uint32_t j = 0; j < ranks; j++)
				sim.rank[j].silent = true;
			sim_pass(&sim, detect, 1);
			assert_all_say_0(detect, &sim.frame);
			for (uint32_t j = 0; j < ranks; j++)
				sim.rank[j].ended = sim.rank[j].finalized = true;
			sim_pass(&sim, detect, 1);
			assert_all_say_0(detect, &sim.frame);
			nt_detect_free(detect);
			sim_free(&sim);
		}
	}
}

/* Each in its own call, and where it is found; the stages are asked once more behind it. */
static void what_is_found_is_no_error(void **state)
{
	(void)state;
	for (int fault = 0; fault < 6; fault++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 8, 72);
		sim.jitter = 0.02;
		sim.blocking = true;
		sim.comm[0].timed = true;
		sim_pass(&sim, detect, 40);
		if (fault == 0)
			sim.rank[3].device *= 2.0;
		else if (fault == 1)
			sim.comm[0].transfer *= 4.0;
		else if (fault == 2)
			for (uint32_t i = 0; i < 8; i++)
				sim.rank[i].device *= 2.0;
		else
			sim_stick(&sim, sim.comm[0].id, fault == 3 ? 3 : UINT32_MAX);
		if (fault == 3)
			sim.rank[3].behind = 1;
		if (fault == 4)
			sim.rank[3].inside_count++;
		if (fault == 5) {
			sim.rank[3].ended = true;
			sim.rank[3].ended_ns = sim.now_ns;
		}
		for (int i = 0; i < 60; i++) {
			sim_pass(&sim, detect, 1);
			for (size_t j = 4; j + 2 < sizeof(stages) / sizeof(stages[0]); j++)
				assert_int_equal(stages[j](detect, &sim.frame), 0);
		}
		assert_all_say_0(detect, &sim.frame);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_ranks_there_is_nothing_to_find),
		cmocka_unit_test(in_a_healthy_job_there_is_nothing_to_find),
		cmocka_unit_test(what_is_found_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
