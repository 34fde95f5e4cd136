/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which events the mask brings, and what outlives it: parents, frozen masks, proxies, aborted calls. */
#include "tests/sim/profiler/profiled_job.h"

/* ---- the mask ---- */

static void parents_come_unasked(void)
{
	use("2.28", "sim", KERNELS);
	open_ranks();
	all_reduce(2);
	close_ranks();
	CHECK_COUNT(STARTED(GROUP_API), 2 * RANKS);
	CHECK_COUNT(STARTED(COLL_API), 2 * RANKS);
	CHECK_COUNT(STARTED(GROUP), 2 * RANKS);
	CHECK_COUNT(STARTED(COLL), 2 * RANKS);
	CHECK_COUNT(STARTED(KERNEL_CH), 2 * RANKS * CHANNELS);
	CHECK_COUNT(STARTED(KERNEL_LAUNCH), 0);
	CHECK_COUNT(STARTED(PROXY_OP), 0);
	no_errors();
}

static void children_of_a_declined_parent_come(void)
{
	use("2.28", "sim", KERNELS);
	set("SIM_PLUGIN_DECLINE", "1"); /* collectives */
	open_ranks();
	all_reduce(2);
	close_ranks();
	CHECK_COUNT(STARTED(KERNEL_CH), 2 * RANKS * CHANNELS);
	CHECK_COUNT(STOPPED(COLL), 0);
	CHECK_COUNT(seen->kernel[0].seq, UINT64_MAX);
	no_errors();
}

static void a_mask_is_frozen_by_each_call(void)
{
	use("2.28", "sim", SIM_PROFILE_COLL);
	open_ranks();
	CHECK(ncclGroupStart() == ncclSuccess);
	BOTH(ncclAllReduce(buffer[r], buffer[r], COUNT, ncclFloat32, ncclSum, comm[r], stream[r]));
	set_mask(0);
	BOTH(ncclAllReduce(buffer[r], buffer[r], COUNT, ncclFloat32, ncclSum, comm[r], stream[r]));
	CHECK(ncclGroupEnd() == ncclSuccess);
	wait_all();
	CHECK_COUNT(STARTED(COLL), RANKS);
	CHECK_COUNT(STARTED(GROUP_API), 1);
	close_ranks();
}

static void a_mask_of_nothing_stops_the_last_call_again_and_again(void)
{
	use("2.32", "sim", SIM_PROFILE_COLL_API);
	open_ranks();
	all_reduce(1);
	set_mask(0);
	all_reduce(3);
	CHECK_COUNT(STARTED(COLL_API), RANKS);
	CHECK_COUNT(STOPPED(COLL_API), RANKS);
	CHECK_COUNT(AGAIN(COLL_API), 3 * RANKS);
	CHECK_COUNT(AGAIN(GROUP_API), 0);
	close_ranks();
	no_errors();
}

static void calls_of_one_rank_and_of_nothing_have_no_events(void)
{
	ncclComm_t single;

	use("2.28", "sim", ALL_EVENTS);
	open_ranks();
	open_single(&single);
	device(0);
	CHECK(ncclAllReduce(buffer[0], buffer[0], COUNT, ncclFloat32, ncclSum, single, stream[0]) ==
	      ncclSuccess);
	BOTH(ncclAllReduce(buffer[r], buffer[r], 0, ncclFloat32, ncclSum, comm[r], stream[r]));
	wait_all();
	CHECK(ncclCommDestroy(single) == ncclSuccess);
	close_ranks();
	CHECK_COUNT(seen->inits, RANKS + 1);
	CHECK_COUNT(seen->finalizes, RANKS + 1);
	for (size_t i = 0; i < SIM_PLUGIN_TYPES; i++)
		CHECK_COUNT(seen->started[i], 0);
}

/* ---- proxies ---- */

static void call_of(int rank)
{
	device(rank);
	CHECK(ncclAllReduce(buffer[rank], buffer[rank], COUNT, ncclFloat32, ncclSum, comm[rank],
			    stream[rank]) == ncclSuccess);
}

