/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/heap/gpu_growth.h"

#define UNLIKELY 0.5

static double probability(uint64_t rises, uint32_t samples)
{
	return ((double)__builtin_popcountll(rises) + 1) / ((double)samples + 2);
}

/* True: the level above has a sample too. */
static bool sample_level(struct nt_gpu_growth *growth, int i, uint64_t peak)
{
	const bool is_rise = growth->level[i].has_high && peak > growth->level[i].high;

	if (growth->level[i].has_high) {
		growth->level[i].rises = growth->level[i].rises << 1 | is_rise;
		if (growth->level[i].samples < NT_GPU_GROWTH_SAMPLES)
			growth->level[i].samples++;
	}
	if (!growth->level[i].has_high || peak > growth->level[i].high)
		growth->level[i].high = peak;
	if (!growth->level[i].has_high ||
	    probability(growth->level[i].rises, growth->level[i].samples) < UNLIKELY)
		growth->level[i].origin = growth->level[i].high;
	growth->level[i].has_high = true;
	if (++growth->level[i].pending < NT_GPU_GROWTH_DISTANCE)
		return false;
	growth->level[i].pending = 0;
	return true;
}

void nt_gpu_growth_sample(struct nt_gpu_growth *growth, uint64_t peak)
{
	for (int i = 0; i < NT_GPU_GROWTH_LEVELS; i++)
		if (peak > growth->level[i].peak)
			growth->level[i].peak = peak;
	for (int i = 0; i < NT_GPU_GROWTH_LEVELS; i++) {
		const uint64_t most = growth->level[i].peak;

		growth->level[i].peak = 0;
		if (!sample_level(growth, i, most))
			break;
	}
}

double nt_gpu_growth_probability(const struct nt_gpu_growth *growth, uint64_t *ret_bytes)
{
	double most = 0;

	*ret_bytes = 0;
	for (int i = 0; i < NT_GPU_GROWTH_LEVELS; i++) {
		const double p = probability(growth->level[i].rises, growth->level[i].samples);

		/* A level with few samples says little. */
		if (!growth->level[i].samples || p <= most || (i > 0 && p < NT_GPU_GROWTH_LIKELY))
			continue;
		most = p;
		*ret_bytes = growth->level[i].high - growth->level[i].origin;
	}
	return most;
}
