/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer analyze --windows`: whom the space detector marks, window by window. */
#ifndef NT_CLI_REPORT_WINDOWS_H
#define NT_CLI_REPORT_WINDOWS_H

#include <jansson.h>

#include "cli/report.h"
#include "common/buf.h"

/* A list with one object for each window; NULL for want of memory. */
json_t *nt_report_windows_json(const struct nt_report *report);
/* A line for each window in which somebody is marked, and how many there are in all. */
NT_MUST_CHECK int nt_report_windows_text(const struct nt_report *report, struct nt_buf *buf);

#endif
