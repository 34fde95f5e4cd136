/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank. */
#include "detect/model/rank.h"

#include "detect/math/stats.h"

double nt_detect_rank_sum(const struct nt_detect_rank *rank)
{
	double sum = 0.0;

	for (int i = 0; i < NT_SERIES_END; i++)
		sum = nt_stats_max(
			sum, nt_stats_max(rank->track[i].level.sum, rank->track[i].shift.sum));
	return sum;
}
