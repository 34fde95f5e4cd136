/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Process groups of profiler traces that state their sizes only: by which calls end together. */
#include <string.h>

#include "tests/unit/cli/kineto_job.h"

enum {
	STAGE = 4, /* ranks of a stage, of two */
};

/* As PyTorch wrote them before its release 2.3. */
static const char *unnamed(const char *collective, int size, int stream)
{
	static char text[160];

	(void)snprintf(
		text, sizeof(text),
		"\"Collective name\": \"%s\", \"In msg nelems\": 1000000, \"Out msg nelems\": "
		"1000000, \"dtype\": \"Float\", \"Group size\": %d, \"stream\": %d",
		collective, size, stream);
	return text;
}

/* Work of a stage, in a step that no other stage has; of an odd length. */
static unsigned int stage_us(int stage, int step)
{
	return 50000 + (unsigned int)((step + 3) * (step + 11) * (stage + 2) * 79 % 9973);
}

/* Pairs send, stages reduce. Clocks of ranks differ. `apart`: the stages end at different times. */
static void play_unnamed(struct job *job, int slow, bool apart)
{
	for (int n = 0; n < STEPS; n++) {
		for (int i = 0; i < RANKS; i++) {
			const unsigned int clock = 1000 * (unsigned int)(i + 1),
					   start = (unsigned int)n * 200000 + clock,
					   own = i == slow ? 90000 : 60000,
					   jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20,
					   sent = start + own + 30000 +
						  stage_us(2 + i % STAGE, n) / 2,
					   end = start + 130000 +
						 stage_us(apart ? i / STAGE : 0, n);

			add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, own + jitter, "");
			add_kernel(job, i, "ncclDevKernel_SendRecv", start + own + jitter,
				   sent - start - own - jitter,
				   unnamed(i < STAGE ? "send" : "recv", 2, 28));
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", sent + 200,
				   end - sent - 200, unnamed("allreduce", STAGE, 20));
		}
	}
}

static uint64_t stage_of(const struct nt_trace *trace, size_t rank)
{
	return comm_of(trace, 0, rank, NT_FRAME_SYNCHRONISING)->id;
}

static void members_end_their_calls_together(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_comm *comm;
	struct job *job = *state;

	play_unnamed(job, 2, true);
	trace = read_files(job, RANKS);
	assert_false(trace->ungrouped);
	assert_non_null(strstr(trace->remark, "which calls end together"));
	comm = comm_of(trace, 0, 6, NT_FRAME_SYNCHRONISING);
	assert_int_equal(comm->size, STAGE);
	assert_int_equal(comm->rank, 2);
	for (size_t i = 0; i < RANKS; i++) {
		assert_true(stage_of(trace, i) == stage_of(trace, i / STAGE * STAGE));
		assert_true(comm_of(trace, 0, i, NT_FRAME_POINT_TO_POINT)->id ==
			    comm_of(trace, 0, i % STAGE, NT_FRAME_POINT_TO_POINT)->id);
	}
	assert_true(stage_of(trace, 0) != stage_of(trace, STAGE));
	assert_string_equal(trace->collective[0].name, "AllReduce 0,1,2,3 of stream 20");
	assert_int_equal(trace->collective[0].ranks, STAGE);
}

static void a_member_without_a_file_is_not_replaced_by_another_rank(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_unnamed(job, 2, true);
	for (size_t i = 3; i + 1 < RANKS; i++)
		job->paths[i] = job->path[i + 1];
	trace = read_files(job, RANKS - 1);
	/* The send of the missing rank's partner has no other end: then stages are not known. */
	assert_true(trace->ungrouped);
	for (size_t i = 0; i < RANKS - 1; i++)
		assert_int_equal(trace->frame[1].rank[i].comms, 0);
}

/* Those of both stages end at the same time: who belongs to which is not known. */
static void groups_that_cannot_be_told_apart_are_not_derived(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	play_unnamed(job, 2, false);
	trace = read_files(job, RANKS);
	for (size_t i = 0; i < RANKS; i++)
		for (size_t c = 0; c < trace->frame[1].rank[i].comms; c++)
			assert_int_equal(trace->frame[1].rank[i].comm[c].size, 2);
}

