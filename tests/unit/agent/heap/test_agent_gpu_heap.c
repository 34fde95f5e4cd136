/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device memory that a process holds by its calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/heap/gpu_heap.h"

#define MIB (1ULL << 20)

enum {
	SITE_A = 0xa000,
	SITE_B = 0xb000,
	HANDLE = 0x77,
};

static struct nt_gpu_heap *heap;
static uint64_t now_ns;

static int set_up(void **state)
{
	(void)state;
	now_ns = NT_SECOND;
	return nt_gpu_heap_new(0, 1, &heap);
}

static int tear_down(void **state)
{
	(void)state;
	nt_gpu_heap_free(heap);
	return 0;
}

/* A call of a microsecond, after the one before. */
static bool give(struct nt_gpu_heap_call call)
{
	now_ns += NT_MICROSECOND;
	call.entry_ns = now_ns;
	now_ns += NT_MICROSECOND;
	call.ret_ns = now_ns;
	return nt_gpu_heap_take(heap, &call);
}

static void allocate(enum nt_memory_op op, uint64_t address, uint64_t bytes, uint64_t site)
{
	assert_false(give((struct nt_gpu_heap_call){
		.op = op, .symbol = "f", .address = address, .bytes = bytes, .site = site}));
}

static void let_go(enum nt_memory_op op, uint64_t address)
{
	assert_false(give((struct nt_gpu_heap_call){.op = op, .symbol = "f", .address = address}));
}

static void map(uint64_t address, uint64_t bytes, uint64_t handle)
{
	assert_false(give((struct nt_gpu_heap_call){
		.op = NT_MEMORY_MAP, .address = address, .bytes = bytes, .handle = handle}));
}

static void unmap(uint64_t address, uint64_t bytes)
{
	assert_false(give((struct nt_gpu_heap_call){
		.op = NT_MEMORY_UNMAP, .address = address, .bytes = bytes}));
}

static bool is_whole(void)
{
	return nt_gpu_heap_is_whole(heap, now_ns);
}

static void what_is_allocated_and_not_freed_is_live(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	allocate(NT_MEMORY_ALLOC_PITCHED, 0x2000, 3 * MIB, SITE_B);
	let_go(NT_MEMORY_FREE, 0x1000);
	allocate(NT_MEMORY_ALLOC, 0x3000, MIB, SITE_A);
	assert_int_equal(heap->device[0].live, 4 * MIB);
	assert_int_equal(heap->device[0].high, 8 * MIB);
	assert_int_equal(heap->device[0].blocks, 2);
	assert_int_equal(heap->site[0].live, MIB);
	assert_int_equal(heap->site[1].live, 3 * MIB);
	assert_true(is_whole());
}

static void no_bytes_and_no_address_are_no_block(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC, 0, 0, SITE_A);
	let_go(NT_MEMORY_FREE, 0);
	assert_int_equal(heap->device[0].blocks, 0);
	assert_true(is_whole());
}

static void managed_memory_is_beside_that_of_the_device(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC_MANAGED, 0x1000, 5 * MIB, SITE_A);
	assert_int_equal(heap->device[0].live, 0);
	assert_int_equal(heap->device[0].managed, 5 * MIB);
	assert_int_equal(heap->site[0].live, 5 * MIB);
	let_go(NT_MEMORY_FREE, 0x1000);
	assert_int_equal(heap->device[0].managed, 0);
	assert_int_equal(heap->device[0].blocks, 0);
}

