/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiler traces with runtime calls: the host is ahead of its device, or late. */
#include "tests/unit/cli/kineto_job.h"

#include <string.h>

enum {
	STEP = 100000, /* us */
	HALF = 40000, /* one of two kernels of a step */
};

static void add_launch(struct job *job, int rank, const char *name, unsigned int ts,
		       unsigned int dur, unsigned int correlation)
{
	struct nt_buf *buf = &job->events[rank];

	assert_int_equal(
		nt_buf_printf(buf,
			      "%s{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", "
			      "\"ts\": %u, \"dur\": %u, \"args\": {\"correlation\": %u}}",
			      buf->len ? ",\n" : "", name, ts, dur, correlation),
		0);
}

static void add_launched(struct job *job, int rank, unsigned int launch, const char *name,
			 unsigned int ts, unsigned int dur, const char *call_args)
{
	static unsigned int last;
	char args[320];

	add_launch(job, rank, "cudaLaunchKernel", launch, 5, ++last);
	(void)snprintf(args, sizeof(args), "\"correlation\": %u%s%s", last, *call_args ? ", " : "",
		       call_args);
	add_kernel(job, rank, name, ts, dur, args);
}

/*
 * Two kernels and a reduction per step. Hosts are up to `ahead` steps ahead. The second kernel of
 * the late rank waits for its host for `late` us; `waits`: as the host waits for the device.
 */
static void play_launches(struct job *job, int late_rank, unsigned int late, int from,
			  unsigned int ahead, bool waits)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)(n + 4) * STEP;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int jitter = (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int more = i == late_rank && n >= from ? late : 0;
			const unsigned int begin = start - ahead * STEP;
			const unsigned int second = start + HALF + jitter + more;
			const unsigned int done = second + HALF;

			add_step(job, i, n, begin, STEP);
			add_launched(job, i, begin, "gemm", start, HALF + jitter, "");
			if (waits && more)
				add_launch(job, i, "cudaStreamSynchronize", start + HALF + jitter,
					   more, 0);
			add_launched(job, i, more ? second - 5 : begin + 50, "gemm", second, HALF,
				     "");
			add_launched(job, i, more ? second : begin + 100,
				     "ncclDevKernel_AllReduce_Sum_f32", done,
				     start + STEP - 10 - done, call("allreduce", "0", RANKS, 1000));
		}
	}
}

static void a_host_that_is_late_is_named_as_host(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_launches(job, 5, 15000, 10, 0, false);
	trace = read_files(job, RANKS);
	/* 15 ms, and what the launch of a step takes. */
	assert_in_range(trace->frame[20].rank[5].host_ns, 14900000, 15100000);
	assert_true(trace->frame[20].rank[4].host_ns < 1000000);
	assert_false(trace->frame[20].rank[5].no_host);
	assert_class(trace, 5, "host");
}

static void time_in_which_the_host_waits_for_the_device_is_not_its_work(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_launches(job, 5, 15000, 10, 0, true);
	trace = read_files(job, RANKS);
	assert_true(trace->frame[20].rank[5].host_ns < 1000000);
}

/*
 * All hosts wait for the reduction, which ends the device's work of a step. Then that of the late rank
 * works for `late` us, as a hook does, before it ends its step of the profiler.
 */
static void play_hook(struct job *job, int late_rank, unsigned int late, int from)
{
	unsigned int start = 4 * STEP;

	for (int n = 0; n < STEPS; n++) {
		const unsigned int hook = n > from ? late : 0, next = start + STEP + hook;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int own = HALF + (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int begin = start + (i == late_rank ? hook : 0);

			add_step(job, i, n, begin,
				 next - begin + (i == late_rank && n >= from ? late : 0));
			add_launched(job, i, begin, "gemm", begin + 10, own, "");
			add_launched(job, i, begin + 10, "ncclDevKernel_AllReduce_Sum_f32",
				     begin + 10 + own, next - 10 - begin - own - 10,
				     call("allreduce", "0", RANKS, 1000));
			add_launch(job, i, "cudaDeviceSynchronize", begin + 20, next - begin - 25,
				   3000000U + (unsigned int)(n * RANKS + i));
		}
		start = next;
	}
}

