/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The step of the job as a whole, and when all ranks change together. */
#ifndef NT_DETECT_RULES_STEP_JUDGE_H
#define NT_DETECT_RULES_STEP_JUDGE_H

struct nt_detect;
struct nt_frame;

/* Takes the steps of the ranks judged in this frame. Returns 0. */
int nt_detect_step_learn(struct nt_detect *detect, const struct nt_frame *frame);
/* Raises what all ranks have together; makes it the new normal when it lasts. -ENOMEM. */
int nt_detect_step_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