/* PyTorch unmaps first, NCCL releases first, others release right after they have mapped. */
static void physical_memory_lives_while_it_has_a_handle_or_a_mapping(void **state)
{
	(void)state;
	allocate(NT_MEMORY_CREATE, HANDLE, 2 * MIB, SITE_A);
	map(0x10000000, 2 * MIB, HANDLE);
	assert_int_equal(heap->device[0].live, 2 * MIB); /* the mapping counts nothing */
	assert_int_equal(heap->device[0].blocks, 1);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	assert_int_equal(heap->device[0].live, 2 * MIB);
	unmap(0x10000000, 2 * MIB);
	assert_int_equal(heap->device[0].live, 0);

	allocate(NT_MEMORY_CREATE, HANDLE, 2 * MIB, SITE_A);
	map(0x10000000, 2 * MIB, HANDLE);
	unmap(0x10000000, 2 * MIB);
	assert_int_equal(heap->device[0].live, 2 * MIB);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	assert_int_equal(heap->device[0].live, 0);

	allocate(NT_MEMORY_CREATE, HANDLE, 2 * MIB, SITE_A);
	let_go(NT_MEMORY_RETAIN, HANDLE);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	assert_int_equal(heap->device[0].live, 2 * MIB);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	assert_int_equal(heap->device[0].live, 0);
	assert_int_equal(heap->blocks.count, 0);
	assert_true(is_whole());
}

static void a_range_of_mappings_is_unmapped_at_once(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		allocate(NT_MEMORY_CREATE, HANDLE + i, 2 * MIB, SITE_A);
		map(0x10000000 + i * 2 * MIB, 2 * MIB, HANDLE + i);
		let_go(NT_MEMORY_RELEASE, HANDLE + i);
	}
	unmap(0x10000000, 6 * MIB);
	assert_int_equal(heap->device[0].live, 2 * MIB);
	unmap(0x10000000 + 6 * MIB, 2 * MIB);
	assert_int_equal(heap->device[0].live, 0);
	assert_int_equal(heap->blocks.count, 0);
}

/* NCCL imports those of its peers. */
static void handles_of_other_processes_are_not_of_this_heap(void **state)
{
	(void)state;
	map(0x10000000, 2 * MIB, HANDLE);
	let_go(NT_MEMORY_RETAIN, HANDLE);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	unmap(0x10000000, 2 * MIB);
	assert_int_equal(heap->blocks.count, 0);
	assert_true(is_whole());
}

static void a_call_that_failed_changes_nothing_but_is_counted(void **state)
{
	struct nt_gpu_heap_call call = {.op = NT_MEMORY_ALLOC,
					.symbol = "cudaMalloc",
					.address = 0x9000,
					.bytes = 7 * MIB,
					.site = SITE_B,
					.result = 1};

	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	assert_false(give(call));
	assert_int_equal(heap->failures, 1);
	assert_int_equal(heap->out_of_memory, 0);
	call.result = NT_GPU_HEAP_OUT_OF_MEMORY;
	assert_true(give(call));
	assert_int_equal(heap->failures, 2);
	assert_int_equal(heap->out_of_memory, 1);
	assert_string_equal(heap->last.symbol, "cudaMalloc");
	assert_int_equal(heap->last.bytes, 7 * MIB);
	assert_int_equal(heap->last.live, 5 * MIB);
	assert_int_equal(heap->last.boot_ns, now_ns);
	assert_int_equal(nt_gpu_heap_site(heap, heap->last.site)->address, SITE_B);
	assert_int_equal(heap->device[0].live, 5 * MIB);
	/* A release that failed released nothing, and is no failure of an allocation. */
	assert_false(give(
		(struct nt_gpu_heap_call){.op = NT_MEMORY_FREE, .address = 0x1000, .result = 2}));
	assert_int_equal(heap->device[0].live, 5 * MIB);
	assert_int_equal(heap->out_of_memory, 1);
	assert_true(is_whole());
}

/* ---- what is not known ---------------------------------------------------------------------- */

static void a_free_of_an_unknown_address_shows_that_calls_are_missing(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	let_go(NT_MEMORY_FREE, 0x1000);
	assert_true(is_whole());
	let_go(NT_MEMORY_FREE, 0x1000); /* the same address twice */
	assert_int_equal(heap->unmatched, 1);
	assert_false(is_whole());
	assert_int_equal(heap->device[0].live, 0);
}

