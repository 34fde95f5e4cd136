/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Job-wide rules: the step, and changes that all ranks share. */
#include "detect/rules/step_judge.h"

#include <math.h>

#include "detect/baseline/baseline_reset.h"
#include "detect/baseline/peer_deviation.h"
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/network_loss.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* The usual work of the ranks of this round: its median. */
static double median_past(struct nt_detect *detect, enum nt_series series)
{
	double *value = detect->scratch.a;
	uint32_t n = 0;

	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].round_frame == detect->frames &&
		    detect->rank[i].track[series].past.ready)
			value[n++] = detect->rank[i].track[series].past.value_centre;
	return nt_stats_median_of(value, n);
}

/* The ranks of a round as columns; of a series only ranks with a past. */
struct step_round {
	double *step, *run_queue;
	double gc; /* mean */
	uint32_t n;
	bool of_most; /* the columns are those of most ranks */
	struct step_column {
		double *growth, *slow, *centre, *spread;
		uint32_t n, judged; /* judged: including ranks still learning */
	} of[NT_SERIES_END];
};

static void add_contribution(struct step_column *column, const struct nt_track_contribution *note)
{
	if (isnan(note->growth))
		return;
	column->growth[column->n] = note->growth;
	column->slow[column->n] = note->slow_cost;
	column->centre[column->n] = note->centre;
	column->spread[column->n++] = note->spread;
}

/* The last round of a rank, if its growth was not taken yet. True: it was added. */
static bool add_earlier(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			struct step_round *round)
{
	if (rank->round_frame <= detect->step.wide_frame || rank->ended || rank->silent)
		return false;
	for (int j = 0; j < NT_SERIES_END; j++) {
		const struct nt_track *track = &rank->track[j];
		const struct nt_track_contribution note = nt_track_contribute(track);

		if (track->frame != rank->round_frame)
			continue;
		round->of[j].judged++;
		add_contribution(&round->of[j], &note);
	}
	return true;
}

/*
 * Collects the columns in one scan. The roles of a job may have their rounds in different frames:
 * growth is that of most ranks only if most had a round since it was last taken.
 */
static struct step_round line_up(struct nt_detect *detect)
{
	const struct nt_scratch *scratch = &detect->scratch;
	double *const *line = scratch->column;
	struct step_round round = {
		.step = scratch->a,
		.run_queue = scratch->b,
		.of = {{.growth = line[0], .slow = line[1], .centre = line[2], .spread = line[3]},
		       {.growth = line[4], .slow = line[5], .centre = line[6], .spread = line[7]}},
	};
	uint32_t fresh = 0;

	for (uint32_t i = 0; i < detect->ranks; i++) {
		if (scratch->step_metric_step[i] <= 0.0)
			continue;
		round.gc += scratch->gc[i];
		round.run_queue[round.n] = scratch->run_queue[i];
		round.step[round.n++] = scratch->step_metric_step[i];
		for (int j = 0; j < NT_SERIES_END; j++)
			add_contribution(&round.of[j], &scratch->contribution[i].of[j]);
	}
	for (int j = 0; j < NT_SERIES_END; j++)
		round.of[j].judged = scratch->judged[j];
	round.gc = round.n ? round.gc / round.n : 0.0;
	fresh = round.n;
	for (uint32_t i = 0; i < detect->ranks && round.n < scratch->stepping; i++)
		if (scratch->step_metric_step[i] <= 0.0)
			fresh += add_earlier(detect, &detect->rank[i], &round);
	round.of_most = fresh >= (1.0 - NT_WIDE_SHARE) * scratch->stepping;
	return round;
}

