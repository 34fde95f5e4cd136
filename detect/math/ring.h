/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A ring of the last values of a series, for their median. */
#ifndef NT_DETECT_MATH_RING_H
#define NT_DETECT_MATH_RING_H

#include <stdint.h>

#include "detect/thresholds/thresholds.h"

enum {
	NT_RING_MAX = NT_TURNS, /* maximum length */
};

struct nt_ring {
	double value[NT_RING_MAX];
	uint32_t count, next;
};

/* Appends a value; keeps the last min(keep, NT_RING_MAX). */
void nt_ring_add(struct nt_ring *ring, uint32_t keep, double value);
/* The last value; 0 if empty. */
double nt_ring_last(const struct nt_ring *ring);
/* 0 if empty. */
double nt_ring_median(const struct nt_ring *ring);

#endif
