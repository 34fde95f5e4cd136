/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's pace usually is, and the evidence that is held against that or its peers. */
#ifndef NT_DETECT_HABIT_H
#define NT_DETECT_HABIT_H

struct nt_detect;
struct nt_pace_middles;
struct nt_paces;
struct nt_rank;

/* While nothing is suspicious the pace is the rank's habit; evidence is held against it or peers. */
void nt_habit_gather(const struct nt_detect *detect, struct nt_rank *rank, double sum,
		     const struct nt_paces *paces, struct nt_pace_middles *middles);

#endif
