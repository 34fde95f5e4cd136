/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pauses: no rank makes progress and none is seen to wait. */
#ifndef NT_DETECT_RULES_PAUSE_H
#define NT_DETECT_RULES_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct nt_detect;
struct nt_proposal;

/*
 * Time without progress after which a pause is raised, if no rank is late, ns. In a young job a
 * detected step may be only a part of one, as hosts enqueue work in bursts. The longest pause so
 * far is then the better measure.
 */
uint64_t nt_pause_patience(const struct nt_detect *detect, uint64_t hang_ns);
/* Whether a rank completed a step or a call. */
bool nt_pause_is_over(const struct nt_detect *detect);
/* Adds the number of ranks whose calls are not observed as evidence. */
void nt_pause_add_lost_sight(struct nt_proposal *proposal, uint32_t lost_sight, uint32_t ranks);
/* Raises a pause that is too long; `inside`: a rank is seen waiting. -ENOMEM. */
int nt_pause_check(struct nt_detect *detect, bool moved, bool inside);

#endif
