/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is missing of the input, so that a verdict tells how much of its own time was seen. */
#ifndef NT_DETECT_GAP_H
#define NT_DETECT_GAP_H

#include <stdint.h>

struct nt_frame;

enum {
	NT_GAPS_MAX = 64, /* remembered; what is older belongs to the time before any new finding */
};

/* Frames in a row that were not whole. */
struct nt_gap {
	uint64_t start_ns, end_ns;
	/* A rank's time, divided by the number of ranks; negative: it came after all. */
	double missing_ns;
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
