/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a plugin is found, loaded and initialised. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/sim/profiler/profiled_job.h"

/* ---- loading ---- */

static void loads(bool does)
{
	open_ranks();
	all_reduce(1);
	close_ranks();
	CHECK_COUNT(seen->inits, does ? RANKS : 0);
	CHECK_COUNT(STARTED(COLL), does ? RANKS : 0);
}

static void a_newer_plugin_is_not_loaded(void)
{
	use("2.30", "sim7", ALL_EVENTS);
	loads(false);
}

static void the_word_none_is_no_plugin(void)
{
	use("2.28", "NONE", ALL_EVENTS);
	set("NCCL_NET_PLUGIN", "libnccl-profiler-sim5.so");
	loads(false);
}

static void what_is_missing_is_not_looked_for_again(void)
{
	use("2.28", "nowhere", ALL_EVENTS);
	loads(false);
	use("2.28", "sim", ALL_EVENTS);
	loads(false);
}

static void without_a_name_the_plain_library_is_looked_for(void)
{
	use("2.28", "", ALL_EVENTS);
	CHECK(unsetenv("NCCL_PROFILER_PLUGIN") == 0);
	loads(false);
}

static void a_path_is_loaded_as_it_is(void)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/libnccl-profiler-sim5.so", library_folder);
	use("2.28", path, ALL_EVENTS);
	loads(true);
}

static void a_file_name_is_not_completed(void)
{
	char completed[4096];

	(void)snprintf(completed, sizeof(completed), "%s/libnccl-profiler-libsim5.so.so",
		       library_folder);
	(void)unlink(completed);
	CHECK(symlink("libnccl-profiler-sim5.so", completed) == 0);
	use("2.28", "libsim5.so", ALL_EVENTS);
	loads(false);
	CHECK(unlink(completed) == 0);
}

static void the_library_of_the_network_plugin_is_searched(void)
{
	use("2.28", "nowhere", ALL_EVENTS);
	set("NCCL_NET_PLUGIN", "libnccl-profiler-sim5.so");
	loads(true);
}

