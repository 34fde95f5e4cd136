/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of incidents: by themselves, with others, or as one with another. */
#ifndef NT_DETECT_INCIDENTS_INCIDENT_RETIRE_H
#define NT_DETECT_INCIDENTS_INCIDENT_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/incident.h"

struct nt_detect;

/* Resolves the incident as of that time, and forgets its evidence: it must not open it again. -ENOMEM. */
int nt_incident_retire(struct nt_detect *detect, struct nt_detect_incident *incident,
		       uint64_t until_ns);
/* The evidence against one culprit is forgotten. */
void nt_incident_release_rank(struct nt_detect *detect, uint32_t rank);
/*
 * What is open for parts of this is one incident with it: the earliest stays, and takes its kind and
 * key. -ENOMEM.
 */
int nt_incidents_join(struct nt_detect *detect, const struct nt_proposal *proposal,
		      bool (*is_part)(const struct nt_detect *detect,
				      const struct nt_detect_incident *incident));
/*
 * Resolves what is open of a family, NT_FAMILY_END: of all: the attempt ended, or its normal is
 * another now.
 */
int nt_incidents_close(struct nt_detect *detect, enum nt_family family);

#endif
