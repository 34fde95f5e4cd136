/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of an incident in its last bad window. */
#include "detect/incidents/fault.h"

#include <math.h>
#include <string.h>

#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* Whether this is a single bad window among healthy ones, whatever its cost. */
static bool is_alone(const struct nt_detect *detect, const struct nt_recovery *recovery)
{
	return recovery->buckets && recovery->bad_ns != detect->end_ns;
}

/* Whether the window costs at least half of the fault's cost, and the given part of its worst. */
static bool is_bad(const struct nt_detect *detect, const struct nt_detect_incident *incident,
		   double part)
{
	const double least =
		fmax(NT_COSTLY_PART * detect->rules.size_floor, part * incident->fault.worst_cost);

	if (!nt_incident_needs_windows(incident))
		return incident->stands;
	if (incident->family != NT_FAMILY_SLOW)
		return incident->stands && !is_alone(detect, &incident->recovery) &&
		       incident->window_cost >= fmax(NT_COSTLY_PART * incident->cost, least);
	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_blame *blame = &incident->blame[i];
		const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);

		if (blame->stands && rank && !is_alone(detect, &blame->recovery) &&
		    rank->round_frame == detect->frames &&
		    rank->track[blame->series].residual >=
			    fmax(NT_COSTLY_PART * blame->cost, least))
			return true;
	}
	return false;
}

bool nt_fault_has_ended(const struct nt_detect_incident *incident, uint64_t *ret_until)
{
	bool ended = incident->recovery.ended;

	*ret_until = incident->recovery.bad_ns;
	if (incident->family != NT_FAMILY_SLOW)
		return ended;
	ended = incident->blames > 0;
	for (uint32_t i = 0; i < incident->blames; i++) {
		ended = ended && incident->blame[i].recovery.ended;
		if (incident->blame[i].recovery.bad_ns > *ret_until)
			*ret_until = incident->blame[i].recovery.bad_ns;
	}
	return ended;
}

void nt_fault_hold(const struct nt_detect *detect, struct nt_detect_incident *incident)
{
	struct nt_fault *fault = &incident->fault;

	if (!fault->held || is_bad(detect, incident, 0.0))
		fault->gpu_hours = incident->gpu_hours;
	/* A noisy window of the recovery is not the fault. */
	if (fault->held && !is_bad(detect, incident, NT_COSTLY_PART))
		return;
	*fault = (struct nt_fault){
		.held = true,
		.class = incident->class,
		.cause = incident->cause,
		.tier = incident->tier,
		.cost = incident->cost,
		.worst_cost = fmax(fault->worst_cost, incident->cost),
		.chance = incident->chance,
		.slowdown = incident->slowdown,
		.gpu_hours = fault->gpu_hours,
		.steps = incident->lost_time.steps,
		.step_ns = incident->lost_time.step_ns,
		.evidences = incident->evidences,
	};
	memcpy(fault->evidence, incident->evidence, sizeof(fault->evidence));
}

void nt_fault_apply(struct nt_detect_incident *incident)
{
	const struct nt_fault *fault = &incident->fault;

	if (!fault->held)
		return;
	incident->class = fault->class;
	incident->cause = fault->cause;
	incident->tier = fault->tier;
	incident->cost = fault->cost;
	incident->chance = fault->chance;
	incident->slowdown = fault->slowdown;
	incident->gpu_hours = fault->gpu_hours;
	incident->lost_time.steps = fault->steps;
	incident->lost_time.step_ns = fault->step_ns;
	incident->confidence = (1.0 - fault->chance) * incident->completeness;
	memcpy(incident->evidence, fault->evidence, sizeof(incident->evidence));
	incident->evidences = fault->evidences;
}

struct nt_detect_incident nt_fault_shown(const struct nt_detect_incident *incident)
{
	struct nt_detect_incident shown = *incident;
	uint64_t until_ns;

	if (nt_fault_has_ended(incident, &until_ns))
		nt_fault_apply(&shown);
	return shown;
}
