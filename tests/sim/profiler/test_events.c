/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every event of every version of the interface, compared with the calls that were made. */
#include "tests/sim/profiler/profiled_job.h"

/* Calls of both ranks, and what becomes of them. */
enum {
	SINGLE = 5, /* all-reduces outside of groups, each rank */
	COLLS = RANKS * (SINGLE + 2 + 1), /* two in a group, a broadcast */
	PAIR = RANKS * 2, /* a send and a receive in a group */
	TO_ALL = RANKS * RANKS * 2,
	GATHERED = RANKS * 2, /* sends to the root, and its receives */
	P2PS = PAIR + TO_ALL + GATHERED,
	IMPLICIT = RANKS * (SINGLE + 3), /* all-to-all, broadcast, gather */
	GROUP_APIS = IMPLICIT + 2,
	PLANS = IMPLICIT + 2 * RANKS,
	KERNEL_EVENTS = COLLS * CHANNELS + P2PS,
	/* To and from other ranks. */
	PROXIES = COLLS * CHANNELS * 2 + PAIR + TO_ALL / 2 + 2 * (RANKS - 1),
};

static void run_job(void)
{
	all_reduce(SINGLE);
	CHECK(ncclGroupStart() == ncclSuccess);
	BOTH(ncclAllReduce(buffer[r], buffer[r], COUNT, ncclFloat32, ncclSum, comm[r], stream[r]));
	BOTH(ncclAllGather(buffer[r], buffer[r], COUNT, ncclFloat32, comm[r], stream[r]));
	CHECK(ncclGroupEnd() == ncclSuccess);
	CHECK(ncclGroupStart() == ncclSuccess);
	BOTH(ncclSend(buffer[r], COUNT, ncclFloat32, 1 - r, comm[r], stream[r]));
	BOTH(ncclRecv(buffer[r] + COUNT, COUNT, ncclFloat32, 1 - r, comm[r], stream[r]));
	CHECK(ncclGroupEnd() == ncclSuccess);
	BOTH(ncclAlltoAll(buffer[r], buffer[r] + 4 * COUNT, COUNT, ncclFloat32, comm[r],
			  stream[r]));
	BOTH(ncclBroadcast(buffer[r], buffer[r], COUNT, ncclFloat32, 0, comm[r], stream[r]));
	BOTH(ncclGather(buffer[r], buffer[r] + 4 * COUNT, COUNT, ncclFloat32, 0, comm[r],
			stream[r]));
	wait_all();
}

static void check_calls(bool has_api)
{
	CHECK_COUNT(STARTED(GROUP_API), has_api ? GROUP_APIS : 0);
	CHECK_COUNT(seen->implicit_groups, has_api ? IMPLICIT : 0);
	CHECK_COUNT(STARTED(COLL_API), has_api ? COLLS : 0);
	CHECK_COUNT(STARTED(P2P_API), has_api ? P2PS : 0);
	CHECK_COUNT(STARTED(KERNEL_LAUNCH), has_api ? PLANS : 0);
	CHECK_COUNT(seen->states[SIM_STATE_GROUP_START_API_STOP], STARTED(GROUP_API));
	CHECK_COUNT(seen->states[SIM_STATE_GROUP_END_API_START], STARTED(GROUP_API));
	CHECK_COUNT(STARTED(GROUP), PLANS);
	CHECK_COUNT(STARTED(COLL), COLLS);
	CHECK_COUNT(STARTED(P2P), P2PS);
	CHECK_COUNT(THREADS(COLL), SIM_PLUGIN_MAIN);
	CHECK_COUNT(THREADS(GROUP), SIM_PLUGIN_MAIN);
}

static void check_steps(int version)
{
	CHECK_COUNT(STARTED(PROXY_OP), PROXIES);
	CHECK_COUNT(THREADS(PROXY_OP), SIM_PLUGIN_PROGRESS);
	CHECK(STARTED(PROXY_STEP) >= PROXIES);
	CHECK_COUNT(seen->states[SIM_STATE_SEND_GPU_WAIT] + seen->states[SIM_STATE_RECV_WAIT],
		    STARTED(PROXY_STEP));
	CHECK_COUNT(seen->states[SIM_STATE_SEND_WAIT] + seen->states[SIM_STATE_RECV_GPU_WAIT],
		    STARTED(PROXY_STEP));
	CHECK_COUNT(seen->states[SIM_STATE_OP_IN_PROGRESS], version >= 4 ? PROXIES : 0);
	/* Again with each attempt to send. */
	CHECK(version < 4 ||
	      seen->states[SIM_STATE_SEND_PEER_WAIT] > seen->states[SIM_STATE_SEND_WAIT]);
	if (version < 4)
		CHECK_COUNT(seen->states[SIM_STATE_SEND_DONE] + seen->states[SIM_STATE_RECV_DONE],
			    STARTED(PROXY_STEP));
	CHECK(STARTED(PROXY_CTRL) > 0 && THREADS(PROXY_CTRL) == SIM_PLUGIN_PROGRESS);
	CHECK(seen->states[SIM_STATE_CTRL_APPEND] > 0 &&
	      seen->states[SIM_STATE_CTRL_APPEND] == seen->states[SIM_STATE_CTRL_APPEND_END]);
	CHECK(seen->states[SIM_STATE_CTRL_SLEEP] > 0 &&
	      seen->states[SIM_STATE_CTRL_SLEEP] == seen->states[SIM_STATE_CTRL_WAKEUP]);
}

