/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/anomaly/node_series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detect/anomaly/peers.h"
#include "detect/thresholds/thresholds.h"

enum {
	MINUTE_S = 60,
	FIRST_ALARMS = 16,
	LEARNED_PART = 3, /* of a short table without a column `split` */
};

/* What scoring needs beside the result. */
struct fleet_work {
	struct nt_anomaly_node **node; /* owned, each */
	struct nt_alarm_budget budget;
	const double **row; /* of each node with such a row */
	double *scratch;
	double median[NT_ANOMALY_METRICS_MAX];
	size_t count;
};

void nt_fleet_series_free(struct nt_fleet_series *fleet)
{
	if (!fleet)
		return;
	for (size_t i = 0; fleet->series && i < fleet->count; i++) {
		struct nt_node_series *series = &fleet->series[i];

		free(series->name);
		nt_metric_table_free(series->table);
		free(series->score);
		free(series->alarm_row);
		free(series->alarm);
	}
	free(fleet->series);
	free(fleet->threshold_row);
	free(fleet);
}

static void free_work(struct fleet_work *work)
{
	for (size_t i = 0; work->node && i < work->count; i++)
		nt_anomaly_node_free(work->node[i]);
	free(work->node);
	free(work->row);
	free(work->scratch);
}

/* "dir/gpu-07.csv.gz" is of node gpu-07. */
static char *name_of(const char *path)
{
	const char *base = strrchr(path, '/');
	size_t len;

	base = base && base[1] ? base + 1 : path;
	len = strlen(base);
	if (len > 3 && strcmp(base + len - 3, ".gz") == 0)
		len -= 3;
	if (len > 4 && strncmp(base + len - 4, ".csv", 4) == 0)
		len -= 4;
	return strndup(base, len);
}

static size_t count_learned(const struct nt_metric_table *table, uint32_t learn_rows)
{
	size_t rows = table->rows / LEARNED_PART;

	if (!table->training)
		return rows < learn_rows ? rows : learn_rows;
	for (rows = 0; rows < table->rows && table->training[rows];)
		rows++;
	return rows;
}

static int read_series(const struct nt_node_series_options *options, const char *path,
		       struct nt_node_series *series, struct nt_trace_error *error)
{
	int r = nt_metric_table_read(path, &series->table, error);

	if (r < 0)
		return r;
	series->name = name_of(path);
	series->score = calloc(series->table->rows, sizeof(*series->score));
	series->alarm_row = calloc(series->table->rows, sizeof(*series->alarm_row));
	if (!series->name || !series->score || !series->alarm_row)
		return -ENOMEM;
	series->learned_rows = count_learned(series->table, options->learn_rows);
	return 0;
}

/* Peers have the same metrics in the same order. */
static int check_peers(const struct nt_fleet_series *fleet, struct nt_trace_error *error)
{
	const struct nt_metric_table *first = fleet->series[0].table;

	for (size_t i = 1; i < fleet->count; i++) {
		const struct nt_metric_table *table = fleet->series[i].table;
		bool same = table->metrics == first->metrics;

		for (size_t j = 0; same && j < first->metrics; j++)
			same = strcmp(table->name[j], first->name[j]) == 0;
		if (!same)
			return nt_trace_refuse(
				error, "%.100s and %.100s have other columns: peers have the same",
				fleet->series[0].name, fleet->series[i].name);
	}
	if (!nt_anomaly_has_peers(fleet->count))
		return nt_trace_refuse(error,
				       "%zu tables are too few peers to compare: %d are needed",
				       fleet->count, NT_ANOMALY_PEERS_LEAST);
	return 0;
}

static struct nt_node_alarm *open_alarm(struct nt_node_series *series, size_t row, int *ret_error)
{
	struct nt_node_alarm *grown;
	size_t cap = series->alarm_cap ? 2 * series->alarm_cap : FIRST_ALARMS;

	if (series->alarms == NT_NODE_SERIES_ALARMS) {
		series->alarms_dropped++;
		return NULL;
	}
	if (series->alarms == series->alarm_cap) {
		grown = reallocarray(series->alarm, cap, sizeof(*grown));
		if (!grown) {
			*ret_error = -ENOMEM;
			return NULL;
		}
		series->alarm = grown;
		series->alarm_cap = cap;
	}
	series->alarm[series->alarms] = (struct nt_node_alarm){.first = row, .is_open = true};
	return &series->alarm[series->alarms++];
}

/* The names of an explanation are the node's; those of the table live as long as the result. */
static void keep_names(const struct nt_metric_table *table, struct nt_node_alarm *alarm)
{
	for (size_t i = 0; i < alarm->metrics; i++)
		for (size_t j = 0; j < table->metrics; j++)
			if (strncmp(table->name[j], alarm->metric[i].name,
				    NT_ANOMALY_NAME_BYTES - 1) == 0)
				alarm->metric[i].name = table->name[j];
}

static int note_alarm(struct nt_node_series *series, const struct nt_anomaly_node *node, size_t row,
		      const struct nt_anomaly_score *score)
{
	struct nt_node_alarm *alarm = NULL;
	int r = 0;

	if (score->change == NT_SCORE_ALARM_BEGAN)
		alarm = open_alarm(series, row, &r);
	else if (series->alarms && series->alarm[series->alarms - 1].is_open)
		alarm = &series->alarm[series->alarms - 1];
	if (!alarm)
		return r;
	if (!score->is_alarm) {
		alarm->is_open = false;
		return 0;
	}
	alarm->last = row;
	if (score->score <= alarm->score)
		return 0;
	alarm->score = score->score;
	alarm->threshold = score->threshold;
	alarm->peak = row;
	alarm->metrics = nt_anomaly_node_explain(node, alarm->metric);
	keep_names(series->table, alarm);
	return 0;
}

