/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How heavy the tail of healthy windows is. The threshold of a sum assumes that far values are as
 * rare as a normal distribution has them. Where ranks hiccup, some reach it by chance, so it is
 * raised by as much as the hiccups call for (Lundberg's exponent of the sum's increments).
 */
#ifndef NT_DETECT_MATH_THRESHOLD_ADAPTATION_H
#define NT_DETECT_MATH_THRESHOLD_ADAPTATION_H

#include <stdbool.h>
#include <stdint.h>

/* Of one series of one group, all its ranks together; old windows fade. */
struct nt_adaptation {
	double windows; /* after one that was not far */
	double entries; /* of these, how many were far */
};

/*
 * One more window of a rank, whose last one was far or not. Only the first of several far windows
 * counts: a rank that stays slow is no tail, and must not hide itself.
 */
void nt_adaptation_add(struct nt_adaptation *tail, bool was_far, bool is_far);
/* Whether so many far windows of so many in a row are to be expected now and then: up to three sigma. */
bool nt_adaptation_explains(const struct nt_adaptation *tail, uint32_t windows, uint32_t far);
/* Before a round's windows are added. */
void nt_adaptation_fade(struct nt_adaptation *tail);
/* Is z in the tail? */
bool nt_adaptation_is_far(double z);
/* By what the logarithmic part of a threshold grows: 1 where far windows are rare, at most 16. */
double nt_adaptation_factor(const struct nt_adaptation *tail);

#endif
