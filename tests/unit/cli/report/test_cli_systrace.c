/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysTrace's markers of all ranks: frames, peers, and what is missing. */
#include <errno.h>
#include <math.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/systrace/grid.h"
#include "cli/systrace/stage.h"
#include "common/base/buf.h"
#include "proto/wire.h"
#include "tests/unit/cli/systrace_files.h"

/* ---- frames ------------------------------------------------------------------------------- */

static void every_time_falls_into_a_frame_that_ends_no_sooner(void **state)
{
	static const uint64_t lengths[] = {1, 1000000, 700000000, 5000000000, INT64_MAX / 4};
	static const uint64_t times[] = {
		0,        1, 499999999, 999999999999, INT64_MAX / 4, INT64_MAX / 2, INT64_MAX - 1,
		INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct nt_timeline_step step[3];
		const struct nt_steps steps = {step, 3};
		struct nt_grid grid = {0};
		int64_t last = INT64_MIN;

		for (uint64_t j = 0; j < 3; j++)
			step[j] = (struct nt_timeline_step){.start_ns = j * lengths[i],
							    .end_ns = (j + 1) * lengths[i],
							    .count = 1};
		assert_int_equal(nt_grid_make(&grid, &steps), 0);
		assert_true(grid.length_ns >= 50000000);
		for (size_t j = 0; j < sizeof(times) / sizeof(times[0]); j++) {
			const int64_t bin = nt_grid_bin(&grid, times[j]);
			const uint64_t end = nt_grid_end(&grid, bin);

			assert_true(bin >= last);
			assert_true(end >= times[j]);
			/* And the one before ends too soon. */
			if (end > grid.length_ns && bin != 0)
				assert_true(nt_grid_end(&grid, bin - 1) < times[j]);
			last = bin;
		}
		nt_grid_release(&grid);
	}
}

/* ---- who does the same work --------------------------------------------------------------- */

static void those_that_reduce_together_do_the_same_work_but_not_along_a_pipeline(void **state)
{
	/* Two stages of two tensor partners, twice: ranks 0-3 are stage 0, 4-7 stage 1. */
	struct nt_stage_link link[] = {
		{10, 0, NT_STAGE_REDUCES},
		{10, 1, NT_STAGE_REDUCES}, /* tensor */
		{11, 2, NT_STAGE_REDUCES},
		{11, 3, NT_STAGE_REDUCES},
		{12, 4, NT_STAGE_REDUCES},
		{12, 5, NT_STAGE_REDUCES},
		{13, 6, NT_STAGE_REDUCES},
		{13, 7, NT_STAGE_REDUCES},
		{20, 0, NT_STAGE_REDUCES},
		{20, 2, NT_STAGE_REDUCES}, /* data */
		{21, 4, NT_STAGE_REDUCES},
		{21, 6, NT_STAGE_REDUCES},
		{30, 0, NT_STAGE_SENDS},
		{30, 4, NT_STAGE_SENDS}, /* pipelines */
		{31, 1, NT_STAGE_SENDS},
		{31, 5, NT_STAGE_SENDS},
		{32, 2, NT_STAGE_SENDS},
		{32, 6, NT_STAGE_SENDS},
		{33, 3, NT_STAGE_SENDS},
		{33, 7, NT_STAGE_SENDS},
		{40, 0, NT_STAGE_REDUCES},
		{40, 4, NT_STAGE_REDUCES}, /* an embedding */
		{50, 0, NT_STAGE_REDUCES},
		{50, 1, NT_STAGE_REDUCES}, /* all of them */
		{50, 2, NT_STAGE_REDUCES},
		{50, 3, NT_STAGE_REDUCES},
		{50, 4, NT_STAGE_REDUCES},
		{50, 5, NT_STAGE_REDUCES},
		{50, 6, NT_STAGE_REDUCES},
		{50, 7, NT_STAGE_REDUCES},
		{60, 8, 0},
	};
	int32_t stage[9];

	(void)state;
	assert_int_equal(nt_stage_find(link, sizeof(link) / sizeof(link[0]), 9, stage), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(stage[i], i < 4 ? 0 : 4);
	assert_int_equal(stage[8], -1);
	assert_int_equal(nt_stage_find(link, 0, 9, stage), 0);
	assert_int_equal(stage[0], -1);
}

/* ---- all ranks ---------------------------------------------------------------------------- */

static void put_op(struct nt_buf *buf, int id, const char *name, uint64_t start, uint64_t end)
{
	assert_int_equal(nt_buf_printf(buf, "16,%d,1,%s,1,%llu,0,0,1,1\n32,%d,1,,1,%llu,0,0,1,1\n",
				       id, name, (unsigned long long)start, id,
				       (unsigned long long)end),
			 0);
}

/*
 * Steps of 600 ms: a gather, 200 ms of work, a sum. `slow`: part of the gather's wait that is work
 * instead.
 */
static void put_rank(int rank, int steps, uint64_t slow_ms)
{
	const uint64_t ms = 1000000, start = 1749084000000 * ms + (uint64_t)rank;
	nt_autobuf struct nt_buf buf = {0};

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < steps; i++) {
		const uint64_t at = start + (uint64_t)i * 600 * ms;

		put_op(&buf, 2 * i + 1, GATHER, at + (100 + slow_ms) * ms, at + 300 * ms);
		put_op(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1", at + 500 * ms,
		       at + 600 * ms);
	}
	put_bytes(rank, buf.data, buf.len);
}

