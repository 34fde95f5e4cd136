/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How often healthy ranks fall far behind their peers for a while, and what one more such window
 * says about a rank. A fault that shows in some steps only is found by its rate, which a sum of
 * clipped deviations does not see.
 */
#ifndef NT_DETECT_MATH_FAR_RATE_H
#define NT_DETECT_MATH_FAR_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/thresholds.h"

/*
 * Windows after one that was not far, of all ranks of a group together; old ones decay. Far ones by
 * size, each twice as large as the one before; size 0 is a window that is not far.
 */
struct nt_far_rate {
	double windows, far[NT_FAR_SIZES + 1]; /* far[0]: 0 */
};

/* The size of a window that lies so many widths behind, at least NT_FAR_WIDTHS. */
uint8_t nt_far_size(double widths);
void nt_far_rate_add(struct nt_far_rate *rate, uint8_t size);
/* Decays old windows; called before a round's windows are added. */
void nt_far_rate_fade(struct nt_far_rate *rate);
/* sum + rate; sum - rate, at least 0. */
void nt_far_rate_plus(struct nt_far_rate *sum, const struct nt_far_rate *rate);
void nt_far_rate_minus(struct nt_far_rate *sum, const struct nt_far_rate *rate);
/*
 * The least size that is evidence. Where healthy ranks are far so often that another one which is
 * would hardly differ, it is the size that they hardly ever reach.
 */
uint8_t nt_far_rate_least(const struct nt_far_rate *others, const struct nt_far_rate *rest);
/* A rank's own windows by size since its sum left zero; size 0 is a window that is not far. */
struct nt_far_own {
	uint32_t windows[NT_FAR_SIZES + 1];
};

/* Whether there are enough far ones not to be all of one rank by chance. */
bool nt_far_own_suffices(const struct nt_far_own *own);

/*
 * What is added to a sum that starts in a far window. If it starts in any window, its chance to reach A is
 * 1/A at most; if only in far ones, it is the share of these on a faulty rank, NT_FAR_RATE_FAULTY, of 1/A.
 */
double nt_far_rate_start(void);
/*
 * The increment of a CUSUM whose tail decays with nt_cusum_exponent(), for a window of this
 * size; one below `least` is not far. It is the logarithm of the likelihood ratio of a faulty to a
 * healthy rank (Page, 1954), divided by that exponent. A faulty rank is far in NT_FAR_RATE_FAULTY of
 * its windows at least, of sizes as its own ones so far (Laplace's rule of succession). 0: healthy
 * ranks are far so often that a fault would not differ.
 *
 * `others`: of its group, without the rank itself. While little is known of them, the rate is that of
 * the `rest`: of the other groups. While little is known of any, the rank's own far windows may be
 * those of a job in which all ranks are far at times, and healthy ones may be of their sizes: the
 * rate of healthy ranks is a mixture of both kinds of jobs.
 */
double nt_far_rate_gain(const struct nt_far_rate *others, const struct nt_far_rate *rest,
			const struct nt_far_own *own, uint8_t least, uint8_t size);

/*
 * Whether a rank falls far behind at equal distances: then its program does so every so many steps,
 * as when one rank writes checkpoints. A fault keeps no count of steps. After two times it may.
 */
struct nt_far_rhythm {
	double at, gap; /* steps: of the last time, since the one before; 0: there was none */
	double cost; /* of that time, part of the step */
	uint8_t times; /* that gap came so often in a row */
	double on, off; /* what the times at that distance cost, and the others since it is known */
};

/*
 * `step`: of the job, from 1; `window`: steps of a window, within which the place is not known. What
 * costs less than half as much as the last time is another thing, and what costs more than twice
 * as much is the first of its kind.
 */
void nt_far_rhythm_add(struct nt_far_rhythm *rhythm, double step, double window, double cost);
bool nt_far_rhythm_is_regular(const struct nt_far_rhythm *rhythm, double window);

#endif
