/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/lesinn.h"

#include <math.h>

#include "detect/thresholds/thresholds.h"

typedef float four_values __attribute__((vector_size(16), aligned(4)));

static float distance_of(const float *one, const float *other, size_t stride)
{
	four_values sum = {0};

	for (size_t j = 0; j < stride; j += sizeof(sum) / sizeof(float)) {
		four_values away = *(const four_values *)(const void *)(one + j) -
				   *(const four_values *)(const void *)(other + j);

		sum += away * away;
	}
	return sqrtf(sum[0] + sum[1] + sum[2] + sum[3]);
}

void nt_lesinn_score(const float *row, size_t rows, size_t stride, size_t judged, uint64_t *random,
		     float *ret_score)
{
	for (size_t i = 0; i < judged; i++) {
		size_t own = rows - judged + i;
		float similar = 0.0F;

		for (size_t s = 0; s < NT_LESINN_SAMPLES; s++) {
			float nearest = INFINITY;

			for (size_t k = 0; k < NT_LESINN_SAMPLE_ROWS; k++) {
				size_t other = (size_t)(nt_lesinn_random(random) % (rows - 1));

				other += other >= own;
				nearest = fminf(nearest, distance_of(row + own * stride,
								     row + other * stride, stride));
			}
			similar += 1.0F / (1.0F + nearest);
		}
		ret_score[i] = (float)NT_LESINN_SAMPLES / similar;
	}
}
