/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `neutracer analyze --html FILE`: the report as one self-contained page. It loads nothing from the
 * network, and its policy forbids that; style and script are inline, allowed by their hashes.
 * Untrusted data is inserted as text and numbers, never as markup.
 */
#ifndef NT_CLI_REPORT_HTML_H
#define NT_CLI_REPORT_HTML_H

#include "cli/report/report.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_HTML_MAX_INCIDENTS = 100, /* with a section of their own; further ones are counted */
	NT_HTML_MAX_CULPRITS = 8, /* of one incident */
	NT_HTML_MAX_JOBS = 8, /* with heatmaps */
	NT_HTML_MAX_RANKS = 32, /* listed per job */
	NT_HTML_MAX_COLLECTIVES = 200,
};

/* The report's judgement must have windows. -ENOMEM, -ENOBUFS for a page over NT_PAGE_MAX_BYTES. */
NT_MUST_CHECK int nt_html_write(const struct nt_report *report, struct nt_buf *buf);

/* Replaces the file by the page. Also -errno of the file. */
NT_MUST_CHECK int nt_html_save(const struct nt_report *report, const char *path);

#endif
