/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parameters of the detection rules. */
#ifndef NT_DETECT_THRESHOLDS_RULES_H
#define NT_DETECT_THRESHOLDS_RULES_H

#include <stdint.h>

/*
 * The thresholds that may differ from job to job: the rows NT_RULE of thresholds.def, which gives
 * their units, reasons and defaults. Times are in nanoseconds.
 */
struct nt_rules {
#define NT_RULE(type, name, value, unit, reason, source) type name;
#include "detect/thresholds/thresholds.def"
};

/* The shipped defaults: one set for all cases. */
struct nt_rules nt_rules_default(void);

#endif
