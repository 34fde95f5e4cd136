/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rule by which the memory of a call site keeps growing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/heap/gpu_growth.h"

#define MIB (1ULL << 20)

static double after(struct nt_gpu_growth *growth, int samples, uint64_t peak, uint64_t more,
		    uint64_t *ret_bytes)
{
	for (int i = 0; i < samples; i++)
		nt_gpu_growth_sample(growth, peak + (uint64_t)i * more);
	return nt_gpu_growth_probability(growth, ret_bytes);
}

static void rises_make_the_next_one_likely_as_laplace_has_it(void **state)
{
	(void)state;
	/* The first sample is none of them. */
	for (int n = 1; n <= 40; n++) {
		struct nt_gpu_growth growth = {0};
		uint64_t bytes;
		const double p = after(&growth, n + 1, MIB, MIB, &bytes);

		assert_true(fabs(p - (n + 1.0) / (n + 2.0)) < 1e-12);
		assert_int_equal(p >= NT_GPU_GROWTH_LIKELY, n >= 18);
		assert_int_equal(bytes, (uint64_t)n * MIB);
	}
}

static void what_is_allocated_once_is_unlikely_to_rise(void **state)
{
	struct nt_gpu_growth growth = {0};
	uint64_t bytes;

	(void)state;
	assert_true(after(&growth, 1, 100 * MIB, 0, &bytes) == 0);
	assert_true(after(&growth, 30, 100 * MIB, 0, &bytes) < 0.1);
	assert_int_equal(bytes, 0);
	/* Warm-up: it rises for a while and then no more. */
	growth = (struct nt_gpu_growth){0};
	assert_true(after(&growth, 10, MIB, MIB, &bytes) > 0.9);
	assert_true(after(&growth, 10, 10 * MIB, 0, &bytes) < 0.6);
	assert_true(after(&growth, 60, 10 * MIB, 0, &bytes) < 0.1);
	assert_int_equal(bytes, 0);
}

static void memory_that_comes_and_goes_does_not_rise(void **state)
{
	struct nt_gpu_growth growth = {0};
	uint64_t bytes;

	(void)state;
	for (int i = 0; i < 100; i++)
		nt_gpu_growth_sample(&growth, i % 2 ? 100 * MIB : MIB);
	assert_true(nt_gpu_growth_probability(&growth, &bytes) < 0.1);
}

/* A block every eight samples rises in one of eight of them, and in each of the level above. */
static void slow_growth_is_found_at_a_longer_distance(void **state)
{
	struct nt_gpu_growth growth = {0};
	uint64_t bytes, last = 0;
	int found = 0;

	(void)state;
	for (int i = 0; i < 8 * 24; i++) {
		nt_gpu_growth_sample(&growth, (uint64_t)(i / 8 + 1) * MIB);
		if (!found && nt_gpu_growth_probability(&growth, &bytes) >= NT_GPU_GROWTH_LIKELY) {
			found = i;
			last = bytes;
		}
	}
	assert_in_range(found, 8 * 18, 8 * 20);
	assert_in_range(last, 17 * MIB, 19 * MIB);
	/* Every 64 samples: the third level. */
	growth = (struct nt_gpu_growth){0};
	for (int i = 0; i < 64 * 20; i++)
		nt_gpu_growth_sample(&growth, (uint64_t)(i / 64 + 1) * MIB);
	assert_true(nt_gpu_growth_probability(&growth, &bytes) >= NT_GPU_GROWTH_LIKELY);
}

/* A leak that begins after a long time without one is found as soon as any other. */
static void only_the_last_samples_count(void **state)
{
	struct nt_gpu_growth growth = {0};
	uint64_t bytes;

	(void)state;
	(void)after(&growth, 10000, 100 * MIB, 0, &bytes);
	assert_true(after(&growth, 40, 100 * MIB, MIB, &bytes) < NT_GPU_GROWTH_LIKELY);
	assert_true(after(&growth, 40, 140 * MIB, MIB, &bytes) >= NT_GPU_GROWTH_LIKELY);
	/* And when it ends it is none after as many. */
	assert_true(after(&growth, 64, 180 * MIB, 0, &bytes) < 0.95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rises_make_the_next_one_likely_as_laplace_has_it),
		cmocka_unit_test(what_is_allocated_once_is_unlikely_to_rise),
		cmocka_unit_test(memory_that_comes_and_goes_does_not_rise),
		cmocka_unit_test(slow_growth_is_found_at_a_longer_distance),
		cmocka_unit_test(only_the_last_samples_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
