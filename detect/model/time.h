/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The past of a series: its baseline, learned from its first healthy windows. */
#ifndef NT_DETECT_MODEL_TIME_H
#define NT_DETECT_MODEL_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/thresholds.h"

struct nt_past {
	uint32_t count;
	bool ready; /* learning has ended: the next four are valid */
	double peer_deviation_centre, value_centre;
	double value_width; /* relative to the centre */
	double peer_deviation_width;
};

/*
 * The `count` windows that a past is learned from. Stored separately, as they are not read after
 * learning.
 */
struct nt_lesson {
	double peer_deviation[NT_PAST_WINDOWS], value[NT_PAST_WINDOWS];
	uint64_t frame[NT_PAST_WINDOWS];
};

/* Windows in which the rank fell behind its peers, as it does at times only, are no past. */
void nt_past_learn(struct nt_past *past, struct nt_lesson *lesson, double peer_deviation,
		   double value, uint64_t frame);
/*
 * Like nt_past_learn(), for a value that has no reference but its past. `unit` replaces the
 * deviation: the number of calls behind the value. A step up that lasts to the end of learning is
 * left out, so a fault of the first half minute does not become normal. Returns the frame of the
 * step up once, else 0.
 */
uint64_t nt_past_learn_first(struct nt_past *past, struct nt_lesson *lesson, double unit,
			     double value, uint64_t frame);
/* A fault began at `frame`: removes the windows learned since then, unless learning has ended. */
void nt_past_unlearn(struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame);
void nt_past_clear(struct nt_past *past);
/*
 * The rank's permanent deviation above its peers, the reference of a shift. At least zero: a fast
 * rank that becomes average costs nothing. One standard error of the median is subtracted, but at
 * most `most`, to prevent false accusations.
 */
double nt_past_floor(const struct nt_past *past, double most);
/*
 * The past so far, while learning, without long first windows and what follows a lasting step up;
 * widths are the largest deviations. False: too few windows.
 */
bool nt_past_so_far(const struct nt_past *past, const struct nt_lesson *lesson,
		    struct nt_past *ret_past);
/* Two standard errors of the value's centre, relative to it. */
double nt_past_doubt(const struct nt_past *past);
/* The baseline before `frame`, also while learning. False: too few windows. */
bool nt_past_before(const struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame,
		    double *ret_peer_deviation, double *ret_value);

#endif
