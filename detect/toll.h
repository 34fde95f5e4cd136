/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an incident costs by the job's own steps: what each of them takes longer than those before the
 * onset. See nt_toll in incident.h.
 */
#ifndef NT_DETECT_TOLL_H
#define NT_DETECT_TOLL_H

#include <stdint.h>

struct nt_detect;
struct nt_incident;

/* What was before the onset, and what is since then, as far as that is remembered. */
void nt_toll_look_back(const struct nt_detect *detect, struct nt_incident *incident);
/* The steps of this frame, once. */
void nt_toll_add(const struct nt_detect *detect, struct nt_incident *incident);
/* Takes the hours that are due; of what cannot be measured those of the stretch by its slow-down. */
double nt_toll_hours(struct nt_incident *incident, uint32_t gpus, uint64_t stretch_ns);

#endif
