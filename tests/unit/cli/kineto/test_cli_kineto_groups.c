/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Process groups of profiler traces: as the kernels name them, or guessed from the calls. */
#include <string.h>

#include <errno.h>

#include "cli/report/report.h"
#include "tests/unit/cli/kineto_job.h"

static void communicators_are_learned_from_the_kernels_arguments(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_comm *first, *other, *pair;
	struct job *job = *state;

	play(job, -1);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, STEPS);
	assert_int_equal(trace->frame[0].rank[5].comms, 2);
	first = comm_of(trace, 0, 1, NT_FRAME_SYNCHRONISING);
	assert_int_equal(first->size, 4);
	assert_int_equal(first->rank, 1);
	assert_int_equal(first->last, 1);
	assert_int_equal(first->ops, 1);
	assert_int_equal(first->op[0].op, NT_OP_ALL_REDUCE);
	assert_int_equal(first->op[0].bytes, 4000000);
	assert_int_equal(first->op[0].timed_calls, 1);
	assert_int_equal(comm_of(trace, 7, 1, NT_FRAME_SYNCHRONISING)->last, 8);
	/* Equal on all members, and on nobody else. */
	assert_true(comm_of(trace, 0, 3, NT_FRAME_SYNCHRONISING)->id == first->id);
	other = comm_of(trace, 0, 5, NT_FRAME_SYNCHRONISING);
	assert_true(other->id != first->id);
	assert_int_equal(other->rank, 1);
	pair = comm_of(trace, 0, 1, NT_FRAME_POINT_TO_POINT);
	assert_true(comm_of(trace, 0, 5, NT_FRAME_POINT_TO_POINT)->id == pair->id);
	/* Sends synchronise nobody: the calls of the data-parallel groups are the samples. */
	assert_int_equal(trace->frame[0].frame.samples, RANKS);
	assert_int_equal(trace->frame[0].sample[0].number, 1);
	assert_int_equal(trace->frame[0].sample[0].bytes, 4000000);
}

/* Before PyTorch 2.3 no trace named a group. */
static void ranks_of_traces_without_groups_that_make_the_same_calls_are_peers(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, STEPS);
	assert_int_equal(trace->collectives, STEPS);
	assert_string_equal(trace->collective[0].name, "AllReduce");
	assert_int_equal(comm_of(trace, 3, 5, NT_FRAME_SYNCHRONISING)->last, 4);
	assert_names(trace, 2);
}

/* They may be stages, which are no peers of each other. */
static void ranks_of_traces_without_groups_that_send_are_no_peers(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	for (int i = 0; i < RANKS; i++)
		add_kernel(job, i, "ncclDevKernel_SendRecv(x)", 1, 2, "");
	trace = read_files(job, RANKS);
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(trace->frame[1].rank[i].comms, 0);
	assert_true(trace->ungrouped);
}

/* Who works with whom is not known: then nobody knows that it is uneven work and no card either. */
static void a_slow_rank_of_traces_without_groups_is_no_stage(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	nt_autobuf struct nt_buf text = {0};
	const struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = "traces"};
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	for (int i = 0; i < RANKS; i++)
		add_kernel(job, i, "ncclDevKernel_SendRecv(x)", 1, 2, "");
	trace = read_files(job, RANKS);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 0);
	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_non_null(memmem(text.data, text.len, "do not state process groups", 27));
}

static void collectives_are_compared_group_by_group(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_trace_collective *first;
	struct job *job = *state;

	play(job, 2);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->collectives, 2 * STEPS);
	first = &trace->collective[0];
	assert_string_equal(first->name, "AllReduce dp0");
	assert_int_equal(first->ranks, 4);
	assert_int_equal(first->number, 1);
	assert_int_equal(first->last_rank, 2);
	assert_true(first->lateness_ns >= 24000000 && first->lateness_ns <= 26000000);
	assert_string_equal(trace->collective[1].name, "AllReduce dp1");
}

/* Of two ranks one is the other's only peer. */
static void of_two_ranks_the_last_is_late_by_what_the_other_waited(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	add_kernel(job, 0, "ncclDevKernel_AllReduce", 1000, 500, call("allreduce", "x", 2, 5));
	add_kernel(job, 1, "ncclDevKernel_AllReduce", 1300, 200, call("allreduce", "x", 2, 5));
	trace = read_files(job, 2);
	assert_int_equal(trace->collectives, 1);
	assert_int_equal(trace->collective[0].last_rank, 1);
	assert_int_equal(trace->collective[0].lateness_ns, 300000);
	assert_int_equal(trace->collective[0].spread_ns, 300000);
}

/* A profiler that samples records other calls on each rank: their order pairs the wrong ones. */
static void calls_without_numbers_are_paired_by_their_overlap(void **state)
{
	static const char *const args[2] = {"", NULL};
	struct job *job = *state;

	for (int grouped = 0; grouped < 2; grouped++) {
		nt_auto(nt_trace) struct nt_trace *trace = NULL;

		for (int i = 0; i < RANKS; i++)
			job->events[i].len = 0;
		job->unlisted = true;
		for (unsigned int n = 0; n < 4; n++)
			for (unsigned int i = n == 0; i < 2 - (n == 2); i++)
				add_kernel(job, (int)i, "ncclDevKernel_AllReduce",
					   10000 * n + 100 * i, 500,
					   args[grouped] ? args[grouped]
							 : call("allreduce", "x", 2, 5));
		trace = read_files(job, 2);
		/* 1 and 3: of 0 and 2 one rank has no record. */
		assert_int_equal(trace->collectives, 2);
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(trace->collective[i].spread_ns, 100000);
			assert_int_equal(trace->collective[i].last_rank, 1);
		}
	}
}

