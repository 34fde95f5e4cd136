/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/score_history.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(struct nt_score_history *history, uint64_t minute, double value, size_t width)
{
	const struct nt_score_entry entry = {.score = (float)minute, .leading = 3, .state = 1};
	double row[3] = {value, -value, 1e30};

	assert_int_equal(nt_score_history_add(history, minute, &entry, row, width), 0);
}

static void the_last_hours_are_kept(void **state)
{
	struct nt_score_point point[NT_SCORE_HISTORY_SCORES];
	struct nt_score_history history = {0};

	(void)state;
	assert_int_equal(nt_score_history_scores(&history, point), 0);
	assert_int_equal(nt_score_history_series(&history, 0, point), 0);
	/* Across a change of the high bits of the minute, and with an hour without rows. */
	for (uint64_t i = 0; i < 1000; i++)
		add(&history, (7 << 16) - 500 + i + (i > 900 ? 60 : 0), (double)i, 2);
	assert_int_equal(nt_score_history_scores(&history, point), NT_SCORE_HISTORY_SCORES);
	assert_int_equal(point[NT_SCORE_HISTORY_SCORES - 1].minute, (7 << 16) + 559);
	assert_int_equal(point[0].minute, (7 << 16) + 140);
	assert_true(point[0].value == (double)((7 << 16) + 140));
	assert_int_equal(point[0].leading, 3);
	assert_int_equal(nt_score_history_series(&history, 1, point), NT_SCORE_HISTORY_ROWS);
	assert_int_equal(point[0].minute, (7 << 16) + 470);
	assert_true(fabs(point[0].value + 910) <= 910 / 256.0);
	assert_int_equal(nt_score_history_series(&history, 2, point), 0);
	nt_score_history_release(&history);
}

static void a_new_metric_is_missing_before(void **state)
{
	struct nt_score_point point[NT_SCORE_HISTORY_ROWS];
	struct nt_score_history history = {0};

	(void)state;
	add(&history, 1, 5, 1);
	add(&history, 2, NAN, 3);
	add(&history, 3, 7, 2);
	assert_int_equal(nt_score_history_series(&history, 0, point), 3);
	assert_true(point[0].value == 5 && isnan(point[1].value) && point[2].value == 7);
	assert_int_equal(nt_score_history_series(&history, 2, point), 3);
	assert_true(isnan(point[0].value) && fabs(point[1].value / 1e30 - 1) < 1 / 256.0 &&
		    isnan(point[2].value));
	nt_score_history_release(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_hours_are_kept),
		cmocka_unit_test(a_new_metric_is_missing_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
