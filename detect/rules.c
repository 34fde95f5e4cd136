/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The shipped rules. */
#include "detect/rules.h"

struct nt_rules nt_rules_default(void)
{
	const uint64_t second = 1000000000;

	return (struct nt_rules){
		.size_floor = 0.03,
		.kpi_floor = 0.01,
		.z_clip = 3.0,
		.drift = 1.0,
		.threshold_base = 2.0,
		.false_alarms_a_day = 1.0 / 30.0,
		.critical_slowdown = 1.2,
		.width_windows = 20,
		.pending_windows = 2,
		.resolve_min_ns = 60 * second,
		.resolve_windows = 20,
		.hang_min_ns = 15 * second,
		.hang_periods = 10.0,
		.missing_after_ns = 5 * second,
		.silence_floor_ns = 1800 * second,
		.lost_sight_ns = 60 * second,
		.checkpoint_note_ns = 15 * second,
		.slow_host_ns = 600 * second,
		.young_ns = 600 * second,
		.new_normal_ns = 1800 * second,
	};
}
