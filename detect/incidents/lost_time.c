/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lost time: the cost of an incident, measured by the job's steps. */
#include "detect/incidents/lost_time.h"

#include <math.h>

#include "detect/baseline/step_evidence.h"
#include "detect/incidents/cost.h"
#include "detect/incidents/fault.h"
#include "detect/incidents/straggler_floor.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* Whether the incident lasts and the step time before it is known. */
static bool is_measured(const struct nt_detect_incident *incident)
{
	return nt_incident_needs_windows(incident) && incident->lost_time.before_ns > 0.0;
}

/* The level of a fault in some steps only falls back to zero between them. */
static bool is_intermittent(const struct nt_track *track)
{
	return track->rate.windows > track->level.windows;
}

/* A fault in many of the steps holds its level above zero, although the others cost nothing. */
static bool is_lasting_level(const struct nt_track *track)
{
	return !is_intermittent(track) &&
	       track->level.costly >= NT_LOST_TIME_SHARE * track->level.windows;
}

/*
 * The longest work among roles without a culprit. At its peers' speed the culprit would leave a step
 * that still waits for that.
 */
static double longest_other_role(const struct nt_detect *detect,
				 const struct nt_detect_incident *incident, uint8_t tier)
{
	uint32_t *is_blamed = detect->scratch.index;
	double longest = 0.0;

	for (uint32_t i = 0; i < detect->roles.groups; i++)
		is_blamed[i] = false;
	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, incident->blame[i].rank);

		if (rank && rank->group < detect->roles.groups)
			is_blamed[rank->group] = true;
	}
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];
		const struct nt_track *own = &rank->track[NT_SERIES_OWN];

		if (rank->group < detect->roles.groups && !is_blamed[rank->group] &&
		    !rank->in_incident && own->frame == detect->frames && own->tier == tier)
			longest = fmax(longest, own->value);
	}
	return longest;
}

/* The most that the rank's evidence shows, if its peers' work is partly hidden: else no limit. */
static double shown_part(const struct nt_rank_evidence *evidence)
{
	const double peers = nt_step_evidence_peers_work(evidence);

	return peers > evidence->peers[NT_STEP_METRIC_OWN]
		       ? (evidence->value[NT_STEP_METRIC_OWN] - peers) /
				 fmax(1.0, evidence->value[NT_STEP_METRIC_STEP])
		       : INFINITY;
}

/*
 * How much later than its peers the rank enters the collectives that they wait for it in: all that it
 * costs in a pipeline, where a rank also waits for other stages and makes up for its work in that
 * time. Part of the step; infinite if such calls are not observed.
 */
static double lateness_of(const struct nt_rank_evidence *evidence)
{
	const double peers = evidence->peers[NT_STEP_METRIC_SYNC];

	return peers > 0.0 ? fmax(0.0, peers - evidence->value[NT_STEP_METRIC_SYNC]) /
				     fmax(1.0, evidence->value[NT_STEP_METRIC_STEP])
			   : INFINITY;
}

/* The most that the rank's work costs by its evidence, part of the step. */
static double exposed_part(const struct nt_detect_incident *incident,
			   const struct nt_detect_rank *rank, double longest)
{
	double most = INFINITY;

	if (incident->class == NT_CLASS_COMPUTE)
		most = shown_part(&rank->evidence);
	if (longest > 0.0 && rank->track[NT_SERIES_OWN].mode == NT_MODE_PEERS)
		most = fmin(most, lateness_of(&rank->evidence));
	return most;
}

/*
 * What the rank's excess costs, `part` in this frame or on average, and `mean` on average. The evidence is a
 * mean, too: a fault in some steps is exposed in these to the same share, and not at all in the others.
 */
static double limit_part(const struct nt_detect_incident *incident,
			 const struct nt_detect_rank *rank, double longest, bool now, double part,
			 double mean)
{
	const bool lasts = is_lasting_level(&rank->track[NT_SERIES_OWN]);
	const double *value = now || lasts ? rank->step_metric : rank->evidence.value;
	const double most = exposed_part(incident, rank, longest);

	if (lasts)
		part = fmin(part, most);
	else if (mean > most)
		part *= fmax(0.0, most) / mean;
	return fmin(part, fmax(0.0, value[NT_STEP_METRIC_OWN] - longest) /
				  fmax(1.0, value[NT_STEP_METRIC_STEP]));
}

/*
 * The part of a step that a slow rank costs by its own evidence, in this frame or as a mean since
 * its onset. The mean over several culprits.
 */