static void an_address_is_given_again_before_its_free_returns(void **state)
{
	struct nt_gpu_heap_call of_other_thread = {.op = NT_MEMORY_FREE, .address = 0x1000};

	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	of_other_thread.entry_ns = now_ns + 1;
	allocate(NT_MEMORY_ALLOC, 0x1000, 3 * MIB, SITE_B);
	assert_false(is_whole()); /* it may have been lost */
	of_other_thread.ret_ns = now_ns + 1;
	assert_false(nt_gpu_heap_take(heap, &of_other_thread));
	assert_true(is_whole());
	assert_int_equal(heap->device[0].live, 3 * MIB);
	assert_int_equal(heap->device[0].blocks, 1);
	let_go(NT_MEMORY_FREE, 0x1000);
	assert_int_equal(heap->device[0].live, 0);
	assert_true(is_whole());
}

static void a_lost_free_is_seen_when_the_address_is_given_again(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	allocate(NT_MEMORY_ALLOC, 0x2000, MIB, SITE_A);
	allocate(NT_MEMORY_ALLOC, 0x1000, 3 * MIB, SITE_B);
	now_ns += NT_GPU_HEAP_RELEASE_NS;
	assert_false(is_whole());
	/* Another one may be lost, too: what is held for sure begins anew. */
	assert_int_equal(heap->device[0].live, 0);
	assert_int_equal(heap->unmatched, 1);
	assert_int_equal(heap->since_ns, now_ns);
	/* The same where its next free tells. */
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	allocate(NT_MEMORY_ALLOC, 0x1000, 3 * MIB, SITE_A);
	let_go(NT_MEMORY_FREE, 0x1000);
	assert_int_equal(heap->device[0].live, 0);
	assert_int_equal(heap->unmatched, 2);
}

static void after_a_loss_the_heap_begins_anew(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	nt_gpu_heap_lose(heap, now_ns);
	assert_false(is_whole());
	assert_int_equal(heap->since_ns, now_ns);
	assert_int_equal(nt_gpu_heap_live(heap), 0);
	allocate(NT_MEMORY_ALLOC, 0x2000, MIB, SITE_A);
	let_go(NT_MEMORY_FREE, 0x1000);
	assert_int_equal(nt_gpu_heap_live(heap), MIB);
	assert_false(is_whole());
}

static void memory_of_unknown_size_makes_the_figures_a_lower_bound(void **state)
{
	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 5 * MIB, SITE_A);
	let_go(NT_MEMORY_ALLOC_OPAQUE, 0x5000);
	assert_false(is_whole());
	assert_int_equal(nt_gpu_heap_live(heap), 5 * MIB);
}

static void a_reset_frees_the_memory_of_its_device(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 200; i++)
		assert_false(give((struct nt_gpu_heap_call){.op = NT_MEMORY_ALLOC,
							    .address = i << 12,
							    .bytes = MIB,
							    .site = SITE_A,
							    .device = i % 2}));
	assert_false(give((struct nt_gpu_heap_call){.op = NT_MEMORY_RESET, .device = 1}));
	assert_int_equal(heap->device[1].live, 0);
	assert_int_equal(heap->device[0].live, 100 * MIB);
	assert_true(is_whole());
	for (uint64_t i = 2; i <= 200; i += 2)
		let_go(NT_MEMORY_FREE, i << 12);
	assert_int_equal(heap->device[0].live, 0);
	assert_true(is_whole());
	assert_false(give((struct nt_gpu_heap_call){.op = NT_MEMORY_RESET_UNKNOWN}));
	assert_false(is_whole());
}

/* ---- caps and values that a process may choose ---------------------------------------------- */

