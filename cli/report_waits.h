/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In which calls the ranks of a job stood still, as the dumps of their flight recorders tell. */
#ifndef NT_CLI_REPORT_WAITS_H
#define NT_CLI_REPORT_WAITS_H

#include <jansson.h>

#include "cli/report.h"
#include "common/buf.h"

/* Adds "waits", an object for each call, and "waits_left_out" to the document. 0, or -1 as jansson. */
int nt_report_waits_json(const struct nt_report *report, json_t *root);
/* A line for each call, the longest wait first. */
NT_MUST_CHECK int nt_report_waits_text(const struct nt_report *report, struct nt_buf *buf);

#endif