static double slow_part(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			bool now)
{
	const double longest = longest_other_role(detect, incident, incident->tier);
	double sum = 0.0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_blame *blame = &incident->blame[i];
		const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);
		const struct nt_track *track = rank ? &rank->track[blame->series] : NULL;
		const struct nt_cusum *level;
		double part, mean;

		if (!track || track->frame != detect->frames)
			continue;
		level = is_intermittent(track) ? &track->rate : &track->level;
		mean = level->windows < 2 ? track->residual : nt_cusum_cost(level);
		part = now ? track->residual : mean;
		if (blame->series == NT_SERIES_OWN)
			part = limit_part(incident, rank, longest, now, part, mean);
		sum += part;
		n++;
	}
	return n ? sum / n : incident->cost;
}

/* Such a fault costs each step as much as its evidence. What ranks do at times costs some more. */
static bool is_lasting(const struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_blame *blame = &incident->blame[i];
		const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);

		if (!rank || !is_lasting_level(&rank->track[blame->series]))
			return false;
	}
	return incident->blames > 0;
}

/* The share of windows in which the culprit of a fault in some steps is slow. */
static double slow_share(const struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	double share = 0.0;

	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_blame *blame = &incident->blame[i];
		const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);
		const struct nt_track *track = rank ? &rank->track[blame->series] : NULL;
		const struct nt_cusum *sum =
			track && is_intermittent(track) ? &track->rate : &track->level;

		if (track && sum->windows)
			share = fmax(share, (double)sum->costly / sum->windows);
	}
	return share;
}

/*
 * The part of the time that a fault costs which is in a `share` of the steps: these take longer. `mean`: the
 * mean part of a step, of which the slow ones cost `floor` in any case.
 */
static double part_of_time(double mean, double floor, double share)
{
	const double part = mean - floor * share;
	const double slow = part / fmax(share, fabs(part));

	return share > 0.0 ? fmin(part / (1.0 - slow + part), NT_COST_MOST) : part;
}

/*
 * The part of a step that a fault costs, minus the straggler floor, if the time before it is
 * unknown. False: this is unknown, too.
 */
static bool find_part(const struct nt_detect *detect, const struct nt_detect_incident *incident,
		      bool now, double *ret_part)
{
	const struct nt_detect_rank *rank;
	const struct nt_group *group;
	double whole;
	uint8_t series;
	bool is_known;

	*ret_part = nt_stats_clip(incident->cost, 0.0, NT_COST_MOST);
	if (incident->family != NT_FAMILY_SLOW || !incident->blames)
		return !incident->unsure;
	*ret_part = nt_stats_clip(slow_part(detect, incident, now), -NT_COST_MOST, NT_COST_MOST);
	series = incident->blame[0].series;
	rank = nt_detect_find(detect, incident->blame[0].rank);
	if (!rank || rank->group >= detect->roles.groups)
		return true;
	group = &detect->roles.group[rank->group];
	whole = *ret_part;
	is_known = nt_straggler_floor_take_off(detect, group, series, incident->blames,
					       incident->cost, ret_part);
	/* In the other steps the job waits for that anyway. */
	if (!is_lasting(detect, incident))
		*ret_part =
			now ? fmax(0.0, *ret_part)
			    : part_of_time(whole, whole - *ret_part, slow_share(detect, incident));
	return is_known;
}

/* A change of the whole job is the level at which a later fault begins. */
static bool is_level_of(const struct nt_detect_incident *change,
			const struct nt_detect_incident *fault)
{
	return change->family == NT_FAMILY_JOB_WIDE && fault->family != NT_FAMILY_JOB_WIDE &&
	       change->since_ns < fault->since_ns;
}

/* When the level began at which the incident began; 0: it is that of the first steps. */
static uint64_t level_since(const struct nt_detect *detect,
			    const struct nt_detect_incident *incident)
{
	uint64_t since_ns = 0;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *other = detect->incidents.open[i];

		if (other->state == NT_INCIDENT_FIRING && is_level_of(other, incident) &&
		    other->since_ns > since_ns)
			since_ns = other->since_ns;
	}
	return since_ns;
}

/*
 * Sum of the costs of all other charged incidents, and the step time before any of them. *ret_most_ns:
 * of a job-wide change the step time before the faults since.
 */
static double sum_others(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			 double *ret_clean_ns, double *ret_most_ns)
{
	double cost = 0.0;
	uint64_t until_ns;

	*ret_clean_ns = *ret_most_ns = INFINITY;
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *other = detect->incidents.open[i];

		if (other == incident || other->state != NT_INCIDENT_FIRING || !is_measured(other))
			continue;
		if (is_level_of(other, incident))
			continue;
		if (is_level_of(incident, other)) {
			*ret_most_ns = fmin(*ret_most_ns, other->lost_time.before_ns);
			continue;
		}
		if (!nt_fault_has_ended(other, &until_ns))
			cost += fmax(0.0, other->cost);
		*ret_clean_ns = fmin(*ret_clean_ns, other->lost_time.clean_ns);
	}
	return cost;
}

