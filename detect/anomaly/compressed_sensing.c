/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/compressed_sensing.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "detect/anomaly/cosine.h"
#include "detect/anomaly/lesinn.h"
#include "detect/anomaly/shape_cluster.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

enum {
	SENSING_ALIGN = 4, /* values; what lesinn reads at once */
};

struct nt_sensing {
	size_t metrics, stride;
	uint64_t rows; /* added in all */
	uint64_t solved, clustered; /* rows at the last reconstruction and clustering */
	uint64_t random;
	float *ring; /* NT_SENSING_PAST rows, owned */
	float low[NT_ANOMALY_METRICS_MAX],
		high[NT_ANOMALY_METRICS_MAX]; /* so far; they creep later */
	float usual[NT_ANOMALY_METRICS_MAX]; /* residual */
	struct nt_shape_clusters clusters;
};

/* What a reconstruction works on. */
struct sensing_work {
	float past[NT_SENSING_PAST * NT_ANOMALY_METRICS_MAX]; /* scaled, oldest first */
	float outlying[NT_SENSING_ROWS];
	bool sampled[NT_SENSING_ROWS];
	struct nt_cosine cosine;
	nt_cosine_row given[NT_SENSING_ROWS], value[NT_SENSING_ROWS], coefficient[NT_SENSING_ROWS],
		shrunk[NT_SENSING_ROWS], dual[NT_SENSING_ROWS];
};

int nt_sensing_new(size_t metrics, struct nt_sensing **ret_sensing)
{
	nt_auto(nt_sensing) struct nt_sensing *sensing = NULL;

	if (!metrics || metrics > NT_ANOMALY_METRICS_MAX)
		return -EINVAL;
	sensing = calloc(1, sizeof(*sensing));
	if (!sensing)
		return -ENOMEM;
	sensing->metrics = metrics;
	sensing->stride = (metrics + SENSING_ALIGN - 1) / SENSING_ALIGN * SENSING_ALIGN;
	sensing->random = 1;
	sensing->ring = calloc(NT_SENSING_PAST * sensing->stride, sizeof(*sensing->ring));
	if (!sensing->ring)
		return -ENOMEM;
	*ret_sensing = nt_take(sensing);
	return 0;
}

void nt_sensing_free(struct nt_sensing *sensing)
{
	if (!sensing)
		return;
	free(sensing->ring);
	free(sensing);
}

static float *ring_row(const struct nt_sensing *sensing, uint64_t row)
{
	return sensing->ring + row % NT_SENSING_PAST * sensing->stride;
}

/* Takes the first rows in as they are, later ones by a small share. */
static void extend_range(struct nt_sensing *sensing, size_t j, float value)
{
	float by = sensing->rows < NT_ANOMALY_LEARN_ROWS
			   ? 1.0F
			   : (float)nt_anomaly_rate(NT_ANOMALY_CREEP_ROWS);

	if (!sensing->rows)
		sensing->low[j] = sensing->high[j] = value;
	else if (value > sensing->high[j])
		sensing->high[j] += by * (value - sensing->high[j]);
	else if (value < sensing->low[j])
		sensing->low[j] += by * (value - sensing->low[j]);
}

void nt_sensing_add(struct nt_sensing *sensing, const double *value)
{
	const float *last = sensing->rows ? ring_row(sensing, sensing->rows - 1) : NULL;
	float *row = ring_row(sensing, sensing->rows);

	for (size_t j = 0; j < sensing->metrics; j++)
		row[j] = nt_anomaly_is_value(value[j]) ? (float)value[j] : last ? last[j] : 0.0F;
	for (size_t j = 0; j < sensing->metrics; j++)
		extend_range(sensing, j, row[j]);
	sensing->rows++;
}

bool nt_sensing_is_due(const struct nt_sensing *sensing)
{
	return sensing->rows >= NT_SENSING_PAST &&
	       sensing->rows - sensing->solved >= NT_SENSING_STEP;
}

/* The last rows, oldest first, in ranges. */
static void scale_past(const struct nt_sensing *sensing, float *past)
{
	const uint64_t first = sensing->rows - NT_SENSING_PAST;

	for (size_t j = 0; j < sensing->stride; j++) {
		float low = sensing->low[j], high = sensing->high[j], width = high - low;

		if (!(width > (float)NT_ANOMALY_FLAT * fmaxf(fabsf(low), fabsf(high))))
			width = INFINITY;
		for (size_t i = 0; i < NT_SENSING_PAST; i++) {
			float value = (ring_row(sensing, first + i)[j] - low) / width;

			past[i * sensing->stride + j] = fminf(fmaxf(value, -(float)NT_ANOMALY_CLIP),
							      (float)NT_ANOMALY_CLIP + 1.0F);
		}
	}
}

/* Draws rows without replacement: ordinary ones more often. */
static void draw_sample(struct nt_sensing *sensing, struct sensing_work *work)
{
	double weight[NT_SENSING_ROWS], sum = 0.0, least = INFINITY, most = 0.0;

	for (size_t i = 0; i < NT_SENSING_ROWS; i++) {
		weight[i] = 1.0 / (double)work->outlying[i];
		least = nt_stats_min(least, weight[i]);
		most = nt_stats_max(most, weight[i]);
		work->sampled[i] = false;
	}
	for (size_t i = 0; i < NT_SENSING_ROWS; i++) {
		weight[i] = (weight[i] - least) / nt_stats_max(most - least, 1e-9) +
			    NT_SENSING_LEAST_WEIGHT;
		sum += weight[i];
	}
	for (size_t n = 0; n < (size_t)(NT_SENSING_SAMPLE * NT_SENSING_ROWS); n++) {
		double at = (double)(nt_lesinn_random(&sensing->random) >> 11) * 0x1p-53 * sum;
		size_t i = 0;

		while (i + 1 < NT_SENSING_ROWS && (work->sampled[i] || at >= weight[i])) {
			at -= work->sampled[i] ? 0.0 : weight[i];
			i++;
		}
		sum -= work->sampled[i] ? 0.0 : weight[i];
		work->sampled[i] = true;
	}
}

