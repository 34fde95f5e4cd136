/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Parameters of sysTrace's own detectors (metric_config.json), by their names in that file;
 * docs/systrace.md describes each.
 */
#ifndef NT_CLI_REPORT_SYSTRACE_RULES_H
#define NT_CLI_REPORT_SYSTRACE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "detect/math/ksigma.h"

enum {
	NT_SYSTRACE_MAX_METRICS = 64,
	NT_SYSTRACE_MAX_FUNCS = 8, /* of a metric */
	NT_SYSTRACE_MAX_RULES_BYTES = 1 << 20,
};

enum nt_systrace_func {
	NT_SYSTRACE_MEAN,
	NT_SYSTRACE_MIN,
	NT_SYSTRACE_MAX,
	NT_SYSTRACE_PERCENTILE,
};

struct nt_systrace_space {
	double eps, cv_threshold;
	uint32_t min_samples, window_size;
	bool scaling;
};

struct nt_systrace_time {
	struct nt_ksigma_rules sigma;
	double preprocess_eps; /* 0: the training data is not filtered before */
	uint32_t preprocess_min_samples;
};

struct nt_systrace_metric {
	char name[64]; /* as in the result */
	char op[64]; /* the operation */
	bool launch; /* the delay from launch to start on the device, not the duration */
	bool network; /* class network, else computing */
	double during_s; /* 0: each operation separately */
	struct nt_systrace_aggregate {
		enum nt_systrace_func func;
		double q; /* of a percentile, 0 to 100 */
	} func[NT_SYSTRACE_MAX_FUNCS];
	uint32_t funcs;
	uint32_t alarm_filter; /* consecutive abnormal points needed */
	bool has_space, has_time;
	struct nt_systrace_space space;
	struct nt_systrace_time time;
};

struct nt_systrace_rules {
	struct nt_systrace_metric metric[NT_SYSTRACE_MAX_METRICS];
	uint32_t metrics;
};

/*
 * -EBADMSG with field, value and allowed range in *ret_error, -ENOMEM. The caller frees *ret_rules.
 */
NT_MUST_CHECK int nt_systrace_rules_parse(const void *text, size_t len, const char *name,
					  struct nt_systrace_rules **ret_rules,
					  struct nt_trace_error *ret_error);
/* The same for a file; read errors are in *ret_error, too. */
NT_MUST_CHECK int nt_systrace_rules_load(const char *path, struct nt_systrace_rules **ret_rules,
					 struct nt_trace_error *ret_error);
void nt_systrace_rules_free(struct nt_systrace_rules *rules);
NT_DEFINE_AUTO(nt_systrace_rules, nt_systrace_rules_free)

#endif
