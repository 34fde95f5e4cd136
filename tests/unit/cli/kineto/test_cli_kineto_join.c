/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several profiler traces of each rank, as of a schedule that repeats. */
#include "tests/unit/cli/kineto_job.h"

#include <errno.h>
#include <string.h>

enum {
	CYCLE = 20, /* steps of a file */
	STEP = 200000, /* us */
	FILES = 2,
};

struct cycles {
	struct job job[FILES];
	const char *path[FILES * RANKS];
};

static int begin_cycles(void **state)
{
	struct cycles *cycles = calloc(1, sizeof(*cycles));

	assert_non_null(cycles);
	for (int c = 0; c < FILES; c++) {
		for (int i = 0; i < RANKS; i++) {
			struct job *job = &cycles->job[c];

			(void)snprintf(job->path[i], sizeof(job->path[i]),
				       "build/test-kineto-%d-%d-cycle%d.json", (int)getpid(), i, c);
			/* A later file may be given first. */
			cycles->path[i * FILES + FILES - 1 - c] = job->path[i];
			job->unlisted = true;
		}
	}
	*state = cycles;
	return 0;
}

static int end_cycles(void **state)
{
	struct cycles *cycles = *state;

	for (int c = 0; c < FILES; c++) {
		for (int i = 0; i < RANKS; i++) {
			nt_buf_release(&cycles->job[c].events[i]);
			(void)unlink(cycles->job[c].path[i]);
		}
	}
	free(cycles);
	return 0;
}

/* A gradient is reduced in two pieces. The slow rank computes 1.5 times as long. */
static void play_cycle(struct job *job, unsigned int from, int slow, bool steps)
{
	for (int n = 0; n < CYCLE; n++) {
		const unsigned int start = from + (unsigned int)n * STEP;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int own = (i == slow ? 150000 : 100000) + jitter;

			if (steps)
				add_step(job, i, n, start, STEP);
			add_kernel(job, i, "gemm", start, own, "");
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", start + own,
				   180000 - own, call("allreduce", "0", RANKS, 1000000));
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", start + 180000, 10000,
				   call("allreduce", "0", RANKS, 1000));
		}
	}
}

static void put_cycles(struct cycles *cycles)
{
	for (int c = 0; c < FILES; c++)
		put_files(&cycles->job[c]);
}

static int read_cycles(const struct cycles *cycles, size_t files, struct nt_trace **ret_trace,
		       char *ret_text)
{
	struct nt_trace_error error = {0};
	const int r =
		nt_trace_read_kineto((const char *const *)cycles->path, files, ret_trace, &error);

	(void)snprintf(ret_text, NT_TRACE_ERROR_BYTES, "%s", error.text);
	return r;
}

static void files_of_one_rank_are_joined_in_the_order_of_time(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;
	char text[NT_TRACE_ERROR_BYTES];

	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 90000000, 5, true);
	put_cycles(cycles);
	if (read_cycles(cycles, (size_t)FILES * RANKS, &trace, text) != 0)
		fail_msg("%s", text);
	assert_int_equal(trace->frames, 2 * CYCLE);
	assert_int_equal(trace->frame[0].frame.ranks, RANKS);
	assert_non_null(strstr(trace->remark, "several files"));
	for (size_t n = 0; n < trace->frames; n++) {
		const struct nt_frame_rank *rank = &trace->frame[n].rank[3];

		/* No step contains the time between the files; calls are numbered on. */
		assert_in_range(rank->step_ns, 189000000, 201000000);
		assert_int_equal(rank->comms, 1);
		assert_int_equal(rank->comm[0].op[0].calls, 2);
		assert_int_equal(rank->comm[0].last, 2 * n + 2);
	}
	assert_int_equal(trace->collectives, 4 * CYCLE);
	assert_names(trace, 5);
}

/* As the period of the calls is that of each file. */
static void derived_steps_do_not_cross_files(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;
	char text[NT_TRACE_ERROR_BYTES];

	play_cycle(&cycles->job[0], 1000000, -1, false);
	play_cycle(&cycles->job[1], 90000000, -1, false);
	put_cycles(cycles);
	if (read_cycles(cycles, (size_t)FILES * RANKS, &trace, text) != 0)
		fail_msg("%s", text);
	assert_int_equal(trace->frames, 2 * (CYCLE - 1));
	for (size_t n = 0; n < trace->frames; n++)
		assert_in_range(trace->frame[n].rank[3].step_ns, 199000000, 201000000);
}

static void files_that_overlap_are_refused(void **state)
{
	struct cycles *cycles = *state;
	struct nt_trace *trace = NULL;
	char text[NT_TRACE_ERROR_BYTES];

	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 2000000, -1, true);
	put_cycles(cycles);
	assert_int_equal(read_cycles(cycles, (size_t)FILES * RANKS, &trace, text), -EBADMSG);
	assert_non_null(strstr(text, "both are of rank 0, and overlap"));
}

/* Nobody knows which cycle of the rank is missing. */
static void ranks_have_as_many_files(void **state)
{
	struct cycles *cycles = *state;
	struct nt_trace *trace = NULL;
	char text[NT_TRACE_ERROR_BYTES];

	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 90000000, -1, true);
	put_cycles(cycles);
	assert_int_equal(read_cycles(cycles, (size_t)FILES * RANKS - 1, &trace, text), -EBADMSG);
	assert_non_null(strstr(text, "rank 0 has 2 files, and rank 7 has 1"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_cycles, end_cycles)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(files_of_one_rank_are_joined_in_the_order_of_time),
		CASE(derived_steps_do_not_cross_files),
		CASE(files_that_overlap_are_refused),
		CASE(ranks_have_as_many_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
