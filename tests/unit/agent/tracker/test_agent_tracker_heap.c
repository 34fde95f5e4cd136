/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Device memory of ranks: from events of allocations to windows. */
#include "agent/tracker/tracker_impl.h"
#include "tests/unit/agent/agent_job.h"

#define MIB (1ULL << 20)

enum {
	STEP_MS = 100,
	WEIGHTS = 0x401000, /* call sites */
	LEAK = 0x402000,
	OTHER_PID = PID + 1,
};

static struct node node;

/* The process started after its libraries were attached: none of its calls is missing. */
static void map_probed(uint32_t pid, uint64_t probed_ns)
{
	struct nt_owner owner;
	struct nt_mapped_file file = {.pid = pid,
				      .start_boot_ns = pid,
				      .probed_ns = probed_ns,
				      .owner = &owner,
				      .dev = 1,
				      .name = "/x/libcudart.so.12",
				      .library = NT_LIBRARY_CUDART};

	(void)node_owner(&node, pid, &owner);
	nt_tracker_mapped(node.tracker, &file);
}

static int set_up(void **state)
{
	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "PATH=/bin\0");
	map_probed(PID, 1);
	node_map(&node, PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, PID, PID, 0x5000, 0, 2, 0x11);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	node_stop(&node);
	return 0;
}

static void give_memory(uint32_t pid, const char *symbol, enum nt_library library, uint64_t address,
			uint64_t bytes, uint64_t site, uint64_t result)
{
	struct nt_event_call call = node_call(&node, pid, pid, symbol, library, 1000);
	const struct nt_probe *probe = nt_probe_row(call.h.row);

	call.h.flags |= NT_CALL_MEMORY;
	call.launches = site;
	call.ret = result;
	if (probe->deref != NT_NO_WORD) {
		call.deref = address;
		call.word[1] = bytes;
	} else {
		call.word[0] = address;
	}
	nt_tracker_event(node.tracker, &call, NULL);
	node.now_ns += 2000;
}

static void allocate(uint64_t address, uint64_t bytes, uint64_t site)
{
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, address, bytes, site, 0);
}

static void set_device(uint64_t device)
{
	struct nt_event_call call =
		node_call(&node, PID, PID, "cudaSetDevice", NT_LIBRARY_CUDART, 0);

	call.word[0] = device;
	nt_tracker_event(node.tracker, &call, NULL);
}

static void run_steps(int steps, uint64_t leak_bytes)
{
	static uint64_t leaked = 0x100000;

	for (int i = 0; i < steps; i++) {
		if (leak_bytes)
			allocate(leaked += 0x1000, leak_bytes, LEAK);
		node.counters.calls[NT_COUNTER_LAUNCH] += 100;
		node.now_ns += 2 * MS;
		nccl_reduce(&node, PID, PID, 0x5000, 1 << 20, STREAM + 1);
		node.now_ns += (STEP_MS - 2) * MS;
		nt_tracker_tick(node.tracker, node.now_ns);
	}
}

static const struct nt_heap_window *last(void)
{
	assert_true(node.windows > 0);
	return &node.window[node.windows - 1].window.heap;
}

/* The last one with call sites. */
static const struct nt_heap_window *last_with_sites(void)
{
	for (size_t i = node.windows; i-- > 0;)
		if (node.window[i].window.heap.has_sites)
			return &node.window[i].window.heap;
	fail_msg("no window has call sites");
	return NULL;
}

static void a_window_has_the_memory_of_its_process(void **state)
{
	(void)state;
	allocate(0x1000, 5 * MIB, WEIGHTS);
	set_device(3);
	allocate(0x2000, 2 * MIB, WEIGHTS);
	give_memory(PID, "cudaFree", NT_LIBRARY_CUDART, 0x1000, 0, 0, 0);
	run_steps(20, 0);
	assert_true(last()->is_whole);
	assert_int_equal(last()->since_boot_ns, 0);
	assert_int_equal(last()->devices, 2);
	assert_int_equal(last()->device[0].number, 0);
	assert_int_equal(last()->device[0].live_bytes, 0);
	assert_int_equal(last()->device[0].high_bytes, 5 * MIB);
	assert_int_equal(last()->device[1].number, 3);
	assert_int_equal(last()->device[1].live_bytes, 2 * MIB);
	/* Call sites are sent once in ten seconds. */
	assert_int_equal(last_with_sites()->sites, 1);
	assert_int_equal(last_with_sites()->site[0].offset, WEIGHTS);
	assert_false(last()->has_sites);
}

