/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a finding costs, and how loud it therefore is. */
#ifndef NT_DETECT_INCIDENTS_COST_H
#define NT_DETECT_INCIDENTS_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/finding.h"
#include "detect/thresholds/rules.h"

/*
 * The what-if: step as it is ÷ step had the culprit been as fast as its peers, of the part of the
 * step that it costs. 0 where that is no number: nothing moves any more.
 */
double nt_cost_slowdown(double cost);
/* GPU-hours that `gpus` GPUs lose in a stretch at that slow-down (0: all of it). */
double nt_cost_gpu_hours(double slowdown, uint32_t gpus, uint64_t stretch_ns);
enum nt_severity nt_cost_severity(const struct nt_rules *rules, enum nt_class class, bool note,
				  double slowdown);

#endif
