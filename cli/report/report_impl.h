/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of the report; for cli/report*.c alone. */
#ifndef NT_CLI_REPORT_REPORT_IMPL_H
#define NT_CLI_REPORT_REPORT_IMPL_H

#include <jansson.h>

#include "cli/report/report.h"

/* ---- report_waits.c: in which calls the ranks of a job stood still, by their flight recorders ------- */

/* Adds "waits", an object for each call, and "waits_left_out" to the document. 0, or -1 as jansson. */
int nt_report_waits_json(const struct nt_report *report, json_t *root);
/* A line for each call, the longest wait first. */
NT_MUST_CHECK int nt_report_waits_text(const struct nt_report *report, struct nt_buf *buf);

/* ---- report_windows.c: `neutracer analyze --windows`, whom the space detector marks in each window --- */

/* A list with one object for each window; NULL for want of memory. */
json_t *nt_report_windows_json(const struct nt_report *report);
/* A line for each window in which somebody is marked, and how many there are in all. */
NT_MUST_CHECK int nt_report_windows_text(const struct nt_report *report, struct nt_buf *buf);

#endif
