/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents. */
#include "detect/model/incident.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "detect/thresholds/thresholds.h"

void nt_incident_free(struct nt_detect_incident *incident)
{
	if (!incident)
		return;
	free(incident->blame);
	free(incident->list);
	free(incident->culprit);
	free(incident->node_rank);
	free(incident);
}

void nt_incidents_free(struct nt_incidents *incidents)
{
	for (uint32_t i = 0; i < incidents->opens; i++)
		nt_incident_free(incidents->open[i]);
	for (uint32_t i = 0; i < incidents->gones; i++)
		nt_incident_free(incidents->gone[i]);
	free(incidents->open);
	free(incidents->gone);
	free(incidents->name);
	free(incidents->answer);
	free(incidents->standing);
	*incidents = (struct nt_incidents){0};
}

bool nt_incidents_are_together(uint64_t onset_ns, uint64_t other_ns, double window_ns)
{
	/* Two windows, plus half of one for different window boundaries. */
	return fabs((double)onset_ns - (double)other_ns) <= NT_TOGETHER_WINDOWS * window_ns;
}

bool nt_incident_needs_windows(const struct nt_detect_incident *incident)
{
	return incident->family != NT_FAMILY_STALL && incident->family != NT_FAMILY_MISSING &&
	       incident->family != NT_FAMILY_PAUSE;
}

int nt_blame_insert(struct nt_detect_incident *incident, const struct nt_blame *blame)
{
	uint32_t at = incident->blames;
	int r = nt_array_room((void **)&incident->blame, &incident->blame_cap, incident->blames,
			      sizeof(*incident->blame));

	if (r < 0)
		return r;
	while (at > 0 && incident->blame[at - 1].rank > blame->rank)
		at--;
	memmove(&incident->blame[at + 1], &incident->blame[at],
		(incident->blames - at) * sizeof(*incident->blame));
	incident->blame[at] = *blame;
	incident->blames++;
	incident->changed = true;
	return 0;
}

void nt_lost_times_forget(struct nt_incidents *incidents)
{
	for (uint32_t i = 0; i < incidents->opens; i++) {
		incidents->open[i]->lost_time.before_ns = 0.0;
		incidents->open[i]->lost_time.due_ns = 0.0;
	}
}
