/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ends incidents: resolves, closes or merges them. */
#include "detect/incidents/incident_retire.h"

#include <string.h>

#include "common/base/array.h"
#include "detect/baseline/link_span.h"
#include "detect/baseline/network_parts.h"
#include "detect/incidents/fault.h"
#include "detect/incidents/incident_raise.h"
#include "detect/model/detector_state.h"

void nt_incident_release_rank(struct nt_detect *detect, uint32_t number)
{
	struct nt_detect_rank *rank = nt_detect_find(detect, number);

	if (!rank)
		return;
	rank->in_incident = false;
	rank->evidence = (struct nt_rank_evidence){0};
	for (int i = 0; i < NT_SERIES_END; i++) {
		nt_track_clear_sums(&rank->track[i]);
		rank->track[i].always = false;
	}
}

/*
 * A common change is in each rank's own past, too: the next rank that varies would be accused of
 * it.
 */
static void release_pasts(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct nt_detect_rank *rank = &detect->rank[i];

		for (int j = 0; j < NT_SERIES_END && !rank->in_incident; j++) {
			if (rank->track[j].mode != NT_MODE_PAST)
				continue;
			nt_track_clear_sums(&rank->track[j]);
		}
	}
}

/* Clears the evidence of an ended incident, so that it does not reopen. */
static void release_evidence(struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	for (uint32_t i = 0; i < incident->blames && !incident->taken_over; i++)
		nt_incident_release_rank(detect, incident->blame[i].rank);
	/*
	 * The job's step decays more slowly, and would attribute the fault to the next rank that
	 * varies.
	 */
	if (nt_incident_needs_windows(incident) && !incident->taken_over)
		nt_cusum_clear(&detect->step.level);
	if (incident->family == NT_FAMILY_NETWORK && incident->taken_over) {
		return; /* it belongs to another incident now */
	} else if (incident->family == NT_FAMILY_NETWORK &&
		   incident->kind != NT_CULPRIT_COMMUNICATOR) {
		nt_detect_link_release(detect, incident->kind, incident->comm);
	} else if (incident->family == NT_FAMILY_NETWORK) {
		nt_network_release(detect, incident);
	} else if (incident->family == NT_FAMILY_JOB_WIDE) {
		for (int i = 0; i < NT_SERIES_END; i++)
			nt_cusum_clear(&detect->step.job_wide[i].level);
		nt_cusum_clear(&detect->step.level);
		release_pasts(detect);
	}
}

int nt_incident_retire(struct nt_detect *detect, struct nt_detect_incident *incident,
		       uint64_t until_ns)
{
	struct nt_incidents *incidents = &detect->incidents;
	int r = nt_array_room((void **)&incidents->gone, &incidents->gone_cap, incidents->gones,
			      sizeof(*incidents->gone));

	if (r < 0)
		return r;
	release_evidence(detect, incident);
	if (incident->state == NT_INCIDENT_FIRING && incident->lost_time.before_ns > 0.0)
		detect->step.charged_ns = detect->end_ns;
	nt_fault_apply(incident);
	incident->until_ns = until_ns > incident->since_ns ? until_ns : detect->end_ns;
	incident->state = NT_INCIDENT_RESOLVED;
	incident->changed = true;
	incidents->gone[incidents->gones++] = incident;
	for (uint32_t i = 0; i < incidents->opens; i++) {
		if (incidents->open[i] != incident)
			continue;
		memmove(&incidents->open[i], &incidents->open[i + 1],
			(incidents->opens - i - 1) * sizeof(*incidents->open));
		incidents->opens--;
		break;
	}
	return 0;
}

int nt_incidents_join(struct nt_detect *detect, const struct nt_proposal *proposal,
		      bool (*is_part)(const struct nt_detect *detect,
				      const struct nt_detect_incident *incident))
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_detect_incident *stays =
		nt_incidents_find(detect, proposal->family, proposal->comm);

	for (uint32_t i = 0; i < incidents->opens;) {
		struct nt_detect_incident *incident = incidents->open[i];
		int r;

		if (incident == stays || incident->family != proposal->family ||
		    !is_part(detect, incident)) {
			i++;
			continue;
		}
		if (!stays) {
			stays = incident;
			stays->kind = (uint8_t)proposal->kind;
			stays->comm = proposal->comm;
			stays->changed = true;
			i++;
			continue;
		}
		incident->taken_over = true;
		r = nt_incident_retire(detect, incident, detect->end_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

int nt_incidents_close(struct nt_detect *detect, enum nt_family family)
{
	for (uint32_t i = 0; i < detect->incidents.opens;) {
		struct nt_detect_incident *incident = detect->incidents.open[i];
		int r;

		if (family != NT_FAMILY_END && incident->family != family) {
			i++;
			continue;
		}
		r = nt_incident_retire(detect, incident, detect->end_ns);
		if (r < 0)
			return r;
	}
	return 0;
}
