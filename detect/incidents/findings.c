/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts incidents to findings. */
#include "detect/incidents/findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/array.h"
#include "detect/baseline/peer_group.h"
#include "detect/incidents/fault.h"
#include "detect/incidents/node.h"
#include "detect/thresholds/thresholds.h"

static void answer_rank(const struct nt_detect *detect, uint32_t number,
			struct nt_finding_culprit *ret_culprit)
{
	const struct nt_detect_rank *rank = nt_detect_find(detect, number);

	*ret_culprit = (struct nt_finding_culprit){
		.kind = NT_CULPRIT_RANK,
		.rank = number,
		.node = rank ? rank->node : NT_FRAME_NO_NODE,
	};
	if (rank)
		ret_culprit->peers = nt_peer_group_peers(detect, rank, &ret_culprit->peer_count);
}

struct placed {
	uint32_t node, rank;
	bool of_node;
};

static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Names the node if all its ranks are blamed, otherwise the ranks. */
static int answer_blames(struct nt_detect *detect, struct nt_detect_incident *incident)
{
	struct placed *placed = calloc(incident->blames + 1, sizeof(*placed));
	uint32_t *sorted = detect->scratch.index;
	const uint32_t ranks = nt_node_list(detect, sorted);
	uint32_t n = 0;

	if (!placed)
		return -ENOMEM;
	for (uint32_t i = 0; i < incident->blames; i++) {
		const struct nt_detect_rank *rank = nt_detect_find(detect, incident->blame[i].rank);

		placed[i].rank = incident->blame[i].rank;
		placed[i].of_node = incident->blame[i].of_node;
		placed[i].node = rank ? rank->node : NT_FRAME_NO_NODE;
	}
	qsort(placed, incident->blames, sizeof(*placed), compare_placed);
	for (uint32_t i = 0, end; i < incident->blames; i = end) {
		const uint32_t node = placed[i].node;
		bool compared = node != NT_FRAME_NO_NODE;

		for (end = i + 1; end < incident->blames && placed[end].node == node;)
			end++;
		for (uint32_t j = i; j < end; j++) {
			const struct nt_detect_rank *rank = nt_detect_find(detect, placed[j].rank);

			compared = compared && rank &&
				   (placed[j].of_node || nt_node_is_compared(detect, rank));
			incident->node_rank[j] = placed[j].rank;
		}
		if (compared && end - i >= NT_NODE_RANKS &&
		    nt_node_ranks(sorted, ranks, node) == end - i) {
			incident->culprit[n++] = (struct nt_finding_culprit){
				.kind = NT_CULPRIT_NODE,
				.node = node,
				.ranks = &incident->node_rank[i],
				.rank_count = end - i,
			};
			continue;
		}
		for (uint32_t j = i; j < end; j++)
			answer_rank(detect, placed[j].rank, &incident->culprit[n++]);
	}
	free(placed);
	incident->changed |= n != incident->culprits;
	incident->culprits = n;
	return 0;
}

static int make_culprits(struct nt_detect *detect, struct nt_detect_incident *incident)
{
	const uint32_t most = incident->blames + incident->listed + 1;
	struct nt_finding_culprit *culprit =
		realloc(incident->culprit, most * sizeof(*incident->culprit));
	uint32_t *node_rank;

	if (!culprit)
		return -ENOMEM;
	incident->culprit = culprit;
	node_rank = realloc(incident->node_rank, most * sizeof(*node_rank));
	if (!node_rank)
		return -ENOMEM;
	incident->node_rank = node_rank;

	if (incident->family == NT_FAMILY_SLOW)
		return answer_blames(detect, incident);
	incident->culprits = 0;
	if (incident->kind == NT_CULPRIT_RANK) {
		for (uint32_t i = 0; i < incident->listed; i++)
			answer_rank(detect, incident->list[i],
				    &incident->culprit[incident->culprits++]);
	} else if (incident->kind == NT_CULPRIT_NIC || incident->kind == NT_CULPRIT_PATH) {
		const struct nt_culprit_link link =
			nt_detect_link_of(incident->kind, incident->comm);

		incident->culprit[incident->culprits++] = (struct nt_finding_culprit){
			.kind = incident->kind,
			.node = link.node,
			.peer_node = link.peer,
		};
	} else if (incident->listed || incident->kind == NT_CULPRIT_COMMUNICATOR) {
		incident->culprit[incident->culprits++] = (struct nt_finding_culprit){
			.kind = incident->kind,
			.node = NT_FRAME_NO_NODE,
			.comm = incident->comm,
			.ranks = incident->list,
			.rank_count = incident->listed,
		};
	}
	return 0;
}

