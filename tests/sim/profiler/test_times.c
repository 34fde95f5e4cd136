/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of the GPU, and windows in which they are observed. */
#include "tests/sim/profiler/profiled_job.h"

/* ---- times of the GPU ---- */

static void check_late_rank(const char *release)
{
	uint64_t begin_ns = time_of_day(), end_ns, start_ns[RANKS] = {0}, took_ns[RANKS] = {0};

	use(release, "sim", KERNELS);
	open_ranks();
	run_kernel(1, 400 * MS);
	all_reduce(1);
	close_ranks();
	end_ns = time_of_day();
	CHECK_COUNT(seen->kernels, RANKS * CHANNELS);
	for (size_t i = 0; i < seen->kernels && i < SIM_PLUGIN_KERNELS; i++) {
		const struct sim_plugin_kernel *this = &seen->kernel[i];

		CHECK(this->rank < RANKS && this->channel < CHANNELS && this->seq == 0);
		CHECK(this->start_ns % 1024 == 0 && this->stop_ns % 1024 == 0);
		CHECK(this->start_ns + 1024 >= begin_ns && this->stop_ns <= end_ns);
		CHECK(this->started_ns >= this->start_ns && this->stopped_ns >= this->stop_ns);
		if (this->channel > 0)
			continue;
		start_ns[this->rank] = this->start_ns;
		took_ns[this->rank] = this->stop_ns - this->start_ns;
	}
	/* Waiting for the other is part of it: who comes late has the shortest. */
	CHECK(start_ns[1] > start_ns[0] + 50 * MS);
	CHECK(took_ns[0] > took_ns[1] + 50 * MS && took_ns[1] < took_ns[0] / 2);
}

static void a_late_rank_has_the_latest_start_and_the_shortest_time(void)
{
	check_late_rank("2.28");
}

static void so_it_has_with_a_thread_for_works(void)
{
	check_late_rank("2.31");
}

static void check_end(const char *release)
{
	use(release, "sim", KERNELS);
	open_ranks();
	for (int r = 0; r < RANKS; r++) {
		run_kernel(r, 200 * MS);
		CHECK(ncclAllReduce(buffer[r], buffer[r], COUNT, ncclFloat32, ncclSum, comm[r],
				    stream[r]) == ncclSuccess);
	}
	close_ranks();
	CHECK_COUNT(STOPPED(KERNEL_CH), RANKS * CHANNELS);
}

static void a_communicator_ends_after_its_works(void)
{
	check_end("2.28");
}

static void so_it_does_with_a_thread_for_works(void)
{
	check_end("2.31");
}

static void a_clock_may_be_ahead_and_fine(void)
{
	use("2.28", "sim", KERNELS);
	set("SIM_NCCL_GLOBALTIMER_AHEAD", "5000000000");
	set("SIM_NCCL_GLOBALTIMER_STEP", "1");
	set("SIM_NCCL_CHANNELS", "4");
	open_ranks();
	all_reduce(20);
	close_ranks();
	CHECK_COUNT(seen->kernels, 20 * RANKS * 4);
	CHECK(seen->kernel[0].start_ns > seen->kernel[0].started_ns + 4000U * MS);
}

/* ---- windows of KernelCh ---- */

/* Kernels of `rank` that are not within their call: calls are `gap` apart, and observed from `first` on. */
static unsigned int wrong_kernels(uint64_t from_kernel, uint64_t begin_ns, uint64_t end_ns)
{
	unsigned int wrong = 0;

	for (uint64_t i = from_kernel; i < seen->kernels && i < SIM_PLUGIN_KERNELS; i++)
		wrong += seen->kernel[i].start_ns + 1024 < begin_ns ||
			 seen->kernel[i].stop_ns > end_ns;
	return wrong;
}