/* Returns the window's cost; -INFINITY: unknown. */
static double learn_job_wide(struct nt_detect *detect, struct nt_job_wide *wide,
			     const struct step_column *column)
{
	struct nt_cusum_window window = {.start_ns = detect->start_ns,
					 .frame = detect->frames,
					 .ceiling = NT_CUSUM_CEILING * NT_WIDE_TIMES *
						    detect->threshold};
	const uint32_t n = column->n;
	double width;

	wide->growth = wide->slow_cost = wide->drop = 0.0;
	wide->known = n && (double)n >= (1.0 - NT_WIDE_SHARE) * column->judged;
	if (!wide->known)
		return -INFINITY;
	wide->growth = nt_stats_quantile_of(column->growth, n, NT_WIDE_SHARE);
	wide->slow_cost = nt_stats_quantile_of(column->slow, n, NT_WIDE_SHARE);
	wide->drop = fmin(0.0, nt_stats_quantile_of(column->growth, n, 1.0 - NT_WIDE_SHARE));
	if (wide->drop > -detect->rules.size_floor)
		wide->dropped_ns = 0;
	else if (!wide->dropped_ns)
		wide->dropped_ns = detect->end_ns;
	/* Common changes are part of each rank's own spread. */
	width = fmax(detect->rules.peer_deviation_floor, nt_stats_median_of(column->spread, n));
	window.peer_deviation = wide->growth;
	/* A slow mean decays slowly, so it must exceed the noise of one window. */
	window.z = fmax(wide->growth / width, wide->slow_cost / detect->rules.size_floor);
	window.cost = wide->growth *
		      nt_peer_deviation_base(&detect->rules, nt_stats_median_of(column->centre, n),
					     detect->step.step_ns) /
		      fmax(1.0, detect->step.step_ns);
	window.cost = fmax(window.cost, wide->slow_cost);
	nt_cusum_add(&wide->level, &detect->rules, &window);
	return window.cost;
}

/* Learns the step time. Run queue waits lengthen it irregularly. */
static double learn_level(struct nt_detect *detect, const struct step_round *round,
			  uint64_t stepped)
{
	struct nt_detect_step *step = &detect->step;
	struct nt_cusum_window window = {.start_ns = detect->start_ns,
					 .frame = detect->frames,
					 .ceiling = NT_CUSUM_CEILING * NT_WIDE_TIMES *
						    detect->threshold};
	double base, width;

	if (!step->past.ready)
		return -INFINITY;
	if (stepped) {
		window.start_ns = nt_detect_began_ns(detect, stepped);
		window.frame = stepped;
	}
	base = fmax(1.0, step->past.value_centre);
	width = fmax(detect->rules.peer_deviation_floor, NT_PAST_CAUTION * step->past.value_width);
	width = fmax(width,
		     NT_STARVED_NOISE * nt_stats_median_of(round->run_queue, round->n) / base);
	window.peer_deviation = (step->step_ns - base) / base;
	window.z = window.peer_deviation / width;
	window.cost = (step->step_ns - base) / fmax(1.0, step->step_ns);
	nt_cusum_add(&step->level, &detect->rules, &window);
	return window.cost;
}

/* Whether another open incident that began after the baseline explains the longer step. */
static bool is_explained(const struct nt_detect *detect, bool or_pending)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family != NT_FAMILY_JOB_WIDE && incident->lost_time.before_ns > 0.0 &&
		    (or_pending || incident->state == NT_INCIDENT_FIRING))
			return true;
	}
	return false;
}

/* What incidents with a culprit that began before onset_ns cost: no part of a change since then. */
static double explained_part(const struct nt_detect *detect, uint64_t onset_ns)
{
	double part = 0.0;

	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family != NT_FAMILY_JOB_WIDE && incident->lost_time.before_ns > 0.0 &&
		    incident->since_ns <= onset_ns && incident->state == NT_INCIDENT_FIRING)
			part += fmax(0.0, incident->cost);
	}
	return part;
}

int nt_detect_step_learn(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct nt_detect_step *step = &detect->step;
	const struct step_round round = line_up(detect);
	double cost, own = -INFINITY, host = -INFINITY, median;
	uint64_t stepped = 0;

	(void)frame;
	if (!round.n)
		return 0;
	median = nt_stats_median_of(round.step, round.n);
	step->step_ns = median;
	nt_history_add(&step->history, &(const struct nt_history_round){
					       .start_ns = detect->start_ns,
					       .steps = step->round_steps,
					       .step_ns = step->round_ns / step->round_steps,
					       .calls = step->round_calls,
				       });
	if (!detect->incidents.opens)
		stepped = nt_past_learn_first(&step->past, &step->lesson,
					      step->round_calls / fmax(1e-9, step->round_steps),
					      median, detect->frames);
	step->gc_ns += NT_WIDE_GC_PART * (round.gc - step->gc_ns);
	if (round.of_most) {
		own = learn_job_wide(detect, &step->job_wide[NT_SERIES_OWN],
				     &round.of[NT_SERIES_OWN]);
		host = learn_job_wide(detect, &step->job_wide[NT_SERIES_HOST],
				      &round.of[NT_SERIES_HOST]);
		step->wide_frame = detect->frames;
	}
	cost = learn_level(detect, &round, stepped);
	/* Excess explained by other incidents is not attributed to it. */
	if (!isfinite(cost) || is_explained(detect, true))
		cost = fmax(own, host);
	if (isfinite(cost))
		nt_incidents_judge(detect, NT_FAMILY_JOB_WIDE, 0, cost);
	if (step->job_wide[NT_SERIES_OWN].level.sum <= 0.0 &&
	    step->job_wide[NT_SERIES_HOST].level.sum <= 0.0)
		step->gc_before_ns = step->gc_ns;
	return 0;
}

