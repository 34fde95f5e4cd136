/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A recorded series of a node's metrics, read from a CSV table: one row per sample, one column per
 * metric. The first line names the columns. Some names have a meaning of their own:
 *
 *   time, timestamp   seconds since 1970
 *   split             `train`: known history; anything else is judged
 *   label             1: the row is known to be anomalous; never read by a detector
 *
 * Values that are no finite number (empty, nan, null, inf) are missing.
 */
#ifndef NT_CLI_READERS_METRICS_H
#define NT_CLI_READERS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/cleanup.h"

enum {
	NT_METRIC_TABLE_COLUMNS = 1024,
	NT_METRIC_TABLE_ROWS = 4 << 20,
};

struct nt_metric_table {
	size_t metrics, rows, cap;
	char **name; /* of the metrics; owned, like all below */
	double *value; /* rows × metrics; NaN: missing */
	double *time_s; /* NULL: no such column */
	uint8_t *training, *label; /* NULL: no such column */
	size_t left_out; /* metrics beyond the cap of the detection */
	bool cut; /* its last line is cut short, and left out */
};

/* -EBADMSG with *ret_error; -errno of the file; -ENOMEM. */
NT_MUST_CHECK int nt_metric_table_read(const char *path, struct nt_metric_table **ret_table,
				       struct nt_trace_error *ret_error);
void nt_metric_table_free(struct nt_metric_table *table);
NT_DEFINE_AUTO(nt_metric_table, nt_metric_table_free)

/* The usual time between rows, in seconds; 0: the table has no times, or they do not ascend. */
double nt_metric_table_interval(const struct nt_metric_table *table);

#endif
