/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the rules say of a frame, joined to the incidents that are open. */
#ifndef NT_DETECT_INCIDENTS_INCIDENT_RAISE_H
#define NT_DETECT_INCIDENTS_INCIDENT_RAISE_H

#include <stdint.h>

#include "detect/model/incident.h"

struct nt_detect;
struct nt_detect_rank;

/* The open incident of a family (of the network: for that communicator), or NULL. */
struct nt_detect_incident *nt_incidents_find(const struct nt_detect *detect, enum nt_family family,
					     uint64_t comm);
/* A slow rank: joined to the open incident that it belongs to, or a new one. -ENOMEM. */
int nt_incidents_blame(struct nt_detect *detect, struct nt_detect_rank *rank,
		       const struct nt_proposal *proposal);
/* Any other family: one open incident each, for networks one a communicator. -ENOMEM. */
int nt_incidents_raise(struct nt_detect *detect, const struct nt_proposal *proposal);
/*
 * What a window cost, for the families that are judged as a whole: without one in a frame, their
 * incident neither ages nor recovers.
 */
void nt_incidents_judge(struct nt_detect *detect, enum nt_family family, uint64_t comm,
			double cost);

#endif
