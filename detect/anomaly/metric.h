/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Limits of the node anomaly score that all its files share. */
#ifndef NT_DETECT_ANOMALY_METRIC_H
#define NT_DETECT_ANOMALY_METRIC_H

#include <math.h>
#include <stdbool.h>

#include "common/base/cleanup.h"

enum {
	NT_ANOMALY_METRICS_MAX = 64, /* of one node; further ones are counted and left out */
};

/* Values beyond this are no measurements: they count as missing, like NaN. A float holds them. */
#define NT_ANOMALY_VALUE_MAX 1e30

static inline bool nt_anomaly_is_value(double value)
{
	return fabs(value) <= NT_ANOMALY_VALUE_MAX;
}

/* The weight of a new value in a moving average whose old values count half after `rows`. */
static inline double nt_anomaly_rate(double rows)
{
	return rows > 0.0 ? 1.0 - exp2(-1.0 / rows) : 1.0;
}

/* Two values at once; any double's address will do. */
typedef double nt_anomaly_pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef long long nt_anomaly_mask __attribute__((vector_size(16)));

#endif
