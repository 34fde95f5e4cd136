/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The metrics of a program. A static table names them; an enum of the program indexes it. Labels
 * are fixed text of the table, so input of a pod or a user cannot create series. Adding and setting
 * are atomic and thread-safe.
 */
#ifndef NT_COMMON_SYSTEM_METRICS_H
#define NT_COMMON_SYSTEM_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/system/metrics_text.h"

enum nt_metric_kind {
	NT_METRIC_COUNTER, /* name ends in _total */
	NT_METRIC_COUNTER_NS, /* stored in nanoseconds, shown as seconds: _seconds_total */
	NT_METRIC_GAUGE,
	NT_METRIC_GAUGE_NS, /* set in nanoseconds, shown as seconds: _seconds */
};

struct nt_metric {
	const char *name; /* neutracer_agent_events_dropped_total */
	enum nt_metric_kind kind;
	const char *help; /* one sentence */
	const char *labels; /* topic="window"; NULL: none */
};

struct nt_metrics;

/* The table is borrowed for the life of the metrics. */
NT_MUST_CHECK int nt_metrics_new(const struct nt_metric *table, size_t count,
				 struct nt_metrics **ret_metrics);
void nt_metrics_free(struct nt_metrics *metrics);
NT_DEFINE_AUTO(nt_metrics, nt_metrics_free)

/* Of a gauge, or of a counter maintained by another module: it never decreases then. */
void nt_metrics_set(struct nt_metrics *metrics, size_t id, uint64_t value);

/* Appends all metrics, and the end. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_metrics_write(const struct nt_metrics *metrics, enum nt_metrics_format format,
				   struct nt_buf *out);

#endif
