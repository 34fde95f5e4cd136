/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Captured calls and their replays. */
#include "tests/sim/profiler/profiled_job.h"

static void capture(cudaGraphExec_t *exec)
{
	for (int r = 0; r < RANKS; r++) {
		cudaGraph_t graph;

		device(r);
		CHECK(cudaStreamBeginCapture(stream[r], 0) == 0);
		CHECK(ncclAllReduce(buffer[r], buffer[r], COUNT, ncclFloat32, ncclSum, comm[r],
				    stream[r]) == ncclSuccess);
		CHECK(cudaStreamEndCapture(stream[r], &graph) == 0);
		CHECK(cudaGraphInstantiate(&exec[r], graph, 0) == 0);
		CHECK(cudaGraphDestroy(graph) == 0);
	}
}

static void replay(const cudaGraphExec_t *exec, int times)
{
	for (int i = 0; i < times; i++)
		for (int r = 0; r < RANKS; r++) {
			device(r);
			CHECK(cudaGraphLaunch(exec[r], stream[r]) == 0);
		}
	wait_all();
}

static void release(const cudaGraphExec_t *exec)
{
	for (int r = 0; r < RANKS; r++)
		CHECK(cudaGraphExecDestroy(exec[r]) == 0);
}

static void a_graph_that_was_captured_unobserved_has_no_events(void)
{
	cudaGraphExec_t exec[RANKS];

	use("2.28", "sim", SIM_PROFILE_COLL | SIM_PROFILE_COLL_API);
	open_ranks();
	capture(exec);
	CHECK_COUNT(seen->captured, RANKS);
	set_mask(ALL_EVENTS);
	replay(exec, 3);
	release(exec);
	close_ranks();
	CHECK_COUNT(STARTED(COLL_API), RANKS);
	CHECK_COUNT(STARTED(COLL), 0);
	CHECK_COUNT(STARTED(KERNEL_CH), 0);
}

static void check_replays(const char *release_name)
{
	cudaGraphExec_t exec[RANKS];

	use(release_name, "sim", KERNELS | SIM_PROFILE_KERNEL_LAUNCH);
	open_ranks();
	all_reduce(1);
	capture(exec);
	CHECK_COUNT(STARTED(COLL), RANKS);
	CHECK_COUNT(STARTED(KERNEL_LAUNCH), 2 * RANKS);
	set_mask(0); /* too late for the graph */
	replay(exec, 3);
	CHECK_COUNT(STARTED(COLL), 4 * RANKS);
	CHECK_COUNT(seen->seq, 3);
	CHECK_COUNT(THREADS(COLL), SIM_PLUGIN_MAIN | SIM_PLUGIN_DEVICE);
	set_mask(KERNELS);
	all_reduce(1); /* while the graph lives, by a host function too */
	release(exec);
	close_ranks();
	CHECK_COUNT(seen->captured, RANKS);
	CHECK_COUNT(STARTED(COLL_API), 3 * RANKS);
	CHECK_COUNT(STARTED(KERNEL_LAUNCH), 2 * RANKS);
	CHECK_COUNT(STOPPED(COLL), 5 * RANKS);
	CHECK_COUNT(STOPPED(KERNEL_CH), 5 * RANKS * CHANNELS);
	no_errors();
}

static void each_replay_of_an_observed_graph_has_events(void)
{
	check_replays("2.28");
}

static void so_it_has_in_2_31(void)
{
	check_replays("2.31");
}

static void replays_without_kernels_have_no_numbers_of_their_own(void)
{
	cudaGraphExec_t exec[RANKS];

	use("2.30", "sim", SIM_PROFILE_COLL);
	set("SIM_NCCL_PROXY", "1"); /* else replays have no events at all */
	open_ranks();
	all_reduce(2);
	CHECK_COUNT(seen->seq, 1);
	capture(exec);
	replay(exec, 3);
	CHECK_COUNT(STARTED(COLL), 5 * RANKS);
	CHECK_COUNT(seen->seq, 2);
	all_reduce(1);
	CHECK_COUNT(seen->seq, 2);
	release(exec);
	close_ranks();
	no_errors();
}

static void replays_that_are_not_observed_break_later_windows(void)
{
	cudaGraphExec_t exec[RANKS];

	use("2.28", "sim", 0);
	open_ranks();
	capture(exec);
	replay(exec, 3);
	set_mask(KERNELS);
	all_reduce(1);
	close_ranks();
	release(exec);
	CHECK_COUNT(STARTED(COLL), RANKS);
	CHECK_COUNT(STOPPED(KERNEL_CH), 0);
}

const struct profiler_test graph_tests[] = {
	TEST(a_graph_that_was_captured_unobserved_has_no_events),
	TEST(each_replay_of_an_observed_graph_has_events),
	TEST(so_it_has_in_2_31),
	TEST(replays_without_kernels_have_no_numbers_of_their_own),
	TEST(replays_that_are_not_observed_break_later_windows),
	{NULL, NULL},
};
