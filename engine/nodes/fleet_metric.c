/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/fleet_metric.h"

#include <errno.h>
#include <string.h>

#include "common/base/ascii.h"
#include "proto/node_metric.h"

enum {
	OTHERS = 64, /* names of no table that find a place */
};

void nt_fleet_metrics_release(struct nt_fleet_metrics *metrics)
{
	HASH_CLEAR(hh, metrics->table);
	metrics->count = 0;
}

static enum nt_minute_kind kind_of(const struct nt_node_metric *known)
{
	switch (known ? known->kind : NT_NODE_METRIC_GAUGE) {
	case NT_NODE_METRIC_COUNTER:
		return NT_MINUTE_COUNTER;
	case NT_NODE_METRIC_TROUBLE:
		return NT_MINUTE_TROUBLE;
	case NT_NODE_METRIC_GAUGE:
	case NT_NODE_METRIC_RATIO:
		break;
	}
	return NT_MINUTE_GAUGE;
}

int nt_fleet_metrics_find(struct nt_fleet_metrics *metrics, const char *name, uint8_t *ret_number)
{
	const struct nt_node_metric *known;
	char text[NT_ANOMALY_NAME_BYTES];
	struct nt_fleet_metric *metric;

	nt_ascii_copy_text(text, sizeof(text), name);
	HASH_FIND_STR(metrics->table, text, metric);
	if (metric) {
		*ret_number = (uint8_t)(metric - metrics->at);
		return 0;
	}
	known = nt_node_metric_find(text);
	if (metrics->count == NT_FLEET_METRICS || (!known && metrics->others == OTHERS)) {
		metrics->over_cap++;
		*ret_number = NT_FLEET_NO_METRIC;
		return 0;
	}
	metric = &metrics->at[metrics->count];
	memcpy(metric->name, text, sizeof(text));
	metric->unit = known ? known->unit : "";
	metric->kind = kind_of(known);
	metric->is_scored = !known || known->is_scored;
	HASH_ADD_STR(metrics->table, name, metric);
	if (!nt_table_has(metric))
		return -ENOMEM;
	metrics->count++;
	metrics->others += !known;
	*ret_number = (uint8_t)(metric - metrics->at);
	return 0;
}
