/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents: pending, firing, resolved. */
#include "detect/incident.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detect/answer.h"
#include "detect/array.h"
#include "detect/core.h"
#include "detect/cost.h"
#include "detect/fault.h"
#include "detect/network.h"
#include "detect/node.h"
#include "detect/toll.h"

enum {
	NAME_JOB = UINT8_MAX,
	ABSENT_FRAMES = 2, /* without a stall before it is over */
};

void nt_incident_free(struct nt_incident *incident)
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

void nt_incidents_begin(struct nt_detect *detect)
{
	struct nt_incidents *incidents = &detect->incidents;

	for (uint32_t i = 0; i < incidents->gones; i++)
		nt_incident_free(incidents->gone[i]);
	incidents->gones = 0;
	incidents->answers = 0;
	for (uint32_t i = 0; i < incidents->opens; i++) {
		struct nt_incident *incident = incidents->open[i];

		incident->stands = false;
		incident->judged = false;
		incident->changed = false;
		incident->shown_cost = -1.0;
		incident->window_cost = 0.0;
		for (uint32_t j = 0; j < incident->blames; j++)
			incident->blame[j].stands = false;
	}
}

/* ---- names and ids ---------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	/* FNV-1a over the bytes, lowest first, on any machine. */
	for (int i = 0; i < 8; i++) {
		hash ^= word >> (8 * i) & 0xff;
		hash *= 0x100000001b3ull;
	}
	return hash;
}

/* How many incidents began with this culprit before; counts this one. */
static int count_name(struct nt_incidents *incidents, uint8_t kind, uint64_t id, uint32_t *ret_nth)
{
	uint32_t low = 0, high = incidents->names;
	int r;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct nt_name *name = &incidents->name[middle];

		if (name->kind < kind || (name->kind == kind && name->id < id))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < incidents->names && incidents->name[low].kind == kind &&
	    incidents->name[low].id == id) {
		*ret_nth = incidents->name[low].count++;
		return 0;
	}
	if (incidents->names == NT_INCIDENT_MAX_NAMES) {
		/* The ids of further ones stay unique by their onset. */
		*ret_nth = 0;
		incidents->refused++;
		return 0;
	}
	r = nt_array_room((void **)&incidents->name, &incidents->name_cap, incidents->names,
			  sizeof(*incidents->name));
	if (r < 0)
		return r;
	memmove(&incidents->name[low + 1], &incidents->name[low],
		(incidents->names - low) * sizeof(*incidents->name));
	incidents->name[low] = (struct nt_name){.kind = kind, .id = id, .count = 1};
	incidents->names++;
	*ret_nth = 0;
	return 0;
}

static int incident_new(struct nt_detect *detect, const struct nt_proposal *proposal, uint8_t kind,
			uint64_t first, struct nt_incident **ret_incident)
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_incident *incident;
	uint32_t nth = 0;
	int r;

	*ret_incident = NULL;
	if (incidents->opens == NT_INCIDENT_MAX_OPEN) {
		incidents->refused++;
		return 0;
	}
	r = nt_array_room((void **)&incidents->open, &incidents->open_cap, incidents->opens,
			  sizeof(*incidents->open));
	if (r < 0)
		return r;
	incident = calloc(1, sizeof(*incident));
	if (!incident)
		return -ENOMEM;
	r = count_name(incidents, kind, first, &nth);
	if (r < 0) {
		free(incident);
		return r;
	}
	incident->id = mix(
		mix(mix(mix(mix(0xcbf29ce484222325ull, detect->job_hash), detect->attempt), kind),
		    first),
		nth);
	if (incidents->names == NT_INCIDENT_MAX_NAMES)
		incident->id = mix(incident->id, proposal->onset_ns);
	incident->family = (uint8_t)proposal->family;
	incident->kind = (uint8_t)proposal->kind;
	incident->class = (uint8_t)proposal->class;
	incident->cause = (uint8_t)proposal->cause;
	incident->note = proposal->note;
	incident->comm = proposal->comm;
	incident->state = NT_INCIDENT_PENDING;
	incident->since_ns = proposal->onset_ns;
	incident->counted_ns = proposal->onset_ns;
	incident->missing_before_ns = nt_gaps_before(&detect->gaps, proposal->onset_ns);
	nt_toll_look_back(detect, incident);
	incident->seen_ns = detect->end_ns;
	incident->changed = true;
	incident->shown_cost = -1.0;
	incidents->open[incidents->opens++] = incident;
	*ret_incident = incident;
	return 0;
}

