/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysTrace's own detectors on its own files: durations of one operation, compared across ranks. */
#ifndef NT_CLI_REPORT_SYSTRACE_METRIC_H
#define NT_CLI_REPORT_SYSTRACE_METRIC_H

#include <stddef.h>
#include <stdint.h>

#include "cli/report/systrace_rules.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	/* ranks compared at once; larger groups are skipped */
	NT_SYSTRACE_MAX_GROUP = 1024,
	NT_SYSTRACE_LEAST_GROUP = 4, /* below it each rank is compared with its own history */
};

/*
 * `n` ranks, `bins` values of each, rank-major: ret_abnormal marks ranks. Windows are counted from
 * the end. -ENOMEM.
 */
NT_MUST_CHECK int nt_systrace_space(const struct nt_systrace_space *rules, const double *value,
				    size_t n, size_t bins, bool *ret_abnormal);
/* The values of one rank: whether so many in a row are far above its history. -ENOMEM. */
NT_MUST_CHECK int nt_systrace_time(const struct nt_systrace_time *rules, uint32_t alarm_filter,
				   const double *value, size_t bins, bool *ret_abnormal);

/* Makes the document that sysTrace would write. -EBADMSG with *ret_error for invalid files. */
NT_MUST_CHECK int nt_systrace_run(const struct nt_systrace_rules *rules, const char *const *paths,
				  size_t count, struct nt_buf *buf,
				  struct nt_trace_error *ret_error);

#endif
