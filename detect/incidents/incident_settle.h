/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The life of incidents from frame to frame: pending, firing, resolved. */
#ifndef NT_DETECT_INCIDENTS_INCIDENT_SETTLE_H
#define NT_DETECT_INCIDENTS_INCIDENT_SETTLE_H

struct nt_detect;
struct nt_frame;

/* Frees what the last step resolved, and forgets its marks. */
void nt_incidents_begin(struct nt_detect *detect);
/* Ages, fires, widens, resolves; then makes the answers. -ENOMEM. */
int nt_incidents_settle(struct nt_detect *detect, const struct nt_frame *frame);

#endif
