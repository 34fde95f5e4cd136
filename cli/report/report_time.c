/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/report_impl.h"

#include "common/system/clock.h"

int nt_report_time(const struct nt_report *report, uint64_t ns, struct nt_buf *buf)
{
	char text[NT_CLOCK_TEXT];

	if (report->relative)
		return nt_buf_printf(buf, "+%.1fs", (double)(ns - report->start_ns) / 1e9);
	return nt_buf_printf(buf, "%s", nt_clock_format(ns, 0, text));
}