static int init_here(void **context, uint64_t hash, int *mask, const char *name, int nodes,
		     int ranks, int rank, sim_log_fn *log)
{
	(void)context;
	(void)hash;
	(void)mask;
	(void)name;
	(void)nodes;
	(void)ranks;
	(void)rank;
	log(3, 0, __FILE__, __LINE__, "%s", "the program itself");
	(void)__atomic_add_fetch(static_inits, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* Exported by the program. */
extern const struct sim_profiler_table ncclProfiler_v5;
const struct sim_profiler_table ncclProfiler_v5 = {.name = "static", .init_v7 = init_here};

static void a_prefix_of_static_plugin_is_the_program_itself(void)
{
	use("2.28", "static", ALL_EVENTS);
	loads(false);
	CHECK_COUNT(*static_inits, RANKS);
}

static bool is_mapped(const char *path)
{
	void *found = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

	if (found)
		(void)dlclose(found);
	return found != NULL;
}

static void the_last_communicator_unloads_and_the_next_loads_again(void)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/libnccl-profiler-sim5.so", library_folder);
	use("2.28", "sim5", ALL_EVENTS);
	open_ranks();
	all_reduce(1);
	CHECK(ncclCommDestroy(comm[0]) == ncclSuccess);
	CHECK(is_mapped(path));
	CHECK(ncclCommDestroy(comm[1]) == ncclSuccess);
	CHECK(!is_mapped(path));
	open_ranks();
	all_reduce(1);
	close_ranks();
	CHECK_COUNT(seen->inits, 2 * RANKS);
	CHECK_COUNT(STARTED(COLL), 2 * RANKS);
	CHECK_COUNT(seen->finalizes, 2 * RANKS);
}

/* ---- init ---- */

static void a_context_of_null_is_not_finalized(void)
{
	use("2.28", "sim", ALL_EVENTS);
	set("SIM_PLUGIN_NULL", "1");
	open_ranks();
	all_reduce(1);
	close_ranks();
	CHECK_COUNT(STARTED(COLL), RANKS);
	CHECK_COUNT(seen->finalizes, 0);
}

static void until_2_29_events_come_although_init_failed(void)
{
	use("2.29", "sim", ALL_EVENTS);
	set("SIM_PLUGIN_FAIL", "1");
	open_ranks();
	all_reduce(1);
	close_ranks();
	CHECK_COUNT(STARTED(COLL), RANKS);
	CHECK_COUNT(seen->finalizes, RANKS);
	no_errors();
}

static void send_to_self(ncclComm_t on)
{
	CHECK(ncclGroupStart() == ncclSuccess);
	CHECK(ncclSend(buffer[0], COUNT, ncclFloat32, 0, on, stream[0]) == ncclSuccess);
	CHECK(ncclRecv(buffer[0], COUNT, ncclFloat32, 0, on, stream[0]) == ncclSuccess);
	CHECK(ncclGroupEnd() == ncclSuccess);
	CHECK(cudaStreamSynchronize(stream[0]) == cudaSuccess);
}

static void from_2_30_a_failed_init_unloads_under_other_communicators(void)
{
	ncclComm_t first, second;

	use("2.30", "sim", ALL_EVENTS & ~KERNELS);
	set("SIM_PLUGIN_FAIL", "2");
	open_single(&first);
	open_single(&second);
	send_to_self(first);
	send_to_self(second); /* is served, although its init failed */
	CHECK_COUNT(STARTED(P2P), 4);
	CHECK(ncclCommDestroy(second) == ncclSuccess);
	send_to_self(first); /* closed: one reference was dropped twice */
	CHECK_COUNT(STARTED(P2P), 4);
	CHECK(ncclCommDestroy(first) == ncclSuccess);
	CHECK_COUNT(seen->finalizes, 1);
}

static void from_2_30_the_only_init_that_fails_unloads(void)
{
	ncclComm_t only;

	use("2.30", "sim", ALL_EVENTS);
	set("SIM_PLUGIN_FAIL", "1");
	open_single(&only);
	send_to_self(only);
	CHECK(ncclCommDestroy(only) == ncclSuccess);
	CHECK_COUNT(seen->inits, 1);
	CHECK_COUNT(STARTED(P2P), 0);
	CHECK_COUNT(seen->finalizes, 0);
}

static void adapters_take_bits_off_the_mask_within_init_alone(void)
{
	use("2.30", "sim5", SIM_PROFILE_CE_COLL | SIM_PROFILE_GROUP);
	open_ranks();
	CHECK_COUNT((unsigned int)mask_now(), SIM_PROFILE_GROUP);
	set_mask(SIM_PROFILE_CE_COLL);
	all_reduce(1);
	CHECK_COUNT((unsigned int)mask_now(), SIM_PROFILE_CE_COLL);
	close_ranks();
}

static void from_2_31_kernel_phases_bring_kernels(void)
{
	use("2.31", "sim", SIM_PROFILE_KERNEL_PHASE);
	open_ranks();
	CHECK_COUNT((unsigned int)mask_now(), SIM_PROFILE_KERNEL_PHASE | KERNELS);
	close_ranks();
}

const struct profiler_test loading_tests[] = {
	TEST(a_newer_plugin_is_not_loaded),
	TEST(the_word_none_is_no_plugin),
	TEST(what_is_missing_is_not_looked_for_again),
	TEST(without_a_name_the_plain_library_is_looked_for),
	TEST(a_path_is_loaded_as_it_is),
	TEST(a_file_name_is_not_completed),
	TEST(the_library_of_the_network_plugin_is_searched),
	TEST(a_prefix_of_static_plugin_is_the_program_itself),
	TEST(the_last_communicator_unloads_and_the_next_loads_again),
	TEST(a_context_of_null_is_not_finalized),
	TEST(until_2_29_events_come_although_init_failed),
	TEST(from_2_30_a_failed_init_unloads_under_other_communicators),
	TEST(from_2_30_the_only_init_that_fails_unloads),
	TEST(adapters_take_bits_off_the_mask_within_init_alone),
	TEST(from_2_31_kernel_phases_bring_kernels),
	{NULL, NULL},
};
