/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/node_metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "detect/anomaly/anomaly.h"
#include "proto/wire.h"

static const char *const name[] = {
#define NT_NODE_METRIC(name, kind, unit, scored, about) #name,
#include "proto/node_metric.def"
};

enum {
	ROWS = sizeof(name) / sizeof(name[0]),
};

static void rows_are_sorted_and_each_name_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		assert_true(i == 0 || strcmp(name[i - 1], name[i]) < 0);
		assert_non_null(nt_node_metric_find(name[i]));
		assert_string_equal(nt_node_metric_find(name[i])->name, name[i]);
	}
}

static void other_names_are_not_found(void **state)
{
	static const char *const other[] = {"", "a", "cpu_bus", "cpu_busy_", "CPU_BUSY", "zzz"};

	(void)state;
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_null(nt_node_metric_find(other[i]));
}

static void the_score_and_the_wire_have_room_for_all(void **state)
{
	size_t scored = 0;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		scored += nt_node_metric_find(name[i])->is_scored;
		assert_true(strlen(name[i]) < NT_ANOMALY_NAME_BYTES);
	}
	assert_true(scored <= NT_ANOMALY_METRICS_MAX);
	assert_true((int)ROWS <= (int)NT_WIRE_MAX_METRICS);
}

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static void names_agree_with_units_and_kinds(void **state)
{
	static const char *const unit[] = {"bytes", "seconds", "hertz", "watts", "celsius"};

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct nt_node_metric *row = nt_node_metric_find(name[i]);

		/* A ratio has no unit, and everything else has one. */
		assert_int_equal(row->kind == NT_NODE_METRIC_RATIO, !*row->unit);
		assert_int_equal(ends_with(row->name, "_bytes_per_second"),
				 strcmp(row->unit, "bytes/s") == 0);
		for (size_t j = 0; j < sizeof(unit) / sizeof(unit[0]); j++)
			if (strcmp(row->unit, unit[j]) == 0)
				assert_true(ends_with(row->name, unit[j]));
		assert_true(ends_with(row->about, "."));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted_and_each_name_is_found),
		cmocka_unit_test(other_names_are_not_found),
		cmocka_unit_test(the_score_and_the_wire_have_room_for_all),
		cmocka_unit_test(names_agree_with_units_and_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