/* ---- what the rules say ------------------------------------------------------------------------ */

struct nt_incident *nt_incidents_find(const struct nt_detect *detect, enum nt_family family,
				      uint64_t comm)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		struct nt_incident *incident = detect->incidents.open[i];

		if (incident->family == family &&
		    (family != NT_FAMILY_NETWORK || incident->comm == comm))
			return incident;
	}
	return NULL;
}

static struct nt_blame *find_blame(const struct nt_incident *incident, uint32_t rank)
{
	uint32_t low = 0, high = incident->blames;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (incident->blame[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < incident->blames && incident->blame[low].rank == rank ? &incident->blame[low]
									   : NULL;
}

static int blame_insert(struct nt_incident *incident, const struct nt_blame *blame)
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

static void blame_remove(struct nt_incident *incident, uint32_t at)
{
	memmove(&incident->blame[at], &incident->blame[at + 1],
		(incident->blames - at - 1) * sizeof(*incident->blame));
	incident->blames--;
	incident->changed = true;
}

bool nt_incidents_are_together(uint64_t onset_ns, uint64_t other_ns, double window_ns)
{
	/* Two windows, and half of one for boundaries that fell differently. */
	return fabs((double)onset_ns - (double)other_ns) <= 2.5 * window_ns;
}

static bool is_together(const struct nt_incident *incident, const struct nt_proposal *proposal,
			double window_ns)
{
	const uint64_t onset_ns = proposal->onset_ns;

	/* It may have begun with the others, while its past was still being learned. */
	if (proposal->first_seen && onset_ns > incident->since_ns &&
	    (double)(onset_ns - incident->since_ns) <= NT_PAST_WINDOWS * window_ns)
		return true;
	for (uint32_t i = 0; i < incident->blames; i++)
		if (nt_incidents_are_together(incident->blame[i].onset_ns, onset_ns, window_ns))
			return true;
	return false;
}

static const struct nt_blame *worst_blame(const struct nt_incident *incident)
{
	const struct nt_blame *worst = NULL;

	for (uint32_t i = 0; i < incident->blames; i++)
		if (!worst || incident->blame[i].cost > worst->cost)
			worst = &incident->blame[i];
	return worst;
}

int nt_incidents_blame(struct nt_detect *detect, struct nt_rank *rank,
		       const struct nt_proposal *proposal)
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_incident *incident = NULL;
	struct nt_blame *blame = NULL;
	int r;

	for (uint32_t i = 0; rank->in_incident && i < incidents->opens && !blame; i++) {
		incident = incidents->open[i];
		blame = find_blame(incident, rank->rank);
	}
	if (!blame) {
		const double window_ns = detect->roles.group[rank->group].window_ns;
		const struct nt_blame first = {
			.rank = rank->rank,
			.onset_ns = proposal->onset_ns,
			.cost = proposal->cost,
			.series = proposal->series,
		};

		incident = NULL;
		for (uint32_t i = 0; i < incidents->opens && !incident; i++)
			if (incidents->open[i]->family == NT_FAMILY_SLOW &&
			    is_together(incidents->open[i], proposal, window_ns))
				incident = incidents->open[i];
		if (!incident) {
			r = incident_new(detect, proposal, NT_CULPRIT_RANK, rank->rank, &incident);
			if (!incident)
				return r;
		}
		r = blame_insert(incident, &first);
		if (r < 0)
			return r;
		blame = find_blame(incident, rank->rank);
		rank->in_incident = true;
		for (int i = 0; i < NT_SERIES_END; i++)
			nt_past_unlearn(&rank->track[i].past, nt_rank_lesson(detect, rank, i),
					proposal->onset_frame);
	}
	blame->cost += 0.3 * (proposal->cost - blame->cost);
	blame->chance = proposal->chance;
	blame->class = (uint8_t)proposal->class;
	blame->cause = (uint8_t)proposal->cause;
	blame->tier = proposal->tier;
	blame->series = proposal->series;
	blame->stands = true;
	incident->stands = true;
	incident->judged = true;
	if (blame->cost > incident->shown_cost) {
		incident->shown_cost = blame->cost;
		memcpy(incident->evidence, proposal->evidence, sizeof(incident->evidence));
		incident->evidences = (uint32_t)proposal->evidences;
	}
	return 0;
}

int nt_incidents_raise(struct nt_detect *detect, const struct nt_proposal *proposal)
{
	struct nt_incident *incident = nt_incidents_find(detect, proposal->family, proposal->comm);
	int r;

	if (!incident) {
		const bool ranked = proposal->kind == NT_CULPRIT_RANK && proposal->ranks;
		const bool named = proposal->comm && (proposal->kind == NT_CULPRIT_COMMUNICATOR ||
						      proposal->kind == NT_CULPRIT_NIC ||
						      proposal->kind == NT_CULPRIT_PATH);

		r = incident_new(detect, proposal,
				 ranked || named ? (uint8_t)proposal->kind : NAME_JOB,
				 ranked  ? proposal->rank[0]
				 : named ? proposal->comm
					 : 0,
				 &incident);
		if (!incident)
			return r;
	}
	if (incident->class != proposal->class || incident->cause != proposal->cause ||
	    incident->kind != proposal->kind || incident->note != proposal->note ||
	    incident->listed != proposal->ranks ||
	    (proposal->ranks && memcmp(incident->list, proposal->rank,
				       proposal->ranks * sizeof(*proposal->rank)) != 0))
		incident->changed = true;
	if (proposal->ranks) {
		r = nt_array_room((void **)&incident->list, &incident->list_cap,
				  (uint32_t)proposal->ranks, sizeof(*incident->list));
		if (r < 0)
			return r;
		memcpy(incident->list, proposal->rank, proposal->ranks * sizeof(*proposal->rank));
	}
	incident->listed = (uint32_t)proposal->ranks;
	incident->class = (uint8_t)proposal->class;
	incident->cause = (uint8_t)proposal->cause;
	incident->kind = (uint8_t)proposal->kind;
	incident->note = proposal->note;
	incident->comm = proposal->comm;
	incident->tier = proposal->tier;
	/* One window is noisy; what stands still costs everything at once. */
	if (incident->version && proposal->cost >= 0.0 && incident->cost >= 0.0)
		incident->cost += 0.3 * (proposal->cost - incident->cost);
	else
		incident->cost = proposal->cost;
	incident->chance = proposal->chance;
	incident->unsure = proposal->unsure;
	incident->stands = true;
	incident->judged = true;
	memcpy(incident->evidence, proposal->evidence, sizeof(incident->evidence));
	incident->evidences = (uint32_t)proposal->evidences;
	return 0;
}

void nt_incidents_judge(struct nt_detect *detect, enum nt_family family, uint64_t comm, double cost)
{
	struct nt_incident *incident = nt_incidents_find(detect, family, comm);

	if (!incident)
		return;
	incident->judged = true;
	/* A family may be judged by several series. */
	incident->window_cost = fmax(incident->window_cost, cost);
	nt_recovery_add(&incident->recovery, &detect->rules, detect->start_ns, detect->end_ns, cost,
			incident->fault.held ? incident->fault.cost : incident->cost);
}

/* ---- ageing ------------------------------------------------------------------------------------ */

static void release_rank(struct nt_detect *detect, uint32_t number)
{
	struct nt_rank *rank = nt_detect_find(detect, number);

	if (!rank)
		return;
	rank->in_incident = false;
	rank->evidence = (struct nt_case){0};
	for (int i = 0; i < NT_SERIES_END; i++) {
		nt_cusum_clear(&rank->track[i].level);
		nt_cusum_clear(&rank->track[i].shift);
		rank->track[i].always = false;
	}
}

/* What all did together is in each one's own past, too: whoever stirs next would be accused of it. */
static void release_pasts(struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->ranks; i++) {
		struct nt_rank *rank = &detect->rank[i];

		for (int j = 0; j < NT_SERIES_END && !rank->in_incident; j++) {
			if (rank->track[j].mode != NT_MODE_PAST)
				continue;
			nt_cusum_clear(&rank->track[j].level);
			nt_cusum_clear(&rank->track[j].shift);
		}
	}
}

