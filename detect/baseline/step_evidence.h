/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps the mean step metrics of a rank, and gathers evidence relative to them or to its peers. */
#ifndef NT_DETECT_BASELINE_STEP_EVIDENCE_H
#define NT_DETECT_BASELINE_STEP_EVIDENCE_H

struct nt_detect;
struct nt_step_metric_middles;
struct nt_step_metrics;
struct nt_detect_rank;

/* Updates the mean while `sum` is low; otherwise adds to the rank's evidence. */
void nt_step_evidence_gather(const struct nt_detect *detect, struct nt_detect_rank *rank,
			     double sum, const struct nt_step_metrics *step_metrics,
			     struct nt_step_metric_middles *middles);

#endif
