/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Merges the proposals of the rules into the open incidents. */
#ifndef NT_DETECT_INCIDENTS_INCIDENT_RAISE_H
#define NT_DETECT_INCIDENTS_INCIDENT_RAISE_H

#include <stdint.h>

#include "detect/model/incident.h"

struct nt_detect;
struct nt_detect_rank;

/* The open incident of a family (network: of that communicator), or NULL. */
struct nt_detect_incident *nt_incidents_find(const struct nt_detect *detect, enum nt_family family,
					     uint64_t comm);
/* Adds a slow rank to the open incident with the same onset, or opens one. -ENOMEM. */
int nt_incidents_blame(struct nt_detect *detect, struct nt_detect_rank *rank,
		       const struct nt_proposal *proposal);
/* Any other family: at most one open incident each; network: one per communicator. -ENOMEM. */
int nt_incidents_raise(struct nt_detect *detect, const struct nt_proposal *proposal);
/*
 * Reports the cost of a window for families that are judged as a whole. Without a report in a frame
 * the incident neither ages nor recovers.
 */
void nt_incidents_judge(struct nt_detect *detect, enum nt_family family, uint64_t comm,
			double cost);

#endif