/* The same, but the files list the groups: those that are as near as others are the listed ones. */
static void groups_that_are_listed_need_no_distance(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_unnamed(job, 2, false);
	trace = read_files(job, RANKS);
	for (size_t i = 0; i < STAGE; i++) {
		assert_true(stage_of(trace, i) == stage_of(trace, 0));
		assert_int_equal(comm_of(trace, 0, i, NT_FRAME_SYNCHRONISING)->rank, i);
	}
}

/* All ranks make the same calls, but these are of two groups. */
static void calls_of_fewer_ranks_are_no_sequence_of_all(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	for (int n = 0; n < STEPS; n++)
		for (int i = 0; i < RANKS; i++) {
			add_step(job, i, n, (unsigned int)n * 200000, 200000);
			add_kernel(job, i, "gemm", (unsigned int)n * 200000, 100000, "");
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32",
				   (unsigned int)n * 200000 + 100000, 50000,
				   unnamed("allreduce", STAGE, 20));
		}
	trace = read_files(job, RANKS);
	assert_true(trace->ungrouped);
	for (size_t i = 0; i < RANKS; i++)
		assert_int_equal(trace->frame[1].rank[i].comms, 0);
}

/*
 * Two pipelines of four stages: a rank has a stream for the one that it receives from and one for
 * the next. The sends state the size of the pipeline, but only two ranks end each together.
 */
static void play_pipelines(struct job *job)
{
	for (int n = 0; n < STEPS; n++) {
		for (int i = 0; i < RANKS; i++) {
			const unsigned int clock = 1000 * (unsigned int)(i + 1),
					   start = (unsigned int)n * 200000 + clock;

			add_step(job, i, n, start, 200000);
			add_kernel(job, i, "gemm", start, 20000, "");
			/* Its link from the stage before, and to the next one. */
			for (int j = 0; j < 2; j++) {
				const int link = i % STAGE + j;
				const unsigned int end =
					20000 + stage_us(i / STAGE, n) + (unsigned int)link * 3000 +
					(unsigned int)((n + 5) * (n + 2) * (link + 3) % 7) * 100;

				if (link > 0 && link < STAGE)
					add_kernel(job, i, "ncclDevKernel_SendRecv",
						   start + end - 500, 500,
						   unnamed(j ? "send" : "recv", STAGE, 30 + j));
			}
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", start + 110000,
				   10000 + stage_us(4 + i % STAGE, n) - 50000,
				   unnamed("allreduce", 2, 20));
		}
	}
}

static void sends_of_several_streams_are_of_one_pipeline(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_pipelines(job);
	trace = read_files(job, RANKS);
	assert_false(trace->ungrouped);
	for (size_t i = 0; i < RANKS; i++) {
		const struct nt_frame_comm *sends = comm_of(trace, 0, i, NT_FRAME_POINT_TO_POINT);

		assert_int_equal(sends->size, STAGE);
		assert_int_equal(sends->rank, i % STAGE);
		assert_true(sends->id ==
			    comm_of(trace, 0, i / STAGE * STAGE, NT_FRAME_POINT_TO_POINT)->id);
		assert_true(stage_of(trace, i) == stage_of(trace, i % STAGE));
	}
	assert_true(comm_of(trace, 0, 0, NT_FRAME_POINT_TO_POINT)->id !=
		    comm_of(trace, 0, STAGE, NT_FRAME_POINT_TO_POINT)->id);
}

/* Of an array of streams beyond the cap nothing is derived. */
static void too_many_streams_are_left_alone(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	play_unnamed(job, 2, true);
	for (int i = 0; i < 40; i++)
		add_kernel(job, 0, "ncclDevKernel_AllReduce_Sum_f32", 1, 2,
			   unnamed("allreduce", STAGE, 100 + i));
	trace = read_files(job, RANKS);
	assert_true(trace->ungrouped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KINETO_TEST(members_end_their_calls_together),
		KINETO_TEST(a_member_without_a_file_is_not_replaced_by_another_rank),
		KINETO_TEST(groups_that_cannot_be_told_apart_are_not_derived),
		KINETO_TEST(groups_that_are_listed_need_no_distance),
		KINETO_TEST(calls_of_fewer_ranks_are_no_sequence_of_all),
		KINETO_TEST(sends_of_several_streams_are_of_one_pipeline),
		KINETO_TEST(too_many_streams_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
