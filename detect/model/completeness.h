/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completeness of the input: the share of the rank-windows of a period that were received. */
#ifndef NT_DETECT_MODEL_COMPLETENESS_H
#define NT_DETECT_MODEL_COMPLETENESS_H

#include <stdint.h>

struct nt_frame;

enum {
	/* gaps kept; older ones precede any new finding */
	NT_COMPLETENESS_MAX = 64,
};

/* A run of incomplete frames. */
struct nt_gap {
	uint64_t start_ns, end_ns;
	/* Missing rank time ÷ number of ranks; negative: arrived late. */
	double missing_ns;
};

struct nt_completeness {
	struct nt_gap gap[NT_COMPLETENESS_MAX]; /* oldest first */
	uint32_t gaps;
	double missing_ns; /* total of all frames */
};

void nt_completeness_add(struct nt_completeness *gaps, const struct nt_frame *frame);
/* Missing time before since_ns, ns. */
double nt_completeness_before(const struct nt_completeness *gaps, uint64_t since_ns);
/* Rank-windows received ÷ expected from since_ns to end_ns; exactly 1.0 if none is missing. */
double nt_completeness_share(const struct nt_completeness *gaps, double before_ns,
			     uint64_t since_ns, uint64_t end_ns);

#endif
