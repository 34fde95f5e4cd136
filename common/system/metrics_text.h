/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The text of metrics: the Prometheus format 0.0.4 and OpenMetrics 1.0.0. What comes from outside
 * stands in the values of labels alone, escaped and cut.
 */
#ifndef NT_COMMON_SYSTEM_METRICS_TEXT_H
#define NT_COMMON_SYSTEM_METRICS_TEXT_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_METRICS_LABEL_BYTES = 256, /* of a label's value before it is escaped; the rest is cut */
};

enum nt_metrics_format {
	NT_METRICS_PROMETHEUS, /* text/plain; version=0.0.4 */
	NT_METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
};

/* The Content-Type of a format. */
const char *nt_metrics_content_type(enum nt_metrics_format format);

/*
 * The format that the Accept header of a scrape prefers; of equal ones OpenMetrics. NULL, or neither
 * is listed: the Prometheus format. Any version but 1 of OpenMetrics is another format.
 */
enum nt_metrics_format nt_metrics_accepted(const char *accept);

/*
 * The lines before the first sample of a family. OpenMetrics names a counter without _total, and
 * states the unit if the name ends in one. -ENOMEM, -ENOBUFS.
 */
NT_MUST_CHECK int nt_metrics_write_family(const char *name, bool is_counter, const char *help,
					  enum nt_metrics_format format, struct nt_buf *out);

/* `name="value"`, after a comma unless it is the first. Invalid bytes become U+FFFD. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_metrics_write_label(const char *name, const char *value, bool is_first,
					 struct nt_buf *out);

/* The end of a scrape. -ENOMEM, -ENOBUFS. */
NT_MUST_CHECK int nt_metrics_write_end(enum nt_metrics_format format, struct nt_buf *out);

#endif
