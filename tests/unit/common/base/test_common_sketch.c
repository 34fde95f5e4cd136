/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/sketch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/hash.h"

static void a_bucket_holds_a_quarter_of_an_octave(void **state)
{
	(void)state;
	assert_int_equal(nt_sketch_bucket(0), 0);
	assert_int_equal(nt_sketch_bucket(1), 0);
	assert_int_equal(nt_sketch_bucket(2), 4);
	assert_int_equal(nt_sketch_bucket(4), 8);
	assert_int_equal(nt_sketch_bucket(1024), 40);
	assert_int_equal(nt_sketch_bucket(UINT64_MAX), NT_SKETCH_BUCKETS - 1);
}

static void buckets_are_those_of_the_formula(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t ns;
		double exact;

		seed = nt_hash_mix(seed + 1);
		ns = (seed >> (seed % 50)) | 2;
		exact = 4 * log2((double)ns);
		/* At a border the formula itself is not exact. */
		if (fabs(exact - round(exact)) < 1e-9)
			continue;
		assert_int_equal(nt_sketch_bucket(ns), (uint64_t)floor(exact));
	}
}

static void a_sketch_keeps_sum_least_and_most(void **state)
{
	struct nt_sketch sketch = {0};

	(void)state;
	nt_sketch_add(&sketch, 300);
	nt_sketch_add(&sketch, 100);
	nt_sketch_add(&sketch, 100);
	assert_int_equal(sketch.calls, 3);
	assert_int_equal(sketch.sum_ns, 500);
	assert_int_equal(sketch.min_ns, 100);
	assert_int_equal(sketch.max_ns, 300);
	assert_int_equal(sketch.count[nt_sketch_bucket(100)], 2);
}

static void hashes_are_the_same_for_ever(void **state)
{
	(void)state;
	assert_true(nt_hash_bytes(NT_HASH_SEED, "a", 1) == 0xaf63dc4c8601ec8cULL);
	assert_true(nt_hash_bytes(NT_HASH_SEED, "foobar", 6) == 0x85944171f73967e8ULL);
	assert_true(nt_hash_u64(NT_HASH_SEED, 'a') ==
		    nt_hash_bytes(NT_HASH_SEED, "a\0\0\0\0\0\0\0", 8));
	assert_true(nt_hash_text(nt_hash_text(NT_HASH_SEED, "ab"), "c") !=
		    nt_hash_text(nt_hash_text(NT_HASH_SEED, "a"), "bc"));
	assert_true(nt_hash_mix(1) == 0x5692161d100b05e5ULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_holds_a_quarter_of_an_octave),
		cmocka_unit_test(buckets_are_those_of_the_formula),
		cmocka_unit_test(a_sketch_keeps_sum_least_and_most),
		cmocka_unit_test(hashes_are_the_same_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
