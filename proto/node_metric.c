/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/node_metric.h"

#include <stdlib.h>
#include <string.h>

/* SCORED and SHOWN: whether the metric is part of the anomaly score. */
enum {
	SHOWN,
	SCORED,
};

static const struct nt_node_metric table[] = {
#define NT_NODE_METRIC(name, kind, unit, scored, about)                                            \
	{#name, unit, about, NT_NODE_METRIC_##kind, scored == SCORED},
#include "proto/node_metric.def"
};

enum {
	ROWS = sizeof(table) / sizeof(table[0]),
};

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, ((const struct nt_node_metric *)row)->name);
}

const struct nt_node_metric *nt_node_metric_find(const char *name)
{
	return bsearch(name, table, ROWS, sizeof(table[0]), compare_name);
}
