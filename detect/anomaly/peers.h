/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Removal of what the nodes of a job have in common: the median of each metric over a node's peers.
 *
 * Data-parallel nodes do the same work, so what moves on all of them is the job's. With few nodes the
 * median is one node's own value, and each would mirror the other: then nothing is removed.
 */
#ifndef NT_DETECT_ANOMALY_PEERS_H
#define NT_DETECT_ANOMALY_PEERS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether so many nodes of a job are enough for a comparison. */
bool nt_anomaly_has_peers(size_t nodes);

/*
 * The median over the nodes of one metric, each node's value being row[node][metric]. Missing values
 * are left out; NaN if fewer nodes than are enough have a value. `scratch` holds `nodes` values.
 */
double nt_anomaly_peers_median(const double *const *row, size_t nodes, size_t metric,
			       double *scratch);

#endif
