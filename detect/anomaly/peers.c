/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/peers.h"

#include <math.h>

#include "detect/anomaly/metric.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

bool nt_anomaly_has_peers(size_t nodes)
{
	return nodes >= NT_ANOMALY_PEERS_LEAST;
}

double nt_anomaly_peers_median(const double *const *row, size_t nodes, size_t metric,
			       double *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < nodes; i++)
		if (nt_anomaly_is_value(row[i][metric]))
			scratch[n++] = row[i][metric];
	return nt_anomaly_has_peers(n) ? nt_stats_median_of(scratch, n) : NAN;
}
