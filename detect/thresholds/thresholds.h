/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of thresholds.def as constants; that file gives their units, reasons and sources. */
#ifndef NT_DETECT_THRESHOLDS_THRESHOLDS_H
#define NT_DETECT_THRESHOLDS_THRESHOLDS_H

#include <stdint.h>

enum {
#define NT_COUNT(name, value, unit, reason, source) name = (value),
#include "detect/thresholds/thresholds.def"
};

/* Defaults of struct nt_rules, as nt_default_NAME, for values derived from them. */
#define NT_RULE(type, name, value, unit, reason, source)                                           \
	static const type nt_default_##name = (value);
#define NT_REAL(name, value, unit, reason, source) static const double name = (value);
#define NT_TIME(name, value, unit, reason, source) static const uint64_t name = (value);
#include "detect/thresholds/thresholds.def"

#endif