static void calls_that_never_overlap_are_not_paired(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	for (unsigned int n = 0; n < 4; n++)
		for (unsigned int i = 0; i < 2; i++)
			add_kernel(job, (int)i, "ncclDevKernel_AllReduce", 10000 * n + 1000 * i,
				   500, "");
	trace = read_files(job, 2);
	assert_int_equal(trace->collectives, 0);
}

/* One cut file among several is named, and its rank is missing. */
static void a_cut_file_is_left_out_and_makes_the_rest_incomplete(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	struct job *job = *state;

	play_plain(job, 2, 1, true);
	put_files(job);
	assert_int_equal(truncate(job->path[5], 1000), 0);
	assert_int_equal(nt_trace_read_kineto(job->paths, RANKS, &trace, &error), 0);
	assert_string_equal(error.text, "");
	assert_int_equal(trace->unread, 1);
	assert_non_null(strstr(trace->unread_text[0], "rank5.json:"));
	assert_int_equal(trace->world, RANKS);
	assert_int_equal(trace->frame[0].frame.ranks, RANKS - 1);
	assert_true(trace->frame[0].frame.completeness < 0.9);
	nt_trace_free(trace);
	trace = NULL;
	assert_int_equal(nt_trace_read_kineto(&job->paths[5], 1, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "rank5.json:"));
}

/* A member whose trace is not given may be the one that came last. It is compared with the rest. */
static void files_of_some_ranks_are_compared_among_themselves(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play(job, -1);
	trace = read_files(job, 3);
	assert_int_equal(trace->world, RANKS);
	assert_int_equal(trace->collectives, STEPS);
	assert_int_equal(trace->collective[0].ranks, 3);
	assert_int_equal(comm_of(trace, 0, 0, NT_FRAME_SYNCHRONISING)->size, 4);
}

static void a_group_that_is_not_listed_is_known_by_its_name(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_comm *first;
	struct job *job = *state;

	job->unlisted = true;
	play(job, -1);
	trace = read_files(job, RANKS);
	first = comm_of(trace, 0, 0, NT_FRAME_SYNCHRONISING);
	assert_int_equal(first->size, 4);
	assert_true(comm_of(trace, 0, 2, NT_FRAME_SYNCHRONISING)->id == first->id);
	assert_true(comm_of(trace, 0, 4, NT_FRAME_SYNCHRONISING)->id != first->id);
}

static void groups_beyond_the_cap_are_left_out_and_counted(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;
	char name[16];

	job->unlisted = true;
	for (unsigned int n = 0; n < 70; n++) {
		(void)snprintf(name, sizeof(name), "g%u", n);
		add_kernel(job, 0, "ncclDevKernel_AllReduce", 100 * n, 50,
			   call("allreduce", name, 4, 5));
	}
	trace = read_files(job, 1);
	/* One of the 64 is the listed pair, of which no kernel is. */
	assert_int_equal(trace->frame[0].rank[0].comms, 63);
	assert_int_equal(trace->dropped, 7);
}

static void assert_refused(struct job *job, const char *info, const char *args, const char *why)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	FILE *file = fopen(job->path[0], "w");

	assert_non_null(file);
	assert_true(
		fprintf(file,
			"{\"distributedInfo\": {\"rank\": 0, \"pg_config\": %s}, \"traceEvents\": ["
			"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclKernel_X\", \"ts\": 1, "
			"\"dur\": 1, \"args\": {%s}}]}",
			info, args) > 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(nt_trace_read_kineto(job->paths, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, why) || !strstr(error.text, job->path[0]))
		fail_msg("'%s' does not say '%s' of its file", error.text, why);
}

static void groups_that_contradict_themselves_are_refused(void **state)
{
	struct job *job = *state;

	assert_refused(job, "{}", "", "pg_config is not a list");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [0, -1]}]", "",
		       "the ranks of '0' are not numbers");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [0, 131072]}]", "",
		       "the ranks of '0' are not numbers");
	assert_refused(job, "[{\"pg_name\": \"0\", \"pg_size\": 3, \"ranks\": [0, 1]}]", "",
		       "'0' lists 2 ranks, but its pg_size is 3");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [1, 2]}]",
		       call("allreduce", "0", 2, 5), "rank 0 has calls in process group '0'");
	assert_refused(job, "[{\"pg_name\": \"0\", \"ranks\": [0, 1]}]",
		       call("allreduce", "0", 4, 5), "states 4 ranks; pg_config lists 2");
	assert_refused(job, "[]",
		       "\"Collective name\": \"allreduce\", \"Process Group Name\": \"0\", "
		       "\"In msg nelems\": -5",
		       "is not a number of elements");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KINETO_TEST(communicators_are_learned_from_the_kernels_arguments),
		KINETO_TEST(ranks_of_traces_without_groups_that_make_the_same_calls_are_peers),
		KINETO_TEST(ranks_of_traces_without_groups_that_send_are_no_peers),
		KINETO_TEST(a_slow_rank_of_traces_without_groups_is_no_stage),
		KINETO_TEST(collectives_are_compared_group_by_group),
		KINETO_TEST(of_two_ranks_the_last_is_late_by_what_the_other_waited),
		KINETO_TEST(calls_without_numbers_are_paired_by_their_overlap),
		KINETO_TEST(calls_that_never_overlap_are_not_paired),
		KINETO_TEST(a_cut_file_is_left_out_and_makes_the_rest_incomplete),
		KINETO_TEST(files_of_some_ranks_are_compared_among_themselves),
		KINETO_TEST(a_group_that_is_not_listed_is_known_by_its_name),
		KINETO_TEST(groups_beyond_the_cap_are_left_out_and_counted),
		KINETO_TEST(groups_that_contradict_themselves_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
