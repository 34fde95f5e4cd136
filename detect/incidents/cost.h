/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost of a finding and its severity. */
#ifndef NT_DETECT_INCIDENTS_COST_H
#define NT_DETECT_INCIDENTS_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/finding.h"
#include "detect/thresholds/rules.h"

/*
 * Slow-down: the step time ÷ its time with the culprit as fast as its peers. `cost`: part of the
 * step. 0: not defined, because the job stands still.
 */
double nt_cost_slowdown(double cost);
/* GPU-hours that `gpus` GPUs lose in stretch_ns at that slow-down (0: the whole stretch). */
double nt_cost_gpu_hours(double slowdown, uint32_t gpus, uint64_t stretch_ns);
enum nt_severity nt_cost_severity(const struct nt_rules *rules, enum nt_class class, bool note,
				  double slowdown);

#endif