static void host_work_after_the_synchronisation_is_of_the_next_step(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_hook(job, 5, 15000, 10);
	trace = read_files(job, RANKS);
	assert_true(trace->frame[10].rank[5].host_ns < 1000000);
	for (size_t n = 11; n < STEPS; n++) {
		assert_in_range(trace->frame[n].rank[5].host_ns, 14900000, 15100000);
		assert_true(trace->frame[n].rank[4].host_ns < 1000000);
		assert_in_range(trace->frame[n].rank[5].step_ns, 114900000, 115100000);
	}
	assert_class(trace, 5, "host");
}

static void host_work_after_the_synchronisation_shows_from_the_start(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_hook(job, 5, 30000, 0);
	trace = read_files(job, RANKS);
	assert_class(trace, 5, "host");
}

/*
 * A host needs 60 ms for a step, its device 100 ms. Before every fifth step it waits for the device.
 * In each `every`-th step from `from` on the late rank stalls for 25 ms at the beginning, which
 * costs nothing while the host is ahead.
 */
static void play_synchronised(struct job *job, int late_rank, int from, int every)
{
	const unsigned int needs = 60000;

	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)(n + 4) * STEP;
		const unsigned int begin = start - (unsigned int)(n % 5) * (STEP - needs);
		const bool waits = n % 5 == 4;

		for (int i = 0; i < RANKS; i++) {
			const bool stalls = i == late_rank && n >= from && n % every == 0;
			const unsigned int launch = begin + (stalls ? 25000 : 0);
			const unsigned int first = n % 5 ? start : launch + 10;
			const unsigned int took = HALF + (unsigned int)(n * 7 + i * 13) % 11 * 20;
			const unsigned int number = 2000000U + (unsigned int)(n * RANKS + i) * 16;

			add_step(job, i, n, begin, waits ? start + STEP - begin : needs);
			add_launched(job, i, launch, "gemm", first, took, "");
			add_launched(job, i, launch + 100, "ncclDevKernel_AllReduce_Sum_f32",
				     first + took, start + STEP - 10 - first - took,
				     call("allreduce", "0", RANKS, 1000));
			for (unsigned int k = 1; launch + k * 5000 < begin + needs; k++)
				add_launch(job, i, "cudaEventRecord", launch + k * 5000, 5,
					   number + k);
			if (waits)
				add_launch(job, i, "cudaStreamSynchronize", begin + needs,
					   start + STEP - 5 - begin - needs, number);
		}
	}
}

static void a_stall_that_shows_after_synchronisations_belongs_to_each_step(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_synchronised(job, 5, 22, 1);
	trace = read_files(job, RANKS);
	/* Of steps 22 to 25 only the last one pays. Healthy hosts call every 5 ms. */
	assert_true(trace->frame[21].rank[5].host_ns < 1000000);
	for (size_t n = 22; n < 25; n++)
		assert_in_range(trace->frame[n].rank[5].host_ns, 4990000, 5010000);
	assert_in_range(trace->frame[25].rank[5].host_ns, 9990000, 10010000);
	assert_in_range(trace->frame[28].rank[5].host_ns, 3990000, 4010000);
	assert_class(trace, 5, "host");
}

static void a_stall_of_one_step_is_not_spread(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_synchronised(job, 5, 22, 5);
	trace = read_files(job, RANKS);
	assert_true(trace->frame[24].rank[5].host_ns < 1000000);
	assert_in_range(trace->frame[25].rank[5].host_ns, 24990000, 25010000);
}

static void a_stall_of_all_steps_stays_where_it_was_paid(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_synchronised(job, 5, 0, 1);
	trace = read_files(job, RANKS);
	assert_true(trace->frame[24].rank[5].host_ns < 1000000);
	assert_in_range(trace->frame[25].rank[5].host_ns, 24990000, 25010000);
}

/*
 * The second launch of a step waits for room in the queue from before the first kernel ends until
 * the collective does, if there is one.
 */
