/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chart of a page: a node's scores over its rows, the alarm threshold, and the alarms. */
#ifndef NT_CLI_ANOMALY_NODE_CHART_H
#define NT_CLI_ANOMALY_NODE_CHART_H

#include "cli/anomaly/node_series.h"
#include "cli/report/markup.h"

enum {
	NT_NODE_CHART_COLUMNS = 720, /* a column of more rows shows their highest score */
	NT_NODE_CHART_ALARMS = 100, /* drawn; further ones are counted in the caption */
};

/* What the colours mean; once a page. */
void nt_node_chart_legend(struct nt_markup *out);

/* `number` names the chart on its page: from 1. */
void nt_node_chart_print(const struct nt_fleet_series *fleet, const struct nt_node_series *series,
			 size_t number, struct nt_markup *out);

/* The time of a row, or its number where the table has no times. */
void nt_node_chart_row(const struct nt_node_series *series, size_t row, struct nt_markup *out);

#endif