/* The evidence of what is over must not open it again. */
static void release_evidence(struct nt_detect *detect, const struct nt_incident *incident)
{
	for (uint32_t i = 0; i < incident->blames && !incident->taken_over; i++)
		release_rank(detect, incident->blame[i].rank);
	/* The step remembers it for longer, and would put it down to whoever stirs next. */
	if (nt_incident_needs_windows(incident) && !incident->taken_over)
		nt_cusum_clear(&detect->step.level);
	if (incident->family == NT_FAMILY_NETWORK && incident->taken_over) {
		return; /* it is another's now */
	} else if (incident->family == NT_FAMILY_NETWORK &&
		   incident->kind != NT_CULPRIT_COMMUNICATOR) {
		nt_link_release(detect, incident->kind, incident->comm);
	} else if (incident->family == NT_FAMILY_NETWORK) {
		nt_network_release(detect, incident);
	} else if (incident->family == NT_FAMILY_JOB_WIDE) {
		for (int i = 0; i < NT_SERIES_END; i++)
			nt_cusum_clear(&detect->step.wide[i].level);
		nt_cusum_clear(&detect->step.level);
		release_pasts(detect);
	}
}

static int retire(struct nt_detect *detect, struct nt_incident *incident, uint64_t until_ns)
{
	struct nt_incidents *incidents = &detect->incidents;
	int r = nt_array_room((void **)&incidents->gone, &incidents->gone_cap, incidents->gones,
			      sizeof(*incidents->gone));

	if (r < 0)
		return r;
	release_evidence(detect, incident);
	if (incident->state == NT_INCIDENT_FIRING && incident->toll.before_ns > 0.0)
		detect->step.charged_ns = detect->end_ns;
	nt_fault_tell(incident);
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
				      const struct nt_incident *incident))
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_incident *stays = nt_incidents_find(detect, proposal->family, proposal->comm);

	for (uint32_t i = 0; i < incidents->opens;) {
		struct nt_incident *incident = incidents->open[i];
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
		r = retire(detect, incident, detect->end_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_over(const struct nt_detect *detect, const struct nt_incident *incident,
		    const struct nt_blame *blame)
{
	if (incident->state == NT_INCIDENT_PENDING)
		return blame->absent >= NT_INCIDENT_PATIENCE;
	return nt_recovery_is_over(&blame->recovery, &detect->rules, detect->end_ns);
}

/*
 * Culprits that were well again at the same time, as far as windows tell, had one fault, and who is
 * believed to be well a window sooner than the others is told with them. `last_ns`: when one of them was
 * bad last.
 */
static bool ended_together(const struct nt_detect *detect, const struct nt_blame *blame,
			   uint64_t last_ns)
{
	const double bucket_ns = fmax((double)detect->rules.resolve_min_ns,
				      detect->rules.resolve_windows * detect->window_ns) /
				 NT_RECOVERY_PARTS;

	return (double)(last_ns - blame->recovery.bad_ns) <= bucket_ns;
}

/* Each culprit heals by itself. True: none is left, and the answer still names the last ones. */
static bool age_blames(struct nt_detect *detect, struct nt_incident *incident, uint64_t *ret_until)
{
	uint32_t over = 0;

	for (uint32_t i = 0; i < incident->blames; i++) {
		struct nt_blame *blame = &incident->blame[i];
		const struct nt_rank *rank = nt_detect_find(detect, blame->rank);

		if (!rank || rank->round_frame != detect->frames)
			continue;
		incident->judged = true;
		blame->absent = blame->stands ? 0 : blame->absent + 1;
		nt_recovery_add(&blame->recovery, &detect->rules,
				detect->roles.group[rank->group].wait_start_ns, detect->end_ns,
				rank->track[blame->series].residual, blame->cost);
	}
	if (!incident->judged)
		return false;
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
		release_rank(detect, incident->blame[i].rank);
		blame_remove(incident, i);
	}
	return false;
}

/* Class, tier and cost of the whole are those of its worst culprit; classes do not flicker. */
static void sum_up(const struct nt_detect *detect, struct nt_incident *incident)
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
				nt_gaps_before(&detect->gaps, blame->onset_ns);
			incident->changed = true;
			moved = true;
		}
	}
	if (moved && incident->state == NT_INCIDENT_PENDING) {
		incident->gpu_hours = 0.0;
		nt_toll_look_back(detect, incident);
	}
	if (!same || worst->cost > 1.25 * same->cost) {
		incident->changed |=
			incident->class != worst->class || incident->cause != worst->cause;
		incident->class = worst->class;
		incident->cause = worst->cause;
	}
	incident->tier = worst->tier;
	incident->cost = worst->cost;
	incident->chance = worst->chance;
}

