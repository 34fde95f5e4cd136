/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of an incident in its last bad window. Recovery windows dilute its means and evidence,
 * so a resolved incident is reported as it was before them.
 */
#ifndef NT_DETECT_INCIDENTS_FAULT_H
#define NT_DETECT_INCIDENTS_FAULT_H

struct nt_detect;
struct nt_detect_incident;

/* Saves the incident's figures if this window still shows its fault. */
void nt_fault_hold(const struct nt_detect *detect, struct nt_detect_incident *incident);
/* Restores the saved figures of a resolved incident. */
void nt_fault_apply(struct nt_detect_incident *incident);

#endif
