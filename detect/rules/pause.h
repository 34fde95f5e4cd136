/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pauses: nobody goes on, and nobody waits, as far as is seen. */
#ifndef NT_DETECT_RULES_PAUSE_H
#define NT_DETECT_RULES_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct nt_detect;
struct nt_proposal;

/*
 * Where nobody is late: that all wait may be how the job's first steps are, and what is taken for a
 * step then may be a part of one: all that a host enqueues in its first burst is one round of such.
 * How long everybody stood still at a time tells more, while a job is young.
 */
uint64_t nt_pause_patience(const struct nt_detect *detect, uint64_t hang_ns);
/* Somebody ended a step or went on in a communicator. */
bool nt_pause_is_over(const struct nt_detect *detect);
/* So many of the ranks are out of sight. */
void nt_pause_add_lost_sight(struct nt_proposal *proposal, uint32_t lost_sight, uint32_t ranks);
/* Raises a pause that is too long; `inside`: somebody waits in sight. -ENOMEM. */
int nt_pause_check(struct nt_detect *detect, bool moved, bool inside);

#endif
