/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by the files of the page. */
#ifndef NT_CLI_REPORT_HTML_IMPL_H
#define NT_CLI_REPORT_HTML_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "cli/report/html.h"
#include "cli/report/markup.h"

enum {
	NT_HTML_NAME = 64, /* bytes of a name that are shown */
	NT_HTML_TEXT = 512, /* of a sentence */
};

/* A page, and the incidents in display order. */
struct nt_html_page {
	struct nt_markup *out;
	const struct nt_report *report;
	const struct nt_wire_incident **incident;
	size_t incidents, accusing;
};

/* Errors are kept in page->out. */
void nt_html_time(const struct nt_html_page *page, uint64_t ns);
/* 412 ms, 1.4 s; other units unchanged. */
void nt_html_value(struct nt_markup *out, double value, const char *unit);

/* The stacks of an incident, if it has any. */
void nt_html_stacks(const struct nt_html_page *page, const struct nt_wire_incident *incident);

/* The sections of the page. */
void nt_html_verdicts(const struct nt_html_page *page);
NT_MUST_CHECK int nt_html_heatmaps(const struct nt_html_page *page);

#endif
