/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bench/anomaly/measures.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

enum {
	WIDEST = 100,
	WIDEN_STEP = 20,
	THRESHOLDS = 200,
};

struct scored_row {
	double score;
	uint8_t label;
};

static int by_score(const void *a, const void *b)
{
	const struct scored_row *one = a, *other = b;

	return (one->score < other->score) - (one->score > other->score);
}

static void measure_rows(const struct scored_row *row, size_t n, struct measures *measures)
{
	double positives = 0.0, hits = 0.0, recall_before = 0.0;

	for (size_t i = 0; i < n; i++)
		positives += row[i].label;
	for (size_t i = 0; i < n; i++) {
		double recall;

		hits += row[i].label;
		if (i + 1 < n && row[i + 1].score == row[i].score)
			continue;
		recall = positives > 0.0 ? hits / positives : 0.0;
		measures->auc_pr += (recall - recall_before) * hits / (double)(i + 1);
		measures->best_f1 =
			fmax(measures->best_f1, 2.0 * hits / ((double)(i + 1) + positives));
		recall_before = recall;
	}
}

static void measure_alarms(const uint8_t *alarm, const uint8_t *label, size_t n,
			   struct measures *measures)
{
	double hits = 0.0, rows = 0.0;
	bool touches = false;

	for (size_t i = 0; i < n; i++) {
		hits += alarm[i] && label[i];
		rows += alarm[i] + label[i];
		touches = alarm[i] && (touches || label[i]);
		measures->false_alarms += alarm[i] && !touches && (i + 1 == n || !alarm[i + 1]);
	}
	measures->f1 = rows > 0.0 ? 2.0 * hits / rows : 0.0;
}

/* Labels that fall off over half of `width` on both sides of each labelled run. */
static void widen(const uint8_t *label, size_t n, size_t width, double *soft)
{
	size_t half = width / 2;

	for (size_t i = 0; i < n; i++)
		soft[i] = label[i];
	for (size_t i = 0; i < n; i++) {
		if (!label[i])
			continue;
		for (size_t k = 1; k <= half; k++) {
			double value = sqrt(1.0 - (double)k / (double)width);

			if ((i == 0 || !label[i - 1]) && i >= k && !label[i - k])
				soft[i - k] = fmax(soft[i - k], value);
			if (i + 1 < n && !label[i + 1] && i + k < n && !label[i + k])
				soft[i + k] = fmax(soft[i + k], value);
		}
	}
}

/* The area for one width, over thresholds at equal numbers of rows. */
static double range_area(const double *score, const struct scored_row *sorted, const uint8_t *label,
			 const double *soft, size_t n)
{
	double area = 0.0, recall_before = 0.0, positives = 0.0;

	for (size_t i = 0; i < n; i++)
		positives += label[i];
	for (int t = 1; t <= THRESHOLDS; t++) {
		double threshold = sorted[(size_t)((double)(n - 1) * t / THRESHOLDS)].score;
		double hits = 0.0, labels = 0.0, flagged = 0.0, runs = 0.0, found = 0.0, recall;
		bool inside = false, seen = false;

		for (size_t i = 0; i < n; i++) {
			bool is_flagged = score[i] >= threshold;

			flagged += is_flagged;
			hits += is_flagged ? soft[i] : 0.0;
			labels += label[i] ? 1.0 : is_flagged ? soft[i] : 0.0;
			if (soft[i] > 0.0) {
				runs += !inside;
				seen = (inside && seen) || is_flagged;
				inside = true;
			}
			if (inside && (soft[i] <= 0.0 || i + 1 == n)) {
				found += seen;
				inside = seen = false;
			}
		}
		recall = fmin(hits / ((positives + labels) / 2.0), 1.0) * found / fmax(runs, 1.0);
		area += (recall - recall_before) * hits / flagged;
		recall_before = recall;
	}
	return area;
}

int measure(const double *score, const uint8_t *alarm, const uint8_t *label, size_t n,
	    struct measures *ret_measures)
{
	nt_autofree struct scored_row *row = malloc(n * sizeof(*row));
	nt_autofree double *soft = malloc(n * sizeof(*soft));
	double widths = 0.0;

	if (!row || !soft)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		row[i] = (struct scored_row){score[i], label[i]};
	qsort(row, n, sizeof(*row), by_score);
	*ret_measures = (struct measures){0};
	measure_rows(row, n, ret_measures);
	if (alarm)
		measure_alarms(alarm, label, n, ret_measures);
	for (size_t width = 0; width <= WIDEST; width += WIDEN_STEP, widths += 1.0) {
		widen(label, n, width, soft);
		ret_measures->vus_pr += range_area(score, row, label, soft, n);
	}
	ret_measures->vus_pr /= widths;
	return 0;
}