static void proxies_end_after_their_call_and_its_mask(void)
{
	use("2.28", "sim", SIM_PROFILE_PROXY_STEP);
	set("SIM_NCCL_PROXY", "1");
	open_ranks();
	call_of(0);
	CHECK_COUNT(STOPPED(COLL), 1);
	CHECK(comes(&seen->states[SIM_STATE_SEND_PEER_WAIT], CHANNELS));
	/* Rank 0 waits for the credit of its peer, which has not come yet. */
	CHECK_COUNT(seen->states[SIM_STATE_SEND_WAIT], 0);
	CHECK_COUNT(seen->states[SIM_STATE_RECV_FLUSH_WAIT], 0);
	CHECK_COUNT(STOPPED(PROXY_OP), 0);
	call_of(1);
	set_mask(0);
	wait_all();
	close_ranks();
	CHECK_COUNT(STARTED(PROXY_OP), 2 * RANKS * CHANNELS);
	CHECK_COUNT(STOPPED(PROXY_OP), 2 * RANKS * CHANNELS);
	CHECK_COUNT(STOPPED(PROXY_STEP), 2 * RANKS * CHANNELS);
	CHECK_COUNT(STARTED(PROXY_CTRL), 0);
	no_errors();
}

static void with_pxn_pointers_of_another_process_come(void)
{
	use("2.30", "sim", SIM_PROFILE_PROXY_OP | SIM_PROFILE_PROXY_STEP);
	set("SIM_NCCL_PROXY", "1");
	set("SIM_NCCL_PXN", "1");
	open_ranks();
	all_reduce(3);
	close_ranks();
	CHECK_COUNT(seen->foreign, 3 * RANKS * CHANNELS);
	CHECK_COUNT(STARTED(PROXY_OP), 3 * 3 * RANKS * CHANNELS);
	CHECK_COUNT(STOPPED(PROXY_OP), STARTED(PROXY_OP));
	CHECK_COUNT(STOPPED(PROXY_STEP), STARTED(PROXY_STEP));
	no_errors();
}

static void an_abort_leaves_events_unstopped(void)
{
	use("2.28", "sim", ALL_EVENTS);
	set("SIM_NCCL_PROXY", "1");
	open_ranks();
	call_of(0);
	CHECK(comes(&STARTED(KERNEL_CH), CHANNELS));
	CHECK(ncclCommAbort(comm[0]) == ncclSuccess);
	CHECK(ncclCommAbort(comm[1]) == ncclSuccess);
	CHECK_COUNT(STARTED(KERNEL_CH), CHANNELS);
	CHECK_COUNT(STOPPED(KERNEL_CH), 0);
	CHECK_COUNT(seen->finalizes, RANKS);
	no_errors();
}

static void works_that_are_revoked_do_not_stop(void)
{
	use("2.31", "sim", KERNELS);
	open_ranks();
	call_of(0);
	CHECK(comes(&STARTED(KERNEL_CH), CHANNELS));
	CHECK(ncclCommRevoke(comm[0], 0) == ncclSuccess);
	close_ranks(); /* what is due has its events before */
	CHECK_COUNT(STOPPED(KERNEL_CH), 0);
	CHECK_COUNT(seen->finalizes, RANKS);
	no_errors();
}

const struct profiler_test mask_tests[] = {
	TEST(parents_come_unasked),
	TEST(children_of_a_declined_parent_come),
	TEST(a_mask_is_frozen_by_each_call),
	TEST(a_mask_of_nothing_stops_the_last_call_again_and_again),
	TEST(calls_of_one_rank_and_of_nothing_have_no_events),
	TEST(proxies_end_after_their_call_and_its_mask),
	TEST(with_pxn_pointers_of_another_process_come),
	TEST(an_abort_leaves_events_unstopped),
	TEST(works_that_are_revoked_do_not_stop),
	{NULL, NULL},
};
