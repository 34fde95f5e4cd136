/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/cosine.h"

#include <math.h>
#include <string.h>

enum {
	HALF = NT_SENSING_ROWS / 2,
	STEP = 4,
};

/* An element of the orthonormal basis of n points. */
static float basis_of(size_t k, size_t t, size_t n)
{
	double scale = sqrt((k ? 2.0 : 1.0) / (double)n);

	return (float)(scale * cos(M_PI * (double)k * (2.0 * (double)t + 1.0) / (2.0 * (double)n)));
}

void nt_cosine_init(struct nt_cosine *cosine, size_t group)
{
	memset(cosine, 0, sizeof(*cosine));
	cosine->group = group;
	for (size_t k = 0; k < NT_SENSING_ROWS; k++)
		for (size_t t = 0; t < HALF; t++)
			cosine->rows[k][t] = basis_of(k, t, NT_SENSING_ROWS);
	for (size_t k = 0; k < group; k++)
		for (size_t j = 0; j < group; j++)
			cosine->metrics[k][j] = basis_of(k, j, group);
}

/* Between the metrics of each row; `transposed`: the inverse. */
static void mix_metrics(const struct nt_cosine *cosine, nt_cosine_row *value, int transposed)
{
	nt_cosine_row column[NT_SENSING_GROUP];

	for (size_t j = 0; j < cosine->group; j++)
		for (size_t k = 0; k < NT_SENSING_GROUP; k++)
			column[j][k] = transposed ? cosine->metrics[j][k] : cosine->metrics[k][j];
	for (size_t t = 0; t < NT_SENSING_ROWS; t++) {
		nt_cosine_row sum = {0};

		for (size_t j = 0; j < cosine->group; j++)
			sum += value[t][j] * column[j];
		value[t] = sum;
	}
}

/* Even basis vectors are symmetric in time and odd ones antisymmetric: half of the products do. */
void nt_cosine_forward(const struct nt_cosine *cosine, const nt_cosine_row *value,
		       nt_cosine_row *ret_coefficient)
{
	nt_cosine_row even[HALF], odd[HALF];

	for (size_t t = 0; t < HALF; t++) {
		even[t] = value[t] + value[NT_SENSING_ROWS - 1 - t];
		odd[t] = value[t] - value[NT_SENSING_ROWS - 1 - t];
	}
	/* Two of each kind at once: sums that do not wait for each other. */
	for (size_t k = 0; k < NT_SENSING_ROWS; k += STEP) {
		const float *basis[STEP] = {cosine->rows[k], cosine->rows[k + 1],
					    cosine->rows[k + 2], cosine->rows[k + 3]};
		nt_cosine_row sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};

		for (size_t t = 0; t < HALF; t++) {
			sum0 += basis[0][t] * even[t];
			sum1 += basis[1][t] * odd[t];
			sum2 += basis[2][t] * even[t];
			sum3 += basis[3][t] * odd[t];
		}
		ret_coefficient[k] = sum0;
		ret_coefficient[k + 1] = sum1;
		ret_coefficient[k + 2] = sum2;
		ret_coefficient[k + 3] = sum3;
	}
	mix_metrics(cosine, ret_coefficient, 0);
}

void nt_cosine_inverse(const struct nt_cosine *cosine, const nt_cosine_row *coefficient,
		       nt_cosine_row *ret_value)
{
	for (size_t t = 0; t < HALF; t += 2) {
		nt_cosine_row even0 = {0}, odd0 = {0}, even1 = {0}, odd1 = {0};

		for (size_t k = 0; k < NT_SENSING_ROWS; k += 2) {
			even0 += cosine->rows[k][t] * coefficient[k];
			even1 += cosine->rows[k][t + 1] * coefficient[k];
			odd0 += cosine->rows[k + 1][t] * coefficient[k + 1];
			odd1 += cosine->rows[k + 1][t + 1] * coefficient[k + 1];
		}
		ret_value[t] = even0 + odd0;
		ret_value[t + 1] = even1 + odd1;
		ret_value[NT_SENSING_ROWS - 1 - t] = even0 - odd0;
		ret_value[NT_SENSING_ROWS - 2 - t] = even1 - odd1;
	}
	mix_metrics(cosine, ret_value, 1);
}
