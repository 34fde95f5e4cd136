/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/rank_times.h"

void nt_rank_times_add(struct nt_rank_times *times, const struct nt_window *window)
{
	const double steps = window->steps;

	if (!window->steps)
		return;
	times->step_seconds += (double)window->step_ns / 1e9 / steps;
	times->windows++;
	if (window->own_tier != NT_TIER_T2 && window->own_tier != NT_TIER_T3)
		return;
	times->own_seconds += (double)window->own_ns / 1e9 / steps;
	times->own_windows++;
}

size_t nt_rank_times_take(struct nt_rank_times *times,
			  struct nt_metric_value ret_metric[NT_RANK_TIMES_METRICS])
{
	size_t n = 0;

	if (times->windows)
		ret_metric[n++] = (struct nt_metric_value){
			"rank_step_seconds", times->step_seconds / (double)times->windows};
	if (times->own_windows)
		ret_metric[n++] = (struct nt_metric_value){
			"rank_own_work_seconds", times->own_seconds / (double)times->own_windows};
	*times = (struct nt_rank_times){0};
	return n;
}
