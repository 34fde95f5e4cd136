/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is missing of the input, since when. */
#include "detect/model/completeness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "detect/model/frame.h"

enum {
	LENGTH = 1000, /* of a frame, ns */
	MANY = NT_COMPLETENESS_MAX + 6,
};

static void add(struct nt_completeness *gaps, uint64_t number, double completeness,
		double missed_ns)
{
	const struct nt_frame frame = {
		.start_ns = number * LENGTH,
		.end_ns = (number + 1) * LENGTH,
		.completeness = completeness,
		.missed_ns = missed_ns,
	};

	nt_completeness_add(gaps, &frame);
}

static double completeness(const struct nt_completeness *gaps, uint64_t from, uint64_t to)
{
	const uint64_t since_ns = from * LENGTH;

	return nt_completeness_share(gaps, nt_completeness_before(gaps, since_ns), since_ns,
				     to * LENGTH);
}

static bool is_near(double value, double wanted)
{
	return fabs(value - wanted) < 1e-9;
}

static void only_what_is_missing_since_then_counts(void **state)
{
	struct nt_completeness gaps = {0};

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		add(&gaps, i, i == 3 ? 0.5 : i == 6 ? 0.25 : 1.0, 0.0);
	assert_int_equal(gaps.gaps, 2);
	assert_true(is_near(completeness(&gaps, 0, 10), 1.0 - 1.25 / 10));
	assert_true(is_near(completeness(&gaps, 3, 10), 1.0 - 1.25 / 7));
	assert_true(is_near(completeness(&gaps, 4, 10), 1.0 - 0.75 / 6));
	assert_true(completeness(&gaps, 7, 10) == 1.0);
}

static void what_came_after_all_leaves_nothing_behind(void **state)
{
	struct nt_completeness gaps = {0};

	(void)state;
	add(&gaps, 0, 1.0 - 1.0 / 3, 0.0);
	add(&gaps, 1, 1.0 - 1.0 / 7, 0.0);
	assert_true(completeness(&gaps, 0, 2) < 1.0);
	add(&gaps, 2, 1.0, -LENGTH / 3.0 - LENGTH / 7.0);
	assert_true(completeness(&gaps, 0, 3) == 1.0);
	/* Never more than whole. */
	assert_true(completeness(&gaps, 2, 3) == 1.0);
}

static void a_stretch_of_which_nothing_came_counts_when_it_shows(void **state)
{
	struct nt_completeness gaps = {0};

	(void)state;
	add(&gaps, 0, 1.0, 0.0);
	add(&gaps, 9, 1.0, 8.0 * LENGTH);
	assert_true(is_near(completeness(&gaps, 0, 10), 0.2));
	add(&gaps, 10, 1.0, 8.0 * LENGTH);
	assert_true(completeness(&gaps, 0, 11) == 0.0);
}

static void the_oldest_of_many_belong_to_the_time_before(void **state)
{
	struct nt_completeness gaps = {0};
	double before_ns;

	(void)state;
	before_ns = nt_completeness_before(&gaps, 0);
	/* Every second frame. */
	for (uint64_t i = 0; i < 2 * MANY; i++)
		add(&gaps, i, i % 2 ? 0.5 : 1.0, 0.0);
	assert_int_equal(gaps.gaps, NT_COMPLETENESS_MAX);
	assert_true(is_near(gaps.gap[0].missing_ns, 0.5 * LENGTH));
	assert_int_equal(gaps.gap[0].end_ns, 14 * LENGTH);
	/* A new finding misses some of its past; an old one has its account. */
	assert_true(
		is_near(completeness(&gaps, 0, 2 * MANY), 1.0 - 0.25 * NT_COMPLETENESS_MAX / MANY));
	assert_true(is_near(completeness(&gaps, MANY, 2 * MANY), 0.75));
	assert_true(is_near(nt_completeness_share(&gaps, before_ns, 0, 2 * MANY * LENGTH), 0.75));
}

static void frames_in_a_row_are_one_gap_however_long(void **state)
{
	struct nt_completeness gaps = {0};

	(void)state;
	add(&gaps, 0, 1.0, 0.0);
	for (uint64_t i = 1; i <= 1000; i++)
		add(&gaps, i, i <= 500 ? 0.0 : 0.5, 0.0);
	assert_int_equal(gaps.gaps, 1);
	assert_true(is_near(completeness(&gaps, 1, 1001), 0.25));
	assert_true(is_near(completeness(&gaps, 0, 1001), 1.0 - 750.0 / 1001));
	/* Of its parts only the mean is known. */
	assert_true(is_near(completeness(&gaps, 501, 1001), 0.25));
	add(&gaps, 1001, 1.0, 0.0);
	add(&gaps, 1002, 0.0, 0.0);
	assert_int_equal(gaps.gaps, 2);
	assert_true(is_near(completeness(&gaps, 1002, 1003), 0.0));
}

static void what_is_no_number_is_nothing_received(void **state)
{
	static const double wrong[] = {NAN, -0.5, 1.5};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct nt_completeness gaps = {0};

		add(&gaps, 0, wrong[i], INFINITY);
		assert_true(completeness(&gaps, 0, 1) == 0.0);
	}
}

static void a_finding_of_the_future_has_nothing(void **state)
{
	struct nt_completeness gaps = {0};

	(void)state;
	add(&gaps, 0, 1.0, 0.0);
	assert_true(completeness(&gaps, 5, 1) == 1.0);
	add(&gaps, 1, 0.5, 0.0);
	assert_true(nt_completeness_share(&gaps, 0.0, 2 * LENGTH, 2 * LENGTH) == 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_missing_since_then_counts),
		cmocka_unit_test(what_came_after_all_leaves_nothing_behind),
		cmocka_unit_test(a_stretch_of_which_nothing_came_counts_when_it_shows),
		cmocka_unit_test(the_oldest_of_many_belong_to_the_time_before),
		cmocka_unit_test(frames_in_a_row_are_one_gap_however_long),
		cmocka_unit_test(what_is_no_number_is_nothing_received),
		cmocka_unit_test(a_finding_of_the_future_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
