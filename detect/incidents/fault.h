/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of an incident in its last bad window. Recovery windows dilute its means and evidence,
 * so an incident whose evidence has ended is reported as it was before them.
 */
#ifndef NT_DETECT_INCIDENTS_FAULT_H
#define NT_DETECT_INCIDENTS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/incident.h"

struct nt_detect;

/*
 * Whether the evidence of a fault that shows in windows has ended, *ret_until: when. The incident
 * is open until it is sure that the fault does not return.
 */
bool nt_fault_has_ended(const struct nt_detect_incident *incident, uint64_t *ret_until);
/* Saves the incident's figures if this window still shows its fault. */
void nt_fault_hold(const struct nt_detect *detect, struct nt_detect_incident *incident);
/* Restores the saved figures of a resolved incident. */
void nt_fault_apply(struct nt_detect_incident *incident);
/* A copy with the figures to report: the saved ones if the evidence has ended. Borrows its lists. */
struct nt_detect_incident nt_fault_shown(const struct nt_detect_incident *incident);

#endif
