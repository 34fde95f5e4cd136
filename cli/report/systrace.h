/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Verdicts in the document formats of openEuler's sysTrace, for its consumers: slow ranks ("slow
 * node"), and slow steps of the job ("fail slow"). docs/systrace.md has each field.
 */
#ifndef NT_CLI_REPORT_SYSTRACE_H
#define NT_CLI_REPORT_SYSTRACE_H

#include <stddef.h>

#include "cli/readers/trace.h"
#include "cli/report/report.h"
#include "common/base/buf.h"

enum {
	NT_SYSTRACE_MAX_NORMAL = 16, /* ranks listed as normal; the others are omitted ones */
};

enum nt_systrace_method {
	NT_SYSTRACE_SPACE, /* against its peers */
	NT_SYSTRACE_TIME, /* against its own history, or by its operations */
	NT_SYSTRACE_LACK, /* no data */
};

/* A rank accused by sysTrace's own detectors. */
struct nt_systrace_accused {
	uint32_t rank;
	enum nt_systrace_method method;
	const char *peer_deviation;
	const uint32_t *peers; /* compared with */
	size_t peer_count;
};

struct nt_systrace_verdict {
	const struct nt_systrace_accused *accused;
	size_t count;
	bool compute, network;
	const char *message; /* what was omitted; "" */
	uint64_t time_ns;
};

/* `trace`: the nodes of ranks, and which ranks lack data. -ENOMEM, -ENOBUFS at the cap of buf. */
NT_MUST_CHECK int nt_systrace_document(const struct nt_systrace_verdict *verdict,
				       const struct nt_trace *trace, struct nt_buf *buf);

/* `trace` may be NULL: a recording has less. -ENOMEM, -ENOBUFS at the cap of buf. */
NT_MUST_CHECK int nt_systrace_result(const struct nt_report *report, const struct nt_trace *trace,
				     struct nt_buf *buf);
NT_MUST_CHECK int nt_systrace_steps(const struct nt_report *report, const struct nt_trace *trace,
				    struct nt_buf *buf);

#endif