static void check_version(const char *release, const char *plugin, int version)
{
	int minor = (release[2] - '0') * 10 + release[3] - '0';
	bool has_kernels = version >= 3;

	use(release, plugin, ALL_EVENTS);
	set("SIM_NCCL_PROXY", "1");
	open_ranks();
	run_job();
	CHECK(comes(&seen->states[SIM_STATE_CTRL_SLEEP], 1)); /* it has nothing left to do */
	close_ranks(); /* the threads of the library have ended */
	no_errors();
	CHECK_COUNT(seen->version, version);
	CHECK_COUNT(seen->inits, RANKS);
	CHECK_COUNT(seen->finalizes, RANKS);
	check_calls(version >= 5);
	check_steps(version);
	CHECK_COUNT(STARTED(KERNEL_CH), has_kernels ? KERNEL_EVENTS : 0);
	CHECK_COUNT(THREADS(KERNEL_CH), !has_kernels  ? 0
					: minor >= 31 ? SIM_PLUGIN_PROFILER
						      : SIM_PLUGIN_PROGRESS);
	CHECK_COUNT(seen->states[SIM_STATE_KERNEL_CH_STOP], version >= 4 ? KERNEL_EVENTS : 0);
	for (size_t i = 0; i < SIM_PLUGIN_TYPES; i++) {
		CHECK_COUNT(seen->stopped_again[i], 0);
		/* Releases up to 2.26 leave receive steps unstopped. */
		if (i != NUMBER(SIM_PROFILE_PROXY_STEP) || minor > 26)
			CHECK_COUNT(seen->stopped[i], seen->started[i]);
	}
	if (minor <= 26)
		CHECK_COUNT(STOPPED(PROXY_STEP), STARTED(PROXY_STEP) - PROXIES / 2);
}

static void version_1_has_the_events_of_2_23(void)
{
	check_version("2.23", "sim", 1);
}

static void version_2_has_the_events_of_2_25(void)
{
	check_version("2.25", "sim", 2);
}

static void version_3_has_the_events_of_2_26(void)
{
	check_version("2.26", "sim", 3);
}

static void version_4_has_the_events_of_2_27(void)
{
	check_version("2.27", "sim", 4);
}

static void version_5_has_the_events_of_2_28(void)
{
	check_version("2.28", "sim", 5);
}

static void version_6_has_the_events_of_2_29(void)
{
	check_version("2.29", "sim", 6);
}

static void version_6_has_the_events_of_2_30(void)
{
	check_version("2.30", "sim", 6);
}

static void version_7_has_the_events_of_2_31(void)
{
	check_version("2.31", "sim", 7);
}

static void version_7_has_the_events_of_2_32(void)
{
	check_version("2.32", "sim", 7);
}

static void an_older_plugin_is_served_by_newer_releases(void)
{
	check_version("2.30", "sim4", 4);
}

static void a_plugin_of_version_6_is_served_by_2_32(void)
{
	check_version("2.32", "sim6", 6);
}

const struct profiler_test event_tests[] = {
	TEST(version_1_has_the_events_of_2_23),
	TEST(version_2_has_the_events_of_2_25),
	TEST(version_3_has_the_events_of_2_26),
	TEST(version_4_has_the_events_of_2_27),
	TEST(version_5_has_the_events_of_2_28),
	TEST(version_6_has_the_events_of_2_29),
	TEST(version_6_has_the_events_of_2_30),
	TEST(version_7_has_the_events_of_2_31),
	TEST(version_7_has_the_events_of_2_32),
	TEST(an_older_plugin_is_served_by_newer_releases),
	TEST(a_plugin_of_version_6_is_served_by_2_32),
	{NULL, NULL},
};
