/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of the blocks of device memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/heap/gpu_block.h"
#include "common/base/hash.h"

enum {
	KEYS = 512,
	CHANGES = 200000,
};

static int add(struct nt_gpu_blocks *blocks, enum nt_gpu_block_space space, uint64_t key,
	       uint64_t bytes)
{
	return nt_gpu_blocks_add(
		blocks, &(struct nt_gpu_block){.key = key, .bytes = bytes, .space = space});
}

static void keys_of_different_spaces_are_different(void **state)
{
	struct nt_gpu_blocks blocks = {.seed = 7};

	(void)state;
	assert_null(nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_ADDRESS, 5));
	assert_int_equal(add(&blocks, NT_GPU_BLOCK_ADDRESS, 5, 1), 0);
	assert_int_equal(add(&blocks, NT_GPU_BLOCK_HANDLE, 5, 2), 0);
	assert_int_equal(add(&blocks, NT_GPU_BLOCK_MAPPING, 5, 3), 0);
	nt_gpu_blocks_remove(&blocks, nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_HANDLE, 5));
	assert_null(nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_HANDLE, 5));
	assert_int_equal(nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_ADDRESS, 5)->bytes, 1);
	assert_int_equal(nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_MAPPING, 5)->bytes, 3);
	nt_gpu_blocks_clear(&blocks);
	assert_int_equal(blocks.count, 0);
	assert_int_equal(blocks.seed, 7);
	assert_null(nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_ADDRESS, 5));
}

/* Runs of the table that wrap around are among them. */
static void it_holds_what_an_array_holds_after_any_changes(void **state)
{
	static uint64_t bytes_of[KEYS];

	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct nt_gpu_blocks blocks = {.seed = seed};
		size_t count = 0;

		memset(bytes_of, 0, sizeof(bytes_of));
		for (uint64_t i = 0; i < CHANGES; i++) {
			const uint64_t random = nt_hash_mix(seed << 32 | i);
			const size_t key = random % KEYS;
			struct nt_gpu_block *block =
				nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_ADDRESS, key << 20);

			assert_int_equal(block ? block->bytes : 0, bytes_of[key]);
			if (block) {
				nt_gpu_blocks_remove(&blocks, block);
				bytes_of[key] = 0;
				count--;
			} else {
				bytes_of[key] = i + 1;
				assert_int_equal(
					add(&blocks, NT_GPU_BLOCK_ADDRESS, key << 20, i + 1), 0);
				count++;
			}
			assert_int_equal(blocks.count, count);
		}
		for (size_t key = 0; key < KEYS; key++) {
			const struct nt_gpu_block *block =
				nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_ADDRESS, key << 20);

			assert_int_equal(block ? block->bytes : 0, bytes_of[key]);
		}
		nt_gpu_blocks_clear(&blocks);
	}
}

static void it_takes_as_many_as_its_cap(void **state)
{
	struct nt_gpu_blocks blocks = {0};

	(void)state;
	for (uint64_t i = 0; i < NT_GPU_BLOCKS; i++)
		assert_int_equal(add(&blocks, NT_GPU_BLOCK_ADDRESS, i, i), 0);
	assert_int_equal(add(&blocks, NT_GPU_BLOCK_ADDRESS, NT_GPU_BLOCKS, 1), -ENOSPC);
	assert_int_equal(blocks.count, NT_GPU_BLOCKS);
	assert_true(blocks.room <= 2 * NT_GPU_BLOCKS);
	nt_gpu_blocks_remove(&blocks, nt_gpu_blocks_find(&blocks, NT_GPU_BLOCK_ADDRESS, 9));
	assert_int_equal(add(&blocks, NT_GPU_BLOCK_ADDRESS, NT_GPU_BLOCKS, 1), 0);
	nt_gpu_blocks_clear(&blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_different_spaces_are_different),
		cmocka_unit_test(it_holds_what_an_array_holds_after_any_changes),
		cmocka_unit_test(it_takes_as_many_as_its_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