static struct nt_trace *read_ranks(int ranks)
{
	const char *paths[MAX_FILES];
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	/* The order in which they are given is of no account. */
	for (int i = 0; i < ranks; i++)
		paths[i] = path[ranks - 1 - i];
	if (nt_trace_read_systrace(paths, (size_t)ranks, &trace, &error) < 0)
		fail_msg("%s", error.text);
	return trace;
}

static void what_lies_between_the_operations_is_own_work_and_a_step_is_a_frame(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_rank *rank;

	(void)state;
	put_rank(0, 20, 0);
	put_rank(1, 20, 50);
	trace = read_ranks(2);
	assert_int_equal(trace->frames, 19); /* the first ends what nobody saw the beginning of */
	assert_int_equal(trace->steps, 19);
	assert_int_equal(trace->world, 2);
	assert_int_equal(trace->step[0].end_ns - trace->step[0].start_ns, 600000000);
	assert_int_equal(trace->nodes, 1);
	assert_string_equal(trace->rank_info[1].op, "HcclAllGather");
	assert_true(trace->rank_info[0].group == trace->rank_info[1].group);

	rank = trace->frame[5].rank;
	assert_int_equal(rank[0].steps, 1);
	assert_int_equal(rank[0].step_ns, 600000000);
	assert_int_equal(rank[0].own_ns, 300000000);
	assert_int_equal(rank[0].own_blocked_ns, 300000000);
	assert_int_equal(rank[0].comm_ns, 300000000);
	assert_int_equal(rank[0].own_longest_ns, 200000000);
	assert_int_equal(rank[1].own_ns, 350000000);
	assert_int_equal(rank[1].own_longest_ns, 200000000);
	assert_int_equal(rank[1].own_tier, NT_FRAME_T2);
	assert_int_equal(rank[1].stage, 0);
	assert_int_equal(rank[1].comms, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct nt_frame_comm *comm = &rank[1].comm[i];

		assert_int_equal(comm->size, 2);
		assert_int_equal(comm->ops, 1);
		assert_int_equal(comm->op[0].calls, 1);
		assert_int_equal(comm->op[0].timed_calls, 1);
		assert_true(comm->op[0].by_gpu);
		if (comm->op[0].op == NT_OP_ALL_GATHER)
			assert_int_equal(comm->op[0].min_ns, 150000000);
	}
	assert_true(trace->frame[5].frame.completeness == 1);
	for (size_t i = 1; i < trace->frames; i++)
		assert_true(trace->frame[i].frame.start_ns == trace->frame[i - 1].frame.end_ns);
}

/*
 * `count` steps of equal buckets, 5 ms apart, and work of 100 ms. A norm of 1 ms ends each step, or a barrier
 * and a loss follow some.
 */
