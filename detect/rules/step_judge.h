/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Job-wide rules: the step as a whole, and changes that all ranks share. */
#ifndef NT_DETECT_RULES_STEP_JUDGE_H
#define NT_DETECT_RULES_STEP_JUDGE_H

struct nt_detect;
struct nt_frame;

/* Learns from the steps of the ranks judged in this frame. Returns 0. */
int nt_detect_step_learn(struct nt_detect *detect, const struct nt_frame *frame);
/* Raises changes common to all ranks; a lasting one becomes the new baseline. -ENOMEM. */
int nt_detect_step_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