/* All ranks became faster for good: not a finding, but a new baseline. */
static bool is_faster_for_good(const struct nt_detect *detect)
{
	for (int i = 0; i < NT_SERIES_END; i++) {
		const struct nt_job_wide *wide = &detect->step.job_wide[i];

		if (wide->dropped_ns &&
		    detect->end_ns - wide->dropped_ns >= detect->rules.new_normal_ns)
			return true;
	}
	return false;
}

/* Whether the step is the incident's only evidence. */
static bool is_alone(const struct nt_detect_incident *incident)
{
	return incident->evidence[0].what == NT_EVIDENCE_TEXT_STEP;
}

/*
 * The step is longer and no rank's work or other rule explains it. As other rules take precedence,
 * it must last as long as a recovery must.
 */
static int check_level(struct nt_detect *detect, struct nt_detect_incident *open)
{
	const struct nt_rules *rules = &detect->rules;
	const struct nt_detect_step *step = &detect->step;
	const struct nt_cusum *level = &step->level;
	const bool alone = open && is_alone(open);
	/* Stalls of single steps do not count as a longer step. */
	const double normal = step->past.value_centre * (1.0 + step->past.value_width);
	const bool longer =
		nt_history_low(&step->history, detect->end_ns - rules->resolve_min_ns) - normal >=
		rules->size_floor * step->step_ns;
	struct nt_proposal proposal = {
		.family = NT_FAMILY_JOB_WIDE,
		.class = NT_CLASS_JOB_WIDE,
		.kind = NT_CULPRIT_STAGE,
		.onset_ns = level->onset_ns,
		.cost = nt_cusum_cost(level),
		.tier = NT_FRAME_T1,
		.chance = nt_cusum_chance(level->sum, rules, 1.0, 1.0),
	};

	/* What is pending may pass: until it fires, the network stays named. */
	if (is_explained(detect, !alone || open->cause != NT_EVIDENCE_TEXT_TCP_LOSS))
		return alone ? nt_incidents_close(detect, NT_FAMILY_JOB_WIDE) : 0;
	if ((open && !alone) || !longer || level->sum < NT_WIDE_TIMES * detect->threshold ||
	    !nt_cusum_lasts(level) || proposal.cost < NT_WIDE_TIMES * rules->size_floor ||
	    level->windows < rules->resolve_windows ||
	    detect->end_ns - level->onset_ns < rules->resolve_min_ns)
		return 0;
	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->rank[i].round_frame == detect->frames &&
		    detect->rank[i].tier > proposal.tier)
			proposal.tier = detect->rank[i].tier;
	proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
		.what = NT_EVIDENCE_TEXT_STEP,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_OWN_PAST,
		.value = step->step_ns / 1e6,
		.peers = step->past.value_centre / 1e6,
		.windows = level->windows,
	};
	nt_network_loss_blame(detect, &proposal);
	return nt_incidents_raise(detect, &proposal);
}

/* Whether all observed ranks are named already, and so do not represent the job. */
static bool are_all_named(const struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++) {
		const struct nt_detect_rank *rank = &detect->rank[i];

		if (detect->frames - rank->seen_frame < NT_FRESH_FRAMES && !rank->ended &&
		    !rank->in_incident)
			return false;
	}
	return true;
}

/* The part of a step by which it is longer than `was`, 0 if it is not by `NT_LONGER_ERRORS`. */
static double part_beyond(const struct nt_history_mean *now, double was_ns, double error)
{
	return now->step_ns - was_ns > NT_LONGER_ERRORS * error ? 1.0 - was_ns / now->step_ns : 0.0;
}

/*
 * The part of the time since onset_ns that the steps take beyond those before, 0 if it is within the error of
 * both: lengths may be random, and an onset is where a few long steps begin. The change may be older than the
 * sum that shows it, so that the first rounds count, too. *ret_step_ns: the mean step since then.
 */