/* Adds step evidence: step time since the onset and before, number of steps, and the first one. */
static void add_steps(const struct nt_detect_incident *incident, struct nt_finding *finding)
{
	const struct nt_lost_time *lost_time = &incident->lost_time;
	struct nt_finding_evidence row = {
		.what = nt_evidence_text(NT_EVIDENCE_TEXT_STEP),
		.unit = nt_evidence_text(NT_EVIDENCE_TEXT_MS),
		.method = nt_evidence_text(NT_EVIDENCE_TEXT_OWN_PAST),
		.value = lost_time->step_ns / fmax(1.0, lost_time->steps) / 1e6,
		.peers = lost_time->before_ns / 1e6,
		.windows = finding->evidences ? finding->evidence[0].windows : 0,
	};
	size_t at = 0;

	if (!nt_incident_needs_windows(incident) || lost_time->before_ns <= 0.0 ||
	    lost_time->steps < 1.0 || finding->evidences + 2 > NT_FINDING_MAX_EVIDENCE)
		return;
	/* Replaces evidence of a single window if present. */
	while (at < incident->evidences && incident->evidence[at].what != NT_EVIDENCE_TEXT_STEP)
		at++;
	finding->evidence[at] = row;
	finding->evidences += at == finding->evidences;
	row.what = nt_evidence_text(NT_EVIDENCE_TEXT_STEPS);
	row.unit = nt_evidence_text(NT_EVIDENCE_TEXT_NUMBER);
	row.value = round(lost_time->steps);
	row.peers = round(lost_time->first);
	finding->evidence[finding->evidences++] = row;
}

static struct nt_finding make_answer(const struct nt_detect_incident *is)
{
	struct nt_detect_incident shown = nt_fault_shown(is);
	const struct nt_detect_incident *incident = &shown;
	struct nt_finding finding = {
		.id = incident->id,
		.state = incident->state,
		.fired = incident->fired_ns > 0,
		.class = incident->class,
		.severity = incident->severity,
		.cause = nt_evidence_text(incident->cause),
		.culprit = incident->culprit,
		.culprits = incident->culprits,
		.since_ns = incident->since_ns,
		.until_ns = incident->until_ns,
		.seen_ns = incident->seen_ns,
		.slowdown = incident->slowdown,
		.gpu_hours = incident->lost_time.unknown ? -1.0 : incident->gpu_hours,
		.tier = incident->tier,
		.confidence = incident->confidence,
		.completeness = incident->completeness,
		.evidences = incident->evidences,
		.version = incident->version,
	};

	for (uint32_t i = 0; i < incident->evidences; i++) {
		const struct nt_detect_evidence *row = &incident->evidence[i];

		finding.evidence[i] = (struct nt_finding_evidence){
			.what = nt_evidence_text(row->what),
			.unit = nt_evidence_text(row->unit),
			.method = nt_evidence_text(row->method),
			.value = row->value,
			.peers = row->peers,
			.width = row->width,
			.windows = row->windows,
		};
	}
	add_steps(incident, &finding);
	return finding;
}

int nt_findings_make(struct nt_detect *detect)
{
	struct nt_incidents *incidents = &detect->incidents;
	const uint32_t all = incidents->opens + incidents->gones;
	int r;

	incidents->answers = 0;
	incidents->standings = 0;
	r = nt_array_room((void **)&incidents->answer, &incidents->answer_cap, all,
			  sizeof(*incidents->answer));
	if (r < 0)
		return r;
	r = nt_array_room((void **)&incidents->standing, &incidents->standing_cap, all,
			  sizeof(*incidents->standing));
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < all; i++) {
		const bool is_gone = i >= incidents->opens;
		struct nt_detect_incident *incident =
			is_gone ? incidents->gone[i - incidents->opens] : incidents->open[i];
		struct nt_finding finding;

		/* Opened and taken over in one step: never reported. */
		if (is_gone && !incident->version)
			continue;
		r = make_culprits(detect, incident);
		if (r < 0)
			return r;
		if (incident->changed) {
			incident->version++;
			incident->reported_slowdown = incident->slowdown;
			incident->reported_completeness = incident->completeness;
		}
		finding = make_answer(incident);
		if (incident->changed)
			incidents->answer[incidents->answers++] = finding;
		if (!is_gone)
			incidents->standing[incidents->standings++] = finding;
	}
	return 0;
}