bool nt_incident_needs_windows(const struct nt_incident *incident)
{
	return incident->family != NT_FAMILY_STALL && incident->family != NT_FAMILY_MISSING &&
	       incident->family != NT_FAMILY_PAUSE;
}

/* True: it is over, since *ret_until (0: now). */
static bool age(struct nt_detect *detect, struct nt_incident *incident, uint64_t *ret_until)
{
	if (incident->family == NT_FAMILY_SLOW) {
		if (age_blames(detect, incident, ret_until))
			return true;
		sum_up(detect, incident);
	} else if (!nt_incident_needs_windows(incident) && !nt_detect_is_heard(detect)) {
		/* Nobody waits, as far as is known: that is no end. */
		return false;
	} else if (!nt_incident_needs_windows(incident)) {
		incident->judged = true;
		incident->absent = incident->stands ? 0 : incident->absent + 1;
		if (incident->absent >= ABSENT_FRAMES ||
		    (incident->absent && incident->state == NT_INCIDENT_PENDING))
			return true;
	} else if (incident->judged) {
		incident->absent = incident->stands ? 0 : incident->absent + 1;
		*ret_until = incident->recovery.bad_ns;
		if (incident->state == NT_INCIDENT_PENDING
			    ? incident->absent >= NT_INCIDENT_PATIENCE
			    : nt_recovery_is_over(&incident->recovery, &detect->rules,
						  detect->end_ns))
			return true;
	}
	if (incident->state == NT_INCIDENT_PENDING && incident->judged && incident->stands &&
	    ++incident->stood >= detect->rules.pending_windows) {
		incident->state = NT_INCIDENT_FIRING;
		incident->seen_ns = incident->fired_ns = detect->end_ns;
		incident->changed = true;
		if (nt_incident_needs_windows(incident)) {
			/* More is known by now of the steps since its onset. */
			incident->gpu_hours = 0.0;
			nt_toll_look_back(detect, incident);
		}
	}
	return false;
}

