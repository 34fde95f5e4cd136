/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rank whose end ended the job. When one process fails, its launcher ends the others. When the
 * job is ended from outside, by its scheduler or a person, the same signal ends all of them.
 */
#ifndef NT_DETECT_RULES_FIRST_DEATH_H
#define NT_DETECT_RULES_FIRST_DEATH_H

struct nt_detect;
struct nt_detect_rank;

/*
 * Of a job whose ranks have all ended: the first one, if it ended by a signal or with a status other
 * than 0, and no other rank ended in the same way: by the same signal from outside at any time, by
 * SIGKILL within NT_DEATH_KILLED_TOGETHER_NS, or else within NT_DEATH_TOGETHER_NS. Borrowed. NULL:
 * there is none, or it is not known.
 */
const struct nt_detect_rank *nt_first_death(const struct nt_detect *detect);

#endif
