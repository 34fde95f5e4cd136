/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether the memory of a call site keeps growing. A sample is the most that it held since the last
 * sample; it is a rise if it exceeds all before. By Laplace's rule of succession, s rises in n
 * samples make the next one a rise with probability (s + 1) / (n + 2). Memory that is allocated once
 * or reused rises in few samples. Scalene judges leaks by this rule (Berger, Stern, Altmayer Pizzorno:
 * Triangulating Python Performance Issues with Scalene, OSDI 2023).
 *
 * Samples are taken at three distances, so that slow growth is found too. Pure.
 */
#ifndef NT_AGENT_STEPS_GPU_GROWTH_H
#define NT_AGENT_STEPS_GPU_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NT_GPU_GROWTH_SAMPLES = 64, /* the last ones, which are judged */
	NT_GPU_GROWTH_LEVELS = 3,
	NT_GPU_GROWTH_DISTANCE = 8, /* of a level, in samples of the level below */
};

#define NT_GPU_GROWTH_LIKELY 0.95 /* of a leak, as Scalene has it: 18 rises in 18 samples */

/* Zeroed: no sample. */
struct nt_gpu_growth {
	struct {
		uint64_t rises; /* a bit per sample, the last one lowest */
		uint32_t samples; /* at most NT_GPU_GROWTH_SAMPLES; the first one is no rise */
		uint32_t pending; /* samples of the level below */
		bool has_high;
		uint64_t peak; /* bytes, since the last sample */
		uint64_t high; /* of all samples */
		uint64_t origin; /* `high` before it grew: when the probability was last low */
	} level[NT_GPU_GROWTH_LEVELS];
};

/* peak: the most bytes that the site held since the last sample. */
void nt_gpu_growth_sample(struct nt_gpu_growth *growth, uint64_t peak);

/*
 * The probability that the next sample is a rise, of the lowest level, or of one above where that is
 * likely; 0: no samples.
 * *ret_bytes: by how much the site grew while it was likely to.
 */
double nt_gpu_growth_probability(const struct nt_gpu_growth *growth, uint64_t *ret_bytes);

#endif
