/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/metrics.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum metric {
	EVENTS,
	DROPPED_WINDOW,
	BUSY,
	DROPPED_NODE,
	JOBS,
	LAG,
	METRIC_END,
};

/* The rows of one name are not adjacent. */
static const struct nt_metric table[METRIC_END] = {
	[EVENTS] = {"neutracer_events_total", NT_METRIC_COUNTER, "Events read."},
	[DROPPED_WINDOW] = {"neutracer_dropped_total", NT_METRIC_COUNTER, "Records lost.",
			    "topic=\"window\""},
	[DROPPED_NODE] = {"neutracer_dropped_total", NT_METRIC_COUNTER, "Records lost.",
			  "topic=\"node\""},
	[BUSY] = {"neutracer_busy_seconds_total", NT_METRIC_COUNTER_NS, "Time at work."},
	[JOBS] = {"neutracer_jobs", NT_METRIC_GAUGE, "Jobs seen."},
	[LAG] = {"neutracer_lag_seconds", NT_METRIC_GAUGE_NS, "Age of the newest record."},
};

static struct nt_metrics *metrics;

static int set_up(void **state)
{
	(void)state;
	return nt_metrics_new(table, METRIC_END, &metrics);
}

static int tear_down(void **state)
{
	(void)state;
	nt_metrics_free(metrics);
	metrics = NULL;
	return 0;
}

static void check_text(enum nt_metrics_format format, const char *want)
{
	nt_autobuf struct nt_buf out = {0};

	assert_int_equal(nt_metrics_write(metrics, format, &out), 0);
	assert_int_equal(nt_buf_append(&out, "", 1), 0);
	assert_string_equal(out.data, want);
}

/* That there is such a line. */
static void check_line(const char *line)
{
	nt_autobuf struct nt_buf out = {0};

	assert_int_equal(nt_metrics_write(metrics, NT_METRICS_PROMETHEUS, &out), 0);
	assert_int_equal(nt_buf_append(&out, "", 1), 0);
	if (!strstr((char *)out.data, line))
		fail_msg("no '%s' in '%s'", line, (char *)out.data);
}

static void the_prometheus_text_names_each_family_once(void **state)
{
	(void)state;
	nt_metrics_set(metrics, EVENTS, 3);
	nt_metrics_set(metrics, DROPPED_NODE, UINT64_MAX);
	nt_metrics_set(metrics, BUSY, 1500000001);
	nt_metrics_set(metrics, JOBS, 2);
	nt_metrics_set(metrics, LAG, 7);
	check_text(NT_METRICS_PROMETHEUS,
		   "# HELP neutracer_events_total Events read.\n"
		   "# TYPE neutracer_events_total counter\n"
		   "neutracer_events_total 3\n"
		   "# HELP neutracer_dropped_total Records lost.\n"
		   "# TYPE neutracer_dropped_total counter\n"
		   "neutracer_dropped_total{topic=\"window\"} 0\n"
		   "neutracer_dropped_total{topic=\"node\"} 18446744073709551615\n"
		   "# HELP neutracer_busy_seconds_total Time at work.\n"
		   "# TYPE neutracer_busy_seconds_total counter\n"
		   "neutracer_busy_seconds_total 1.500000001\n"
		   "# HELP neutracer_jobs Jobs seen.\n"
		   "# TYPE neutracer_jobs gauge\n"
		   "neutracer_jobs 2\n"
		   "# HELP neutracer_lag_seconds Age of the newest record.\n"
		   "# TYPE neutracer_lag_seconds gauge\n"
		   "neutracer_lag_seconds 0.000000007\n");
}

static void openmetrics_strips_total_from_families_and_ends_with_eof(void **state)
{
	nt_autobuf struct nt_buf out = {0};

	(void)state;
	assert_int_equal(nt_metrics_write(metrics, NT_METRICS_OPENMETRICS, &out), 0);
	assert_int_equal(nt_buf_append(&out, "", 1), 0);
	assert_non_null(strstr((char *)out.data, "# TYPE neutracer_events counter\n"
						 "neutracer_events_total 0\n"));
	assert_non_null(strstr((char *)out.data, "# TYPE neutracer_jobs gauge\n"));
	assert_string_equal(out.data + out.len - strlen("# EOF\n") - 1, "# EOF\n");
}

static void a_scrape_gets_the_format_that_it_accepts(void **state)
{
	(void)state;
	assert_int_equal(nt_metrics_accepted(NULL), NT_METRICS_PROMETHEUS);
	assert_int_equal(nt_metrics_accepted("text/plain"), NT_METRICS_PROMETHEUS);
	assert_int_equal(
		nt_metrics_accepted("application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
		NT_METRICS_OPENMETRICS);
	assert_non_null(strstr(nt_metrics_content_type(NT_METRICS_PROMETHEUS), "version=0.0.4"));
	assert_non_null(strstr(nt_metrics_content_type(NT_METRICS_OPENMETRICS), "openmetrics"));
}

static void a_counter_never_goes_down_and_a_gauge_may(void **state)
{
	(void)state;
	nt_metrics_set(metrics, EVENTS, 10);
	nt_metrics_set(metrics, EVENTS, 4);
	check_line("\nneutracer_events_total 10\n");
	nt_metrics_set(metrics, JOBS, 10);
	nt_metrics_set(metrics, JOBS, 4);
	check_line("\nneutracer_jobs 4\n");
}

static void an_unknown_id_is_ignored(void **state)
{
	(void)state;
	nt_metrics_set(metrics, METRIC_END, 1);
	nt_metrics_set(metrics, SIZE_MAX, 1);
	check_line("\nneutracer_lag_seconds 0.000000000\n");
}

static void a_full_buffer_is_reported(void **state)
{
	nt_autobuf struct nt_buf out = {.max = 300};

	(void)state;
	assert_int_equal(nt_metrics_write(metrics, NT_METRICS_PROMETHEUS, &out), -ENOBUFS);
}

static void *set_many(void *data)
{
	(void)data;
	for (uint64_t i = 1; i <= 10000; i++)
		nt_metrics_set(metrics, EVENTS, i);
	return NULL;
}

static void of_two_threads_the_larger_value_of_a_counter_stays(void **state)
{
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, set_many, NULL), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	check_line("\nneutracer_events_total 10000\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_prometheus_text_names_each_family_once),
		TEST(openmetrics_strips_total_from_families_and_ends_with_eof),
		TEST(a_scrape_gets_the_format_that_it_accepts),
		TEST(a_counter_never_goes_down_and_a_gauge_may),
		TEST(an_unknown_id_is_ignored),
		TEST(a_full_buffer_is_reported),
		TEST(of_two_threads_the_larger_value_of_a_counter_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
