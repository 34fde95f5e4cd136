/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rank whose end ended the job. When one process fails, its launcher ends the others. When the
 * job is ended from outside, by its scheduler or a person, the same signal ends all of them.
 */
#ifndef NT_DETECT_RULES_FIRST_DEATH_H
#define NT_DETECT_RULES_FIRST_DEATH_H

#include <stdbool.h>

struct nt_detect;
struct nt_detect_rank;

/* Whether the driver reported an error of its GPU not long before it ended. */
bool nt_first_death_had_xid(const struct nt_detect_rank *rank);

/*
 * The rank that ended first, in a job whose ranks have all ended. It ended by a signal or with a
 * status other than 0, and no other rank ended in the same way. The same way is the same signal
 * from outside at any time, or SIGKILL within NT_DEATH_KILLED_TOGETHER_NS. For other ends it is
 * within NT_DEATH_TOGETHER_NS. Of ranks that fail together, the only one whose GPU had an error.
 * Borrowed. NULL: there is none, or it is not known.
 */
const struct nt_detect_rank *nt_first_death(const struct nt_detect *detect);

#endif
