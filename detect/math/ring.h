/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last few values of a series, for their median. */
#ifndef NT_DETECT_MATH_RING_H
#define NT_DETECT_MATH_RING_H

#include <stdint.h>

#include "detect/thresholds/thresholds.h"

enum {
	NT_RING_MAX = NT_TURNS, /* the longest that is kept */
};

struct nt_ring {
	double value[NT_RING_MAX];
	uint32_t count, next;
};

/* Remembers at most `keep` values, NT_RING_MAX where that is less. */
void nt_ring_add(struct nt_ring *ring, uint32_t keep, double value);
/* 0 of none. */
double nt_ring_median(const struct nt_ring *ring);

#endif
