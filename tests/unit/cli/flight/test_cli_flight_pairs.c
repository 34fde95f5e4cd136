/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dumps of the flight recorder: sends and receives between two ranks. */
#include "tests/unit/cli/flight_job.h"

/* A send that nobody takes must not pass for a call of the group. */
static void sends_and_receives_are_no_calls_of_their_group(void **state)
{
	const struct entry send = {
		.op = "nccl:send 0->1", .elements = 5, .state = "scheduled", .p2p = true};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	work(job, 10);
	call(job, 0, &send);
	work(job, 3);
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->frame[0].rank[0].comms, 2);
	assert_int_equal(trace->frame[0].rank[1].comms, 1);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 0);
}

/* A pipeline of all four ranks at work: those between two others make twice as many calls. */
static void pass_on(struct job *job, unsigned int calls)
{
	char op[2][32];

	for (unsigned int n = 1; n <= calls; n++) {
		for (int i = 0; i + 1 < RANKS; i++) {
			struct entry part = {.elements = 5, .state = "completed", .p2p = true};

			(void)snprintf(op[0], sizeof(op[0]), "nccl:send %d->%d", i, i + 1);
			(void)snprintf(op[1], sizeof(op[1]), "nccl:recv %d<-%d", i + 1, i);
			part.op = op[0];
			part.p2p_seq = i ? 2 * n : n;
			call(job, i, &part);
			part.op = op[1];
			part.p2p_seq = i + 2 < RANKS ? 2 * n - 1 : n;
			call(job, i + 1, &part);
		}
		job->now_ns += SECOND;
	}
}

static void stay_in(struct job *job, int rank, const char *op, unsigned int number)
{
	const struct entry open = {
		.op = op, .elements = 5, .state = "started", .p2p = true, .p2p_seq = number};

	call(job, rank, &open);
}

static void assert_waits(const struct nt_trace *trace, uint32_t rank, int absent)
{
	for (size_t i = 0; i < trace->waits; i++) {
		const struct nt_trace_wait *wait = &trace->wait[i];

		if (wait->rank[0] != rank)
			continue;
		assert_int_equal(wait->ranks, 1);
		assert_int_equal(wait->absents, absent >= 0);
		if (absent >= 0)
			assert_int_equal(wait->absent[0], absent);
		return;
	}
	fail_msg("rank %u waits in nothing", rank);
}

/* Each numbers its sends and receives for itself: with whom it does them tells who is late. */
static void who_neither_sends_nor_takes_what_others_wait_for_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	pass_on(job, 6);
	stay_in(job, 0, "nccl:send 0->1", 7);
	stay_in(job, 2, "nccl:recv 2<-1", 13);
	stay_in(job, 3, "nccl:recv 3<-2", 7);
	trace = read_dumps(job, 60, -1);
	assert_int_equal(trace->waits, 3);
	assert_waits(trace, 0, 1);
	assert_waits(trace, 2, 1);
	assert_waits(trace, 3, 2);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 1);
}

static void pairs_beyond_the_cap_of_communicators_are_left_out_and_counted(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;
	struct entry in = done;
	char group[NT_FRAME_MAX_COMMS][24];

	pass_on(job, 6);
	/* One is the pipeline, one all ranks, in which it has not called. */
	for (int i = 2; i < NT_FRAME_MAX_COMMS; i++) {
		(void)snprintf(group[i], sizeof(group[i]), "group-%d", i);
		in.group = group[i];
		job->seq[1] = 1;
		call(job, 1, &in);
	}
	stay_in(job, 2, "nccl:recv 2<-1", 13);
	trace = read_dumps(job, 60, -1);
	assert_int_equal(trace->dropped, 1);
	assert_int_equal(trace->frame[0].rank[1].comms, NT_FRAME_MAX_COMMS);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 0);
}

/* Nobody can say which of the two had to send first. */
static void two_that_wait_for_each_other_are_both_not_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	pass_on(job, 6);
	stay_in(job, 1, "nccl:recv 1<-2", 13);
	stay_in(job, 2, "nccl:recv 2<-1", 13);
	stay_in(job, 3, "nccl:recv 3<-2", 7);
	trace = read_dumps(job, 60, -1);
	assert_waits(trace, 1, -1);
	assert_waits(trace, 2, -1);
	assert_waits(trace, 3, 2);
	judgement = judge_trace(trace);
	for (size_t i = 0; i < judgement->incidents; i++)
		assert_int_equal(judgement->judged[i].incident.culprits, 0);
}

static void what_is_sent_and_does_not_arrive_is_the_network(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	pass_on(job, 6);
	stay_in(job, 1, "nccl:send 1->2", 14);
	stay_in(job, 2, "nccl:recv 2<-1", 13);
	trace = read_dumps(job, 60, -1);
	assert_waits(trace, 1, -1);
	assert_waits(trace, 2, -1);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "hang");
	assert_string_equal(judgement->judged[0].incident.cause, "network");
	assert_int_equal(judgement->judged[0].incident.culprits, 1);
	assert_string_equal(judgement->judged[0].incident.culprit[0].kind, "communicator");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLIGHT_TEST(sends_and_receives_are_no_calls_of_their_group),
		FLIGHT_TEST(who_neither_sends_nor_takes_what_others_wait_for_is_named),
		FLIGHT_TEST(pairs_beyond_the_cap_of_communicators_are_left_out_and_counted),
		FLIGHT_TEST(two_that_wait_for_each_other_are_both_not_named),
		FLIGHT_TEST(what_is_sent_and_does_not_arrive_is_the_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
