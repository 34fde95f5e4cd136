/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The last scores and rows of a node, for people to look at: six hours of scores, and of the metrics
 * as much as memory allows. Values are rounded to three digits.
 */
#ifndef NT_ENGINE_NODES_SCORE_HISTORY_H
#define NT_ENGINE_NODES_SCORE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/anomaly/metric.h"

enum {
	NT_SCORE_HISTORY_SCORES = 360, /* minutes that are kept */
	NT_SCORE_HISTORY_ROWS = 90,
	NT_SCORE_HISTORY_NONE = 255, /* no metric leads */
};

struct nt_score_entry {
	float score; /* in levels */
	uint16_t minute; /* its lowest bits */
	uint8_t leading; /* number of the metric of the largest share */
	uint8_t state; /* enum nt_fleet_state */
};

/* Zero-initialised: empty. */
struct nt_score_history {
	struct nt_score_entry *score; /* ring, owned */
	uint16_t *row; /* ring of `width` values a row, owned */
	size_t width;
	uint64_t scores, rows; /* ever added */
	uint64_t minute; /* of the newest */
};

struct nt_score_point {
	uint64_t minute;
	double value; /* NaN: missing */
	uint8_t leading, state;
};

void nt_score_history_release(struct nt_score_history *history);

/* Adds a minute. -ENOMEM: nothing is added. */
NT_MUST_CHECK int nt_score_history_add(struct nt_score_history *history, uint64_t minute,
				       const struct nt_score_entry *entry, const double *row,
				       size_t width);

/* Oldest first; how many. `ret_point` has room for NT_SCORE_HISTORY_SCORES, _ROWS. */
size_t nt_score_history_scores(const struct nt_score_history *history,
			       struct nt_score_point *ret_point);
size_t nt_score_history_series(const struct nt_score_history *history, size_t column,
			       struct nt_score_point *ret_point);

size_t nt_score_history_bytes(const struct nt_score_history *history);

#endif
