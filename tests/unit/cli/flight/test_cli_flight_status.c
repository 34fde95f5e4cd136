/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dumps of the flight recorder without entries: pg_config and pg_status show the members. */
#include "tests/unit/cli/flight_job.h"

#define STATUS(enqueued, completed)                                                                \
	"{\"0\": {\"last_enqueued_collective\": " #enqueued                                        \
	", \"last_started_collective\": -1, \"last_completed_collective\": " #completed "}}"

/* The dumps hold open calls only, as those that a watchdog writes do. */
static void wait_in_11(struct job *job, int except)
{
	for (int i = 0; i < RANKS; i++) {
		job->status[i] = i == except ? STATUS(10, 10) : STATUS(11, 10);
		job->seq[i] = 11;
		if (i != except)
			call(job, i, &open_call);
	}
	job->now_ns += SECOND;
}

static void a_rank_whose_dump_has_no_entries_is_the_laggard(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	wait_in_11(job, 2);
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->waits, 1);
	assert_int_equal(trace->wait[0].absents, 1);
	assert_int_equal(trace->wait[0].absent[0], 2);
	assert_int_equal(trace->wait[0].absent_at[0], 10);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 2);
	assert_true(judgement->judged[0].incident.completeness == 1);
}

static void without_a_status_its_last_call_is_unknown(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	wait_in_11(job, 2);
	job->status[2] = "{}";
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->wait[0].absents, 1);
	assert_true(trace->wait[0].absent_at[0] == UINT64_MAX);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 2);
}

/* 0 and 1, 2 and 3 have groups of their own. The keys of pg_status are not their names. */
static const char pairs[] = "{\"0\": {\"desc\": \"default_pg\", \"ranks\": \"[0, 1, 2, 3]\"}, "
			    "\"35\": {\"desc\": \"TP\", \"ranks\": \"[0, 1]\"}, "
			    "\"36\": {\"desc\": \"TP\", \"ranks\": \"[2, 3]\"}}";

static void keys_of_the_status_are_matched_in_order(void **state)
{
	static const char all_done[] =
		"{\"0\": {\"last_enqueued_collective\": 4, \"last_completed_collective\": 4}, "
		"\"7\": {\"last_enqueued_collective\": 9, \"last_completed_collective\": 9}, "
		"\"10\": {\"last_enqueued_collective\": 8, \"last_completed_collective\": 8}}";
	const struct entry pair = {.op = "nccl:all_reduce",
				   .elements = 8,
				   .state = "scheduled",
				   .group = "36",
				   .pg_id = 10};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->config = pairs;
	for (int i = 0; i < RANKS; i++)
		job->status[i] = all_done;
	job->seq[2] = 9;
	call(job, 2, &pair);
	for (int i = 0; i < 2; i++) {
		job->seq[i] = 5;
		call(job, i, &open_call);
	}
	job->now_ns += SECOND;
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->waits, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct nt_trace_wait *wait = &trace->wait[i];

		/* "36" is the third group, and 10 the third key. */
		assert_int_equal(wait->absents, wait->number == 9 ? 1 : 2);
		assert_int_equal(wait->absent_at[0], wait->number - 1);
	}
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 3);
}

/* A batch of sends and receives takes a number of the collectives where it is made. */
static void the_status_of_a_group_with_sends_is_no_number_of_a_call(void **state)
{
	const struct entry send = {
		.op = "nccl:send 0->1", .elements = 5, .state = "completed", .p2p = true};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	wait_in_11(job, 2);
	call(job, 0, &send);
	trace = read_dumps(job, 20, -1);
	assert_true(trace->wait[0].absent_at[0] == UINT64_MAX);
}

/* Its device is stuck in 10, which all others have completed; 3 is behind, and waits for it. */
static void a_rank_in_a_call_that_others_have_left_is_named(void **state)
{
	const struct entry pair = {.op = "nccl:all_reduce",
				   .elements = 8,
				   .state = "scheduled",
				   .group = "36",
				   .pg_id = 2};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	job->config = pairs;
	work(job, 9);
	/* The pair's call is older, and both are in it. */
	for (int i = 2; i < RANKS; i++) {
		job->seq[i] = 1;
		call(job, i, &pair);
	}
	job->now_ns += SECOND;
	for (int i = 0; i < RANKS; i++) {
		job->seq[i] = 10;
		call(job, i, i == 2 ? &open_call : &done);
	}
	for (int i = 0; i < RANKS; i++) {
		job->seq[i] = 11;
		if (i != 3)
			call(job, i, &open_call);
	}
	job->now_ns += SECOND;
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "device or link", 2);
}

/* A call that ended while the next one was enqueued may stay uncounted for good. */
static void a_retired_call_before_others_is_done_whatever_the_status(void **state)
{
	const struct entry retired = {
		.op = "gloo:all_reduce", .elements = 1000, .state = "scheduled", .retired = true};
	const struct entry waits = {
		.op = "gloo:all_reduce", .elements = 1000, .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	for (int i = 0; i < 10; i++)
		all_call(job, &retired, -1);
	all_call(job, &waits, 0);
	job->status[1] = STATUS(11, 9);
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->waits, 1);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 0);
}

/* Rank 1 has a send to 2 open, which 2 takes only after the collective in which it waits for 1. */
static void who_waits_for_itself_in_the_end_is_the_laggard(void **state)
{
	const struct entry send = {
		.op = "nccl:send 1->2", .elements = 5, .state = "scheduled", .p2p = true};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	call(job, 1, &send);
	all_call(job, &open_call, 1);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "laggard", 1);
}

/* 1 and 3 receive from each other, so that one of them is late: 0 waits for 1 in a collective. */
static void of_two_that_receive_from_each_other_the_late_one_is_named(void **state)
{
	const struct entry pair = {.op = "nccl:all_reduce",
				   .elements = 8,
				   .state = "scheduled",
				   .group = "35",
				   .pg_id = 7};
	struct entry receive = {.elements = 5, .state = "scheduled", .p2p = true, .p2p_seq = 4};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	job->config = pairs;
	for (int i = 0; i < RANKS; i++) {
		job->status[i] = "{\"0\": {\"last_enqueued_collective\": 4, "
				 "\"last_completed_collective\": 4}, "
				 "\"7\": {\"last_enqueued_collective\": 4, "
				 "\"last_completed_collective\": 4}, "
				 "\"10\": {\"last_enqueued_collective\": 0, "
				 "\"last_completed_collective\": 0}}";
		job->seq[i] = 3;
	}
	receive.op = "nccl:recv 1<-3";
	call(job, 1, &receive);
	receive.op = "nccl:recv 3<-1";
	call(job, 3, &receive);
	receive.op = "nccl:recv 2<-0";
	call(job, 2, &receive);
	job->now_ns += SECOND;
	job->seq[0] = 5;
	call(job, 0, &pair);
	job->now_ns += SECOND;
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "laggard", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLIGHT_TEST(a_rank_whose_dump_has_no_entries_is_the_laggard),
		FLIGHT_TEST(without_a_status_its_last_call_is_unknown),
		FLIGHT_TEST(keys_of_the_status_are_matched_in_order),
		FLIGHT_TEST(the_status_of_a_group_with_sends_is_no_number_of_a_call),
		FLIGHT_TEST(a_rank_in_a_call_that_others_have_left_is_named),
		FLIGHT_TEST(a_retired_call_before_others_is_done_whatever_the_status),
		FLIGHT_TEST(who_waits_for_itself_in_the_end_is_the_laggard),
		FLIGHT_TEST(of_two_that_receive_from_each_other_the_late_one_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
