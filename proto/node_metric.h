/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The metrics of NodeVector: one table of their names, units and kinds for all programs. */
#ifndef NT_PROTO_NODE_METRIC_H
#define NT_PROTO_NODE_METRIC_H

#include <stdbool.h>

enum nt_node_metric_kind {
	NT_NODE_METRIC_GAUGE,
	NT_NODE_METRIC_RATIO, /* a gauge from 0 to 1 */
	NT_NODE_METRIC_COUNTER, /* since some start; its rate per second counts */
	NT_NODE_METRIC_TROUBLE, /* a counter of errors and the like: its largest rate counts */
};

struct nt_node_metric {
	/* unit: "" for ratios; of a counter before it becomes a rate. about: a sentence. */
	const char *name, *unit, *about;
	enum nt_node_metric_kind kind;
	/* False: shown, and not part of the anomaly score. Others imply it, or it is a fixed size. */
	bool is_scored;
};

/* NULL: a metric of another version, which is a gauge. */
const struct nt_node_metric *nt_node_metric_find(const char *name);

#endif
