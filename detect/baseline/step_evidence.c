/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mean step metrics of a rank, and the evidence of its deviation from them. */
#include "detect/baseline/step_evidence.h"

#include <math.h>

#include "detect/baseline/step_metrics.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* Metrics of own work keep their value where it is not observed; new ones are taken over at once. */
static void learn_mean(struct nt_detect_rank *rank, bool has_own)
{
	const bool is_first = rank->metric_mean[NT_STEP_METRIC_OWN] == 0.0;

	for (int j = 0; j < NT_STEP_METRIC_END; j++) {
		const bool is_own = nt_step_metric_is_own(j);
		const double part =
			rank->has_metric_mean && !(is_own && is_first) ? NT_METRIC_MEAN_PART : 1.0;

		if (has_own || !is_own)
			rank->metric_mean[j] +=
				part * (rank->step_metric[j] - rank->metric_mean[j]);
	}
	rank->has_metric_mean = true;
}

/* Whether the rank does not deviate; the means of permanently slow ranks are learned, too. */
static bool is_inconspicuous(const struct nt_track *track)
{
	return (track->past.ready ? track->shift.sum : track->level.sum) <= 0.0;
}

void nt_step_evidence_gather(const struct nt_detect *detect, struct nt_detect_rank *rank,
			     double sum, const struct nt_step_metrics *step_metrics,
			     struct nt_step_metric_middles *middles)
{
	/* In a round at another tier own work is unknown, not zero. */
	const bool has_own = rank->track[NT_SERIES_OWN].frame == detect->frames;
	const struct nt_track *own = &rank->track[NT_SERIES_OWN];
	/* Own work that is not judged may accuse by its past so far, or else the host is what may. */
	const bool by_own = has_own && (nt_track_is_judged(own) ||
					nt_track_sum(own, &detect->rules) >=
						NT_EVIDENCE_FROM * detect->threshold);
	const bool own_past =
		rank->track[by_own ? NT_SERIES_OWN : NT_SERIES_HOST].mode == NT_MODE_PAST;
	struct nt_rank_evidence *evidence = &rank->evidence;

	/* Observed differently from the others: neither the mean nor the evidence changes. */
	if (!nt_detect_rank_shows_host(rank) && !has_own)
		return;
	if (is_inconspicuous(&rank->track[NT_SERIES_OWN]) &&
	    is_inconspicuous(&rank->track[NT_SERIES_HOST]))
		learn_mean(rank, has_own);
	if (sum < NT_EVIDENCE_FROM * detect->threshold && !rank->in_incident) {
		if (evidence->weight != 0.0)
			*evidence = (struct nt_rank_evidence){0};
		return;
	}
	if (!own_past && step_metrics->n >= 2 && !middles->known)
		nt_step_metrics_middles(detect, step_metrics, middles);
	evidence->weight = NT_EVIDENCE_KEPT * evidence->weight + 1.0;
	if (has_own)
		evidence->own_weight = NT_EVIDENCE_KEPT * evidence->own_weight + 1.0;
	for (int j = 0; j < NT_STEP_METRIC_END; j++) {
		const bool is_own = nt_step_metric_is_own(j);
		const double weight = is_own ? evidence->own_weight : evidence->weight;
		double peers = rank->has_metric_mean ? rank->metric_mean[j] : 0.0;

		if (is_own && !has_own)
			continue;
		if (!own_past && middles->held[j] >= 2)
			peers = nt_stats_middle_without(&middles->of[j], rank->step_metric[j]);
		evidence->value[j] += (rank->step_metric[j] - evidence->value[j]) / weight;
		evidence->peers[j] += (peers - evidence->peers[j]) / weight;
	}
}

double nt_step_evidence_peers_work(const struct nt_rank_evidence *evidence)
{
	const double own = evidence->value[NT_STEP_METRIC_OWN],
		     shown = evidence->peers[NT_STEP_METRIC_OWN],
		     longest = evidence->value[NT_STEP_METRIC_OWN_LONGEST],
		     peers = evidence->peers[NT_STEP_METRIC_OWN_LONGEST];

	if (peers <= 0.0 || longest < NT_OVERLAP_LEAST * peers)
		return shown;
	return fmax(shown, own * peers / longest);
}