/* A window, as many calls without, and a window again: how many of its events come, and are right. */
static void open_windows(uint64_t *ret_came, unsigned int *ret_wrong)
{
	uint64_t before, begin_ns;

	all_reduce(5);
	CHECK(comes(&STOPPED(KERNEL_CH), 5 * RANKS * CHANNELS));
	set_mask(0);
	all_reduce(10);
	before = seen->kernels;
	set_mask(KERNELS);
	begin_ns = time_of_day();
	all_reduce(5);
	sim_sleep_ns(50 * MS);
	(void)comes(&STOPPED(KERNEL_CH), before); /* reads what the library's threads wrote */
	*ret_came = __atomic_load_n(&seen->kernels, __ATOMIC_SEQ_CST) - before;
	*ret_wrong = wrong_kernels(before, begin_ns, time_of_day());
}

static void until_2_30_windows_have_the_times_of_their_calls(void)
{
	unsigned int wrong;
	uint64_t came;

	use("2.28", "sim", KERNELS);
	open_ranks();
	open_windows(&came, &wrong);
	close_ranks();
	CHECK_COUNT(STOPPED(KERNEL_CH), 10 * RANKS * CHANNELS);
	CHECK(came <= 5 * RANKS * CHANNELS && wrong == 0);
	no_errors();
}

/* By the calls that came before them: those of the second window, and all after it. */
static void from_2_31_windows_have_times_of_other_calls(void)
{
	unsigned int wrong, earlier = 0;
	uint64_t came, ended_ns;

	use("2.31", "sim", KERNELS);
	open_ranks();
	open_windows(&came, &wrong);
	CHECK_COUNT(came, 0);
	ended_ns = time_of_day();
	/* Their slots are written when the GPU has gone around the ring. */
	all_reduce(70);
	close_ranks();
	CHECK_COUNT(STOPPED(KERNEL_CH), 80 * RANKS * CHANNELS);
	for (uint64_t i = 0; i < seen->kernels && i < SIM_PLUGIN_KERNELS; i++) {
		const struct sim_plugin_kernel *this = &seen->kernel[i];

		CHECK(this->seq < 5 || this->seq >= 15);
		if (this->seq >= 15 && this->seq < 20)
			CHECK(this->start_ns > ended_ns);
		earlier += this->seq >= 20 && this->stop_ns < ended_ns;
	}
	CHECK_COUNT(earlier, 5 * RANKS * CHANNELS);
	no_errors();
}

static void group_broadcasts(void)
{
	CHECK(ncclGroupStart() == ncclSuccess);
	for (int root = 0; root < RANKS; root++)
		BOTH(ncclBroadcast(buffer[r], buffer[r], COUNT, ncclFloat32, root, comm[r],
				   stream[r]));
	CHECK(ncclGroupEnd() == ncclSuccess);
	wait_all();
}

static void from_2_29_grouped_broadcasts_are_not_counted(void)
{
	use("2.29", "sim", KERNELS);
	open_ranks();
	all_reduce(1);
	CHECK(comes(&STOPPED(KERNEL_CH), RANKS * CHANNELS));
	group_broadcasts();
	all_reduce(1);
	close_ranks();
	/* The work that the host expects is the broadcasts', whose times are not written. */
	CHECK_COUNT(STARTED(COLL), 4 * RANKS);
	CHECK_COUNT(STOPPED(KERNEL_CH), RANKS * CHANNELS);
}

static void grouped_broadcasts_can_be_kept_apart(void)
{
	use("2.29", "sim", KERNELS);
	set("NCCL_ALLGATHERV_ENABLE", "0");
	open_ranks();
	all_reduce(1);
	group_broadcasts();
	all_reduce(1);
	close_ranks();
	CHECK_COUNT(STOPPED(KERNEL_CH), 4 * RANKS * CHANNELS);
	no_errors();
}

const struct profiler_test time_tests[] = {
	TEST(a_late_rank_has_the_latest_start_and_the_shortest_time),
	TEST(so_it_has_with_a_thread_for_works),
	TEST(a_communicator_ends_after_its_works),
	TEST(so_it_does_with_a_thread_for_works),
	TEST(a_clock_may_be_ahead_and_fine),
	TEST(until_2_30_windows_have_the_times_of_their_calls),
	TEST(from_2_31_windows_have_times_of_other_calls),
	TEST(from_2_29_grouped_broadcasts_are_not_counted),
	TEST(grouped_broadcasts_can_be_kept_apart),
	{NULL, NULL},
};