static size_t steps_of_buckets(int count, int buckets, bool norm)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf buf = {0};
	const uint64_t ms = 1000000;
	uint64_t at = 1749084000000 * ms;
	int id = 0;

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < count; i++) {
		at += 100 * ms;
		for (int j = 0; j < buckets; j++, at += 15 * ms)
			put_op(&buf, ++id, "comm:HcclAllReduce!world!fp32!1000000", at,
			       at + 10 * ms);
		if (norm || i % 10 == 9) {
			at += 40 * ms;
			put_op(&buf, ++id, "comm:HcclAllReduce!world!fp32!1", at, at + ms);
		}
		if (!norm && i % 11 == 10) {
			at += 300 * ms;
			put_op(&buf, ++id, "comm:HcclAllReduce!world!fp32!2", at, at + ms);
		}
	}
	put_bytes(0, buf.data, buf.len);
	trace = read_ranks(1);
	return trace->steps;
}

static void of_equal_buckets_beside_other_calls_the_pauses_tell_the_steps(void **state)
{
	(void)state;
	assert_in_range(steps_of_buckets(75, 2, false), 73, 90);
	assert_in_range(steps_of_buckets(15, 9, true), 13, 15);
}

/* Steps of about 600 ms: a gather of 100 ms, 400 ms of work, or more from step `from` on, a sum. */
static void put_ahead(int rank, int64_t ahead_ms, int from, uint64_t slow_ms)
{
	const uint64_t ms = 1000000;
	uint64_t at = (uint64_t)((int64_t)1749084000000 + ahead_ms) * ms;
	nt_autobuf struct nt_buf buf = {0};

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < 60; i++) {
		const uint64_t work = 400 * ms + (uint64_t)i * 7919 % 13 * ms;
		const uint64_t wait = i < from ? 0 : 150 * ms;
		const uint64_t own = i < from ? 0 : slow_ms * ms;

		put_op(&buf, 2 * i + 1, GATHER, at + 10 * ms, at + 110 * ms);
		put_op(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1",
		       at + 110 * ms + work + own, at + 200 * ms + work + wait);
		at += 200 * ms + work + wait;
	}
	put_bytes(rank, buf.data, buf.len);
}

/* The clocks of two nodes are three steps apart; the ends of the sums say so. */
static void clocks_far_apart_are_corrected_by_the_ends_of_collectives(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	for (int rank = 0; rank < 8; rank++)
		put_ahead(rank, rank < 4 ? 0 : rank < 6 ? 2000 : -1700, 30, rank == 5 ? 150 : 0);
	trace = read_ranks(8);
	assert_int_equal(trace->frames, 59);
	assert_non_null(trace->remark);
	assert_non_null(strstr(trace->remark, "clocks corrected: those of 4 of 8 ranks"));
	assert_non_null(strstr(trace->remark, "at most by 2 s (rank 4)"));
	for (size_t i = 0; i < trace->frames; i++)
		for (size_t j = 0; j < 8; j++) {
			assert_true(trace->frame[i].rank[j].observed);
			assert_int_equal(trace->frame[i].rank[j].step_ns,
					 trace->frame[i].rank[0].step_ns);
		}
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "compute");
	assert_int_equal(judgement->judged[0].incident.culprits, 1);
	assert_int_equal(judgement->judged[0].incident.culprit[0].rank, 5);
}

/* Steps of a large and a small sum of the same ranks, the large one that long once they have all come. */
static void put_sums(int rank, int steps, int from, uint64_t slow_ms)
{
	const uint64_t ms = 1000000, start = 1749084000000 * ms + (uint64_t)rank;
	nt_autobuf struct nt_buf buf = {0};
	uint64_t at = start;

	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < steps; i++) {
		const uint64_t late = (uint64_t)((i + rank) % 4) * 5 * ms;
		const uint64_t sum = i < from ? 40 : slow_ms;

		put_op(&buf, 2 * i + 1, "comm:HcclAllReduce!world!fp32!1000000",
		       at + 500 * ms + late, at + (515 + sum) * ms);
		at += (515 + sum) * ms;
		put_op(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1", at + 10 * ms,
		       at + 11 * ms);
		at += 11 * ms;
	}
	put_bytes(rank, buf.data, buf.len);
}

