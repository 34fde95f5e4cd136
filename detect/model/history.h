/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The history of the job's step times, which gives the reference before an onset. */
#ifndef NT_DETECT_MODEL_HISTORY_H
#define NT_DETECT_MODEL_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/thresholds.h"

enum {
	/* Rounds last at least 0.5 s: covers a fault of a minute and the time before it. */
	NT_HISTORY_ROUNDS = 192,
};

struct nt_history_round {
	uint64_t start_ns;
	double steps; /* completed steps, mean of the ranks */
	double step_ns; /* mean step time, outlying ranks clipped */
	double calls; /* synchronising calls, mean of the ranks */
};

struct nt_history {
	struct nt_history_round round[NT_HISTORY_ROUNDS]; /* ascending in time from `next` on */
	uint32_t count, next;
	double steps; /* of all rounds so far, including overwritten ones */
	double calls; /* of all rounds since the step unit last changed */
	uint64_t begin_ns; /* start of these calls */
};

/* Sums over the steps since a time. */
struct nt_history_sum {
	double steps, step_ns; /* step_ns: total */
	double calls;
};

/* The mean step time of some rounds, and their spread. */
struct nt_history_mean {
	double step_ns, sigma_ns;
};

/* Rounds in a row that are longer than the others: means of both. */
struct nt_history_stretch {
	uint64_t onset_ns;
	uint32_t rounds;
	double step_ns, usual_ns;
	double lost; /* the part of the time of all rounds that their excess is */
};

/* Steps of the last round; 0: there is none. */
double nt_history_last_steps(const struct nt_history *history);
/* Mean steps of the rounds; 0: there is none. */
double nt_history_mean_steps(const struct nt_history *history);
void nt_history_add(struct nt_history *history, const struct nt_history_round *round);
/*
 * The step unit changed: clears the rounds and restarts the call count at now_ns. Steps keep
 * counting.
 */
void nt_history_forget(struct nt_history *history, uint64_t now_ns);
/* Median step time in the last rounds before onset_ns; 0: too few rounds. */
double nt_history_before(const struct nt_history *history, uint64_t onset_ns);
/* Mean step time in the same rounds, each at most most_ns; 0: too few rounds. */
double nt_history_before_mean(const struct nt_history *history, uint64_t onset_ns, double most_ns);
/*
 * Whether steps since onset_ns hold about as many calls as those before. Else some ranks count other
 * steps, and the two times cannot be compared.
 */
bool nt_history_same_unit(const struct nt_history *history, uint64_t onset_ns);
/* Lower quartile of the step times since since_ns; 0: no rounds. */
double nt_history_low(const struct nt_history *history, uint64_t since_ns);
/* Start of the round with `rounds` rounds after it, or of the oldest one. */
uint64_t nt_history_start(const struct nt_history *history, uint32_t rounds);
/* Mean step time of `rounds` rounds, each at most most_ns, `later` before the last; 0: too few. */
struct nt_history_mean nt_history_mean(const struct nt_history *history, uint32_t later,
				       uint32_t rounds, double most_ns);
/* Standard error of the difference of two such means, of n and m rounds. */
double nt_history_error(const struct nt_history_mean *a, uint32_t n,
			const struct nt_history_mean *b, uint32_t m);
/* Rounds since onset_ns. */
uint32_t nt_history_rounds_since(const struct nt_history *history, uint64_t onset_ns);
/*
 * The longest stretch by its excess over the median round, which each of its rounds exceeds by about
 * `least` of it. False: three of four of its rounds do not exceed three of four others, or it begins with
 * the first rounds, which may be those of a warm-up.
 */
bool nt_history_find_stretch(const struct nt_history *history, double least,
			     struct nt_history_stretch *ret_stretch);
struct nt_history_sum nt_history_since(const struct nt_history *history, uint64_t onset_ns);
/* What the steps since onset_ns took beyond clean_ns each, in a round at most most_ns a step. */
double nt_history_excess(const struct nt_history *history, uint64_t onset_ns, double clean_ns,
			 double most_ns);
/*
 * Evidence accumulates with a delay: returns when steps first became as long as since onset_ns. Not
 * before least_ns; onset_ns if too little history precedes it, or if that may be chance.
 */
uint64_t nt_history_onset(const struct nt_history *history, uint64_t onset_ns, uint64_t least_ns);
/*
 * Steps before those since onset_ns, estimated from calls. The first steps of a job are only seen
 * as calls, until its agents have found the step. `ahead`: hosts run ahead of devices and have made
 * calls of later steps, so the estimate is bounded by the elapsed time.
 */
double nt_history_unseen(const struct nt_history *history, uint64_t onset_ns, bool ahead);

#endif
