/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chance that the seed decides: SplitMix64. */
#ifndef NT_SIM_CLUSTER_CHANCE_H
#define NT_SIM_CLUSTER_CHANCE_H

#include <math.h>
#include <stdint.h>

/* From 0 to 1, without it. */
static inline double cl_chance(uint64_t *random)
{
	uint64_t x = *random += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static inline double cl_gauss(uint64_t *random)
{
	return sqrt(-2 * log(cl_chance(random) + 1e-300)) * cos(2 * M_PI * cl_chance(random));
}

#endif
