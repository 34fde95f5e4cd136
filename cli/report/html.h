/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `neutracer analyze --html FILE`: the report as one page that needs nothing else. It asks no
 * network for anything and its policy forbids it to; style and script are the page's own, by their
 * hashes. What comes from outside is text and numbers, never markup.
 */
#ifndef NT_CLI_REPORT_HTML_H
#define NT_CLI_REPORT_HTML_H

#include "cli/report/report.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_HTML_MAX_BYTES = 8 << 20, /* of a page, whatever it is about */
	NT_HTML_MAX_INCIDENTS = 100, /* with a section of their own; the rest is counted */
	NT_HTML_MAX_CULPRITS = 8, /* of one incident */
	NT_HTML_MAX_JOBS = 8, /* with pictures */
	NT_HTML_MAX_RANKS = 32, /* that are listed for a job */
	NT_HTML_MAX_COLLECTIVES = 200,
};

/* The report's judgement has windows. -ENOMEM, -ENOBUFS for a page over NT_HTML_MAX_BYTES. */
NT_MUST_CHECK int nt_html_write(const struct nt_report *report, struct nt_buf *buf);

/* Writes the page in the place of the file. -errno of the file as well. */
NT_MUST_CHECK int nt_html_save(const struct nt_report *report, const char *path);

#endif
