/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state machine of incidents, advanced once a frame: pending, firing, resolved. */
#ifndef NT_DETECT_INCIDENTS_INCIDENT_SETTLE_H
#define NT_DETECT_INCIDENTS_INCIDENT_SETTLE_H

struct nt_detect;
struct nt_frame;

/* Frees the incidents that the last step resolved, and clears per-step flags. */
void nt_incidents_begin(struct nt_detect *detect);
/* Ages, fires, widens and resolves incidents, then builds the findings. -ENOMEM. */
int nt_incidents_settle(struct nt_detect *detect, const struct nt_frame *frame);
/* No frame follows: resolves the incidents whose evidence has ended. -ENOMEM. */
int nt_incidents_finish(struct nt_detect *detect);
/* The same: fires what was raised since nt_incidents_begin(), as nothing else can follow. -ENOMEM. */
int nt_incidents_conclude(struct nt_detect *detect);

#endif
