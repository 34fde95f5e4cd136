/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scored series as text, as JSON, and row by row as CSV. */
#ifndef NT_CLI_ANOMALY_NODE_REPORT_H
#define NT_CLI_ANOMALY_NODE_REPORT_H

#include "cli/anomaly/node_series.h"
#include "common/base/buf.h"

/* -ENOMEM; -ENOBUFS at the buffer's cap. */
NT_MUST_CHECK int nt_node_report_text(const struct nt_fleet_series *fleet, struct nt_buf *out);
NT_MUST_CHECK int nt_node_report_json(const struct nt_fleet_series *fleet, struct nt_buf *out);

/* Writes node, row, time, score, threshold and alarm of every row. -errno. */
NT_MUST_CHECK int nt_node_report_save_scores(const struct nt_fleet_series *fleet, const char *path);

#endif
