/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The level of a node's score: a quantile of what it was lately, by a histogram of its logarithm in
 * which old rows fade. It makes scores of different nodes comparable.
 */
#ifndef NT_DETECT_ANOMALY_LEVEL_H
#define NT_DETECT_ANOMALY_LEVEL_H

#include "common/base/codec.h"
#include "detect/thresholds/thresholds.h"

/* Zero-initialised: empty. */
struct nt_score_level {
	double count[NT_ANOMALY_LEVEL_BINS];
	double sum; /* of the counts */
};

/* What was added before counts `keep` times as much. */
void nt_score_level_add(struct nt_score_level *level, double score, double keep);
/* 0 without scores. */
double nt_score_level_quantile(const struct nt_score_level *level, double part);
void nt_score_level_code(struct nt_codec *codec, struct nt_score_level *level);

#endif
