/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an incident costs by the job's own steps: what each of them takes longer than those before the
 * onset. See nt_lost_time in incident.h.
 */
#ifndef NT_DETECT_INCIDENTS_LOST_TIME_H
#define NT_DETECT_INCIDENTS_LOST_TIME_H

#include <stdint.h>

struct nt_detect;
struct nt_detect_incident;

/* What was before the onset, and what is since then, as far as that is remembered. */
void nt_lost_time_look_back(const struct nt_detect *detect, struct nt_detect_incident *incident);
/* The steps of this frame, once. */
void nt_lost_time_add(const struct nt_detect *detect, struct nt_detect_incident *incident);
/* Takes the hours that are due; of what cannot be measured those of the stretch by its slow-down. */
double nt_lost_time_hours(struct nt_detect_incident *incident, uint32_t gpus, uint64_t stretch_ns);

#endif