static void a_process_without_allocations_sends_none(void **state)
{
	(void)state;
	run_steps(20, 0);
	assert_int_equal(last()->devices, 0);
	assert_false(last()->is_whole);
}

static void a_leak_is_named_and_weights_are_not(void **state)
{
	size_t before;

	(void)state;
	allocate(0x1000, 100 * MIB, WEIGHTS);
	run_steps(60, MIB);
	for (size_t i = 0; i < node.windows; i++)
		for (size_t s = 0; s < node.window[i].window.heap.sites; s++)
			assert_false(node.window[i].window.heap.site[s].leaks);
	before = node.windows;
	run_steps(80, MIB);
	assert_true(node.windows > before);
	assert_int_equal(last_with_sites()->sites, 2);
	assert_int_equal(last_with_sites()->site[0].offset, LEAK);
	assert_true(last_with_sites()->site[0].leaks);
	assert_true(last_with_sites()->site[0].growth_bytes > 50 * MIB);
	assert_int_equal(last_with_sites()->site[1].offset, WEIGHTS);
	assert_false(last_with_sites()->site[1].leaks);
}

static void a_site_is_looked_up_and_then_sent_with_its_file(void **state)
{
	(void)state;
	allocate(0x1000, 5 * MIB, WEIGHTS);
	run_steps(20, 0);
	assert_int_equal(node.sites_wanted, 1); /* once */
	assert_int_equal(node.site_wanted, WEIGHTS);
	nt_tracker_site_found(node.tracker, PID, PID + 1, WEIGHTS, "other", 7); /* a reused pid */
	nt_tracker_site_found(node.tracker, 77, 77, WEIGHTS, "other", 7);
	nt_tracker_site_found(node.tracker, PID, PID, WEIGHTS, "train", 0x1234);
	run_steps(10, 0);
	assert_string_equal(last_with_sites()->site[0].file, "train");
	assert_int_equal(last_with_sites()->site[0].offset, 0x1234);
	assert_int_equal(node.sites_wanted, 1);
}

/* ---- out of memory -------------------------------------------------------------------------- */

