/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is missing of the input, so that a verdict tells how much of its own time was seen. */
#ifndef NT_DETECT_MODEL_COMPLETENESS_H
#define NT_DETECT_MODEL_COMPLETENESS_H

#include <stdint.h>

struct nt_frame;

enum {
	/* remembered; what is older belongs to the time before any new finding */
	NT_COMPLETENESS_MAX = 64,
};

/* Frames in a row that were not whole. */
struct nt_gap {
	uint64_t start_ns, end_ns;
	/* A rank's time, divided by the number of ranks; negative: it came after all. */
	double missing_ns;
};

struct nt_completeness {
	struct nt_gap gap[NT_COMPLETENESS_MAX]; /* oldest first */
	uint32_t gaps;
	double missing_ns; /* of all frames so far */
};

void nt_completeness_add(struct nt_completeness *gaps, const struct nt_frame *frame);
/* What was missing before since_ns. */
double nt_completeness_before(const struct nt_completeness *gaps, uint64_t since_ns);
/* Rank-windows received ÷ expected from since_ns to end_ns: 1.0 exactly where none is missing. */
double nt_completeness_completeness(const struct nt_completeness *gaps, double before_ns,
				    uint64_t since_ns, uint64_t end_ns);

#endif
