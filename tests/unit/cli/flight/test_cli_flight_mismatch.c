/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dumps of the flight recorder: calls of one group that do not match. */
#include "tests/unit/cli/flight_job.h"

static void another_operation_is_a_mismatch_that_shows_both_sides(void **state)
{
	const struct entry other = {
		.op = "nccl:_all_gather_base", .elements = 1000, .state = "scheduled"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 1);
	job->seq[1]++;
	call(job, 1, &other);
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->waits, 1);
	assert_int_equal(trace->wait[0].ranks, RANKS);
	assert_true(trace->wait[0].mixed);
	judgement = judge_trace(trace);
	assert_names(judgement, "mismatch", "", 1);
	assert_int_equal(judgement->judged[0].incident.evidences, 2);
	assert_string_equal(judgement->judged[0].incident.evidence[0].what, "number of the call");
	assert_true(judgement->judged[0].incident.evidence[0].value == 11);
	assert_string_equal(judgement->judged[0].incident.evidence[1].what,
			    "operation of the call");
	assert_true(judgement->judged[0].incident.evidence[1].value == NT_OP_ALL_GATHER);
	assert_true(judgement->judged[0].incident.evidence[1].peers == NT_OP_ALL_REDUCE);
}

static void another_size_is_a_mismatch_too(void **state)
{
	const struct entry other = {.op = "nccl:all_reduce", .elements = 999, .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 3);
	job->seq[3]++;
	call(job, 3, &other);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 3);
	assert_true(judgement->judged[0].incident.evidence[1].value == 999);
}

/* The device took a call of another type; the job stood only later. */
static void a_mismatch_that_went_through_is_found_where_it_was(void **state)
{
	const struct entry other = {
		.op = "nccl:all_reduce", .elements = 1000, .state = "completed", .type = "Half"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 100);
	for (int i = 0; i < RANKS; i++) {
		job->seq[i]++;
		call(job, i, i == 2 ? &other : &done);
	}
	work(job, 40);
	all_call(job, &open_call, -1);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 2);
	assert_true(judgement->judged[0].incident.evidence[0].value == 101);
}

static void members_that_always_differ_are_no_mismatch(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	for (int n = 0; n < 40; n++) {
		for (int i = 0; i < RANKS; i++) {
			struct entry own = done;

			own.elements = 1000 + (uint64_t)i;
			job->seq[i]++;
			call(job, i, &own);
		}
		job->now_ns += SECOND;
	}
	judgement = judge(job, 20, -1);
	assert_int_equal(judgement->incidents, 0);
}

/* One sends what the other receives: calls of one number that differ by nature. */
static void a_pipeline_is_no_mismatch(void **state)
{
	struct entry part = {
		.op = "nccl:send 0->1", .elements = 5, .state = "completed", .p2p = true};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame *last;
	struct job *job = *state;

	work(job, 10);
	for (int n = 0; n < 20; n++) {
		part.op = "nccl:send 0->1";
		call(job, 0, &part);
		part.op = "nccl:recv 1<-0";
		call(job, 1, &part);
		job->now_ns += SECOND;
	}
	trace = read_dumps(job, 20, -1);
	last = &trace->frame[trace->frames - 1].frame;
	assert_true(last->rank[0].comm[1].rolling_hash == last->rank[1].comm[1].rolling_hash);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 0);
}

/* What one of the files leaves out is no mismatch. */
static void a_type_that_is_not_told_is_no_other_type(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct entry untyped = open_call;
	struct job *job = *state;

	work(job, 10);
	untyped.type = "";
	for (int i = 0; i < RANKS - 1; i++) {
		job->seq[i]++;
		call(job, i, i == 1 ? &untyped : &open_call);
	}
	judgement = judge(job, 60, -1);
	assert_names(judgement, "hang", "laggard", 3);
}

/* The members pass on tensors of the same size in all, but not as many. */
static void another_number_of_coalesced_tensors_is_a_mismatch(void **state)
{
	const struct entry part = {.op = "nccl:_all_gather_base_coalesced", .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	for (int i = 0; i < RANKS; i++) {
		struct entry own = part;

		job->seq[i]++;
		own.elements = i == 1 ? 60 : 30;
		call(job, i, &own);
		if (i != 1)
			call(job, i, &own);
	}
	job->now_ns += SECOND;
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 1);
	assert_string_equal(judgement->judged[0].incident.evidence[1].what, "tensors of the call");
	assert_true(judgement->judged[0].incident.evidence[1].value == 1);
	assert_true(judgement->judged[0].incident.evidence[1].peers == 2);
}

/* All-gathers of different sizes are a broadcast from each member, and an end without tensors. */
static void an_uneven_all_gather_is_one_call_of_its_name(void **state)
{
	struct entry part = {.op = "nccl:_broadcast_oop", .state = "scheduled"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	for (int i = 0; i < RANKS; i++) {
		const struct entry end = {
			.op = "nccl:ALLGATHER_coalesced", .state = "scheduled", .bare = true};

		job->seq[i]++;
		for (int root = 0; root < RANKS; root++) {
			/* Rank 3 expects another size of the last one. */
			part.elements = 10 + (uint64_t)root + (i == 3 && root == 3);
			call(job, i, &part);
		}
		call(job, i, &end);
	}
	job->now_ns += SECOND;
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->wait[0].op, NT_OP_ALL_GATHER);
	judgement = judge_trace(trace);
	assert_names(judgement, "mismatch", "", 3);
	assert_true(judgement->judged[0].incident.evidence[1].value == 47);
	assert_true(judgement->judged[0].incident.evidence[1].peers == 46);
}

static void another_size_of_a_broadcast_is_a_mismatch(void **state)
{
	struct entry own = {.op = "nccl:broadcast", .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	for (int i = 0; i < RANKS; i++) {
		job->seq[i]++;
		own.elements = i == 2 ? 7 : 8;
		call(job, i, &own);
	}
	job->now_ns += SECOND;
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLIGHT_TEST(another_operation_is_a_mismatch_that_shows_both_sides),
		FLIGHT_TEST(another_size_is_a_mismatch_too),
		FLIGHT_TEST(a_mismatch_that_went_through_is_found_where_it_was),
		FLIGHT_TEST(members_that_always_differ_are_no_mismatch),
		FLIGHT_TEST(a_type_that_is_not_told_is_no_other_type),
		FLIGHT_TEST(a_pipeline_is_no_mismatch),
		FLIGHT_TEST(another_number_of_coalesced_tensors_is_a_mismatch),
		FLIGHT_TEST(an_uneven_all_gather_is_one_call_of_its_name),
		FLIGHT_TEST(another_size_of_a_broadcast_is_a_mismatch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
