/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several profiler traces of each rank, as of a schedule that repeats. */
#include "tests/unit/cli/kineto_job.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cli/kineto/kineto.h"

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

/* All ranks reduce together, without process groups. */
static void play_plain_cycle(struct job *job, unsigned int from, int slow)
{
	for (int n = 0; n < CYCLE; n++) {
		const unsigned int start = from + (unsigned int)n * STEP;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int own = (i == slow ? 150000 : 100000) + jitter;

			add_step(job, i, n, start, STEP);
			add_kernel(job, i, "gemm", start, own, "");
			add_kernel(job, i, "ncclDevKernel_AllReduce_Sum_f32", start + own,
				   190000 - own, "");
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

static struct nt_trace *must_read(const struct cycles *cycles, size_t files)
{
	struct nt_trace *trace = NULL;
	char text[NT_TRACE_ERROR_BYTES];

	if (read_cycles(cycles, files, &trace, text) != 0)
		fail_msg("%s", text);
	return trace;
}

static void files_of_one_rank_are_joined_in_the_order_of_time(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;

	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 90000000, 5, true);
	put_cycles(cycles);
	trace = must_read(cycles, (size_t)FILES * RANKS);
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

	play_cycle(&cycles->job[0], 1000000, -1, false);
	play_cycle(&cycles->job[1], 90000000, -1, false);
	put_cycles(cycles);
	trace = must_read(cycles, (size_t)FILES * RANKS);
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

/* The clocks tell which cycle of the rank is missing: it is absent in those steps. */
static void rank_may_lack_a_file(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;

	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 90000000, 5, true);
	put_cycles(cycles);
	trace = must_read(cycles, (size_t)FILES * RANKS - 1);
	assert_true(trace->partial);
	assert_int_equal(trace->frames, 2 * CYCLE);
	for (size_t n = 0; n < trace->frames; n++) {
		assert_int_equal(trace->frame[n].rank[7].observed, n >= CYCLE);
		/* Calls of all ranks are numbered alike. */
		if (n >= CYCLE)
			assert_int_equal(trace->frame[n].rank[7].comm[0].last, 2 * n + 2);
	}
	assert_names(trace, 5);
}

static void damaged_file_of_several_is_left_out(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;

	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 90000000, 5, true);
	put_cycles(cycles);
	assert_int_equal(truncate(cycles->job[0].path[2], 1000), 0);
	trace = must_read(cycles, (size_t)FILES * RANKS);
	assert_true(trace->partial);
	assert_int_equal(trace->unread, 1);
	assert_non_null(strstr(trace->unread_text[0], cycles->job[0].path[2]));
	assert_int_equal(trace->frame[0].frame.ranks, RANKS);
	assert_false(trace->frame[0].rank[2].observed);
	assert_true(trace->frame[2 * CYCLE - 1].rank[2].observed);
	assert_names(trace, 5);
}

/* A rank's clock is far off: the cycle of its only file is not known. */
static void rank_of_unknown_cycle_is_left_out_with_a_damaged_file(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;
	struct nt_trace *none = NULL;
	char text[NT_TRACE_ERROR_BYTES];

	play_cycle(&cycles->job[0], 1000000, -1, true);
	nt_buf_release(&cycles->job[0].events[7]);
	play_cycle(&cycles->job[1], 40000000, -1, true);
	cycles->job[0].events[7] = cycles->job[1].events[7];
	cycles->job[1].events[7] = (struct nt_buf){0};
	for (int i = 0; i < 7; i++)
		nt_buf_release(&cycles->job[1].events[i]);
	play_cycle(&cycles->job[1], 90000000, 5, true);
	put_cycles(cycles);
	assert_int_equal(truncate(cycles->job[1].path[7], 1000), 0);
	trace = must_read(cycles, (size_t)FILES * RANKS);
	assert_int_equal(trace->unread, 2);
	assert_non_null(strstr(trace->unread_text[1], "rank 7 has 1 files, and others have 2"));
	assert_int_equal(trace->frame[0].frame.ranks, RANKS - 1);
	assert_int_equal(trace->world, RANKS);
	/* Without damage the user can pass the right files. */
	cycles->path[7 * FILES] = cycles->path[7 * FILES + 1];
	assert_int_equal(read_cycles(cycles, (size_t)FILES * RANKS - 1, &none, text), -EBADMSG);
	assert_non_null(strstr(text, "rank 7 has 1 files"));
}

