/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A rank's own past: what was normal for it in its first healthy windows. */
#ifndef NT_DETECT_MODEL_TIME_H
#define NT_DETECT_MODEL_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/thresholds.h"

struct nt_past {
	uint32_t count;
	bool ready; /* all windows were seen: the next four hold */
	double peer_deviation_centre, value_centre;
	double value_width; /* relative to the centre */
	double peer_deviation_width;
};

/*
 * The windows that a past is learned from, `count` of them. Apart, because nothing reads them once it
 * is ready: a pass over many ranks need not step over them.
 */
struct nt_lesson {
	double peer_deviation[NT_PAST_WINDOWS], value[NT_PAST_WINDOWS];
	uint64_t frame[NT_PAST_WINDOWS];
};

void nt_past_learn(struct nt_past *past, struct nt_lesson *lesson, double peer_deviation,
		   double value, uint64_t frame);
/*
 * As nt_past_learn, of a value that nothing is held against but its past. `unit` takes the place of the KPI:
 * calls that the value is of. What steps up before all windows are seen, and stays up, is left out: else a
 * fault of the first half minute would be what is normal. Returns the frame in which it did, once; else 0.
 */
uint64_t nt_past_learn_first(struct nt_past *past, struct nt_lesson *lesson, double unit,
			     double value, uint64_t frame);
/* A fault began at `frame`: what was learned since then is taken back, unless learning had ended. */
void nt_past_unlearn(struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame);
void nt_past_clear(struct nt_past *past);
/*
 * How far above its peers the rank is by nature: from there a shift is measured. Not below zero: who
 * was faster and becomes average costs nothing. The median of a few noisy windows is off by chance, so
 * one standard error is taken off, and no more than `most`, because there a mistake would accuse.
 */
double nt_past_floor(const struct nt_past *past, double most);
/*
 * What is known while still learning, as a past whose widths are the largest deviations. False: not enough.
 */
bool nt_past_so_far(const struct nt_past *past, const struct nt_lesson *lesson,
		    struct nt_past *ret_past);
/* Two standard errors of the centre of the value, relative to it. */
double nt_past_doubt(const struct nt_past *past);
/* What was normal before `frame`, also while still learning. False: not enough is known. */
bool nt_past_before(const struct nt_past *past, const struct nt_lesson *lesson, uint64_t frame,
		    double *ret_peer_deviation, double *ret_value);

#endif