static double longer_part(const struct nt_detect_step *step, uint64_t onset_ns, double *ret_step_ns)
{
	const struct nt_history *history = &step->history;
	const double most_ns = NT_UNDECIDED_MOST * step->past.value_centre;
	const uint32_t n = nt_history_rounds_since(history, onset_ns), before = history->count - n;
	const struct nt_history_mean now = nt_history_mean(history, 0, n, most_ns);
	const struct nt_history_mean was = nt_history_mean(history, n, before, most_ns);
	double longer, error;

	*ret_step_ns = n < 2 ? step->step_ns : now.step_ns;
	/* Too few rounds: as the last one is. */
	if (n < 2)
		return (step->step_ns - step->past.value_centre) / fmax(1.0, step->step_ns);
	error = now.sigma_ns * hypot(1.0 / sqrt(n), NT_STATS_MEDIAN_ERROR / sqrt(NT_PAST_WINDOWS));
	longer = part_beyond(&now, step->past.value_centre, error);
	if (before < NT_PAST_FEW)
		return longer;
	error = nt_history_error(&now, n, &was, before);
	return fmax(longer, part_beyond(&now, was.step_ns, error));
}

int nt_detect_step_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_JOB_WIDE, 0);
	const struct nt_detect_step *step = &detect->step;

	(void)frame;
	if (open && is_alone(open) &&
	    detect->end_ns - open->since_ns >= detect->rules.new_normal_ns) {
		/* The ranks' own baselines are unchanged. */
		nt_past_clear(&detect->step.past);
		return nt_incidents_close(detect, NT_FAMILY_JOB_WIDE);
	}
	if ((open && detect->end_ns - open->since_ns >= detect->rules.new_normal_ns) ||
	    is_faster_for_good(detect)) {
		/* First, as the final report includes the step time before. */
		int r = nt_incidents_close(detect, NT_FAMILY_JOB_WIDE);

		nt_normal_forget(detect, false);
		return r;
	}
	if (are_all_named(detect))
		return check_level(detect, open);
	for (enum nt_series series = NT_SERIES_OWN; series < NT_SERIES_END; series++) {
		const struct nt_job_wide *wide = &step->job_wide[series];
		struct nt_proposal proposal = {
			.family = NT_FAMILY_JOB_WIDE,
			.class = NT_CLASS_JOB_WIDE,
			.kind = NT_CULPRIT_STAGE,
			.onset_ns = wide->level.onset_ns,
			.cost = nt_cusum_cost(&wide->level),
			.tier = NT_FRAME_T1,
			.chance = nt_cusum_chance(wide->level.sum, &detect->rules, detect->ranks,
						  1.0),
		};
		double longer, step_ns, was, more;

		if (wide->level.sum < NT_WIDE_TIMES * detect->threshold || !step->past.ready ||
		    !nt_cusum_lasts(&wide->level) || proposal.cost < detect->rules.size_floor)
			continue;
		longer = longer_part(step, wide->level.onset_ns, &step_ns) -
			 explained_part(detect, wide->level.onset_ns);
		if (longer < NT_WIDE_TIMES * detect->rules.size_floor ||
		    longer < NT_EXPLAINS * proposal.cost)
			continue;
		was = median_past(detect, series);
		more = proposal.cost * step_ns;
		/* Pauses of ranks at different times delay the job by more than each rank's own. */
		if (longer <= NT_WIDE_FELT * proposal.cost)
			proposal.cost = fmax(proposal.cost, longer);
		if (step->gc_ns - step->gc_before_ns >= NT_EXPLAINS * more)
			proposal.cause = NT_EVIDENCE_TEXT_HOST_GC;
		for (uint32_t i = 0; i < detect->ranks; i++)
			if (detect->rank[i].round_frame == detect->frames &&
			    detect->rank[i].tier > proposal.tier)
				proposal.tier = detect->rank[i].tier;
		proposal.evidence[proposal.evidences++] = (struct nt_detect_evidence){
			.what = series == NT_SERIES_OWN ? NT_EVIDENCE_TEXT_ALL_OWN_WORK
							: NT_EVIDENCE_TEXT_ALL_HOST_WORK,
			.unit = NT_EVIDENCE_TEXT_MS,
			.method = NT_EVIDENCE_TEXT_OWN_PAST,
			.value = (was + more) / 1e6,
			.peers = was / 1e6,
			.windows = wide->level.windows,
		};
		return nt_incidents_raise(detect, &proposal);
	}
	return check_level(detect, open);
}