static const uint64_t tell_cost_ns = 60000000000;

static bool is_news(double value, double told)
{
	return fabs(value - told) > 0.1 * told;
}

static void weigh(struct nt_detect *detect, struct nt_incident *incident)
{
	const uint32_t gpus = detect->census.using_gpu;
	uint8_t severity;

	incident->slowdown = nt_cost_slowdown(incident->cost);
	nt_toll_add(detect, incident);
	if (detect->end_ns > incident->counted_ns) {
		incident->gpu_hours +=
			nt_toll_hours(incident, gpus, detect->end_ns - incident->counted_ns);
		incident->gpu_hours = fmax(0.0, incident->gpu_hours);
		incident->counted_ns = detect->end_ns;
	}
	severity = (uint8_t)nt_cost_severity(&detect->rules, incident->class, incident->note,
					     incident->slowdown);
	/* It never falls: every rise is told, and a cost that dances on the border would ring for ever. */
	if (severity > incident->severity) {
		incident->changed = true;
		incident->severity = severity;
	}
	incident->completeness = nt_gaps_completeness(&detect->gaps, incident->missing_before_ns,
						      incident->since_ns, detect->end_ns);
	incident->confidence = (1.0 - incident->chance) * incident->completeness;
	if (is_news(incident->slowdown, incident->told_slowdown) ||
	    is_news(incident->completeness, incident->told_completeness) ||
	    (incident->completeness < 1.0) != (incident->told_completeness < 1.0))
		incident->changed = true;
	/* What it has cost so far grows without any other news; a restart tells it at the same time. */
	if (incident->state == NT_INCIDENT_FIRING && incident->gpu_hours > 0.0 &&
	    detect->end_ns / tell_cost_ns != detect->start_ns / tell_cost_ns)
		incident->changed = true;
}

