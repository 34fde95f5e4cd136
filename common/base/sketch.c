/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/base/sketch.h"

uint32_t nt_sketch_bucket(uint64_t ns)
{
	/* 2^(1/4), 2^(2/4), 2^(3/4) as 31-bit fractions, rounded up. */
	static const uint32_t quarter[] = {0x9837f052, 0xb504f334, 0xd744fccb};
	uint32_t octave, bucket, top;

	if (ns < 2)
		return 0;
	octave = 63 - (uint32_t)__builtin_clzll(ns);
	top = (uint32_t)((ns << (63 - octave)) >> 32);
	bucket = 4 * octave;
	for (int i = 0; i < 3; i++)
		bucket += top >= quarter[i];
	return bucket;
}

void nt_sketch_add(struct nt_sketch *sketch, uint64_t ns)
{
	sketch->count[nt_sketch_bucket(ns)]++;
	sketch->sum_ns += ns;
	if (!sketch->calls || ns < sketch->min_ns)
		sketch->min_ns = ns;
	if (ns > sketch->max_ns)
		sketch->max_ns = ns;
	sketch->calls++;
}
