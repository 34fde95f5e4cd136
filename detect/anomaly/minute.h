/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From samples to rows: the metrics of a node over one minute. A gauge is averaged, a counter becomes
 * its rate, and a counter of trouble the largest rate of the minute, so that a short burst shows.
 *
 * Counters that decrease were reset, or wrapped at 32 bits: a wrap is counted on, after a reset or a
 * gap the counter gives no rate once. Values that are no numbers are missing.
 */
#ifndef NT_DETECT_ANOMALY_MINUTE_H
#define NT_DETECT_ANOMALY_MINUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/anomaly/metric.h"

enum nt_minute_kind {
	NT_MINUTE_GAUGE,
	NT_MINUTE_COUNTER, /* since some start; its rate per second counts */
	NT_MINUTE_TROUBLE, /* a counter of errors and the like */
};

struct nt_minute_metric {
	double sum, most; /* of this minute */
	uint32_t samples;
	bool has_last;
	double last; /* of a counter */
	uint64_t last_ns;
};

/* Zero-initialised: no samples. */
struct nt_minute {
	struct nt_minute_metric metric[NT_ANOMALY_METRICS_MAX];
	uint64_t number; /* of the minute that is open; 0: none */
	uint64_t resets, gaps; /* counters that gave no rate */
};

/*
 * Whether a sample at this time belongs to a later minute than the open one: its row should be closed
 * first. Samples of the past are taken into the open minute.
 */
bool nt_minute_is_over(const struct nt_minute *minute, uint64_t time_ns);

void nt_minute_add(struct nt_minute *minute, size_t metric, enum nt_minute_kind kind, double value,
		   uint64_t time_ns);

/* Writes the open minute's row, NaN for metrics without a sample, and begins a new one. */
void nt_minute_close(struct nt_minute *minute, size_t metrics, double *ret_row);

#endif