static void play_full_queue(struct job *job, bool has_comm)
{
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)(n + 4) * STEP;
		const unsigned int resumed = start + 75000;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int number = 1000000U + (unsigned int)(n * RANKS + i);
			char args[32];

			add_step(job, i, n, start, STEP);
			add_launched(job, i, start, "gemm", start + 5, HALF, "");
			add_launched(job, i, has_comm ? start + 10 : resumed + 10,
				     "ncclDevKernel_AllReduce_Sum_f32",
				     has_comm ? start + HALF + 5 : start + 95000,
				     has_comm ? resumed - start - HALF - 10 : 1000,
				     call("allreduce", "0", RANKS, 1000));
			add_launch(job, i, "cudaLaunchKernel", start + 20, resumed - start - 20,
				   number);
			(void)snprintf(args, sizeof(args), "\"correlation\": %u", number);
			add_kernel(job, i, "gemm", resumed, 24990, args);
		}
	}
}

static void a_launch_that_a_collective_holds_up_is_not_host_work(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_full_queue(job, true);
	trace = read_files(job, RANKS);
	assert_true(trace->frame[20].rank[5].host_ns < 1000000);
}

static void a_launch_on_an_idle_device_is_host_work(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_full_queue(job, false);
	trace = read_files(job, RANKS);
	assert_in_range(trace->frame[20].rank[5].host_ns, 34000000, 36000000);
}

/* Six windows are not enough for one false alarm a month, but for one in a thousand recordings. */
static void a_short_recording_may_end_soon_after_the_onset(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	job->unlisted = true;
	play_launches(job, 5, 15000, STEPS - 6, 0, false);
	trace = read_files(job, RANKS);
	assert_class(trace, 5, "host");
}

static void a_kernel_belongs_to_the_step_that_launched_it(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	/* Three steps ahead, so that the device works after the last step of the host. */
	job->unlisted = true;
	play_launches(job, 5, 0, STEPS, 3, false);
	trace = read_files(job, RANKS);
	assert_int_equal(trace->frames, STEPS);
	for (size_t i = 0; i < trace->frames; i++) {
		assert_in_range(trace->frame[i].rank[0].own_ns, 79000000, 81000000);
		assert_in_range(trace->frame[i].rank[0].step_ns, 90000000, 110000000);
	}
}

static void without_runtime_calls_host_work_is_unknown(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	play_plain(job, -1, 1, true);
	trace = read_files(job, RANKS);
	assert_true(trace->frame[20].rank[5].no_host);
}

static void calls_of_two_streams_are_compared_in_the_order_of_their_launch(void **state)
{
	struct job *job = *state;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	/* Without groups; on every other rank the second collective begins first. */
	for (int n = 0; n < STEPS; n++) {
		const unsigned int start = (unsigned int)n * STEP;

		for (int i = 0; i < RANKS; i++) {
			const unsigned int own = i == 2 ? 60000 : 40000;
			const unsigned int swap = i % 2 && n % 3 == 0 ? 200 : 0;

			add_step(job, i, n, start, STEP);
			add_launched(job, i, start, "gemm", start + 10, own, "");
			add_launched(job, i, start + 10, "ncclDevKernel_AllGather",
				     start + 70000 + swap, 1000, "");
			add_launched(job, i, start + 20, "ncclDevKernel_ReduceScatter_Sum_f32",
				     start + 70100, 1000, "");
		}
	}
	job->unlisted = true;
	trace = read_files(job, RANKS);
	assert_false(trace->ungrouped);
	assert_class(trace, 2, "compute");
}

/* Adds a kernel of a rank that is `percent` slower; its host is 150 ms ahead of the device. */
static void compute(struct job *job, int rank, const char *name, unsigned int percent,
		    unsigned int us, unsigned int *at)
{
	const unsigned int took = us * (100 + percent) / 100;

	add_launched(job, rank, *at - 150000, name, *at, took, "");
	*at += took;
}

/*
 * Three equal buckets of gradients per step, each reduced while the next one is computed, and no
 * steps of the profiler. The result of every fifth step is copied to the host. Ranks differ by up
 * to 7 %.
 */
