/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Merges the proposals of the rules into the open incidents. */
#include "detect/incidents/incident_raise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/hash.h"
#include "common/base/search.h"
#include "detect/incidents/lost_time.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

enum {
	NAME_JOB = UINT8_MAX,
};

/* Returns the number of earlier incidents with this first culprit, and counts this one. */
static int count_name(struct nt_incidents *incidents, uint8_t kind, uint64_t id, uint32_t *ret_nth)
{
	const uint32_t low = nt_search_first(
		0, incidents->names, i,
		incidents->name[i].kind > kind ||
			(incidents->name[i].kind == kind && incidents->name[i].id >= id));
	int r;

	if (low < incidents->names && incidents->name[low].kind == kind &&
	    incidents->name[low].id == id) {
		*ret_nth = incidents->name[low].count++;
		return 0;
	}
	if (incidents->names == NT_INCIDENT_MAX_NAMES) {
		/* At the cap ids are unique by their onset. */
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
			uint64_t first, struct nt_detect_incident **ret_incident)
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_detect_incident *incident;
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
	incident->id = nt_hash_u64(NT_HASH_SEED, detect->job_hash);
	incident->id = nt_hash_u64(incident->id, detect->attempt);
	incident->id = nt_hash_u64(incident->id, kind);
	incident->id = nt_hash_u64(incident->id, first);
	incident->id = nt_hash_u64(incident->id, nth);
	if (incidents->names == NT_INCIDENT_MAX_NAMES)
		incident->id = nt_hash_u64(incident->id, proposal->onset_ns);
	incident->family = (uint8_t)proposal->family;
	incident->kind = (uint8_t)proposal->kind;
	incident->class = (uint8_t)proposal->class;
	incident->cause = (uint8_t)proposal->cause;
	incident->note = proposal->note;
	incident->comm = proposal->comm;
	incident->state = NT_INCIDENT_PENDING;
	incident->since_ns = proposal->onset_ns;
	incident->counted_ns = proposal->onset_ns;
	incident->cost = proposal->cost;
	incident->missing_before_ns = nt_completeness_before(&detect->gaps, proposal->onset_ns);
	nt_lost_time_look_back(detect, incident);
	incident->seen_ns = detect->end_ns;
	incident->changed = true;
	incident->shown_cost = -1.0;
	incidents->open[incidents->opens++] = incident;
	*ret_incident = incident;
	return 0;
}

struct nt_detect_incident *nt_incidents_find(const struct nt_detect *detect, enum nt_family family,
					     uint64_t comm)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family == family &&
		    (family != NT_FAMILY_NETWORK || incident->comm == comm))
			return incident;
	}
	return NULL;
}

static struct nt_blame *find_blame(const struct nt_detect_incident *incident, uint32_t rank)
{
	const uint32_t low =
		nt_search_first(0, incident->blames, i, incident->blame[i].rank >= rank);

	return low < incident->blames && incident->blame[low].rank == rank ? &incident->blame[low]
									   : NULL;
}

static bool is_together(const struct nt_detect_incident *incident,
			const struct nt_proposal *proposal, double window_ns)
{
	for (uint32_t i = 0; i < incident->blames; i++)
		if (nt_incidents_are_together(incident->blame[i].onset_ns, proposal->onset_ns,
					      window_ns))
			return true;
	return false;
}

int nt_incidents_blame(struct nt_detect *detect, struct nt_detect_rank *rank,
		       const struct nt_proposal *proposal)
{
	struct nt_incidents *incidents = &detect->incidents;
	struct nt_detect_incident *incident = NULL;
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
		r = nt_blame_insert(incident, &first);
		if (r < 0)
			return r;
		blame = find_blame(incident, rank->rank);
		rank->in_incident = true;
		for (int i = 0; i < NT_SERIES_END; i++)
			nt_past_unlearn(&rank->track[i].past,
					nt_detect_rank_lesson(detect, rank, i),
					proposal->onset_frame);
	}
	blame->cost += NT_INCIDENT_PART * (proposal->cost - blame->cost);
	blame->chance = proposal->chance;
	blame->class = (uint8_t)proposal->class;
	blame->cause = (uint8_t)proposal->cause;
	blame->tier = proposal->tier;
	blame->series = proposal->series;
	blame->of_node = proposal->of_node;
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
	struct nt_detect_incident *incident =
		nt_incidents_find(detect, proposal->family, proposal->comm);
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
	if (proposal->final)
		incident->stood = detect->rules.pending_windows;
	incident->comm = proposal->comm;
	incident->tier = proposal->tier;
	/*
	 * Costs of single windows are noisy and averaged; a stopped job costs everything at once.
	 */
	if (incident->version && proposal->cost >= 0.0 && incident->cost >= 0.0)
		incident->cost += NT_INCIDENT_PART * (proposal->cost - incident->cost);
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
	struct nt_detect_incident *incident = nt_incidents_find(detect, family, comm);

	if (!incident)
		return;
	incident->judged = true;
	/* A family may be judged by several series. */
	incident->window_cost = fmax(incident->window_cost, cost);
	nt_recovery_add(&incident->recovery, &detect->rules, detect->start_ns, detect->end_ns, cost,
			incident->fault.held ? incident->fault.cost : incident->cost);
}
