/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Verdicts in the documents of openEuler's sysTrace, so that what reads those reads ours: which
 * ranks are slow ("slow node"), and which steps of the job were ("fail slow"). docs/systrace.md has
 * each field.
 */
#ifndef NT_CLI_SYSTRACE_H
#define NT_CLI_SYSTRACE_H

#include <stddef.h>

#include "cli/report.h"
#include "cli/trace.h"
#include "common/buf.h"

enum {
	NT_SYSTRACE_MAX_NORMAL = 16, /* ranks listed as normal; the others are omitted ones */
};

/* `trace` may be NULL: a recording says less. -ENOMEM, -ENOBUFS at the cap of buf. */
NT_MUST_CHECK int nt_systrace_result(const struct nt_report *report, const struct nt_trace *trace,
				     struct nt_buf *buf);
NT_MUST_CHECK int nt_systrace_steps(const struct nt_report *report, const struct nt_trace *trace,
				    struct nt_buf *buf);

#endif
