/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/anomaly.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/anomaly/anomaly_impl.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

enum {
	SPARE = 4, /* metrics that may be added without learning anew */
};

struct nt_anomaly_options nt_anomaly_options_default(void)
{
	return (struct nt_anomaly_options){
		.method = NT_ANOMALY_METHOD_CHART,
		.learn_rows = NT_ANOMALY_LEARN_ROWS,
		.alarm = nt_score_alarm_rules_default(),
	};
}

int nt_anomaly_node_new(const struct nt_anomaly_options *options, struct nt_anomaly_node **ret_node)
{
	struct nt_anomaly_node *node = calloc(1, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->options = *options;
	node->level_keep = 1.0 - nt_anomaly_rate(NT_ANOMALY_LEVEL_ROWS);
	*ret_node = node;
	return 0;
}

void nt_anomaly_node_restart(struct nt_anomaly_node *node)
{
	for (int i = 0; i < NT_ANOMALY_VIEW_END; i++) {
		nt_chart_free(node->view[i].chart);
		nt_sensing_free(node->view[i].sensing);
		node->view[i] = (struct nt_anomaly_view){0};
	}
	node->alarm = (struct nt_score_alarm){0};
	node->peak = 0.0;
	node->peak_alarmed = false;
	node->restarts++;
}

uint64_t nt_anomaly_node_restarts(const struct nt_anomaly_node *node)
{
	return node->restarts;
}

void nt_anomaly_node_free(struct nt_anomaly_node *node)
{
	if (!node)
		return;
	nt_anomaly_node_restart(node);
	free(node->name);
	free(node);
}

int nt_anomaly_view_open(struct nt_anomaly_node *node, enum nt_anomaly_view_kind kind)
{
	struct nt_anomaly_view *view = &node->view[kind];
	int r = nt_chart_new(node->room, node->options.learn_rows, &view->chart);

	for (size_t j = 0; r == 0 && j < node->metrics; j++)
		if (node->trouble[j])
			nt_chart_mark_trouble(view->chart, j);
	if (r == 0 && node->options.method != NT_ANOMALY_METHOD_CHART)
		r = nt_sensing_new(node->room, &view->sensing);
	return r;
}

/* Makes room for more metrics. Charts of fewer are learned anew. */
int nt_anomaly_node_reserve(struct nt_anomaly_node *node, size_t metrics)
{
	char(*name)[NT_ANOMALY_NAME_BYTES] = reallocarray(node->name, metrics, sizeof(*name));

	if (!name)
		return -ENOMEM;
	node->name = name;
	memset(name + node->metrics, 0, (metrics - node->metrics) * sizeof(*name));
	if (node->room)
		nt_anomaly_node_restart(node);
	node->room = metrics;
	return 0;
}

/* Where a metric is kept; the limit: nowhere. */
static size_t find_metric(const struct nt_anomaly_node *node, const char *name, size_t guess)
{
	if (guess < node->metrics &&
	    strncmp(node->name[guess], name, NT_ANOMALY_NAME_BYTES - 1) == 0)
		return guess;
	for (size_t j = 0; j < node->metrics; j++)
		if (strncmp(node->name[j], name, NT_ANOMALY_NAME_BYTES - 1) == 0)
			return j;
	return NT_ANOMALY_METRICS_MAX;
}

static int add_slot(struct nt_anomaly_node *node, const struct nt_anomaly_row *row, size_t i)
{
	size_t spare = row->metrics + SPARE, j = node->metrics;
	int r = 0;

	if (j == node->room)
		r = nt_anomaly_node_reserve(node, j + 1 > spare ? NT_ANOMALY_METRICS_MAX
						  : spare < NT_ANOMALY_METRICS_MAX
							  ? spare
							  : NT_ANOMALY_METRICS_MAX);
	if (r < 0)
		return r;
	(void)snprintf(node->name[j], NT_ANOMALY_NAME_BYTES, "%s", row->name[i]);
	node->trouble[j] = row->trouble && row->trouble[i];
	for (int k = 0; k < NT_ANOMALY_VIEW_END; k++)
		if (node->trouble[j] && node->view[k].chart)
			nt_chart_mark_trouble(node->view[k].chart, j);
	node->metrics++;
	return 0;
}

/* The row's values by slot, less the peers' in their view. */
static int place_row(struct nt_anomaly_node *node, const struct nt_anomaly_row *row,
		     double value[NT_ANOMALY_METRICS_MAX])
{
	for (size_t j = 0; j < NT_ANOMALY_METRICS_MAX; j++)
		value[j] = node->value[j] = node->peers[j] = NAN;
	for (size_t i = 0; i < row->metrics; i++) {
		size_t j = find_metric(node, row->name[i], i);

		if (j == NT_ANOMALY_METRICS_MAX && node->metrics < NT_ANOMALY_METRICS_MAX) {
			int r = add_slot(node, row, i);

			if (r < 0)
				return r;
			j = node->metrics - 1;
		}
		if (j == NT_ANOMALY_METRICS_MAX) {
			node->left_out++;
			continue;
		}
		node->value[j] = value[j] = row->value[i];
		if (!row->peers)
			continue;
		node->peers[j] = row->peers[i];
		value[j] -= row->peers[i];
	}
	return 0;
}

/* Runs over the pool's level that were no alarm show how far healthy nodes go. */
static void note_peak(struct nt_anomaly_node *node, struct nt_alarm_budget *budget, double score)
{
	if (score > NT_ANOMALY_PEAK) {
		node->peak = nt_stats_max(node->peak, score);
		node->peak_alarmed |= node->alarm.is_raised;
		return;
	}
	if (node->peak > 0.0 && !node->peak_alarmed)
		nt_alarm_budget_peak(budget, node->peak);
	node->peak = 0.0;
	node->peak_alarmed = false;
}

static double scale_of(const struct nt_anomaly_view *view)
{
	return nt_score_level_quantile(&view->level, NT_ANOMALY_LEVEL) + NT_ANOMALY_LEVEL_FLOOR;
}

/* A new reconstruction where one is due and wanted; without, the last one counts on. */
static int sense(struct nt_anomaly_view *view, bool wanted)
{
	if (!wanted)
		view->sensed = 0.0;
	if (!wanted || !nt_sensing_is_due(view->sensing))
		return 0;
	return nt_sensing_solve(view->sensing, &view->sensed, view->error);
}

/* The row's score by the method alone, not in levels yet. */
static int score_row(const struct nt_anomaly_node *node, struct nt_anomaly_view *view,
		     const double *value, bool training, double *ret_score)
{
	int r;

	*ret_score = nt_chart_take(view->chart, value, training);
	if (view->sensing)
		nt_sensing_add(view->sensing, value);
	if (node->options.method != NT_ANOMALY_METHOD_COMPRESSED_SENSING)
		return 0;
	r = sense(view, true);
	view->smoothed += nt_anomaly_rate(NT_ANOMALY_SCORE_ROWS) * (view->sensed - view->smoothed);
	*ret_score = view->smoothed;
	return r;
}

/* Adds what compressed sensing says of a suspected row. */
static int add_sensed(const struct nt_anomaly_node *node, struct nt_anomaly_view *view,
		      struct nt_anomaly_score *score)
{
	int r;

	if (node->options.method != NT_ANOMALY_METHOD_BOTH)
		return 0;
	r = sense(view,
		  !score->is_learning && score->score > NT_SENSING_SUSPECT * score->threshold);
	score->score += NT_SENSING_WEIGHT * view->sensed;
	return r;
}

/* The score in levels, and the level while the node is learned. */
static void set_score(struct nt_anomaly_node *node, struct nt_anomaly_view *view, double score,
		      struct nt_anomaly_score *result)
{
	if (result->is_learning) {
		nt_score_level_add(&view->level, score, node->level_keep);
		view->scale = 0.0;
	} else if (view->scale <= 0.0) {
		view->scale = scale_of(view);
	}
	result->score = score / (view->scale > 0.0 ? view->scale : scale_of(view));
}

static struct nt_anomaly_view *choose_view(struct nt_anomaly_node *node, bool has_peers)
{
	node->active = has_peers ? NT_ANOMALY_VIEW_PEERS : NT_ANOMALY_VIEW_OWN;
	return &node->view[node->active];
}

int nt_anomaly_node_take(struct nt_anomaly_node *node, struct nt_alarm_budget *budget,
			 const struct nt_anomaly_row *row, struct nt_anomaly_score *ret_score)
{
	struct nt_anomaly_view *view = choose_view(node, row->peers);
	struct nt_anomaly_score result = {
		.has_peers = row->peers,
		.threshold = budget->threshold,
	};
	double value[NT_ANOMALY_METRICS_MAX], score = 0.0;
	int r = row->metrics ? place_row(node, row, value) : -EINVAL;

	if (r == 0 && !view->chart)
		r = nt_anomaly_view_open(node, node->active);
	if (r == 0)
		r = score_row(node, view, value, row->training, &score);
	if (r < 0)
		return r;
	result.is_learning = row->training || !nt_chart_is_learned(view->chart);
	set_score(node, view, score, &result);
	r = add_sensed(node, view, &result);
	result.change =
		nt_score_alarm_take(&node->alarm, &node->options.alarm,
				    result.is_learning ? 0.0 : result.score, budget->threshold);
	result.is_alarm = node->alarm.is_raised;
	if (!result.is_learning) {
		nt_alarm_budget_row(budget);
		note_peak(node, budget, result.score);
	}
	*ret_score = result;
	return r;
}

/* The parts of the metrics in the last score, and what their own ranges give of them. */
static void find_shares(const struct nt_anomaly_node *node, const struct nt_anomaly_view *view,
			double *share, double *of_range)
{
	double sum = 0.0;

	if (node->options.method != NT_ANOMALY_METHOD_COMPRESSED_SENSING) {
		nt_chart_shares(view->chart, share, of_range);
		return;
	}
	memset(of_range, 0, node->metrics * sizeof(*of_range));
	for (size_t j = 0; j < node->metrics; j++)
		sum += view->error[j];
	for (size_t j = 0; j < node->metrics; j++)
		share[j] = sum > 0.0 ? view->error[j] / sum : 0.0;
}

size_t nt_anomaly_node_explain(const struct nt_anomaly_node *node,
			       struct nt_anomaly_metric ret_metric[NT_ANOMALY_RANKED])
{
	const struct nt_anomaly_view *view = &node->view[node->active];
	double share[NT_ANOMALY_METRICS_MAX], weight[NT_ANOMALY_METRICS_MAX];
	size_t n = 0;

	if (!view->chart)
		return 0;
	find_shares(node, view, share, weight);
	for (size_t j = 0; j < node->metrics; j++)
		weight[j] += NT_ANOMALY_RELATED * (share[j] - weight[j]);
	for (; n < NT_ANOMALY_RANKED && n < node->metrics; n++) {
		struct nt_anomaly_metric *metric = &ret_metric[n];
		size_t best = 0;

		for (size_t j = 1; j < node->metrics; j++)
			if (weight[j] > weight[best])
				best = j;
		if (share[best] <= 0.0)
			break;
		*metric = (struct nt_anomaly_metric){
			.name = node->name[best],
			.share = share[best],
			.value = node->value[best],
			.peers = node->peers[best],
			.low = NAN,
			.high = NAN,
		};
		(void)nt_chart_range(view->chart, best, &metric->low, &metric->high);
		share[best] = weight[best] = 0.0;
	}
	return n;
}

struct nt_chart *nt_anomaly_node_refit_due(struct nt_anomaly_node *node)
{
	for (int i = 0; i < NT_ANOMALY_VIEW_END; i++)
		if (node->view[i].chart && nt_chart_is_refit_due(node->view[i].chart))
			return node->view[i].chart;
	return NULL;
}

uint64_t nt_anomaly_node_left_out(const struct nt_anomaly_node *node)
{
	return node->left_out;
}

size_t nt_anomaly_node_bytes(const struct nt_anomaly_node *node)
{
	size_t bytes = sizeof(*node) + node->room * sizeof(*node->name);

	for (int i = 0; i < NT_ANOMALY_VIEW_END; i++)
		bytes += (node->view[i].chart ? nt_chart_bytes(node->view[i].chart) : 0) +
			 (node->view[i].sensing ? nt_sensing_bytes(node->view[i].sensing) : 0);
	return bytes;
}