/* Slow in some of the windows, of which some lie before the onset. */
static bool was_at_times(const struct nt_track *track, uint64_t onset_ns)
{
	return is_intermittent(track) ||
	       (!is_lasting_level(track) && track->level.onset_ns < onset_ns);
}

/*
 * Whether the ranks were slow from the start, as the earlier steps confirm. The onset is then only
 * the time of a reset (new steps or groups), and the time before it is no reference.
 */
static bool was_always_so(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			  const struct nt_history_sum *since, double before_ns)
{
	double part;

	if (incident->family == NT_FAMILY_NETWORK)
		return incident->unsure;
	if (incident->family != NT_FAMILY_SLOW || !incident->blames || since->step_ns <= 0.0)
		return false;
	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_blame *blame = &incident->blame[i];
		const struct nt_detect_rank *rank = nt_detect_find(detect, blame->rank);

		if (!rank || (!rank->track[blame->series].always &&
			      !was_at_times(&rank->track[blame->series], incident->since_ns)))
			return false;
	}
	(void)find_part(detect, incident, false, &part);
	return since->step_ns - since->steps * before_ns < part * since->step_ns * NT_EXPLAINS;
}

static void note_excess(struct nt_lost_time *lost_time, double excess_ns, double of_ns)
{
	lost_time->excess_ns += excess_ns;
	lost_time->of_ns += of_ns;
}

/* A fault that grows shows in the slow-down within that time. */
static void fade_excess(struct nt_lost_time *lost_time, double most_ns)
{
	const double kept = fmin(1.0, most_ns / fmax(1.0, lost_time->of_ns));

	lost_time->excess_ns *= kept;
	lost_time->of_ns *= kept;
}

/*
 * The step time before, without the faults that have ended since. 0: one of them is of unknown cost.
 */
static double before_others(const struct nt_detect *detect,
			    const struct nt_detect_incident *incident, double before_ns)
{
	uint64_t until_ns;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *other = detect->incidents.open[i];

		if (other == incident || other->state != NT_INCIDENT_FIRING ||
		    !nt_incident_needs_windows(other) || other->since_ns >= incident->since_ns ||
		    !nt_fault_has_ended(other, &until_ns))
			continue;
		before_ns = is_measured(other) ? fmin(before_ns, other->lost_time.clean_ns) : 0.0;
	}
	return before_ns;
}

/* Its own evidence, within limits: it is small early. */
static double cost_of(const struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	return nt_stats_clip(incident->cost, NT_LOST_TIME_LEAST * detect->rules.size_floor,
			     NT_LOST_TIME_MOST);
}

/* What a step costs beyond clean_ns by the own evidence. */
static double own_excess(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			 double clean_ns)
{
	const double cost = cost_of(detect, incident);

	return clean_ns * cost / (1.0 - cost);
}

static double most_times(const struct nt_detect *detect, const struct nt_detect_incident *incident)
{
	return is_lasting(detect, incident) ? NT_LOST_TIME_LASTING : NT_LOST_TIME_TIMES;
}

/*
 * The most that a step may cost beyond clean_ns, in terms of the own evidence.
 * A round with a checkpoint or an evaluation takes longer for that.
 */
static double most_excess(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			  double clean_ns)
{
	return most_times(detect, incident) * own_excess(detect, incident, clean_ns);
}

/*
 * The mean step before. A stall counts as much as it would since: there the fault takes its part of
 * most_excess(). A median would charge the fault with the stalls that the job has anyway.
 */
static double mean_before(const struct nt_detect *detect, const struct nt_detect_incident *incident,
			  uint64_t onset_ns)
{
	const struct nt_history *history = &detect->step.history;
	const double usual_ns = nt_history_before(history, onset_ns);
	const double mean_ns =
		nt_history_before_mean(history, onset_ns,
				       usual_ns + (most_times(detect, incident) - 1.0) *
							  own_excess(detect, incident, usual_ns));

	/* In few rounds the first steps of the job would weigh too much. */
	return mean_ns > 0.0 ? mean_ns : usual_ns;
}

