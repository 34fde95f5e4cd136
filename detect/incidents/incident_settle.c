/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state machine of incidents. */
#include "detect/incidents/incident_settle.h"

#include <math.h>
#include <string.h>

#include "detect/incidents/cost.h"
#include "detect/incidents/fault.h"
#include "detect/incidents/findings.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/lost_time.h"
#include "detect/incidents/node.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

void nt_incidents_begin(struct nt_detect *detect)
{
	struct nt_incidents *incidents = &detect->incidents;

	for (uint32_t i = 0; i < incidents->gones; i++)
		nt_incident_free(incidents->gone[i]);
	incidents->gones = 0;
	incidents->answers = 0;
	for (uint32_t i = 0; i < incidents->opens; i++) {
		struct nt_detect_incident *incident = incidents->open[i];

		incident->stands = false;
		incident->judged = false;
		incident->changed = incident->is_marked;
		incident->is_marked = false;
		incident->shown_cost = -1.0;
		incident->window_cost = 0.0;
		for (uint32_t j = 0; j < incident->blames; j++)
			incident->blame[j].stands = false;
	}
}

static void blame_remove(struct nt_detect_incident *incident, uint32_t at)
{
	memmove(&incident->blame[at], &incident->blame[at + 1],
		(incident->blames - at - 1) * sizeof(*incident->blame));
	incident->blames--;
	incident->changed = true;
}

static const struct nt_blame *worst_blame(const struct nt_detect_incident *incident)
{
	const struct nt_blame *worst = NULL;

	for (uint32_t i = 0; i < incident->blames; i++)
		if (!worst || incident->blame[i].cost > worst->cost)
			worst = &incident->blame[i];
	return worst;
}

static bool is_over(const struct nt_detect *detect, const struct nt_detect_incident *incident,
		    const struct nt_blame *blame)
{
	if (incident->state == NT_INCIDENT_PENDING)
		return blame->absent >= NT_INCIDENT_PATIENCE;
	return nt_recovery_is_over(&blame->recovery, &detect->rules, detect->end_ns, blame->absent);
}

/*
 * Culprits that recovered at the same time, within the precision of windows, had one fault. One
 * that seems to recover a window earlier is reported with the others. `last_ns`: end of the last
 * bad window of any.
 */
static bool ended_together(const struct nt_detect *detect, const struct nt_blame *blame,
			   uint64_t last_ns)
{
	const double bucket_ns = fmax((double)detect->rules.resolve_min_ns,
				      detect->rules.resolve_windows * detect->window_ns) /
				 NT_RECOVERY_PARTS;

	return (double)(last_ns - blame->recovery.bad_ns) <= bucket_ns;
}

/* No window is judged while the job stands still: a fault whose evidence had ended is over. */
static bool is_over_meanwhile(const struct nt_detect *detect,
			      const struct nt_detect_incident *incident, uint64_t *ret_until)
{
	uint64_t seen_ns = incident->recovery.seen_ns;

	for (uint32_t i = 0; i < incident->blames; i++)
		if (incident->blame[i].recovery.seen_ns > seen_ns)
			seen_ns = incident->blame[i].recovery.seen_ns;
	return incident->state == NT_INCIDENT_FIRING && nt_fault_has_ended(incident, ret_until) &&
	       detect->end_ns - seen_ns >= detect->rules.resolve_min_ns;
}

/* What a culprit costs in this window, without what its own past shares with the whole job. */
static double cost_of(const struct nt_detect *detect, const struct nt_track *track,
		      enum nt_series series)
{
	const double shared = detect->step.job_wide[series].growth - track->settled;

	if (track->mode != NT_MODE_PAST || shared <= 0.0 || track->net <= 0.0)
		return track->residual;
	return track->residual * fmax(0.0, 1.0 - shared / track->net);
}

/*
 * What the fault of a culprit costs as a whole. Its moving average decays with a recovery: if little is
 * left, it is the mean since the onset without the windows since the last bad one.
 */
static double whole_of(const struct nt_track *track, const struct nt_blame *blame)
{
	const struct nt_recovery_part *since = &blame->recovery.since;
	const struct nt_cusum *sum =
		track->rate.windows > track->level.windows ? &track->rate : &track->level;
	const double windows = sum->windows - since->windows;
	double mean;

	if (windows <= 1.0)
		return blame->cost;
	mean = (sum->cost - since->cost) / windows;
	return since->cost < NT_RECOVERY_REST * mean * since->windows ? fmax(blame->cost, mean)
								      : blame->cost;
}

