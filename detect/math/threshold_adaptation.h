/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Adapts the alarm threshold to the tail of healthy windows. The threshold assumes normally
 * distributed values. Where outliers are more frequent it is raised according to their rate
 * (Lundberg's exponent of the sum's increments).
 */
#ifndef NT_DETECT_MATH_THRESHOLD_ADAPTATION_H
#define NT_DETECT_MATH_THRESHOLD_ADAPTATION_H

#include <stdbool.h>
#include <stdint.h>

/* Outlier statistics of one series of one group, all ranks together; old windows decay. */
struct nt_adaptation {
	double windows; /* windows after one that was not far */
	double entries; /* of these, how many were far */
	double after; /* windows after a far one, in excursions that have ended */
	double stayed; /* of these, how many were far too */
};

/*
 * Adds one window of a rank. Only the first of several far windows counts, so that a rank that
 * stays slow does not raise its own threshold.
 */
void nt_adaptation_add(struct nt_adaptation *tail, bool was_far, bool is_far);
/* Adds an excursion that has ended: `run` far windows in a row. 0: there was none. */
void nt_adaptation_add_run(struct nt_adaptation *tail, uint32_t run);
/*
 * -ln of the probability that the next `run` windows of a healthy rank are all far. Excursions that
 * have ended give the probability of another far window; one that lasts may be the fault itself.
 */
double nt_adaptation_rarity(const struct nt_adaptation *tail, uint32_t run);
/*
 * Whether `far` far windows among `windows` in a row are within three sigma of the expected number.
 */
bool nt_adaptation_explains(const struct nt_adaptation *tail, uint32_t windows, uint32_t far);
/* Decays old windows; called before a round's windows are added. */
void nt_adaptation_fade(struct nt_adaptation *tail);
/* Whether z is in the tail. */
bool nt_adaptation_is_far(double z);
/* Factor of the logarithmic part of a threshold: 1 where far windows are rare, at most 16. */
double nt_adaptation_factor(const struct nt_adaptation *tail);

#endif
