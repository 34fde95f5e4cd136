/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A histogram of durations in logarithmic buckets, four to an octave. Bucket i counts the values in
 * [2^(i/4), 2^((i+1)/4)) ns, so a quantile is off by 9 % at most. The buckets are those of
 * proto/neutracer.proto. A zeroed struct nt_sketch is empty, and needs no release.
 */
#ifndef NT_COMMON_BASE_SKETCH_H
#define NT_COMMON_BASE_SKETCH_H

#include <stddef.h>
#include <stdint.h>

enum {
	NT_SKETCH_BUCKETS = 256,
};

struct nt_sketch {
	uint32_t count[NT_SKETCH_BUCKETS];
	uint64_t calls, sum_ns, min_ns, max_ns;
};

/* 0 ns is in bucket 0. */
uint32_t nt_sketch_bucket(uint64_t ns);

void nt_sketch_add(struct nt_sketch *sketch, uint64_t ns);

#endif
