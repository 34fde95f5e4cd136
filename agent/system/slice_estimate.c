/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/slice_estimate.h"

/* The estimate of one sum for the time since the last slice. */
static uint64_t gap_part(const struct nt_slice_estimate *estimate, int i, uint64_t gap_ns)
{
	return estimate->slice_ns ? (uint64_t)((double)estimate->last.of[i] * (double)gap_ns /
					       (double)estimate->slice_ns)
				  : 0;
}

void nt_slice_estimate_begin(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			     uint64_t gap_ns)
{
	for (int i = 0; i < NT_SWITCH_SUMS; i++)
		estimate->extra.of[i] += gap_part(estimate, i, gap_ns);
	estimate->start = *sums;
}

void nt_slice_estimate_end(struct nt_slice_estimate *estimate, const struct nt_switch_sums *sums,
			   uint64_t slice_ns)
{
	for (int i = 0; i < NT_SWITCH_SUMS; i++) {
		const uint64_t before = estimate->start.of[i];

		estimate->last.of[i] = sums->of[i] > before ? sums->of[i] - before : 0;
	}
	estimate->slice_ns = slice_ns;
}

void nt_slice_estimate_add(const struct nt_slice_estimate *estimate, uint64_t gap_ns,
			   struct nt_switch_sums *sums)
{
	for (int i = 0; i < NT_SWITCH_SUMS; i++)
		sums->of[i] += estimate->extra.of[i] + gap_part(estimate, i, gap_ns);
}
