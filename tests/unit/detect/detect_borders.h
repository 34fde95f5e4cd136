/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the tests of the thresholds' borders. */
#ifndef NT_TESTS_UNIT_DETECT_DETECT_BORDERS_H
#define NT_TESTS_UNIT_DETECT_DETECT_BORDERS_H

#include "tests/unit/detect/detect_frames.h"

static inline bool is_near(double value, double wanted)
{
	return fabs(value - wanted) <= 1e-9 * fmax(1.0, fabs(wanted));
}

#endif