void nt_lost_time_look_back(const struct nt_detect *detect, struct nt_detect_incident *incident)
{
	const struct nt_history *history = &detect->step.history;
	struct nt_lost_time *lost_time = &incident->lost_time;
	uint64_t onset_ns = incident->since_ns;
	struct nt_history_sum since;
	const uint64_t level_ns = level_since(detect, incident);
	double clean_ns, most_ns;
	bool had_others;

	(void)sum_others(detect, incident, &clean_ns, &most_ns);
	if (!isfinite(clean_ns))
		onset_ns = nt_history_onset(
			history, onset_ns,
			level_ns > detect->step.charged_ns ? level_ns : detect->step.charged_ns);
	since = nt_history_since(history, onset_ns);
	*lost_time = (struct nt_lost_time){
		.before_ns = mean_before(detect, incident, onset_ns),
		.first = history->steps - since.steps,
		.steps = since.steps,
		.step_ns = since.step_ns,
		.frame = detect->frames,
	};
	had_others = lost_time->before_ns > 0.0;
	lost_time->before_ns = before_others(detect, incident, lost_time->before_ns);
	had_others = had_others && lost_time->before_ns <= 0.0;
	/* A note compares with the baseline, which may be long ago. */
	if (incident->family == NT_FAMILY_UNDECIDED || !nt_history_same_unit(history, onset_ns) ||
	    was_always_so(detect, incident, &since, lost_time->before_ns))
		lost_time->before_ns = 0.0;
	lost_time->clean_ns = fmin(lost_time->before_ns, clean_ns);
	if (lost_time->before_ns <= 0.0) {
		/* Includes the steps before its first judged window, but none before another fault. */
		const double unseen = had_others ? 0.0
						 : nt_history_unseen(history, onset_ns,
								     incident->tier == NT_FRAME_T3);
		double part;

		lost_time->unknown = !find_part(detect, incident, false, &part);
		lost_time->due_ns = part * since.step_ns * (1.0 + unseen / fmax(1.0, since.steps));
		note_excess(lost_time, part * since.step_ns, since.step_ns);
	} else if (!isfinite(clean_ns)) {
		lost_time->due_ns =
			nt_history_excess(history, onset_ns, lost_time->clean_ns,
					  most_excess(detect, incident, lost_time->clean_ns));
		note_excess(lost_time, lost_time->due_ns, since.step_ns);
	}
	/* Otherwise the other incidents were charged: no step is counted twice. */
}

/*
 * Distributes the excess of this frame's steps over those before the onset among the lasting
 * incidents, in proportion to the cost by their own evidence. The excess may be larger than these
 * costs: pauses of ranks at different times delay all ranks each time.
 */
void nt_lost_time_add(const struct nt_detect *detect, struct nt_detect_incident *incident)
{
	const struct nt_detect_step *step = &detect->step;
	struct nt_lost_time *lost_time = &incident->lost_time;
	double others, clean_ns, most_ns, cost, excess_ns;

	if (!nt_incident_needs_windows(incident) || step->round_steps <= 0.0 ||
	    lost_time->frame == detect->frames)
		return;
	lost_time->frame = detect->frames;
	lost_time->steps += step->round_steps;
	lost_time->step_ns += step->round_ns;
	fade_excess(lost_time, (double)detect->rules.new_normal_ns);
	if (!is_measured(incident)) {
		lost_time->unknown |= !find_part(detect, incident, true, &cost);
		lost_time->due_ns += step->round_ns * cost;
		note_excess(lost_time, step->round_ns * cost, step->round_ns);
		return;
	}
	others = sum_others(detect, incident, &clean_ns, &most_ns);
	cost = cost_of(detect, incident);
	most_ns = fmin(step->round_ns, step->round_steps * most_ns);
	excess_ns = fmin((most_ns - step->round_steps * lost_time->clean_ns) *
				 (others > 0.0 ? cost / (cost + others) : 1.0),
			 step->round_steps * most_excess(detect, incident, lost_time->clean_ns));
	lost_time->due_ns += excess_ns;
	note_excess(lost_time, excess_ns, step->round_ns);
}

double nt_lost_time_slowdown(const struct nt_detect_incident *incident)
{
	const struct nt_lost_time *lost_time = &incident->lost_time;

	if (!nt_incident_needs_windows(incident) || lost_time->of_ns <= 0.0)
		return nt_cost_slowdown(incident->cost);
	return nt_cost_slowdown(fmax(0.0, lost_time->excess_ns / lost_time->of_ns));
}

double nt_lost_time_hours(struct nt_detect_incident *incident, uint32_t gpus, uint64_t stretch_ns)
{
	const double lost_ns = incident->lost_time.due_ns;

	if (!nt_incident_needs_windows(incident))
		return nt_cost_gpu_hours(incident->slowdown, gpus, stretch_ns);
	incident->lost_time.due_ns = 0.0;
	return lost_ns * gpus / 3600e9;
}
