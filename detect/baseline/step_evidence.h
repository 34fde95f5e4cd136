/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps the mean step metrics of a rank, and gathers evidence relative to them or to its peers. */
#ifndef NT_DETECT_BASELINE_STEP_EVIDENCE_H
#define NT_DETECT_BASELINE_STEP_EVIDENCE_H

struct nt_detect;
struct nt_step_metric_middles;
struct nt_step_metrics;
struct nt_detect_rank;
struct nt_rank_evidence;

/* Updates the mean while `sum` is low; otherwise adds to the rank's evidence. */
void nt_step_evidence_gather(const struct nt_detect *detect, struct nt_detect_rank *rank,
			     double sum, const struct nt_step_metrics *step_metrics,
			     struct nt_step_metric_middles *middles);

/*
 * Own work of the peers in the rank's evidence, ns per step, of a rank that computes slowly. Where
 * collectives overlap with computing, peers wait in them for the rank while they compute, so that
 * less of their work shows. What shows in full is the longest piece of a step, and a slow device is
 * as much slower in all pieces: the rank's work ÷ the ratio of their longest pieces. Where that is
 * not observed, or as long as the peers', it is the work that shows.
 */
double nt_step_evidence_peers_work(const struct nt_rank_evidence *evidence);

#endif
