/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resets learned baselines. */
#include "detect/baseline/baseline_reset.h"

#include <math.h>

#include "detect/model/detector_state.h"

static void forget_rank(struct nt_detect *detect, uint32_t index, bool sums)
{
	struct nt_detect_rank *rank = &detect->rank[index];

	rank->has_metric_mean = false;
	rank->gpu_before = rank->gpu_since = (struct nt_gpu_span){0};
	for (int i = 0; i < NT_SERIES_END; i++) {
		detect->scratch.contribution[index].of[i].growth = NAN;
		nt_past_clear(&rank->track[i].past);
		rank->track[i].growth_known = false;
		if (!sums)
			continue;
		nt_track_clear_sums(&rank->track[i]);
	}
}

static void forget_group_past(struct nt_group_past *past)
{
	if (!past)
		return;
	past->apart = 0;
	for (int i = 0; i < NT_SERIES_END; i++)
		past->residual_width[i] = (struct nt_ring){0};
}

void nt_normal_forget_group(struct nt_detect *detect, struct nt_group *group)
{
	for (uint32_t i = 0; i < group->members; i++) {
		const uint32_t index = detect->roles.member[group->first + i];
		const struct nt_detect_rank *rank = &detect->rank[index];

		/* Accused ranks keep their evidence. */
		forget_rank(detect, index, !rank->in_incident);
		/* Transfer times depend on the number of calls per step. */
		for (uint32_t j = 0; j < rank->links; j++)
			nt_network_forget(rank->link[j].comm);
	}
	forget_group_past(group->past);
}

void nt_normal_forget(struct nt_detect *detect, bool all)
{
	const uint64_t moved_ns = detect->step.moved_ns;
	const uint64_t longest_ns = detect->step.longest_pause_ns;
	struct nt_history history = detect->step.history;

	nt_history_forget(&history, detect->end_ns);
	nt_lost_times_forget(&detect->incidents);
	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct nt_detect_rank *rank = &detect->rank[i];

		if (rank->in_incident && !all)
			continue;
		rank->accepted = rank->accepted || all;
		forget_rank(detect, i, true);
	}
	for (uint32_t i = 0; i < detect->comm_count; i++)
		nt_network_forget(detect->comm[i]);
	nt_links_free(&detect->links);
	for (uint32_t i = 0; i < detect->roles.groups; i++)
		forget_group_past(detect->roles.group[i].past);
	detect->step = (struct nt_detect_step){.step_ns = detect->step.step_ns,
					       .history = history,
					       .round_steps = detect->step.round_steps,
					       .round_ns = detect->step.round_ns,
					       .round_calls = detect->step.round_calls,
					       .charged_ns = detect->step.charged_ns,
					       .wide_frame = detect->frames,
					       .moved_ns = moved_ns,
					       .longest_pause_ns = longest_ns};
}