/* Soft threshold. */
static void shrink(const nt_cosine_row *value, float by, nt_cosine_row *ret_shrunk)
{
	for (size_t t = 0; t < NT_SENSING_ROWS; t++)
		for (size_t j = 0; j < NT_SENSING_GROUP; j++) {
			float size = fabsf(value[t][j]) - by;

			ret_shrunk[t][j] = size > 0.0F ? copysignf(size, value[t][j]) : 0.0F;
		}
}

static void reconstruct(struct sensing_work *work)
{
	nt_cosine_row target[NT_SENSING_ROWS];

	memset(work->dual, 0, sizeof(work->dual));
	memset(work->value, 0, sizeof(work->value));
	for (size_t t = 0; t < NT_SENSING_ROWS; t++)
		if (work->sampled[t])
			work->value[t] = work->given[t];
	for (int i = 0; i < NT_SENSING_ROUNDS; i++) {
		nt_cosine_forward(&work->cosine, work->value, work->coefficient);
		for (size_t t = 0; t < NT_SENSING_ROWS; t++)
			target[t] = work->coefficient[t] + work->dual[t];
		shrink(target, (float)NT_SENSING_SHRINK, work->shrunk);
		for (size_t t = 0; t < NT_SENSING_ROWS; t++) {
			work->dual[t] = target[t] - work->shrunk[t];
			target[t] = work->shrunk[t] - work->dual[t];
		}
		nt_cosine_inverse(&work->cosine, target, work->value);
		for (size_t t = 0; t < NT_SENSING_ROWS; t++)
			if (work->sampled[t])
				work->value[t] = work->given[t];
	}
}

/* The mean residual of each metric of the group over the newest rows. */
static void judge_group(const struct nt_sensing *sensing, struct sensing_work *work, size_t group,
			double *error)
{
	const uint8_t *member = sensing->clusters.member[group];
	const size_t members = sensing->clusters.members[group];
	const float *window = work->past + (NT_SENSING_PAST - NT_SENSING_ROWS) * sensing->stride;

	nt_cosine_init(&work->cosine, members);
	memset(work->given, 0, sizeof(work->given));
	for (size_t t = 0; t < NT_SENSING_ROWS; t++)
		for (size_t j = 0; j < members; j++)
			work->given[t][j] = window[t * sensing->stride + member[j]];
	reconstruct(work);
	for (size_t j = 0; j < members; j++) {
		double sum = 0.0;

		for (size_t t = NT_SENSING_ROWS - NT_SENSING_JUDGED; t < NT_SENSING_ROWS; t++)
			sum += fabs((double)(work->given[t][j] - work->value[t][j]));
		error[member[j]] = sum / NT_SENSING_JUDGED;
	}
}

/* The harmonic mean of the two largest: one metric alone says little. */
static double combine(const double *error, size_t n)
{
	double first = 0.0, second = 0.0;

	for (size_t j = 0; j < n; j++) {
		second = nt_stats_max(second, nt_stats_min(first, error[j]));
		first = nt_stats_max(first, error[j]);
	}
	return first > 0.0 ? 2.0 * first * second / (first + second) : 0.0;
}

/* A residual in multiples of what is usual for its metric. */
static void compare(struct nt_sensing *sensing, double *error)
{
	const float rate = (float)nt_anomaly_rate(NT_SENSING_USUAL);

	for (size_t j = 0; j < sensing->metrics; j++) {
		float now = (float)error[j];

		error[j] = (double)(now / (sensing->usual[j] + (float)NT_SENSING_LEAST));
		sensing->usual[j] += rate * (now - sensing->usual[j]);
	}
}

int nt_sensing_solve(struct nt_sensing *sensing, double *ret_score, double *ret_error)
{
	double error[NT_ANOMALY_METRICS_MAX] = {0};
	nt_autofree struct sensing_work *work = NULL;
	int r;

	if (sensing->rows < NT_SENSING_PAST)
		return -EAGAIN;
	work = aligned_alloc(64, (sizeof(*work) + 63) / 64 * 64);
	if (!work)
		return -ENOMEM;
	scale_past(sensing, work->past);
	if (!sensing->clusters.groups ||
	    sensing->rows - sensing->clustered >= NT_SENSING_CLUSTER_ROWS) {
		r = nt_shape_clusters_find(work->past, NT_SENSING_PAST, sensing->stride,
					   sensing->metrics, &sensing->clusters);
		if (r < 0)
			return r;
		sensing->clustered = sensing->rows;
	}
	sensing->solved = sensing->rows;
	nt_lesinn_score(work->past, NT_SENSING_PAST, sensing->stride, NT_SENSING_ROWS,
			&sensing->random, work->outlying);
	draw_sample(sensing, work);
	for (size_t g = 0; g < sensing->clusters.groups; g++)
		judge_group(sensing, work, g, error);
	compare(sensing, error);
	*ret_score = combine(error, sensing->metrics);
	if (ret_error)
		memcpy(ret_error, error, sensing->metrics * sizeof(*error));
	return 0;
}

size_t nt_sensing_bytes(const struct nt_sensing *sensing)
{
	return sizeof(*sensing) + NT_SENSING_PAST * sensing->stride * sizeof(*sensing->ring);
}
