/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an incident costs by the job's own steps. */
#include "detect/toll.h"

#include <math.h>

#include "detect/core.h"
#include "detect/cost.h"

/* What the job's steps were before the onset, and are since then. */
void nt_toll_look_back(const struct nt_detect *detect, struct nt_incident *incident)
{
	const struct nt_history *history = &detect->step.history;
	const double before_ns = nt_history_before(history, incident->since_ns);
	const struct nt_history_sum since = nt_history_since(history, incident->since_ns);

	incident->toll = (struct nt_toll){
		.before_ns = before_ns,
		.first = history->steps - since.steps,
		.steps = since.steps,
		.step_ns = since.step_ns,
		.due_ns = before_ns > 0.0 ? since.step_ns - since.steps * before_ns : 0.0,
		.frame = detect->frames,
	};
}

void nt_toll_forget(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++)
		detect->incidents.open[i]->toll.before_ns = 0.0;
}

/* Does it last, and is known what the job was before it? */
static bool is_measured(const struct nt_incident *incident)
{
	return nt_incident_needs_windows(incident) && incident->toll.before_ns > 0.0;
}

/*
 * What the steps of this frame took longer than before the onset. Where several faults last, each
 * has what its own evidence explains; one alone is more than that: pauses that each rank makes in
 * its own time hold all of them up each time.
 */
void nt_toll_add(const struct nt_detect *detect, struct nt_incident *incident)
{
	const double own_share = 4.0;
	const struct nt_step *step = &detect->step;
	struct nt_toll *toll = &incident->toll;
	uint32_t others = 0;
	double most, longer;

	if (!is_measured(incident) || step->round_steps <= 0.0 || toll->frame == detect->frames)
		return;
	toll->frame = detect->frames;
	toll->steps += step->round_steps;
	toll->step_ns += step->round_steps * step->step_ns;
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_incident *other = detect->incidents.open[i];

		others += other != incident && other->state == NT_INCIDENT_FIRING &&
			  is_measured(other);
	}
	longer = step->step_ns - toll->before_ns;
	most = (others ? 1.0 : own_share) * incident->cost * step->step_ns;
	toll->due_ns += step->round_steps * fmin(longer, most);
}

double nt_toll_hours(struct nt_incident *incident, uint32_t gpus, uint64_t stretch_ns)
{
	double hours;

	if (!is_measured(incident))
		return nt_cost_gpu_hours(incident->slowdown, gpus, stretch_ns);
	hours = incident->toll.due_ns * gpus / 3600e9;
	incident->toll.due_ns = 0.0;
	return hours;
}
