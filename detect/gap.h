/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is missing of the input, so that a verdict tells how much of its own time was seen. */
#ifndef NT_DETECT_GAP_H
#define NT_DETECT_GAP_H

#include <stdint.h>

struct nt_frame;

enum {
	NT_GAPS_MAX = 64, /* remembered; what is older belongs to the time before any new finding */
};

/* A frame that was not whole. Times are the job's: a rank's, divided by the number of ranks. */
struct nt_gap {
	uint64_t end_ns; /* of the frame */
	double missing_ns; /* negative: what was held for missing came after all */
};

struct nt_gaps {
	struct nt_gap gap[NT_GAPS_MAX]; /* oldest first */
	uint32_t gaps;
	double missing_ns; /* of all frames so far */
};

void nt_gaps_add(struct nt_gaps *gaps, const struct nt_frame *frame);
/* What was missing before since_ns. */
double nt_gaps_before(const struct nt_gaps *gaps, uint64_t since_ns);
/* Rank-windows received ÷ expected from since_ns to end_ns: 1.0 exactly where none is missing. */
double nt_gaps_completeness(const struct nt_gaps *gaps, double before_ns, uint64_t since_ns,
			    uint64_t end_ns);

#endif
