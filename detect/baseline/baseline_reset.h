/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is normal for a job, where its steps or roles are others now. */
#ifndef NT_DETECT_BASELINE_BASELINE_RESET_H
#define NT_DETECT_BASELINE_BASELINE_RESET_H

#include <stdbool.h>

struct nt_detect;
struct nt_group;

/* All that was normal is forgotten; `all`: of the ranks in incidents too, and what is now is fine. */
void nt_normal_forget(struct nt_detect *detect, bool all);
/* What was normal for the ranks of one role, and nothing else. */
void nt_normal_forget_group(struct nt_detect *detect, struct nt_group *group);

#endif
