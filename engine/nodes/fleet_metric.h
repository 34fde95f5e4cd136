/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The names of the metrics of a fleet's nodes, as numbers. Names come from the bus: those of the
 * table in proto/node_metric.def have a place of their own, so that others cannot displace them.
 */
#ifndef NT_ENGINE_NODES_FLEET_METRIC_H
#define NT_ENGINE_NODES_FLEET_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "detect/anomaly/anomaly.h"
#include "detect/anomaly/minute.h"

enum {
	NT_FLEET_METRICS = 192, /* names of all nodes together; further ones are counted */
	NT_FLEET_NO_METRIC = 255,
};

struct nt_fleet_metric {
	char name[NT_ANOMALY_NAME_BYTES]; /* longer ones are cut; printable ASCII */
	const char *unit; /* "" where the name is of another version; static */
	enum nt_minute_kind kind;
	bool is_scored; /* false: no node has a slot for it */
	UT_hash_handle hh;
};

struct nt_fleet_metrics {
	struct nt_fleet_metric at[NT_FLEET_METRICS];
	size_t count, others; /* others: in no table */
	struct nt_fleet_metric *table; /* uthash by name */
	uint64_t over_cap; /* values whose name found no place */
};

void nt_fleet_metrics_release(struct nt_fleet_metrics *metrics);

/* The number of a name, NT_FLEET_NO_METRIC at the cap. -ENOMEM. */
NT_MUST_CHECK int nt_fleet_metrics_find(struct nt_fleet_metrics *metrics, const char *name,
					uint8_t *ret_number);

#endif
