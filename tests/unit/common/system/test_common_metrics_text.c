/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/metrics_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *finish(struct nt_buf *out)
{
	assert_int_equal(nt_buf_append(out, "", 1), 0);
	return (const char *)out->data;
}

static void the_preferred_format_is_sent(void **state)
{
	static const struct {
		const char *accept;
		enum nt_metrics_format format;
	} cases[] = {
		{NULL, NT_METRICS_PROMETHEUS},
		{"", NT_METRICS_PROMETHEUS},
		{"*/*", NT_METRICS_PROMETHEUS},
		{"text/plain", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text", NT_METRICS_OPENMETRICS},
		{"Application/OpenMetrics-Text ; Version=1.0.0", NT_METRICS_OPENMETRICS},
		{"application/openmetrics-text;version=1.0.0,text/plain", NT_METRICS_OPENMETRICS},
		{"text/plain;q=0.5, application/openmetrics-text;q=0.75", NT_METRICS_OPENMETRICS},
		{"text/plain;q=0.75, application/openmetrics-text;q=0.749", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;q=0", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;q=0.000,*/*", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;q=", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;q=x", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;q=0.x", NT_METRICS_PROMETHEUS},
		/* Others than the version that is sent. */
		{"application/openmetrics-text;version=0.0.1", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;version=2.0.0", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text;version=2.0.0;q=1,"
		 "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.4",
		 NT_METRICS_OPENMETRICS},
		/* Names that only contain it, and what is no list. */
		{"x-application/openmetrics-text", NT_METRICS_PROMETHEUS},
		{"application/openmetrics-text2", NT_METRICS_PROMETHEUS},
		{";;,,;=,", NT_METRICS_PROMETHEUS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (nt_metrics_accepted(cases[i].accept) != cases[i].format)
			fail_msg("'%s' has another format", cases[i].accept);
}

static void openmetrics_states_the_unit_and_names_counters_without_total(void **state)
{
	nt_autobuf struct nt_buf out = {0};

	(void)state;
	assert_int_equal(nt_metrics_write_family("a_bytes_total", true, "Bytes.",
						 NT_METRICS_OPENMETRICS, &out),
			 0);
	assert_int_equal(
		nt_metrics_write_family("b_ratio", false, "Share.", NT_METRICS_OPENMETRICS, &out),
		0);
	assert_int_equal(
		nt_metrics_write_family("c_total", false, "A gauge.", NT_METRICS_OPENMETRICS, &out),
		0);
	assert_int_equal(nt_metrics_write_family("d_seconds_total", true, "Time.",
						 NT_METRICS_PROMETHEUS, &out),
			 0);
	assert_int_equal(nt_metrics_write_end(NT_METRICS_PROMETHEUS, &out), 0);
	assert_int_equal(nt_metrics_write_end(NT_METRICS_OPENMETRICS, &out), 0);
	assert_string_equal(finish(&out), "# HELP a_bytes Bytes.\n"
					  "# TYPE a_bytes counter\n"
					  "# UNIT a_bytes bytes\n"
					  "# HELP b_ratio Share.\n"
					  "# TYPE b_ratio gauge\n"
					  "# UNIT b_ratio ratio\n"
					  "# HELP c_total A gauge.\n"
					  "# TYPE c_total gauge\n"
					  "# HELP d_seconds_total Time.\n"
					  "# TYPE d_seconds_total counter\n"
					  "# EOF\n");
}

static void check_label(const char *value, const char *want)
{
	nt_autobuf struct nt_buf out = {0};

	assert_int_equal(nt_metrics_write_label("x", value, true, &out), 0);
	assert_string_equal(finish(&out), want);
}

static void the_value_of_a_label_is_escaped(void **state)
{
	nt_autobuf struct nt_buf out = {0};

	(void)state;
	check_label("", "x=\"\"");
	check_label("a\"b\\c\nd", "x=\"a\\\"b\\\\c\\nd\"");
	check_label("\u00e9\xff\xc3", "x=\"\u00e9\ufffd\ufffd\"");
	assert_int_equal(nt_metrics_write_label("x", "1", true, &out), 0);
	assert_int_equal(nt_metrics_write_label("y", "2", false, &out), 0);
	assert_string_equal(finish(&out), "x=\"1\",y=\"2\"");
}

/* At the limit nothing is cut; a character beyond it is cut as a whole. */
static void a_long_value_is_cut_between_characters(void **state)
{
	char value[NT_METRICS_LABEL_BYTES + 8], want[NT_METRICS_LABEL_BYTES + 16];

	(void)state;
	memset(value, 'a', sizeof(value));
	value[NT_METRICS_LABEL_BYTES] = '\0';
	(void)snprintf(want, sizeof(want), "x=\"%s\"", value);
	check_label(value, want);
	value[NT_METRICS_LABEL_BYTES] = 'a';
	value[NT_METRICS_LABEL_BYTES + 1] = '\0';
	check_label(value, want);
	memcpy(&value[NT_METRICS_LABEL_BYTES - 1], "\u00e9", 3);
	(void)snprintf(want, sizeof(want), "x=\"%.*s\"", NT_METRICS_LABEL_BYTES - 1, value);
	check_label(value, want);
}

static void a_full_buffer_is_reported(void **state)
{
	nt_autobuf struct nt_buf out = {.max = 8};

	(void)state;
	assert_int_equal(nt_metrics_write_label("x", "123456789", true, &out), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_preferred_format_is_sent),
		cmocka_unit_test(openmetrics_states_the_unit_and_names_counters_without_total),
		cmocka_unit_test(the_value_of_a_label_is_escaped),
		cmocka_unit_test(a_long_value_is_cut_between_characters),
		cmocka_unit_test(a_full_buffer_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