/* The shortest call of all is the small one, and says nothing of the network. */
static void a_slow_network_shows_in_the_calls_that_move_most(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	const struct nt_frame_op *op;

	(void)state;
	for (int rank = 0; rank < 4; rank++)
		put_sums(rank, 80, 40, 200);
	trace = read_ranks(4);
	op = &trace->frame[4].rank[0].comm[0].op[0];
	assert_int_equal(trace->frame[4].rank[0].comm[0].ops, 1);
	assert_int_equal(op->calls, 2);
	assert_int_equal(op->bytes, 4000004);
	/* That of the one large call, spread over two. */
	assert_true(op->min_ns >= 20000000 && op->min_ns <= 27500000);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "network");
	assert_true(fabs(judgement->judged[0].incident.slowdown - 726.0 / 566.0) < 0.02);
}

static void a_rank_whose_file_is_empty_lacks_and_one_without_a_file_is_missed(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const char *paths[] = {path[0], path[1], path[3]};
	struct nt_trace_error error = {0};

	(void)state;
	put_rank(0, 20, 0);
	put_file(1, HEADER);
	put_rank(3, 20, 0);
	assert_int_equal(nt_trace_read_systrace(paths, 3, &trace, &error), 0);
	assert_int_equal(trace->rank_infos, 3);
	assert_true(trace->rank_info[1].lacks);
	assert_false(trace->rank_info[0].lacks);
	assert_null(nt_trace_find_rank_info(trace, 2));
	assert_int_equal(nt_trace_find_rank_info(trace, 3)->rank, 3);
	assert_int_equal(trace->world, 4);
	assert_int_equal(trace->frame[0].frame.ranks, 2);
	assert_true(trace->frame[0].frame.completeness == 0.5);
}

/* Steps of 900 ms: a sum of three ranks, which from step 40 on is longer in the second group; a barrier. */
static void put_of_three(int rank, int steps, bool late)
{
	const uint64_t ms = 1000000, start = 1749084000000 * ms + (uint64_t)rank;
	nt_autobuf struct nt_buf buf = {0};
	char name[64];

	(void)snprintf(name, sizeof(name), "comm:HcclAllReduce!group%d!fp32!1000000", rank / 3);
	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < steps; i++) {
		const uint64_t at = start + (uint64_t)i * 900 * ms;
		const uint64_t end = at + (rank < 3 || i < 40 ? 540 : 740) * ms;

		put_op(&buf, 2 * i + 1, name, late && i >= 40 ? end - 40 * ms : at + 500 * ms, end);
		put_op(&buf, 2 * i + 2, "comm:HcclAllReduce!world!fp32!1", end + 10 * ms,
		       at + (i < 40 ? 600 : 800) * ms);
	}
	put_bytes(rank, buf.data, buf.len);
}

/*
 * Rank 4 computes 200 ms longer, and its partners wait for it in their sum. Without its file their
 * calls seem to be long transfers.
 */
static void a_rank_without_a_file_may_be_who_the_others_wait_for(void **state)
{
	const char *paths[] = {path[0], path[1], path[2], path[3], path[5], path[4]};
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	for (int rank = 0; rank < 6; rank++)
		put_of_three(rank, 100, rank == 4);
	for (size_t n = 5; n <= 6; n++) {
		nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
		nt_auto(nt_trace) struct nt_trace *trace = NULL;
		struct nt_trace_error error = {0};

		assert_int_equal(nt_trace_read_systrace(paths, n, &trace, &error), 0);
		assert_int_equal(trace->world, 6);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < 2; j++) {
				const struct nt_frame_comm *comm = &trace->frame[5].rank[i].comm[j];

				assert_int_equal(comm->size, comm->op[0].bytes > 4 ? 3 : 6);
			}
		assert_int_equal(nt_judgement_new(&judgement), 0);
		assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
		for (size_t i = 0; i < judgement->incidents; i++)
			assert_string_not_equal(judgement->judged[i].incident.class, "network");
	}
}

static void steps_are_those_of_the_first_rank_that_has_enough_of_them(void **state)
{
	nt_auto(nt_trace) struct nt_trace *enough = NULL;
	nt_auto(nt_trace) struct nt_trace *few = NULL;

	(void)state;
	put_rank(0, 2, 0);
	put_rank(1, 20, 0);
	put_file(2, HEADER);
	enough = read_ranks(3);
	assert_int_equal(enough->steps, 19);
	put_rank(1, 2, 0);
	few = read_ranks(3);
	assert_int_equal(few->steps, 3); /* too short for a call period: each call is one */
	assert_true(few->frames >= 1);
	assert_true(few->rank_info[2].lacks);
}

