/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The shipped rules, and the names of what they produce. */
#include "detect/detect.h"

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
		.price_gpu_hour = -1.0,
	};
}

const char *nt_class_name(enum nt_class class)
{
	static const char *const name[] = {
		[NT_CLASS_COMPUTE] = "compute",   [NT_CLASS_NETWORK] = "network",
		[NT_CLASS_HOST] = "host",         [NT_CLASS_STORAGE] = "storage",
		[NT_CLASS_MISSING] = "missing",   [NT_CLASS_HANG] = "hang",
		[NT_CLASS_MISMATCH] = "mismatch", [NT_CLASS_NODE] = "node",
		[NT_CLASS_UNKNOWN] = "unknown",   [NT_CLASS_IMBALANCE] = "imbalance",
		[NT_CLASS_JOB_WIDE] = "job-wide",
	};

	return class < NT_CLASS_END ? name[class] : "unknown";
}

const char *nt_severity_name(enum nt_severity severity)
{
	static const char *const name[] = {"info", "warning", "critical"};

	return severity <= NT_SEVERITY_CRITICAL ? name[severity] : "info";
}

const char *nt_incident_state_name(enum nt_incident_state state)
{
	static const char *const name[] = {"pending", "firing", "resolved"};

	return state <= NT_INCIDENT_RESOLVED ? name[state] : "pending";
}

const char *nt_culprit_kind_name(enum nt_culprit_kind kind)
{
	static const char *const name[] = {"rank", "node", "nic", "path", "communicator", "stage"};

	return kind <= NT_CULPRIT_STAGE ? name[kind] : "rank";
}