static void sizes_that_no_card_has_are_refused(void **state)
{
	static const uint64_t sizes[] = {NT_GPU_HEAP_BLOCK_MOST + 1, 1ULL << 63, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		allocate(NT_MEMORY_ALLOC, 0x1000 + i, sizes[i], SITE_A);
	allocate(NT_MEMORY_CREATE, HANDLE, 1ULL << 63, SITE_A);
	assert_int_equal(heap->malformed, 4);
	assert_int_equal(nt_gpu_heap_live(heap), 0);
	assert_false(is_whole());
	/* The largest ones that are taken do not overflow the sums. */
	for (uint64_t i = 0; i < NT_GPU_BLOCKS; i++)
		allocate(NT_MEMORY_ALLOC, 0x100000 + i, NT_GPU_HEAP_BLOCK_MOST, SITE_A);
	assert_int_equal(nt_gpu_heap_live(heap), NT_GPU_BLOCKS * NT_GPU_HEAP_BLOCK_MOST);
}

static void blocks_over_the_cap_are_counted_and_left_out(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= NT_GPU_BLOCKS; i++)
		allocate(NT_MEMORY_ALLOC, i << 12, 10, SITE_A);
	assert_true(is_whole());
	allocate(NT_MEMORY_ALLOC, 1, 10, SITE_A);
	allocate(NT_MEMORY_CREATE, 1, 10, SITE_A);
	assert_int_equal(heap->blocks_over_cap, 2);
	assert_false(is_whole());
	assert_int_equal(nt_gpu_heap_live(heap), 10 * NT_GPU_BLOCKS);
	/* A mapping that has no room does not keep its handle alive. */
	let_go(NT_MEMORY_FREE, 1 << 12);
	allocate(NT_MEMORY_CREATE, HANDLE, 10, SITE_A);
	map(0x900, 10, HANDLE);
	assert_int_equal(heap->blocks_over_cap, 3);
	let_go(NT_MEMORY_RELEASE, HANDLE);
	assert_int_equal(nt_gpu_heap_live(heap), 10 * (NT_GPU_BLOCKS - 1));
}

static void sites_over_the_cap_share_one(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < NT_GPU_HEAP_SITES + 3; i++)
		allocate(NT_MEMORY_ALLOC, (i + 1) << 12, MIB, 0x400000 + i);
	assert_int_equal(heap->sites, NT_GPU_HEAP_SITES);
	assert_int_equal(heap->sites_over_cap, 3);
	assert_int_equal(heap->others.live, 3 * MIB);
	assert_int_equal(nt_gpu_heap_site(heap, NT_GPU_HEAP_OTHER_SITES)->live, 3 * MIB);
	assert_null(nt_gpu_heap_site(heap, NT_GPU_HEAP_OTHER_SITES + 1));
	assert_int_equal(nt_gpu_heap_live(heap), (NT_GPU_HEAP_SITES + 3) * MIB);
	assert_true(is_whole());
}

static void devices_that_are_not_known_share_one(void **state)
{
	static const uint32_t devices[] = {NT_GPU_HEAP_ANY_DEVICE, 17, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_false(give((struct nt_gpu_heap_call){.op = NT_MEMORY_ALLOC,
							    .address = (i + 1) << 12,
							    .bytes = MIB,
							    .device = devices[i]}));
	assert_int_equal(heap->device[NT_GPU_HEAP_ANY_DEVICE].live, 3 * MIB);
	assert_false(give((struct nt_gpu_heap_call){
		.op = NT_MEMORY_ALLOC, .symbol = "f", .result = 1, .device = UINT32_MAX}));
	assert_int_equal(nt_gpu_heap_single(heap), 3 * MIB);
	allocate(NT_MEMORY_ALLOC, 0x9000, MIB, SITE_A);
	assert_int_equal(nt_gpu_heap_single(heap), 0);
}

/* ---- leaks ---------------------------------------------------------------------------------- */

static void a_leak_is_found_at_its_site_and_weights_are_none(void **state)
{
	double probability;
	uint64_t bytes;
	uint32_t index[3];

	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 1024 * MIB, SITE_A); /* the weights */
	for (uint64_t i = 0; i < 40; i++) {
		allocate(NT_MEMORY_ALLOC, 0x10000 + (i << 12), MIB, SITE_B);
		allocate(NT_MEMORY_ALLOC, 0x2000, 100 * MIB, SITE_A); /* a buffer of the step */
		let_go(NT_MEMORY_FREE, 0x2000);
		nt_gpu_heap_sample(heap);
		/* 18 rises, and a hundredth of the heap */
		assert_int_equal(nt_gpu_heap_leaks(heap, &heap->site[1], &probability, &bytes),
				 i >= 18);
		assert_false(nt_gpu_heap_leaks(heap, &heap->site[0], &probability, &bytes));
	}
	assert_true(nt_gpu_heap_leaks(heap, &heap->site[1], &probability, &bytes));
	assert_int_equal(bytes, 39 * MIB);
	/* It comes before the larger one. */
	assert_int_equal(nt_gpu_heap_largest(heap, index, 3), 2);
	assert_int_equal(index[0], 1);
	assert_int_equal(index[1], 0);
	assert_int_equal(nt_gpu_heap_largest(heap, index, 1), 1);
	assert_int_equal(index[0], 1);
	assert_true(nt_gpu_heap_most(heap, &index[0]));
	assert_int_equal(index[0], 0);
}

