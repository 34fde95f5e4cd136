/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ends incidents: resolves, closes or merges them. */
#ifndef NT_DETECT_INCIDENTS_INCIDENT_RETIRE_H
#define NT_DETECT_INCIDENTS_INCIDENT_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/incident.h"

struct nt_detect;

/*
 * Resolves the incident as of that time and clears its evidence, so that it cannot reopen. -ENOMEM.
 */
int nt_incident_retire(struct nt_detect *detect, struct nt_detect_incident *incident,
		       uint64_t until_ns);
/* Clears the evidence against one rank. */
void nt_incident_release_rank(struct nt_detect *detect, uint32_t rank);
/*
 * Merges the open incidents that is_part() selects: the earliest stays and takes the proposal's
 * kind and key. -ENOMEM.
 */
int nt_incidents_join(struct nt_detect *detect, const struct nt_proposal *proposal,
		      bool (*is_part)(const struct nt_detect *detect,
				      const struct nt_detect_incident *incident));
/*
 * Resolves all open incidents of a family (NT_FAMILY_END: of every one), when the attempt ended or
 * its baselines were reset.
 */
int nt_incidents_close(struct nt_detect *detect, enum nt_family family);

#endif