/* Moves what an incident holds of a node to another. A copy of the last ones stays for its answer. */
static int hand_over(struct nt_detect *detect, struct nt_incident *from, struct nt_incident *to,
		     uint32_t node)
{
	const bool all = nt_node_blames(detect, from, node) == from->blames;

	for (uint32_t i = from->blames; i-- > 0;) {
		const struct nt_rank *rank = nt_detect_find(detect, from->blame[i].rank);
		int r;

		if (!rank || rank->node != node)
			continue;
		r = blame_insert(to, &from->blame[i]);
		if (r < 0)
			return r;
		if (!all)
			blame_remove(from, i);
	}
	from->taken_over = all;
	return all ? retire(detect, from, detect->end_ns) : 0;
}

/* A node as a whole takes over what is open for single ranks of it: the earliest incident stays. */
static int widen(struct nt_detect *detect)
{
	struct nt_incidents *incidents = &detect->incidents;
	uint32_t node;

	while (nt_node_divided(detect, &node)) {
		struct nt_incident *first = NULL;

		for (uint32_t i = 0; i < incidents->opens;) {
			struct nt_incident *incident = incidents->open[i];
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

int nt_incidents_settle(struct nt_detect *detect, const struct nt_frame *frame)
{
	struct nt_incidents *incidents = &detect->incidents;
	int r;

	(void)frame;
	for (uint32_t i = 0; i < incidents->opens;) {
		struct nt_incident *incident = incidents->open[i];
		uint64_t until_ns = 0;
		const bool over = age(detect, incident, &until_ns);

		weigh(detect, incident);
		if (!over) {
			nt_fault_hold(detect, incident);
			i++;
			continue;
		}
		r = retire(detect, incident, until_ns);
		if (r < 0)
			return r;
	}
	r = widen(detect);
	if (r < 0)
		return r;
	return nt_answers_make(detect);
}

int nt_incidents_close(struct nt_detect *detect, enum nt_family family)
{
	for (uint32_t i = 0; i < detect->incidents.opens;) {
		struct nt_incident *incident = detect->incidents.open[i];
		int r;

		if (family != NT_FAMILY_END && incident->family != family) {
			i++;
			continue;
		}
		r = retire(detect, incident, detect->end_ns);
		if (r < 0)
			return r;
	}
	return 0;
}
