/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The default rules. */
#include "detect/thresholds/rules.h"

struct nt_rules nt_rules_default(void)
{
	return (struct nt_rules){
#define NT_RULE(type, name, value, unit, reason, source) .name = (value),
#include "detect/thresholds/thresholds.def"
	};
}