static void growth_that_does_not_matter_is_no_leak(void **state)
{
	double probability;
	uint64_t bytes;

	(void)state;
	allocate(NT_MEMORY_ALLOC, 0x1000, 10000 * MIB, SITE_A);
	for (uint64_t i = 0; i < 60; i++) {
		allocate(NT_MEMORY_ALLOC, 0x10000 + (i << 12), MIB, SITE_B);
		nt_gpu_heap_sample(heap);
	}
	/* Less than a hundredth of the heap. */
	assert_false(nt_gpu_heap_leaks(heap, &heap->site[1], &probability, &bytes));
	assert_true(probability >= NT_GPU_GROWTH_LIKELY);
	nt_gpu_heap_lose(heap, now_ns);
	for (uint64_t i = 0; i < 60; i++) {
		allocate(NT_MEMORY_ALLOC, 0x10000 + (i << 12), 1000, SITE_B);
		nt_gpu_heap_sample(heap);
	}
	/* Less than a MiB. */
	assert_false(nt_gpu_heap_leaks(heap, &heap->site[1], &probability, &bytes));
}

static void the_largest_sites_come_first(void **state)
{
	uint32_t index[4];

	(void)state;
	assert_int_equal(nt_gpu_heap_largest(heap, index, 4), 0);
	assert_false(nt_gpu_heap_most(heap, index));
	for (uint64_t i = 0; i < 9; i++)
		allocate(NT_MEMORY_ALLOC, (i + 1) << 12, (i * 4 % 9 + 1) * MIB, 0x400000 + i);
	assert_int_equal(nt_gpu_heap_largest(heap, index, 4), 4);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(nt_gpu_heap_site(heap, index[i])->live, (9 - i) * MIB);
	nt_gpu_heap_locate(heap, 0x400002, "libweights.so\n", 0x1234);
	assert_string_equal(heap->site[2].file, "libweights.so?");
	assert_int_equal(heap->site[2].offset, 0x1234);
	nt_gpu_heap_locate(heap, 0x999, "x", 0); /* not one of its sites */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_is_allocated_and_not_freed_is_live),
		TEST(no_bytes_and_no_address_are_no_block),
		TEST(managed_memory_is_beside_that_of_the_device),
		TEST(physical_memory_lives_while_it_has_a_handle_or_a_mapping),
		TEST(a_range_of_mappings_is_unmapped_at_once),
		TEST(handles_of_other_processes_are_not_of_this_heap),
		TEST(a_call_that_failed_changes_nothing_but_is_counted),
		TEST(a_free_of_an_unknown_address_shows_that_calls_are_missing),
		TEST(an_address_is_given_again_before_its_free_returns),
		TEST(a_lost_free_is_seen_when_the_address_is_given_again),
		TEST(after_a_loss_the_heap_begins_anew),
		TEST(memory_of_unknown_size_makes_the_figures_a_lower_bound),
		TEST(a_reset_frees_the_memory_of_its_device),
		TEST(sizes_that_no_card_has_are_refused),
		TEST(blocks_over_the_cap_are_counted_and_left_out),
		TEST(sites_over_the_cap_share_one),
		TEST(devices_that_are_not_known_share_one),
		TEST(a_leak_is_found_at_its_site_and_weights_are_none),
		TEST(growth_that_does_not_matter_is_no_leak),
		TEST(the_largest_sites_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
