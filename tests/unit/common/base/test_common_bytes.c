/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_lowest_byte_comes_first(void **state)
{
	static const uint8_t bytes[] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x81};
	uint8_t out[9] = {0};

	(void)state;
	assert_int_equal(nt_bytes_get_u16(bytes), 0xcdef);
	assert_int_equal(nt_bytes_get_u32(bytes), 0x89abcdef);
	assert_true(nt_bytes_get_u64(bytes) == 0x8123456789abcdefULL);
	nt_bytes_put_u16(out, 0xcdef);
	assert_memory_equal(out, bytes, 2);
	nt_bytes_put_u32(out, 0x89abcdef);
	assert_memory_equal(out, bytes, 4);
	nt_bytes_put_u64(out, 0x8123456789abcdefULL);
	assert_memory_equal(out, bytes, 8);
	assert_int_equal(out[8], 0);
}

static void a_number_of_any_width_comes_back_as_a_varint(void **state)
{
	(void)state;
	for (unsigned int bits = 0; bits <= 64; bits++) {
		const uint64_t most = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
		const uint64_t values[] = {most, most ? most - 1 : 0, most / 2 + 1};

		for (size_t i = 0; i < 3; i++) {
			uint8_t bytes[NT_VARINT_MAX];
			const size_t n = nt_varint_put(bytes, values[i]);
			const uint8_t *at = bytes;
			uint64_t value = 1;

			assert_in_range(n, 1, NT_VARINT_MAX);
			assert_true(nt_varint_get(&at, bytes + n, &value));
			assert_true(value == values[i]);
			assert_ptr_equal(at, bytes + n);
		}
	}
}

/* Bytes as protobuf's documentation has them. */
static void varints_are_those_of_protobuf(void **state)
{
	static const uint8_t of_150[] = {0x96, 0x01};
	uint8_t bytes[NT_VARINT_MAX];

	(void)state;
	assert_int_equal(nt_varint_put(bytes, 150), sizeof(of_150));
	assert_memory_equal(bytes, of_150, sizeof(of_150));
	assert_int_equal(nt_varint_put(bytes, UINT64_MAX), NT_VARINT_MAX);
	assert_int_equal(bytes[9], 1);
}

/* In memory that ends where the input does, for the sanitizers to see. */
static void a_cut_varint_is_refused_and_nothing_is_changed(void **state)
{
	(void)state;
	for (size_t size = 0; size <= NT_VARINT_MAX; size++) {
		uint8_t *exact = malloc(size ? size : 1);
		const uint8_t *at = exact;
		uint64_t value = 7;

		assert_non_null(exact);
		memset(exact, 0x81, size);
		assert_false(nt_varint_get(&at, exact + size, &value));
		assert_ptr_equal(at, exact);
		assert_true(value == 7);
		free(exact);
	}
}

static void more_than_64_bits_are_refused(void **state)
{
	uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00};
	const uint8_t *at = bytes;
	uint64_t value = 7;

	(void)state;
	assert_true(nt_varint_get(&at, bytes + sizeof(bytes), &value));
	assert_true(value == UINT64_MAX);
	assert_ptr_equal(at, bytes + 10);
	for (unsigned int last = 2; last < 0x100; last++) {
		bytes[9] = (uint8_t)last;
		at = bytes;
		value = 7;
		assert_false(nt_varint_get(&at, bytes + sizeof(bytes), &value));
		assert_true(value == 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_byte_comes_first),
		cmocka_unit_test(a_number_of_any_width_comes_back_as_a_varint),
		cmocka_unit_test(varints_are_those_of_protobuf),
		cmocka_unit_test(a_cut_varint_is_refused_and_nothing_is_changed),
		cmocka_unit_test(more_than_64_bits_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
