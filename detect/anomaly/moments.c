/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/moments.h"

#include <errno.h>
#include <stdlib.h>

#include "detect/anomaly/metric.h"

int nt_moments_new(struct nt_moments *moments, size_t metrics)
{
	*moments = (struct nt_moments){.metrics = metrics};
	moments->mean = calloc(metrics, sizeof(*moments->mean));
	moments->away = calloc(metrics, sizeof(*moments->away));
	moments->after = calloc(metrics, sizeof(*moments->after));
	moments->sum = calloc(metrics * (metrics + 1) / 2, sizeof(*moments->sum));
	if (moments->mean && moments->away && moments->after && moments->sum)
		return 0;
	nt_moments_release(moments);
	return -ENOMEM;
}

void nt_moments_release(struct nt_moments *moments)
{
	free(moments->mean);
	free(moments->away);
	free(moments->after);
	free(moments->sum);
	*moments = (struct nt_moments){0};
}

size_t nt_moments_bytes(const struct nt_moments *moments)
{
	const size_t n = moments->metrics;
	const size_t vectors =
		sizeof(*moments->mean) + sizeof(*moments->away) + sizeof(*moments->after);

	return n * vectors + n * (n + 1) / 2 * sizeof(*moments->sum);
}

/* A row of the triangle. */
static void add_products(double *restrict sum, double away, const double *restrict after, size_t n,
			 double keep)
{
	for (size_t j = 0; j + 1 < n; j += 2) {
		nt_anomaly_pair *at = (nt_anomaly_pair *)(void *)(sum + j);

		*at = *at * keep + away * *(const nt_anomaly_pair *)(const void *)(after + j);
	}
	if (n % 2)
		sum[n - 1] = sum[n - 1] * keep + away * after[n - 1];
}

void nt_moments_add(struct nt_moments *moments, const double *row, double keep)
{
	double *restrict away = moments->away, *restrict after = moments->after;
	double *restrict sum = moments->sum;
	const size_t n = moments->metrics;
	double share;

	moments->weight = moments->weight * keep + 1.0;
	share = 1.0 / moments->weight;
	for (size_t i = 0; i < n; i++) {
		away[i] = row[i] - moments->mean[i];
		moments->mean[i] += away[i] * share;
		after[i] = row[i] - moments->mean[i];
	}
	for (size_t i = 0; i < n; i++) {
		add_products(sum, away[i], after, i + 1, keep);
		sum += i + 1;
	}
}

double nt_moments_covariance(const struct nt_moments *moments, size_t i, size_t j)
{
	size_t low = i < j ? i : j, high = i < j ? j : i;

	return moments->weight > 0.0 ? moments->sum[high * (high + 1) / 2 + low] / moments->weight
				     : 0.0;
}

void nt_moments_code(struct nt_codec *codec, struct nt_moments *moments)
{
	nt_code_real(codec, &moments->weight);
	nt_code_fail(codec, moments->weight < 0.0);
	nt_code_reals(codec, moments->mean, moments->metrics);
	nt_code_reals(codec, moments->sum, moments->metrics * (moments->metrics + 1) / 2);
}
