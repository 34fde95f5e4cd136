/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorting by bits against sorting by comparing. */
#include "tests/unit/detect/detect_frames.h"

#include "common/base/sort.h"

enum {
	MOST = 20000, /* a sample tells from 4096 on */
	ROUNDS = 60,
};

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double draw_value(struct sim *sim, int kind)
{
	switch (kind) {
	case 0: /* as a healthy window: all share their first bits */
		return 8e7 * (1.0 + 0.02 * sim_gauss(sim));
	case 1: /* on both sides of nothing */
		return sim_gauss(sim);
	case 2: /* many are equal */
		return floor(8.0 * sim_uniform(sim)) - 4.0;
	case 3: /* of every size */
		return copysign(exp(1400.0 * (sim_uniform(sim) - 0.5)), sim_uniform(sim) - 0.5);
	case 4: /* one is far from the others */
		return sim_uniform(sim) < 0.001 ? 1e300 : sim_uniform(sim) * 1e-300;
	default:
		return sim_uniform(sim) < 0.5 ? INFINITY : -INFINITY;
	}
}

static size_t draw_values(struct sim *sim, double *value, int round)
{
	const size_t n = round % 3 ? 1 + (size_t)(sim_uniform(sim) * 64.0)
				   : 1 + (size_t)(sim_uniform(sim) * (MOST - 1));

	for (size_t i = 0; i < n; i++)
		value[i] = draw_value(sim, round % 6);
	return n;
}

static void sorted_is_what_comparing_makes_of_it(void **state)
{
	double *value = calloc(2 * MOST, sizeof(*value)), *wanted = value + MOST;
	struct sim sim = {.seed = 1};

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		const size_t n = draw_values(&sim, value, round);

		memcpy(wanted, value, n * sizeof(*value));
		qsort(wanted, n, sizeof(*wanted), compare);
		nt_sort(value, n);
		assert_memory_equal(value, wanted, n * sizeof(*value));
	}
	nt_sort(value, 0);
	free(value);
}

static void what_is_selected_stands_where_sorting_puts_it_and_nothing_is_lost(void **state)
{
	double *value = calloc(2 * MOST, sizeof(*value)), *wanted = value + MOST;
	struct sim sim = {.seed = 2};

	(void)state;
	for (int round = 0; round < 3 * ROUNDS; round++) {
		const size_t n = draw_values(&sim, value, round);
		const size_t from = (size_t)(sim_uniform(&sim) * (double)n);
		const size_t more = (size_t)(sim_uniform(&sim) * 3.0);
		const size_t to = from + more < n ? from + more : n - 1;

		memcpy(wanted, value, n * sizeof(*value));
		qsort(wanted, n, sizeof(*wanted), compare);
		nt_sort_select(value, n, from, to);
		assert_memory_equal(&value[from], &wanted[from], (to - from + 1) * sizeof(*value));
		qsort(value, n, sizeof(*value), compare);
		assert_memory_equal(value, wanted, n * sizeof(*value));
	}
	nt_sort_select(value, 0, 0, 0);
	free(value);
}

static void signs_of_zero_and_what_is_no_number_have_their_places(void **state)
{
	double value[] = {0.0, NAN, -0.0, 1.0, -NAN, -INFINITY, INFINITY, -1.0};

	(void)state;
	nt_sort(value, 8);
	assert_true(isnan(value[0]) && isnan(value[7]));
	assert_true(value[1] == -INFINITY && value[2] == -1.0);
	assert_true(value[3] == 0.0 && signbit(value[3]));
	assert_true(value[4] == 0.0 && !signbit(value[4]));
	assert_true(value[5] == 1.0 && value[6] == INFINITY);
}

/* Eight levels of eight bits each is the most that there can be. */
static void keys_that_differ_in_one_bit_at_a_time_end(void **state)
{
	double value[64 * 32];

	(void)state;
	for (uint64_t i = 0; i < 64 * 32; i++) {
		const uint64_t bits = (uint64_t)1 << (i / 32) | (uint64_t)1 << (i * 7 % 52);

		memcpy(&value[i], &bits, sizeof(bits));
	}
	nt_sort(value, 64 * 32);
	for (size_t i = 1; i < 64 * 32; i++)
		assert_false(value[i - 1] > value[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_is_what_comparing_makes_of_it),
		cmocka_unit_test(what_is_selected_stands_where_sorting_puts_it_and_nothing_is_lost),
		cmocka_unit_test(signs_of_zero_and_what_is_no_number_have_their_places),
		cmocka_unit_test(keys_that_differ_in_one_bit_at_a_time_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
