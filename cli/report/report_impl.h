/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the report; for cli/report/report*.c only. */
#ifndef NT_CLI_REPORT_REPORT_IMPL_H
#define NT_CLI_REPORT_REPORT_IMPL_H

#include <jansson.h>

#include "cli/report/report.h"

/* ---- report_hang.c: the calls in which ranks hung, by their flight recorders -------- */

/* Adds "waits", an object for each call, and "waits_left_out". 0, or -1 as jansson. */
int nt_report_hang_json(const struct nt_report *report, json_t *root);
/* "0-3, 7": the numbers ascend. */
NT_MUST_CHECK int nt_report_ranks(const uint32_t *rank, size_t n, struct nt_buf *buf);
/* A line for each call, the longest wait first. */
NT_MUST_CHECK int nt_report_hang_text(const struct nt_report *report, struct nt_buf *buf);

/* ---- report_windows.c: `neutracer analyze --windows`, marks per window -------------- */

/* A list with one object for each window; NULL: no memory. */
json_t *nt_report_windows_json(const struct nt_report *report);
/* A line for each window with a mark, and the total number of windows. */
NT_MUST_CHECK int nt_report_windows_text(const struct nt_report *report, struct nt_buf *buf);

#endif
