/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The anomaly score of one node. A row is the node's metrics over one minute; its score is in levels:
 * 1 is what the node exceeded in a tenth of its rows while it was learned. A node in a job with
 * enough peers is scored by its deviation from their median, any other node against its own past.
 * Both views are learned separately.
 */
#ifndef NT_DETECT_ANOMALY_ANOMALY_H
#define NT_DETECT_ANOMALY_ANOMALY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "detect/anomaly/alarm.h"
#include "detect/anomaly/budget.h"
#include "detect/anomaly/chart.h"
#include "detect/anomaly/metric.h"

enum nt_anomaly_method {
	NT_ANOMALY_METHOD_CHART,
	NT_ANOMALY_METHOD_COMPRESSED_SENSING,
	NT_ANOMALY_METHOD_BOTH, /* compressed sensing only where the chart is suspicious */
};

struct nt_anomaly_options {
	enum nt_anomaly_method method;
	uint32_t learn_rows;
	struct nt_score_alarm_rules alarm;
};

enum {
	NT_ANOMALY_NAME_BYTES = 64, /* of a metric, with the NUL; longer names are cut */
	NT_ANOMALY_RANKED = 8, /* metrics of an explanation */
};

/* One row. Names are compared by content; a metric that is not named is missing. */
struct nt_anomaly_row {
	const char *const *name;
	const double *value; /* NaN: missing */
	const double *peers; /* medians over the peers, NaN: unknown; NULL: no peers */
	const bool *trouble; /* which metrics count trouble; NULL: none */
	size_t metrics;
	bool training; /* known history: learned from as it is, never an alarm */
};

/* A metric's part in a score. */
struct nt_anomaly_metric {
	const char *name; /* of the node; valid as long as the node */
	double share; /* of the score */
	double value; /* in the last row; NaN: missing */
	double low, high; /* its usual range; with peers, of the deviation from their median */
	double peers; /* their median; NaN: none */
};

struct nt_anomaly_score {
	double score; /* in levels */
	double threshold;
	bool is_learning, has_peers;
	bool is_alarm;
	enum nt_score_alarm_change change;
};

struct nt_anomaly_node;

struct nt_anomaly_options nt_anomaly_options_default(void);

NT_MUST_CHECK int nt_anomaly_node_new(const struct nt_anomaly_options *options,
				      struct nt_anomaly_node **ret_node);
void nt_anomaly_node_free(struct nt_anomaly_node *node);
NT_DEFINE_AUTO(nt_anomaly_node, nt_anomaly_node_free)

/* Scores a row and learns from it; the budget's pool too. -ENOMEM. */
NT_MUST_CHECK int nt_anomaly_node_take(struct nt_anomaly_node *node, struct nt_alarm_budget *budget,
				       const struct nt_anomaly_row *row,
				       struct nt_anomaly_score *ret_score);

/*
 * Metrics by their share of the last score, the largest first. What is an unusual relation to others counts
 * less (NT_ANOMALY_RELATED): it spreads over metrics that did not change. How many: 0 for score 0.
 */
size_t nt_anomaly_node_explain(const struct nt_anomaly_node *node,
			       struct nt_anomaly_metric ret_metric[NT_ANOMALY_RANKED]);

/* The chart whose refit is due, or NULL. */
struct nt_chart *nt_anomaly_node_refit_due(struct nt_anomaly_node *node);

/* Learns anew: another kernel, another machine under the same name. */
void nt_anomaly_node_restart(struct nt_anomaly_node *node);
/* How often its charts were made anew, also because metrics were added. */
uint64_t nt_anomaly_node_restarts(const struct nt_anomaly_node *node);

/* Metrics that were left out, as the node has more than the limit. */
uint64_t nt_anomaly_node_left_out(const struct nt_anomaly_node *node);
size_t nt_anomaly_node_bytes(const struct nt_anomaly_node *node);

/*
 * The learned state. Saving appends; -ENOMEM. Loading makes a new node; -EBADMSG for damaged state
 * or that of another version, which means to learn anew.
 */
NT_MUST_CHECK int nt_anomaly_node_save(const struct nt_anomaly_node *node, struct nt_buf *out);
NT_MUST_CHECK int nt_anomaly_node_load(const struct nt_anomaly_options *options, const void *state,
				       size_t size, struct nt_anomaly_node **ret_node);

#endif
