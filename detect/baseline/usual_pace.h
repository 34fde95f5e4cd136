/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learns a rank's habitual step metrics, and gathers evidence relative to them or to its peers. */
#ifndef NT_DETECT_BASELINE_USUAL_PACE_H
#define NT_DETECT_BASELINE_USUAL_PACE_H

struct nt_detect;
struct nt_step_metric_middles;
struct nt_step_metrics;
struct nt_detect_rank;

/* Updates the habit while `sum` is low; otherwise adds to the rank's evidence. */
void nt_usual_pace_gather(const struct nt_detect *detect, struct nt_detect_rank *rank, double sum,
			  const struct nt_step_metrics *step_metrics,
			  struct nt_step_metric_middles *middles);

#endif
