/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What an incident was while it lasted: the windows of its recovery thin out its means and evidence,
 * so that when it is over, what was before them is told.
 */
#ifndef NT_DETECT_INCIDENTS_FAULT_H
#define NT_DETECT_INCIDENTS_FAULT_H

struct nt_detect;
struct nt_detect_incident;

/* Keeps what the incident says now, if this window still shows its fault. */
void nt_fault_hold(const struct nt_detect *detect, struct nt_detect_incident *incident);
/* The incident is over: it says again what was kept. */
void nt_fault_tell(struct nt_detect_incident *incident);

#endif
