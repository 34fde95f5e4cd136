/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's pace usually is, and the evidence that is held against that or its peers. */
#ifndef NT_DETECT_BASELINE_USUAL_PACE_H
#define NT_DETECT_BASELINE_USUAL_PACE_H

struct nt_detect;
struct nt_step_metric_middles;
struct nt_step_metrics;
struct nt_detect_rank;

/* While nothing is suspicious the pace is the rank's habit; evidence is held against it or peers. */
void nt_usual_pace_gather(const struct nt_detect *detect, struct nt_detect_rank *rank, double sum,
			  const struct nt_step_metrics *step_metrics,
			  struct nt_step_metric_middles *middles);

#endif
