/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank. */
#include "detect/rank.h"

#include "detect/stats.h"

double nt_rank_sum(const struct nt_rank *rank)
{
	double sum = 0.0;

	for (int i = 0; i < NT_SERIES_END; i++)
		sum = nt_stats_max(
			sum, nt_stats_max(rank->track[i].level.sum, rank->track[i].shift.sum));
	return sum;
}
