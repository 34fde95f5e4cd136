/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What one row of 40 metrics costs, and a refit, apart from each other. */
#ifndef NT_BENCH_ANOMALY_ROWS_H
#define NT_BENCH_ANOMALY_ROWS_H

#include "cli/readers/metrics.h"

/* Rows of the table; its columns again, delayed, where it has fewer than 40. A negative error code. */
int print_row_times(const struct nt_metric_table *table);

#endif