/* Ages each culprit on its own. True: none is left, and the finding still names the last ones. */
static bool age_blames(struct nt_detect *detect, struct nt_detect_incident *incident,
		       uint64_t *ret_until)
{
	uint32_t over = 0;

	for (uint32_t i = 0; i < incident->blames; i++) {
		struct nt_blame *blame = &incident->blame[i];
		const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);

		if (!rank || rank->round_frame != detect->frames)
			continue;
		incident->judged = true;
		blame->absent = blame->stands ? 0 : blame->absent + 1;
		nt_recovery_add(&blame->recovery, &detect->rules,
				detect->roles.group[rank->group].wait_start_ns, detect->end_ns,
				cost_of(detect, &rank->track[blame->series], blame->series),
				whole_of(&rank->track[blame->series], blame));
	}
	if (!incident->judged)
		return is_over_meanwhile(detect, incident, ret_until);
	for (uint32_t i = 0; i < incident->blames; i++) {
		over += is_over(detect, incident, &incident->blame[i]);
		if (incident->blame[i].recovery.bad_ns > *ret_until)
			*ret_until = incident->blame[i].recovery.bad_ns;
	}
	if (over == incident->blames)
		return true;
	for (uint32_t i = incident->blames; over && i-- > 0;) {
		if (!is_over(detect, incident, &incident->blame[i]) ||
		    (incident->state == NT_INCIDENT_FIRING &&
		     ended_together(detect, &incident->blame[i], *ret_until)))
			continue;
		nt_incident_release_rank(detect, incident->blame[i].rank);
		blame_remove(incident, i);
	}
	return false;
}

/* Class, tier and cost of the incident are those of its worst culprit; the class is stable. */
static void sum_up(const struct nt_detect *detect, struct nt_detect_incident *incident)
{
	const struct nt_blame *worst = worst_blame(incident), *same = NULL;
	bool moved = false;

	if (!worst)
		return;
	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_blame *blame = &incident->blame[i];

		if (blame->class == incident->class && blame->cause == incident->cause &&
		    (!same || blame->cost > same->cost))
			same = blame;
		if (blame->onset_ns < incident->since_ns) {
			incident->since_ns = blame->onset_ns;
			incident->missing_before_ns =
				nt_completeness_before(&detect->gaps, blame->onset_ns);
			incident->changed = true;
			moved = true;
		}
	}
	if (moved && incident->state == NT_INCIDENT_PENDING) {
		incident->gpu_hours = 0.0;
		nt_lost_time_look_back(detect, incident);
	}
	if (!same || worst->cost > NT_INCIDENT_WORSE * same->cost) {
		incident->changed |=
			incident->class != worst->class || incident->cause != worst->cause;
		incident->class = worst->class;
		incident->cause = worst->cause;
	}
	incident->tier = worst->tier;
	incident->cost = worst->cost;
	incident->chance = worst->chance;
}

static void fire(const struct nt_detect *detect, struct nt_detect_incident *incident)
{
	incident->state = NT_INCIDENT_FIRING;
	incident->seen_ns = incident->fired_ns = detect->end_ns;
	incident->changed = true;
	if (nt_incident_needs_windows(incident)) {
		/* More of the steps since its onset is known by now. */
		incident->gpu_hours = 0.0;
		nt_lost_time_look_back(detect, incident);
	}
}

/* True: the incident ended at *ret_until (0: now). */
static bool age(struct nt_detect *detect, struct nt_detect_incident *incident, uint64_t *ret_until)
{
	if (incident->family == NT_FAMILY_SLOW) {
		if (age_blames(detect, incident, ret_until))
			return true;
		sum_up(detect, incident);
	} else if (!nt_incident_needs_windows(incident) && detect->census.here &&
		   !nt_detect_is_observed(detect)) {
		/* That no rank is seen waiting does not end it. */
		return false;
	} else if (!nt_incident_needs_windows(incident)) {
		incident->judged = true;
		incident->absent = incident->stands ? 0 : incident->absent + 1;
		if (incident->stands)
			incident->recovery.bad_ns = detect->end_ns;
		*ret_until = incident->recovery.bad_ns;
		if (incident->absent >= NT_INCIDENT_ABSENT ||
		    (incident->absent && incident->state == NT_INCIDENT_PENDING))
			return true;
	} else if (incident->judged) {
		incident->absent = incident->stands ? 0 : incident->absent + 1;
		*ret_until = incident->recovery.bad_ns;
		if (incident->state == NT_INCIDENT_PENDING
			    ? incident->absent >= NT_INCIDENT_PATIENCE
			    : nt_recovery_is_over(&incident->recovery, &detect->rules,
						  detect->end_ns, incident->absent))
			return true;
	} else if (is_over_meanwhile(detect, incident, ret_until)) {
		return true;
	}
	if (incident->state == NT_INCIDENT_PENDING && incident->judged && incident->stands &&
	    ++incident->stood >= detect->rules.pending_windows)
		fire(detect, incident);
	return false;
}

static bool is_news(double value, double reported)
{
	return fabs(value - reported) > NT_NEWS_PART * reported;
}