static void a_rank_is_unobserved_where_its_file_does_not_reach(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	put_rank(0, 20, 0);
	put_rank(1, 10, 0);
	trace = read_ranks(2);
	assert_int_equal(trace->frames, 19);
	assert_true(trace->frame[8].rank[1].observed);
	assert_false(trace->frame[9].rank[1].observed);
	assert_true(trace->frame[9].rank[1].silent);
	assert_true(trace->frame[9].frame.completeness == 0.5);
}

static void two_files_of_one_rank_are_refused(void **state)
{
	const char *paths[] = {path[0], path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	put_rank(0, 20, 0);
	assert_int_equal(nt_trace_read_systrace(paths, 2, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "both are of rank 0"));
}

static void times_from_one_end_of_the_clock_to_the_other_do_no_harm(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	put_rank(0, 20, 0);
	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	put_op(&buf, 1, GATHER, 0, 1);
	put_op(&buf, 2, GATHER, 2, 3);
	put_op(&buf, 3, GATHER, INT64_MAX - 1, INT64_MAX);
	put_op(&buf, 4, GATHER, 0, INT64_MAX);
	put_bytes(1, buf.data, buf.len);
	trace = read_ranks(2);
	assert_true(trace->frames >= 19);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 0);
}

/* More communicators than a frame holds: the rest is left out of it, and still no own work. */
static void communicators_beyond_the_cap_are_left_out(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf buf = {0};
	char name[64];

	(void)state;
	assert_int_equal(nt_buf_printf(&buf, "%s", HEADER), 0);
	for (int i = 0; i < 5 * (NT_FRAME_MAX_COMMS + 10); i++) {
		const uint64_t at = (uint64_t)i * 10000000;

		(void)snprintf(name, sizeof(name), "comm:HcclAllReduce!group%d!fp32!1",
			       i % (NT_FRAME_MAX_COMMS + 10));
		put_op(&buf, i, name, at + 5000000, at + 10000000);
	}
	put_bytes(0, buf.data, buf.len);
	trace = read_ranks(1);
	assert_true(trace->frames >= 3);
	for (size_t i = 0; i < trace->frames; i++) {
		const struct nt_frame_rank *rank = trace->frame[i].rank;

		assert_true(rank->comms <= NT_FRAME_MAX_COMMS);
		assert_int_equal(rank->own_ns, rank->comm_ns);
	}
	assert_int_equal(trace->frame[1].rank->comms, NT_FRAME_MAX_COMMS);
	assert_int_equal(trace->dropped, 4 * 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			of_equal_buckets_beside_other_calls_the_pauses_tell_the_steps,
			remove_files),
		cmocka_unit_test(every_time_falls_into_a_frame_that_ends_no_sooner),
		cmocka_unit_test(
			those_that_reduce_together_do_the_same_work_but_not_along_a_pipeline),
		cmocka_unit_test_teardown(
			what_lies_between_the_operations_is_own_work_and_a_step_is_a_frame,
			remove_files),
		cmocka_unit_test_teardown(
			a_rank_whose_file_is_empty_lacks_and_one_without_a_file_is_missed,
			remove_files),
		cmocka_unit_test_teardown(a_rank_without_a_file_may_be_who_the_others_wait_for,
					  remove_files),
		cmocka_unit_test_teardown(steps_are_those_of_the_first_rank_that_has_enough_of_them,
					  remove_files),
		cmocka_unit_test_teardown(a_rank_is_unobserved_where_its_file_does_not_reach,
					  remove_files),
		cmocka_unit_test_teardown(two_files_of_one_rank_are_refused, remove_files),
		cmocka_unit_test_teardown(a_slow_network_shows_in_the_calls_that_move_most,
					  remove_files),
		cmocka_unit_test_teardown(times_from_one_end_of_the_clock_to_the_other_do_no_harm,
					  remove_files),
		cmocka_unit_test_teardown(communicators_beyond_the_cap_are_left_out, remove_files),
		cmocka_unit_test_teardown(clocks_far_apart_are_corrected_by_the_ends_of_collectives,
					  remove_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
