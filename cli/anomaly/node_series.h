/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recorded series of nodes' metrics, scored as the live service scores them: row by row, nothing
 * reads rows that are yet to come. All series are one fleet with one alarm threshold.
 */
#ifndef NT_CLI_ANOMALY_NODE_SERIES_H
#define NT_CLI_ANOMALY_NODE_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/metrics.h"
#include "common/base/cleanup.h"
#include "detect/anomaly/anomaly.h"

enum {
	NT_NODE_SERIES_ALARMS = 10000, /* listed per series; further ones are counted */
	NT_NODE_SERIES_FILES = 1024,
};

struct nt_node_series_options {
	enum nt_anomaly_method method;
	bool peers; /* the series are nodes of one job; row i of each is of the same time */
	double false_alarms; /* per node and day */
	double row_interval_s; /* of tables without times */
	uint32_t learn_rows; /* of tables without a column `split` */
};

struct nt_node_alarm {
	size_t first, last, peak; /* rows, from 0 */
	bool is_open; /* it lasts until the end of the table */
	double score, threshold; /* at the peak */
	struct nt_anomaly_metric metric[NT_ANOMALY_RANKED]; /* at the peak; names of the table */
	size_t metrics;
};

struct nt_node_series {
	char *name; /* of the node: the file's; owned, like all below */
	struct nt_metric_table *table;
	double *score; /* of each row, in levels; 0 while learned */
	uint8_t *alarm_row; /* whether a row is within an alarm */
	size_t learned_rows, missing; /* missing: values */
	bool is_learning; /* at the end */
	struct nt_node_alarm *alarm;
	size_t alarms, alarm_cap, alarms_dropped;
};

struct nt_fleet_series {
	struct nt_node_series *series;
	size_t count;
	double threshold; /* at the end */
	/* After each row of the longest series: it follows the scores of all nodes. Owned. */
	double *threshold_row;
	size_t rows;
	double row_interval_s;
	bool has_peers;
};

/* Reads and scores the tables. -EBADMSG with *ret_error; -errno of a file; -ENOMEM. */
NT_MUST_CHECK int nt_fleet_series_run(const struct nt_node_series_options *options,
				      const char *const *path, size_t paths,
				      struct nt_fleet_series **ret_fleet,
				      struct nt_trace_error *ret_error);
void nt_fleet_series_free(struct nt_fleet_series *fleet);
NT_DEFINE_AUTO(nt_fleet_series, nt_fleet_series_free)

#endif
