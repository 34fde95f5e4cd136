/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of the detection: what a finding must be, in numbers. */
#ifndef NT_DETECT_RULES_H
#define NT_DETECT_RULES_H

#include <stdint.h>

/* The shipped defaults are nt_rules_default(): one set for all cases. */
struct nt_rules {
	double size_floor; /* 0.03: what a finding must cost, of the step */
	double kpi_floor; /* 0.01: smallest peer spread, of the step */
	double z_clip; /* 3 */
	double drift; /* 1 */
	double threshold_base; /* 2 */
	double false_alarms_a_day; /* allowed, per job: 1/30 */
	double critical_slowdown; /* 1.2 */
	uint32_t width_windows; /* 20: windows that the width is the median over */
	uint32_t pending_windows; /* 2 */
	uint64_t resolve_min_ns; /* 60 s: see "Resolve" */
	uint32_t resolve_windows; /* 20 */
	uint64_t hang_min_ns; /* 15 s */
	double hang_periods; /* 10 */
	uint64_t missing_after_ns; /* 5 s */
	uint64_t silence_floor_ns; /* 30 min: a pause of all is silent until then */
	uint64_t lost_sight_ns; /* 60 s: the same where nobody sees whether it is one */
	uint64_t checkpoint_note_ns; /* 15 s */
	uint64_t slow_host_ns; /* 10 min: a laggard that works is slow, not hung, until then */
	uint64_t
		young_ns; /* 10 min: until then all may wait for long; 0: what waits is known to hang */
	uint64_t new_normal_ns; /* 30 min */
};

struct nt_rules nt_rules_default(void);

#endif
