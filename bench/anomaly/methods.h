/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The methods that bench-anomaly compares. Each scores the rows that are no history. */
#ifndef NT_BENCH_ANOMALY_METHODS_H
#define NT_BENCH_ANOMALY_METHODS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/readers/metrics.h"

struct scored {
	double *score; /* of all rows; those of history are unused */
	uint8_t *alarm; /* by the shipped threshold; all zero: the method has none */
	double row_ns; /* per row */
};

struct method {
	const char *name;
	int (*run)(const struct nt_metric_table *table, struct scored *scored);
};

extern const struct method methods[];
extern const size_t method_count;

/* The first row that is no history. */
size_t first_judged(const struct nt_metric_table *table);

#endif