static void play_buckets(struct job *job)
{
	unsigned int start = 200000, ready[RANKS];

	for (int n = 0; n < STEPS; n++, start += 105000) {
		for (int i = 0; i < RANKS; i++) {
			ready[i] = start;
			if (n % 5 == 4)
				compute(job, i, "Memcpy DtoH", 0, 3, &ready[i]);
			compute(job, i, "forward", (unsigned int)i, 30000, &ready[i]);
			compute(job, i, "backward", (unsigned int)i, 15000, &ready[i]);
		}
		for (int bucket = 0; bucket < 3; bucket++) {
			const unsigned int all = ready[RANKS - 1] + 8000;

			for (int i = 0; i < RANKS; i++) {
				add_launched(job, i, ready[i] - 150000,
					     "ncclDevKernel_AllReduce_Sum_f32", ready[i],
					     all - ready[i],
					     call("allreduce", "0", RANKS, 1000000));
				if (bucket < 2)
					compute(job, i, "backward", (unsigned int)i, 15000,
						&ready[i]);
				else
					ready[i] = all;
			}
		}
		for (int i = 0; i < RANKS; i++)
			compute(job, i, "optimizer", (unsigned int)i, 2000, &ready[i]);
	}
}

static void equal_buckets_are_one_step_by_the_kernels_that_repeat(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct job *job = *state;

	job->unlisted = true;
	play_buckets(job);
	trace = read_files(job, RANKS);
	assert_in_range(trace->frames, STEPS - 2, STEPS);
	for (size_t n = 0; n < trace->frames; n++)
		for (size_t i = 0; i < RANKS; i++)
			assert_int_equal(trace->frame[n].rank[i].comm[0].op[0].calls, 3);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 0);
}

/* A rank whose kernels lack what repeats once per step has the steps of the others. */
static void ranks_agree_on_the_calls_of_a_step(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	play_buckets(job);
	nt_buf_release(&job->events[2]);
	for (unsigned int n = 0; n < 3 * STEPS; n++) {
		add_kernel(job, 2, "backward", 200000 + n * 35000, 20000, "");
		add_kernel(job, 2, "ncclDevKernel_AllReduce_Sum_f32", 220000 + n * 35000, 10000,
			   call("allreduce", "0", RANKS, 1000000));
	}
	trace = read_files(job, RANKS);
	assert_in_range(trace->frames, STEPS - 2, STEPS);
	for (size_t n = 0; n < trace->frames; n++)
		assert_int_equal(trace->frame[n].rank[2].comm[0].op[0].calls, 3);
}

/* A step of the profiler in which nothing was launched: the rank has the steps of the others, too. */
static void ranks_agree_where_the_profiler_has_no_kernel_in_a_step(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	job->unlisted = true;
	play_buckets(job);
	add_step(job, 2, 0, 1, 10);
	trace = read_files(job, RANKS);
	assert_in_range(trace->frames, STEPS - 2, STEPS);
	for (size_t n = 0; n < trace->frames; n++)
		assert_int_equal(trace->frame[n].rank[2].comm[0].op[0].calls, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_host_that_is_late_is_named_as_host),
		CASE(time_in_which_the_host_waits_for_the_device_is_not_its_work),
		CASE(host_work_after_the_synchronisation_is_of_the_next_step),
		CASE(host_work_after_the_synchronisation_shows_from_the_start),
		CASE(a_launch_that_a_collective_holds_up_is_not_host_work),
		CASE(a_launch_on_an_idle_device_is_host_work),
		CASE(a_stall_that_shows_after_synchronisations_belongs_to_each_step),
		CASE(a_stall_of_one_step_is_not_spread),
		CASE(a_stall_of_all_steps_stays_where_it_was_paid),
		CASE(a_short_recording_may_end_soon_after_the_onset),
		CASE(a_kernel_belongs_to_the_step_that_launched_it),
		CASE(without_runtime_calls_host_work_is_unknown),
		CASE(calls_of_two_streams_are_compared_in_the_order_of_their_launch),
		CASE(equal_buckets_are_one_step_by_the_kernels_that_repeat),
		CASE(ranks_agree_on_the_calls_of_a_step),
		CASE(ranks_agree_where_the_profiler_has_no_kernel_in_a_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
