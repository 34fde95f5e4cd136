/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of metrics: what is read, what is refused, and what a scored one reports. */
#include "tests/unit/detect/anomaly/node_simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/anomaly/node_report.h"
#include "cli/anomaly/node_series.h"

static char path[] = "/tmp/neutracer-metrics-XXXXXX.csv";

static void write_table(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void refused(const char *text, const char *why)
{
	struct nt_metric_table *table = NULL;
	struct nt_trace_error error = {0};

	write_table(text);
	assert_int_equal(nt_metric_table_read(path, &table, &error), -EBADMSG);
	assert_null(table);
	assert_non_null(strstr(error.text, why));
}

static void a_table_is_read_with_its_gaps(void **state)
{
	struct nt_metric_table *table = NULL;
	struct nt_trace_error error = {0};

	(void)state;
	write_table("time,split,label,\"cpu busy\",io\n100,train,0,1,nan\n160,test,1,,-2e3\n"
		    "220,test,0,1e999,7\n280,test,0,1");
	assert_int_equal(nt_metric_table_read(path, &table, &error), 0);
	assert_int_equal(table->metrics, 2);
	assert_int_equal(table->rows, 3);
	assert_true(table->cut);
	assert_string_equal(table->name[0], "cpu busy");
	assert_true(isnan(table->value[1]) && isnan(table->value[2]) && isnan(table->value[4]));
	assert_true(table->value[3] == -2000.0);
	assert_true(table->training[0] && !table->training[1] && table->label[1]);
	assert_true(nt_metric_table_interval(table) == 60.0);
	nt_metric_table_free(table);
}

static void what_is_no_table_is_refused_with_its_line(void **state)
{
	(void)state;
	refused("", ":1: the file is empty");
	refused("time,label\n1,0\n", ":1: no column is a metric");
	refused("a,b\n", "no row of values");
	refused("a,b\n1,2\n1,x\n", ":3: 'x' is no number");
	refused("a,b\n1,2,3\n", ":2: more cells");
	refused("a,b\n1\n2,3\n", ":2: fewer cells");
	refused("label,a,label\n1,2,3\n", "two columns named 'label'");
}

static void metrics_beyond_the_limit_are_left_out_and_counted(void **state)
{
	struct nt_metric_table *table = NULL;
	struct nt_trace_error error = {0};
	char text[4096] = "";

	(void)state;
	for (int line = 0; line < 2; line++)
		for (int j = 0; j < NT_ANOMALY_METRICS_MAX + 5; j++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%d",
				       j      ? ","
				       : line ? "\n"
					      : "",
				       line ? "" : "m", j);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "\n");
	write_table(text);
	assert_int_equal(nt_metric_table_read(path, &table, &error), 0);
	assert_int_equal(table->metrics, NT_ANOMALY_METRICS_MAX);
	assert_int_equal(table->left_out, 5);
	nt_metric_table_free(table);
}

static void a_fault_is_reported_with_its_rows_and_metrics(void **state)
{
	const struct nt_node_series_options options = {
		.false_alarms = 0.2, .row_interval_s = 60.0, .learn_rows = 2000};
	struct nt_fleet_series *fleet = NULL;
	nt_autobuf struct nt_buf text = {0}, json = {0};
	struct nt_trace_error error = {0};
	const char *paths[] = {path};
	double value[SIM_METRICS];
	struct node_sim sim;
	FILE *file = fopen(path, "we");

	(void)state;
	assert_non_null(file);
	sim_init(&sim, 4);
	for (int j = 0; j < SIM_METRICS; j++)
		assert_true(fprintf(file, "%sm%d", j ? "," : "", j) > 0);
	for (size_t row = 0; row < 6000; row++) {
		sim_row(&sim, row, value);
		for (int j = 0; j < SIM_METRICS; j++)
			assert_true(fprintf(file, "%s%.9g", j ? "," : "\n",
					    value[j] + (row >= 4000 && row < 4100 && j >= 3 && j < 6
								? 2.0 * sim.scale[j]
								: 0.0)) > 0);
	}
	assert_int_equal(fclose(file), 0);
	assert_int_equal(nt_fleet_series_run(&options, paths, 1, &fleet, &error), 0);
	assert_int_equal(fleet->series[0].learned_rows, 2000);
	assert_int_equal(fleet->series[0].alarms, 1);
	assert_true(fleet->series[0].alarm[0].first >= 4000 &&
		    fleet->series[0].alarm[0].first <= 4003);
	assert_true(fleet->series[0].alarm[0].last >= 4099);
	assert_int_equal(nt_node_report_text(fleet, &text), 0);
	assert_int_equal(nt_node_report_json(fleet, &json), 0);
	assert_non_null(strstr((char *)text.data, ": 1 alarm in 4000 rows"));
	assert_non_null(strstr((char *)json.data, "\"name\": \"m4\""));
	nt_fleet_series_free(fleet);
}

static void peers_must_be_enough_and_alike(void **state)
{
	const struct nt_node_series_options options = {
		.peers = true, .false_alarms = 0.2, .row_interval_s = 60.0, .learn_rows = 1};
	struct nt_fleet_series *fleet = NULL;
	struct nt_trace_error error = {0};
	const char *paths[] = {path, path, path, path};

	(void)state;
	write_table("a\n1\n2\n3\n");
	assert_int_equal(nt_fleet_series_run(&options, paths, 3, &fleet, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "3 tables are too few peers to compare: 4 are needed"));
	assert_int_equal(nt_fleet_series_run(&options, paths, 4, &fleet, &error), 0);
	nt_fleet_series_free(fleet);
}

static int make_file(void **state)
{
	int fd = mkstemps(path, 4);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int drop_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_read_with_its_gaps),
		cmocka_unit_test(what_is_no_table_is_refused_with_its_line),
		cmocka_unit_test(metrics_beyond_the_limit_are_left_out_and_counted),
		cmocka_unit_test(a_fault_is_reported_with_its_rows_and_metrics),
		cmocka_unit_test(peers_must_be_enough_and_alike),
	};

	return cmocka_run_group_tests(tests, make_file, drop_file);
}