static int take_series_row(struct nt_node_series *series, struct fleet_work *work, size_t i,
			   size_t at, const double *peers)
{
	const struct nt_metric_table *table = series->table;
	const struct nt_anomaly_row row = {
		.name = (const char *const *)table->name,
		.value = table->value + at * table->metrics,
		.peers = peers,
		.metrics = table->metrics,
		.training = at < series->learned_rows,
	};
	struct nt_anomaly_score score;
	struct nt_chart *chart;
	int r = nt_anomaly_node_take(work->node[i], &work->budget, &row, &score);

	for (size_t j = 0; j < table->metrics; j++)
		series->missing += !nt_anomaly_is_value(row.value[j]);
	if (r < 0)
		return r;
	series->score[at] = score.is_learning ? 0.0 : score.score;
	series->alarm_row[at] = score.is_alarm;
	series->is_learning = score.is_learning;
	r = note_alarm(series, work->node[i], at, &score);
	chart = nt_anomaly_node_refit_due(work->node[i]);
	/* A refit that does not converge leaves the old subspace in force. */
	if (r == 0 && chart && nt_chart_refit(chart) == -ENOMEM)
		r = -ENOMEM;
	return r;
}

/* The medians over the nodes that have this row; NULL: too few. */
static const double *find_medians(const struct nt_fleet_series *fleet, struct fleet_work *work,
				  size_t at)
{
	const size_t metrics = fleet->series[0].table->metrics;
	size_t n = 0;

	for (size_t i = 0; i < fleet->count; i++)
		if (at < fleet->series[i].table->rows)
			work->row[n++] = fleet->series[i].table->value + at * metrics;
	if (!nt_anomaly_has_peers(n))
		return NULL;
	for (size_t j = 0; j < metrics; j++)
		work->median[j] = nt_anomaly_peers_median(work->row, n, j, work->scratch);
	return work->median;
}

static int score_rows(struct nt_fleet_series *fleet, struct fleet_work *work)
{
	int r = 0;

	for (size_t i = 0; i < fleet->count; i++)
		if (fleet->series[i].table->rows > fleet->rows)
			fleet->rows = fleet->series[i].table->rows;
	fleet->threshold_row = calloc(fleet->rows, sizeof(*fleet->threshold_row));
	if (!fleet->threshold_row)
		return -ENOMEM;
	for (size_t at = 0; at < fleet->rows && r == 0; at++) {
		const double *peers = fleet->has_peers ? find_medians(fleet, work, at) : NULL;

		for (size_t i = 0; i < fleet->count && r == 0; i++)
			if (at < fleet->series[i].table->rows)
				r = take_series_row(&fleet->series[i], work, i, at, peers);
		fleet->threshold_row[at] = work->budget.threshold;
	}
	fleet->threshold = work->budget.threshold;
	return r;
}

static int score_fleet(const struct nt_node_series_options *options, struct nt_fleet_series *fleet)
{
	__attribute__((cleanup(free_work))) struct fleet_work work = {.count = fleet->count};
	struct nt_anomaly_options node_options = nt_anomaly_options_default();
	int r = 0;

	node_options.method = options->method;
	work.node = calloc(fleet->count, sizeof(struct nt_anomaly_node *));
	work.row = calloc(fleet->count, sizeof(double *));
	work.scratch = calloc(fleet->count, sizeof(*work.scratch));
	if (!work.node || !work.row || !work.scratch)
		return -ENOMEM;
	for (size_t i = 0; i < fleet->count && r == 0; i++) {
		size_t learned = fleet->series[i].learned_rows;

		/* A metric that appears later is learned for as long. */
		node_options.learn_rows =
			learned < options->learn_rows ? (uint32_t)learned : options->learn_rows;
		r = nt_anomaly_node_new(&node_options, &work.node[i]);
	}
	nt_alarm_budget_init(&work.budget, options->false_alarms,
			     (double)NT_ANOMALY_DAY_ROWS * MINUTE_S / fleet->row_interval_s);
	return r ?: score_rows(fleet, &work);
}

int nt_fleet_series_run(const struct nt_node_series_options *options, const char *const *path,
			size_t paths, struct nt_fleet_series **ret_fleet,
			struct nt_trace_error *ret_error)
{
	nt_auto(nt_fleet_series) struct nt_fleet_series *fleet = calloc(1, sizeof(*fleet));
	int r = 0;

	if (!fleet)
		return -ENOMEM;
	if (paths > NT_NODE_SERIES_FILES)
		return nt_trace_refuse(ret_error, "more than %d tables", NT_NODE_SERIES_FILES);
	fleet->series = calloc(paths, sizeof(*fleet->series));
	if (!fleet->series)
		return -ENOMEM;
	for (; fleet->count < paths && r == 0; fleet->count++)
		r = read_series(options, path[fleet->count], &fleet->series[fleet->count],
				ret_error);
	fleet->has_peers = options->peers;
	if (r == 0 && options->peers)
		r = check_peers(fleet, ret_error);
	if (r < 0)
		return r;
	fleet->row_interval_s = nt_metric_table_interval(fleet->series[0].table);
	if (fleet->row_interval_s <= 0.0)
		fleet->row_interval_s = options->row_interval_s;
	r = score_fleet(options, fleet);
	if (r < 0)
		return r;
	*ret_fleet = nt_take(fleet);
	return 0;
}