static void out_of_memory_names_the_process_itself(void **state)
{
	const struct nt_heap_failure *failure;
	struct nt_tracker_stats stats;

	(void)state;
	allocate(0x1000, 5 * MIB, WEIGHTS);
	allocate(0x2000, 7 * MIB, LEAK);
	give_memory(PID, "cudaMallocAsync", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
	run_steps(20, 0);
	failure = &last_with_sites()->failure;
	assert_string_equal(failure->call, "cudaMallocAsync");
	assert_int_equal(failure->bytes, 90 * MIB);
	assert_int_equal(failure->offset, WEIGHTS);
	assert_int_equal(failure->live_bytes, 12 * MIB);
	assert_int_equal(failure->holder_pid, PID);
	assert_true(failure->holder_rank_known);
	assert_true(failure->holder_is_whole);
	assert_int_equal(failure->holder_bytes, 12 * MIB);
	assert_int_equal(failure->holder_offset, LEAK);
	assert_int_equal(failure->holder_site_bytes, 7 * MIB);
	assert_int_equal(last()->out_of_memory, 1);
	nt_tracker_stats(node.tracker, &stats);
	assert_int_equal(stats.heap_out_of_memory, 1);
	assert_int_equal(stats.heap_failures, 1);
}

static void out_of_memory_names_another_process_on_the_same_card(void **state)
{
	const struct nt_heap_failure *failure;

	(void)state;
	ENVIRON(&node, OTHER_PID, "PATH=/bin\0");
	map_probed(OTHER_PID, 1);
	allocate(0x1000, 5 * MIB, WEIGHTS);
	give_memory(OTHER_PID, "cudaMalloc", NT_LIBRARY_CUDART, 0x1000, 50 * MIB, LEAK, 0);
	/* Where it is not known which card is whose, only the process itself is named. */
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
	run_steps(20, 0);
	assert_int_equal(last_with_sites()->failure.holder_pid, PID);
	node.shared_card = NT_GPU_SHARED_YES;
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
	run_steps(20, 0);
	failure = &last_with_sites()->failure;
	assert_int_equal(failure->holder_pid, OTHER_PID);
	assert_false(failure->holder_rank_known);
	assert_int_equal(failure->holder_bytes, 50 * MIB);
	assert_int_equal(failure->holder_offset, LEAK);
	/* One that holds less is not named. */
	node.now_ns += SECOND;
	allocate(0x2000, 60 * MIB, WEIGHTS);
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
	run_steps(20, 0);
	assert_int_equal(last_with_sites()->failure.holder_pid, PID);
	give_memory(PID, "cudaFree", NT_LIBRARY_CUDART, 0x2000, 0, 0, 0);
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
	/* Its file is learned when its own sites are looked up. */
	nt_tracker_site_found(node.tracker, OTHER_PID, OTHER_PID, LEAK, "cache", 0x99);
	run_steps(120, 0);
	assert_string_equal(last_with_sites()->failure.holder_file, "cache");
	assert_int_equal(last_with_sites()->failure.holder_offset, 0x99);
}

/* Any process may state any card, and an index is one of its container. */
static void the_driver_decides_which_processes_share_a_card(void **state)
{
	static const enum nt_gpu_shared shared[] = {NT_GPU_SHARED_UNKNOWN, NT_GPU_SHARED_NO};

	(void)state;
	ENVIRON(&node, OTHER_PID, "CUDA_VISIBLE_DEVICES=GPU-1\0");
	map_probed(OTHER_PID, 1);
	ENVIRON(&node, OTHER_PID + 1, "CUDA_VISIBLE_DEVICES=GPU-1\0");
	map_probed(OTHER_PID + 1, 1);
	give_memory(OTHER_PID, "cudaMalloc", NT_LIBRARY_CUDART, 0x1000, 5 * MIB, WEIGHTS, 0);
	give_memory(OTHER_PID + 1, "cudaMalloc", NT_LIBRARY_CUDART, 0x1000, 50 * MIB, LEAK, 0);
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		struct nt_process *process;

		node.shared_card = shared[i];
		give_memory(OTHER_PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
		process = nt_tracker_process(node.tracker, OTHER_PID);
		assert_int_equal(process->heap_holder.pid,
				 shared[i] == NT_GPU_SHARED_NO ? OTHER_PID : OTHER_PID + 1);
	}
}

static void a_holder_is_not_looked_for_at_each_of_many_failures(void **state)
{
	(void)state;
	allocate(0x1000, 5 * MIB, WEIGHTS);
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 90 * MIB, WEIGHTS, 2);
	allocate(0x2000, 50 * MIB, LEAK);
	/* PyTorch frees what it keeps and tries again: what is held at that time counts. */
	give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 91 * MIB, WEIGHTS, 2);
	run_steps(20, 0);
	assert_int_equal(last_with_sites()->failure.bytes, 91 * MIB);
	assert_int_equal(last_with_sites()->failure.holder_bytes, 55 * MIB);
	/* Of many the last one's is looked for with the window. */
	ENVIRON(&node, OTHER_PID, "PATH=/bin\0");
	map_probed(OTHER_PID, 1);
	give_memory(OTHER_PID, "cudaMalloc", NT_LIBRARY_CUDART, 0x1000, 90 * MIB, LEAK, 0);
	node.card_lookups = 0;
	for (int i = 0; i < 100; i++)
		give_memory(PID, "cudaMalloc", NT_LIBRARY_CUDART, 0, 92 * MIB, WEIGHTS, 2);
	assert_in_range(node.card_lookups, 6, 8);
	node.shared_card = NT_GPU_SHARED_YES;
	run_steps(20, 0);
	assert_int_equal(last_with_sites()->failure.holder_pid, OTHER_PID);
	assert_int_equal(last()->out_of_memory, 102);
}

/* ---- what is not known ---------------------------------------------------------------------- */

static void calls_before_the_probes_make_a_lower_bound(void **state)
{
	(void)state;
	ENVIRON(&node, OTHER_PID, "PATH=/bin\0");
	map_probed(OTHER_PID, OTHER_PID + 1); /* attached after it had started */
	node_map(&node, OTHER_PID, "/x/libnccl.so.2", NT_LIBRARY_NCCL, false);
	nccl_init(&node, OTHER_PID, OTHER_PID, 0x6000, 1, 2, 0x11);
	give_memory(OTHER_PID, "cudaMalloc", NT_LIBRARY_CUDART, 0x1000, 50 * MIB, LEAK, 0);
	for (int i = 0; i < 4; i++) {
		nccl_reduce(&node, OTHER_PID, OTHER_PID, 0x6000, 1 << 20, STREAM + 1);
		node.now_ns += SECOND;
		nt_tracker_tick(node.tracker, node.now_ns);
	}
	assert_int_equal(node.window[node.windows - 1].window.rank.pid, OTHER_PID);
	assert_false(last()->is_whole);
	assert_true(last()->since_boot_ns > 0);
	assert_int_equal(last()->device[0].live_bytes, 50 * MIB);
}

