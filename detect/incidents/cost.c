/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of a finding. */
#include "detect/incidents/cost.h"

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

double nt_cost_slowdown(double cost)
{
	if (cost < 0.0)
		return 0.0;
	return 1.0 / (1.0 - nt_stats_clip(cost, 0.0, NT_COST_MOST));
}

double nt_cost_gpu_hours(double slowdown, uint32_t gpus, uint64_t stretch_ns)
{
	const double lost = slowdown > 0.0 ? 1.0 - 1.0 / slowdown : 1.0;

	return lost * gpus * (double)stretch_ns / 3600e9;
}

enum nt_severity nt_cost_severity(const struct nt_rules *rules, enum nt_class class, bool note,
				  double slowdown)
{
	if (note || class == NT_CLASS_IMBALANCE || class == NT_CLASS_JOB_WIDE)
		return NT_SEVERITY_INFO;
	if (class == NT_CLASS_HANG || class == NT_CLASS_MISSING || class == NT_CLASS_MISMATCH ||
	    slowdown >= rules->critical_slowdown)
		return NT_SEVERITY_CRITICAL;
	return NT_SEVERITY_WARNING;
}
