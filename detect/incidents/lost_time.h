/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lost time: the cost of an incident, measured as the excess of each step over the steps before the
 * onset. See struct nt_lost_time in incident.h.
 */
#ifndef NT_DETECT_INCIDENTS_LOST_TIME_H
#define NT_DETECT_INCIDENTS_LOST_TIME_H

#include <stdint.h>

struct nt_detect;
struct nt_detect_incident;

/* Initialises the times before and since the onset from the step history. */
void nt_lost_time_look_back(const struct nt_detect *detect, struct nt_detect_incident *incident);
/* Adds the steps of this frame, once. */
void nt_lost_time_add(const struct nt_detect *detect, struct nt_detect_incident *incident);
/*
 * The step time since the onset ÷ that without the excess time; by the incident's evidence if no
 * step has been counted. 0: the job stands still.
 */
double nt_lost_time_slowdown(const struct nt_detect_incident *incident);
/* Takes the GPU-hours due; where they cannot be measured, those of the stretch by its slow-down. */
double nt_lost_time_hours(struct nt_detect_incident *incident, uint32_t gpus, uint64_t stretch_ns);

#endif
