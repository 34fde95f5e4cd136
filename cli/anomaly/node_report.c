/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/anomaly/node_report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "proto/text.h"

enum {
	NAME_BYTES = 128,
	NAMED = 3, /* metrics in a line of text */
	MICRO = 1000000,
};

static const char *clean_name(const char *name, char text[NAME_BYTES + 1])
{
	(void)nt_text_clean(name, strlen(name), text, NAME_BYTES);
	return text;
}

/* "cpu_busy 62 % (0.98, usually 0.1 to 0.6)" */
static int print_metric(struct nt_buf *out, const struct nt_anomaly_metric *metric, bool first)
{
	char name[NAME_BYTES + 1];
	int r = nt_buf_printf(out, "%s%s %.0f %% (", first ? "" : ", ",
			      clean_name(metric->name, name), metric->share * 100.0);

	if (r == 0 && isnan(metric->value))
		r = nt_buf_printf(out, "missing");
	else if (r == 0)
		r = nt_buf_printf(out, "%.4g", metric->value);
	if (r == 0 && !isnan(metric->peers))
		r = nt_buf_printf(out, ", peers %.4g", metric->peers);
	if (r == 0 && !isnan(metric->low))
		r = nt_buf_printf(out, ", %s %.4g to %.4g",
				  isnan(metric->peers) ? "usually" : "usual difference",
				  metric->low, metric->high);
	return r ?: nt_buf_printf(out, ")");
}

static int print_alarm(struct nt_buf *out, const struct nt_node_alarm *alarm)
{
	int r = nt_buf_printf(out,
			      "  rows %zu to %zu%s: score %.1f of %.1f at row %zu: ", alarm->first,
			      alarm->last, alarm->is_open ? " (open)" : "", alarm->score,
			      alarm->threshold, alarm->peak);

	for (size_t i = 0; i < alarm->metrics && i < NAMED && r == 0; i++)
		r = print_metric(out, &alarm->metric[i], i == 0);
	return r ?: nt_buf_printf(out, "\n");
}

static int print_series(struct nt_buf *out, const struct nt_node_series *series)
{
	char name[NAME_BYTES + 1];
	int r = nt_buf_printf(out, "%s: %zu alarm%s in %zu rows (%zu rows learned, %zu metrics)\n",
			      clean_name(series->name, name),
			      series->alarms + series->alarms_dropped,
			      series->alarms + series->alarms_dropped == 1 ? "" : "s",
			      series->table->rows - series->learned_rows, series->learned_rows,
			      series->table->metrics);

	for (size_t i = 0; i < series->alarms && r == 0; i++)
		r = print_alarm(out, &series->alarm[i]);
	if (r == 0 && series->alarms_dropped)
		r = nt_buf_printf(out, "  and %zu more\n", series->alarms_dropped);
	if (r == 0 && series->missing)
		r = nt_buf_printf(out, "  %zu values are missing\n", series->missing);
	if (r == 0 && series->table->left_out)
		r = nt_buf_printf(out, "  %zu metrics beyond the first %d are left out\n",
				  series->table->left_out, NT_ANOMALY_METRICS_MAX);
	if (r == 0 && series->table->cut)
		r = nt_buf_printf(out, "  the last line is cut short, and left out\n");
	return r;
}

int nt_node_report_text(const struct nt_fleet_series *fleet, struct nt_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < fleet->count && r == 0; i++)
		r = print_series(out, &fleet->series[i]);
	return r
		       ?: nt_buf_printf(out, "alarm threshold %.1f, rows of %.4g s\n",
					fleet->threshold, fleet->row_interval_s);
}

static json_t *number_or_null(double value)
{
	return isnan(value) ? json_null() : nt_json_number(value);
}

/* The time of a row, or null. */
static json_t *row_time(const struct nt_metric_table *table, size_t row)
{
	double time_s = table->time_s ? table->time_s[row] : NAN;

	if (!(time_s > 0.0 && time_s < 1e10))
		return json_null();
	return nt_json_time((uint64_t)(time_s * MICRO) * 1000);
}