static void weigh(struct nt_detect *detect, struct nt_detect_incident *incident)
{
	const uint32_t gpus = detect->census.using_gpu;
	uint64_t until_ns;
	uint8_t severity;

	nt_lost_time_add(detect, incident);
	incident->slowdown = nt_lost_time_slowdown(incident);
	if (detect->end_ns > incident->counted_ns) {
		incident->gpu_hours +=
			nt_lost_time_hours(incident, gpus, detect->end_ns - incident->counted_ns);
		incident->gpu_hours = fmax(0.0, incident->gpu_hours);
		incident->counted_ns = detect->end_ns;
	}
	severity = (uint8_t)nt_cost_severity(&detect->rules, incident->class, incident->note,
					     incident->slowdown);
	/*
	 * Severity never falls: every rise is reported, and a cost near the limit would alert
	 * repeatedly.
	 */
	if (severity > incident->severity) {
		incident->changed = true;
		incident->severity = severity;
	}
	incident->completeness = nt_completeness_share(&detect->gaps, incident->missing_before_ns,
						       incident->since_ns, detect->end_ns);
	incident->confidence = (1.0 - incident->chance) * incident->completeness;
	if ((is_news(incident->slowdown, incident->reported_slowdown) &&
	     !nt_fault_has_ended(incident, &until_ns)) ||
	    is_news(incident->completeness, incident->reported_completeness) ||
	    (incident->completeness < 1.0) != (incident->reported_completeness < 1.0))
		incident->changed = true;
	/* Reports the growing cost at intervals, which a restart does not shift. */
	if (incident->state == NT_INCIDENT_FIRING && incident->gpu_hours > 0.0 &&
	    detect->end_ns / NT_NEWS_NS != detect->start_ns / NT_NEWS_NS)
		incident->changed = true;
}

/*
 * Moves an incident's culprits of a node to another. If none is left, a copy stays for its finding.
 */
static int hand_over(struct nt_detect *detect, struct nt_detect_incident *from,
		     struct nt_detect_incident *to, uint32_t node)
{
	const bool all = nt_node_blames(detect, from, node) == from->blames;

	for (uint32_t i = from->blames; i-- > 0;) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, from->blame[i].rank);
		int r;

		if (!rank || rank->node != node)
			continue;
		r = nt_blame_insert(to, &from->blame[i]);
		if (r < 0)
			return r;
		if (!all)
			blame_remove(from, i);
	}
	from->taken_over = all;
	return all ? nt_incident_retire(detect, from, detect->end_ns) : 0;
}

/* Merges the incidents of a node's ranks into one of the node: the earliest stays. */
static int widen(struct nt_detect *detect)
{
	struct nt_incidents *incidents = &detect->incidents;
	uint32_t node;

	while (nt_node_divided(detect, &node)) {
		struct nt_detect_incident *first = NULL;

		for (uint32_t i = 0; i < incidents->opens;) {
			struct nt_detect_incident *incident = incidents->open[i];
			int r;

			if (!nt_node_blames(detect, incident, node)) {
				i++;
				continue;
			}
			if (!first) {
				first = incident;
				i++;
				continue;
			}
			r = hand_over(detect, incident, first, node);
			if (r < 0)
				return r;
			i += i < incidents->opens && incidents->open[i] == incident;
		}
	}
	return 0;
}

int nt_incidents_finish(struct nt_detect *detect)
{
	struct nt_incidents *incidents = &detect->incidents;

	nt_incidents_begin(detect);
	for (uint32_t i = 0; i < incidents->opens;) {
		struct nt_detect_incident *incident = incidents->open[i];
		uint64_t until_ns = 0;
		int r;

		if (incident->state != NT_INCIDENT_FIRING || !nt_incident_needs_windows(incident) ||
		    !nt_fault_has_ended(incident, &until_ns)) {
			i++;
			continue;
		}
		r = nt_incident_retire(detect, incident, until_ns);
		if (r < 0)
			return r;
	}
	return nt_findings_make(detect);
}

/* Whether the window that ended at this time is one of the last, as many as are pending. */
static bool is_last(const struct nt_detect *detect, uint64_t end_ns)
{
	return (double)(detect->end_ns - end_ns) <
	       detect->rules.pending_windows * detect->window_ns;
}

/* Whether its last window showed it, and no others followed. */
static bool stood_last(const struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	bool stood = incident->family != NT_FAMILY_SLOW && incident->absent == 0 &&
		     is_last(detect, incident->recovery.seen_ns);

	for (uint32_t i = 0; i < incident->blames && !stood; i++)
		stood = incident->blame[i].absent == 0 &&
			is_last(detect, incident->blame[i].recovery.seen_ns);
	return incident->stands || (stood && nt_incident_needs_windows(incident));
}

int nt_incidents_conclude(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->state != NT_INCIDENT_PENDING || !stood_last(detect, incident))
			continue;
		fire(detect, incident);
		weigh(detect, incident);
	}
	return nt_findings_make(detect);
}

int nt_incidents_settle(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct nt_incidents *incidents = &detect->incidents;
	int r;

	(void)frame;
	for (uint32_t i = 0; i < incidents->opens;) {
		struct nt_detect_incident *incident = incidents->open[i];
		uint64_t until_ns = 0;
		const bool over = age(detect, incident, &until_ns);

		weigh(detect, incident);
		if (!over) {
			nt_fault_hold(detect, incident);
			i++;
			continue;
		}
		r = nt_incident_retire(detect, incident, until_ns);
		if (r < 0)
			return r;
	}
	r = widen(detect);
	if (r < 0)
		return r;
	return nt_findings_make(detect);
}
