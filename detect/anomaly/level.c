/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/level.h"

#include <math.h>

#include "detect/math/stats.h"

void nt_score_level_add(struct nt_score_level *level, double score, double keep)
{
	double bin = log10(nt_stats_max(score, NT_ANOMALY_LEVEL_LEAST) / NT_ANOMALY_LEVEL_LEAST) *
		     NT_ANOMALY_LEVEL_DECADE;

	for (size_t i = 0; i < NT_ANOMALY_LEVEL_BINS; i++)
		level->count[i] *= keep;
	level->count[(size_t)nt_stats_min(bin, NT_ANOMALY_LEVEL_BINS - 1)] += 1.0;
	level->sum = level->sum * keep + 1.0;
}

double nt_score_level_quantile(const struct nt_score_level *level, double part)
{
	double want = part * level->sum, below = 0.0;
	size_t i = 0;

	if (level->sum <= 0.0)
		return 0.0;
	while (i + 1 < NT_ANOMALY_LEVEL_BINS && below + level->count[i] < want)
		below += level->count[i++];
	below = nt_stats_min((want - below) / nt_stats_max(level->count[i], 1e-9), 1.0);
	return NT_ANOMALY_LEVEL_LEAST * exp10(((double)i + below) / NT_ANOMALY_LEVEL_DECADE);
}

void nt_score_level_code(struct nt_codec *codec, struct nt_score_level *level)
{
	nt_code_reals(codec, level->count, NT_ANOMALY_LEVEL_BINS);
	nt_code_real(codec, &level->sum);
	for (size_t i = 0; i < NT_ANOMALY_LEVEL_BINS; i++)
		nt_code_fail(codec, level->count[i] < 0.0);
	nt_code_fail(codec, level->sum < 0.0);
}
