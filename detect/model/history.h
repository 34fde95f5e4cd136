/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long the job's steps took lately, so that a fault is held against what was before it. */
#ifndef NT_DETECT_MODEL_HISTORY_H
#define NT_DETECT_MODEL_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/thresholds.h"

enum {
	/* As rounds last half a second at least: what lasts a minute, and what was before it. */
	NT_HISTORY_ROUNDS = 192,
};

struct nt_history_round {
	uint64_t start_ns;
	double steps; /* that ended in it: the mean of the ranks */
	double step_ns; /* their mean, no rank's being far from the median */
	double calls; /* that synchronise: the mean of the ranks */
};

struct nt_history {
	struct nt_history_round round[NT_HISTORY_ROUNDS]; /* ascending in time from `next` on */
	uint32_t count, next;
	double steps; /* of all rounds so far, also of those that are forgotten */
	double calls; /* of all rounds since steps were last another unit */
	uint64_t begin_ns; /* since when these calls are counted */
};

/* What is known of the steps from a time on. */
struct nt_history_sum {
	double steps, step_ns; /* step_ns: of all of them together */
	double calls;
};

void nt_history_add(struct nt_history *history, const struct nt_history_round *round);
/* Steps are another unit from now on, and calls are counted from `now_ns`. The count of steps goes on. */
void nt_history_forget(struct nt_history *history, uint64_t now_ns);
/* The step in the last rounds before `onset_ns`; 0: too few are known. */
double nt_history_before(const struct nt_history *history, uint64_t onset_ns);
/* Three of four of the rounds since then took longer than this; 0: none is known. */
double nt_history_low(const struct nt_history *history, uint64_t since_ns);
/* When the round began that had `rounds` after it, the oldest that is known where there were fewer. */
uint64_t nt_history_start(const struct nt_history *history, uint32_t rounds);
struct nt_history_sum nt_history_since(const struct nt_history *history, uint64_t onset_ns);
/*
 * Evidence takes a while to add up: since when steps were as long as they are since `onset_ns`. Not
 * before `least_ns`; `onset_ns` where too little is known of what was before.
 */
uint64_t nt_history_onset(const struct nt_history *history, uint64_t onset_ns, uint64_t least_ns);
/*
 * How many steps there were beside those since `onset_ns`, by the calls that were seen: of the first ones
 * nothing else is, as the step is still being searched for. `ahead`: hosts run ahead of devices, and have
 * called for steps that are told later: there were no more than there was time for.
 */
double nt_history_unseen(const struct nt_history *history, uint64_t onset_ns, bool ahead);

#endif