static void after_lost_events_and_pauses_the_figures_begin_anew(void **state)
{
	(void)state;
	allocate(0x1000, 5 * MIB, WEIGHTS);
	run_steps(10, 0);
	assert_true(last()->is_whole);
	nt_tracker_lost_of(node.tracker, PID, 1);
	allocate(0x2000, 2 * MIB, WEIGHTS);
	run_steps(10, 0);
	assert_false(last()->is_whole);
	assert_true(last()->since_boot_ns > 0);
	assert_int_equal(last()->devices, 1);
	assert_int_equal(last()->device[0].live_bytes, 2 * MIB);
	/* Which device a thread uses is not known any more either. */
	assert_true(last()->device[0].number_unknown);

	nt_tracker_paused(node.tracker, PID, node.now_ns);
	allocate(0x3000, MIB, WEIGHTS); /* an event from before it */
	node.now_ns += 7 * SECOND;
	nt_tracker_tick(node.tracker, node.now_ns);
	assert_int_equal(last()->devices, 0);
	assert_false(last()->is_whole);
	nt_tracker_resumed(node.tracker, PID, node.now_ns);
	run_steps(10, 0);
	assert_int_equal(last()->devices, 0);
}

static void losses_in_the_counters_count_before_they_are_reported(void **state)
{
	(void)state;
	allocate(0x1000, 5 * MIB, WEIGHTS);
	run_steps(10, 0);
	node.counters.lost = 1;
	run_steps(10, 0);
	assert_false(last()->is_whole);
	assert_int_equal(last()->devices, 0);
}

static void memory_is_not_known_while_its_calls_are_shed(void **state)
{
	static const uint32_t sheds[] = {NT_WIRE_SHED_ALLOCATIONS, NT_WIRE_SHED_SYNCS};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		allocate(0x1000, 5 * MIB, WEIGHTS);
		run_steps(10, 0);
		assert_int_equal(last()->devices, 1);
		nt_tracker_shed(node.tracker, PID, sheds[i]);
		allocate(0x2000, 2 * MIB, WEIGHTS);
		run_steps(10, 0);
		assert_int_equal(last()->devices, 0);
		assert_false(last()->is_whole);
		nt_tracker_shed(node.tracker, PID, 0);
	}
	/* Others do not matter. */
	allocate(0x1000, 5 * MIB, WEIGHTS);
	nt_tracker_shed(node.tracker, PID, NT_WIRE_SHED_LAUNCHES | NT_WIRE_SHED_COPIES);
	run_steps(10, 0);
	assert_int_equal(last()->device[0].live_bytes, 5 * MIB);
}

static void values_of_a_hostile_process_do_no_harm(void **state)
{
	static const uint64_t values[] = {0, 1, 1ULL << 63, UINT64_MAX};
	struct nt_tracker_stats stats;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		for (size_t i = 0; i < 4; i++) {
			const struct nt_probe *probe = nt_probe_row(row);
			struct nt_event_call call = node_call(&node, PID, PID + (uint32_t)i,
							      probe->symbol, probe->library, 1000);

			if (probe->memory == NT_MEMORY_NONE)
				continue;
			call.h.flags |= NT_CALL_MEMORY;
			for (size_t w = 0; w < NT_CALL_WORDS; w++)
				call.word[w] = values[(i + w) % 4];
			call.deref = values[i];
			call.launches = values[(i + 1) % 4];
			nt_tracker_event(node.tracker, &call, NULL);
			set_device(values[i]);
		}
	run_steps(10, 0);
	nt_tracker_stats(node.tracker, &stats);
	assert_true(stats.heap_malformed > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_window_has_the_memory_of_its_process),
		TEST(a_process_without_allocations_sends_none),
		TEST(a_leak_is_named_and_weights_are_not),
		TEST(a_site_is_looked_up_and_then_sent_with_its_file),
		TEST(out_of_memory_names_the_process_itself),
		TEST(out_of_memory_names_another_process_on_the_same_card),
		TEST(the_driver_decides_which_processes_share_a_card),
		TEST(a_holder_is_not_looked_for_at_each_of_many_failures),
		TEST(calls_before_the_probes_make_a_lower_bound),
		TEST(after_lost_events_and_pauses_the_figures_begin_anew),
		TEST(losses_in_the_counters_count_before_they_are_reported),
		TEST(memory_is_not_known_while_its_calls_are_shed),
		TEST(values_of_a_hostile_process_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