static json_t *metric_json(const struct nt_anomaly_metric *metric)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "name", nt_json_text(metric->name),
			 "share", nt_json_number(metric->share), "value",
			 number_or_null(metric->value), "peers", number_or_null(metric->peers),
			 "low", number_or_null(metric->low), "high", number_or_null(metric->high));
}

static json_t *alarm_json(const struct nt_node_series *series, const struct nt_node_alarm *alarm)
{
	nt_autojson json_t *metrics = json_array();

	for (size_t i = 0; i < alarm->metrics; i++)
		if (json_array_append_new(metrics, metric_json(&alarm->metric[i])) < 0)
			return NULL;
	return json_pack("{s:I, s:I, s:b, s:I, s:o, s:o, s:o, s:o, s:O}", "first_row",
			 (json_int_t)alarm->first, "last_row", (json_int_t)alarm->last, "open",
			 alarm->is_open, "peak_row", (json_int_t)alarm->peak, "since",
			 row_time(series->table, alarm->first), "until",
			 alarm->is_open ? json_null() : row_time(series->table, alarm->last),
			 "score", nt_json_number(alarm->score), "threshold",
			 nt_json_number(alarm->threshold), "metrics", metrics);
}

static json_t *series_json(const struct nt_node_series *series)
{
	nt_autojson json_t *alarms = json_array();

	for (size_t i = 0; i < series->alarms; i++)
		if (json_array_append_new(alarms, alarm_json(series, &series->alarm[i])) < 0)
			return NULL;
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:O, s:I}", "node",
			 nt_json_text(series->name), "metrics", (json_int_t)series->table->metrics,
			 "left_out_metrics", (json_int_t)series->table->left_out, "learned_rows",
			 (json_int_t)series->learned_rows, "scored_rows",
			 (json_int_t)(series->table->rows - series->learned_rows), "missing_values",
			 (json_int_t)series->missing, "alarms", alarms, "dropped_alarms",
			 (json_int_t)series->alarms_dropped);
}

int nt_node_report_json(const struct nt_fleet_series *fleet, struct nt_buf *out)
{
	nt_autojson json_t *nodes = json_array(), *document = NULL;
	nt_autofree char *text = NULL;

	for (size_t i = 0; i < fleet->count; i++)
		if (json_array_append_new(nodes, series_json(&fleet->series[i])) < 0)
			return -ENOMEM;
	document = json_pack("{s:o, s:o, s:b, s:O}", "threshold", nt_json_number(fleet->threshold),
			     "row_seconds", nt_json_number(fleet->row_interval_s), "peers",
			     fleet->has_peers, "nodes", nodes);
	text = document ? json_dumps(document, JSON_INDENT(1)) : NULL;
	return text ? nt_buf_printf(out, "%s\n", text) : -ENOMEM;
}

static void close_file(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

int nt_node_report_save_scores(const struct nt_fleet_series *fleet, const char *path)
{
	__attribute__((cleanup(close_file))) FILE *file = fopen(path, "we");
	char name[NAME_BYTES + 1];
	int bad = 0;

	if (!file)
		return -errno;
	bad |= fprintf(file, "node,row,time,score,threshold,alarm\n") < 0;
	for (size_t i = 0; i < fleet->count; i++) {
		const struct nt_node_series *series = &fleet->series[i];
		const double *time_s = series->table->time_s;

		for (size_t at = series->learned_rows; at < series->table->rows && !bad; at++) {
			bad |= fprintf(file, "%s,%zu,", clean_name(series->name, name), at) < 0;
			if (time_s && !isnan(time_s[at]))
				bad |= fprintf(file, "%.3f", time_s[at]) < 0;
			bad |= fprintf(file, ",%.6g,%.6g,%d\n", series->score[at], fleet->threshold,
				       series->alarm_row[at]) < 0;
		}
	}
	return bad || fflush(file) != 0 ? -EIO : 0;
}