/* Of three cycles, rank 0 has the last two, and the others have the first two. */
static void rank_with_other_files_than_most_is_left_out(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;
	struct job *last = calloc(1, sizeof(*last));

	assert_non_null(last);
	play_cycle(&cycles->job[0], 1000000, -1, true);
	play_cycle(&cycles->job[1], 90000000, 5, true);
	play_cycle(last, 180000000, 5, true);
	nt_buf_release(&cycles->job[0].events[0]);
	cycles->job[0].events[0] = cycles->job[1].events[0];
	cycles->job[1].events[0] = last->events[0];
	for (int i = 0; i < RANKS; i++)
		if (i != 0)
			nt_buf_release(&last->events[i]);
	free(last);
	put_cycles(cycles);
	assert_int_equal(truncate(cycles->job[0].path[7], 1000), 0);
	trace = must_read(cycles, (size_t)FILES * RANKS);
	assert_int_equal(trace->unread, 2);
	assert_non_null(strstr(trace->unread_text[1], "rank 0 has 2 files of 2, but not those"));
	assert_int_equal(trace->frame[0].frame.ranks, RANKS - 1);
}

/* Without groups, calls are numbered in their order. A missing file does not shift it. */
static void calls_without_groups_are_numbered_alike_beside_a_damaged_file(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct cycles *cycles = *state;

	play_plain_cycle(&cycles->job[0], 1000000, -1);
	play_plain_cycle(&cycles->job[1], 90000000, 5);
	put_cycles(cycles);
	assert_int_equal(truncate(cycles->job[0].path[2], 1000), 0);
	trace = must_read(cycles, (size_t)FILES * RANKS);
	assert_true(trace->partial);
	assert_int_equal(trace->frames, 2 * CYCLE);
	for (size_t n = CYCLE; n < trace->frames; n++)
		assert_int_equal(trace->frame[n].rank[2].comm[0].last,
				 trace->frame[n].rank[3].comm[0].last);
	assert_names(trace, 5);
}

enum {
	MANY = 1500, /* files of a rank */
	EVENTS = 400, /* of each */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Joins so many files of one rank. Returns the processor time. */
static uint64_t join_many(size_t files)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_kineto_ranks in = {.rank = calloc(files, sizeof(*in.rank)), .ranks = files};
	struct nt_trace_error error = {0};
	size_t joined = 0;
	uint64_t begin_ns;

	assert_non_null(in.rank);
	assert_int_equal(nt_trace_new(1, &trace), 0);
	for (size_t i = 0; i < files; i++) {
		in.rank[i].path = "file";
		in.rank[i].kernel = calloc(EVENTS, sizeof(*in.rank[i].kernel));
		assert_non_null(in.rank[i].kernel);
		in.rank[i].kernels = EVENTS;
		for (size_t j = 0; j < EVENTS; j++)
			in.rank[i].kernel[j] = (struct nt_kineto_interval){
				.start_ns = 1 + (i * EVENTS + j) * 100,
				.end_ns = 91 + (i * EVENTS + j) * 100,
			};
	}
	begin_ns = now_ns();
	assert_int_equal(nt_kineto_join_files(&in, trace, &joined, &error), 0);
	begin_ns = now_ns() - begin_ns;
	assert_int_equal(joined, files);
	assert_int_equal(in.ranks, 1);
	assert_int_equal(in.rank[0].kernels, files * EVENTS);
	assert_int_equal(in.rank[0].steps, files);
	nt_kineto_ranks_release(&in);
	return begin_ns;
}

/* Four times as many files take about four times as long, not sixteen times. */
static void joining_takes_time_in_proportion_to_the_files(void **state)
{
	uint64_t few_ns = UINT64_MAX, many_ns = UINT64_MAX;

	(void)state;
	for (int i = 0; i < 3; i++) {
		const uint64_t few = join_many(MANY / 4), many = join_many(MANY);

		few_ns = few < few_ns ? few : few_ns;
		many_ns = many < many_ns ? many : many_ns;
	}
	print_message("%d files: %.1f ms, %d: %.1f ms\n", MANY / 4, (double)few_ns / 1e6, MANY,
		      (double)many_ns / 1e6);
	assert_true(many_ns < 10 * few_ns);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_cycles, end_cycles)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(files_of_one_rank_are_joined_in_the_order_of_time),
		CASE(derived_steps_do_not_cross_files),
		CASE(files_that_overlap_are_refused),
		CASE(rank_may_lack_a_file),
		CASE(damaged_file_of_several_is_left_out),
		CASE(rank_of_unknown_cycle_is_left_out_with_a_damaged_file),
		CASE(rank_with_other_files_than_most_is_left_out),
		CASE(calls_without_groups_are_numbered_alike_beside_a_damaged_file),
		cmocka_unit_test(joining_takes_time_in_proportion_to_the_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
