/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Resets learned baselines after a job's steps or roles have changed. */
#ifndef NT_DETECT_BASELINE_BASELINE_RESET_H
#define NT_DETECT_BASELINE_BASELINE_RESET_H

#include <stdbool.h>

struct nt_detect;
struct nt_group;

/*
 * Discards all baselines. `all`: also of ranks in incidents, whose current state counts as normal.
 */
void nt_normal_forget(struct nt_detect *detect, bool all);
/* Discards the baselines of the ranks of one group only. */
void nt_normal_forget_group(struct nt_detect *detect, struct nt_group *group);

#endif
