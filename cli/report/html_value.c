/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formatting of times and values on the page. */
#include "cli/report/html_impl.h"

#include <math.h>
#include <string.h>

void nt_html_time(const struct nt_html_page *page, uint64_t ns)
{
	if (!page->out->error)
		page->out->error = nt_report_time(page->report, ns, page->out->buf);
}

void nt_html_value(struct nt_markup *out, double value, const char *unit)
{
	if (strcmp(unit, "ms") == 0 && fabs(value) >= 1000.0) {
		nt_markup_put(out, "%.3g s", value / 1000.0);
		return;
	}
	nt_markup_put(out, "%.4g", value);
	if (strcmp(unit, "1") == 0)
		return;
	nt_markup_put(out, " ");
	nt_markup_text(out, unit, NT_HTML_NAME);
}
