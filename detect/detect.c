/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The detector's step: a frame in, changed incidents out. */
#include "detect/detect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "detect/baseline/baseline_reset.h"
#include "detect/baseline/communicator_learn.h"
#include "detect/baseline/gpu_span_learn.h"
#include "detect/baseline/peer_deviation_round.h"
#include "detect/baseline/peer_group.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "detect/model/detector_state.h"
#include "detect/rules/gpu_slow.h"
#include "detect/rules/hang.h"
#include "detect/rules/hang_check.h"
#include "detect/rules/hang_missing.h"
#include "detect/rules/imbalance.h"
#include "detect/rules/link_check.h"
#include "detect/rules/mismatch.h"
#include "detect/rules/network_check.h"
#include "detect/rules/network_measure.h"
#include "detect/rules/step_judge.h"
#include "detect/rules/two_populations.h"
#include "detect/rules/undecided.h"
#include "detect/rules/verdict.h"
#include "detect/rules/whole_role.h"
#include "detect/thresholds/thresholds.h"

int nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
		  struct nt_detect **ret_detect)
{
	struct nt_detect *detect = calloc(1, sizeof(*detect));

	if (!detect)
		return -ENOMEM;
	detect->rules = *rules;
	detect->job_hash = job_hash;
	detect->attempt = attempt;
	*ret_detect = detect;
	return 0;
}

void nt_detect_free(struct nt_detect *detect)
{
	if (!detect)
		return;
	for (uint32_t i = 0; i < detect->ranks; i++)
		free(detect->rank[i].link);
	free(detect->rank);
	free(detect->lessons);
	nt_detect_comm_free_all(detect);
	nt_peer_groups_free(&detect->roles);
	nt_links_free(&detect->links);
	nt_incidents_free(&detect->incidents);
	free(detect->scratch.room);
	free(detect);
}

static bool is_valid(const struct nt_detect *detect, const struct nt_frame *frame)
{
	if (frame->ranks > NT_FRAME_MAX_RANKS || frame->end_ns < frame->start_ns ||
	    (detect->frames && frame->end_ns < detect->end_ns))
		return false;
	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *rank = &frame->rank[i];

		if ((i && rank->rank <= frame->rank[i - 1].rank) ||
		    rank->comms > NT_FRAME_MAX_COMMS || rank->transfers > NT_FRAME_MAX_TRANSFERS ||
		    rank->own_tier > NT_FRAME_T3)
			return false;
		for (size_t j = 0; j < rank->comms; j++)
			if (rank->comm[j].recents > NT_FRAME_RECENT)
				return false;
	}
	return true;
}

/* If all ranks from 0 on are known, checking the frame's last rank is enough. */
static bool are_known(const struct nt_detect *detect, const struct nt_frame *frame)
{
	return !frame->ranks ||
	       (detect->ranks && detect->rank[detect->ranks - 1].rank == detect->ranks - 1 &&
		frame->rank[frame->ranks - 1].rank < detect->ranks);
}

/* Adds new ranks; both lists are ascending. */
static int admit(struct nt_detect *detect, const struct nt_frame *frame)
{
	uint32_t fresh = 0, have = 0, at;
	size_t seen;

	for (size_t i = are_known(detect, frame) ? frame->ranks : 0; i < frame->ranks; i++) {
		while (have < detect->ranks && detect->rank[have].rank < frame->rank[i].rank)
			have++;
		fresh += have == detect->ranks || detect->rank[have].rank != frame->rank[i].rank;
	}
	if (fresh > NT_FRAME_MAX_RANKS - detect->ranks) {
		/* Rank numbers that change from frame to frame: all new ones are rejected. */
		detect->dropped_ranks += fresh;
		return nt_detect_make_room(detect, detect->ranks);
	}
	if (fresh && detect->ranks + fresh > detect->rank_cap) {
		const uint32_t cap = detect->ranks + fresh + detect->ranks / 2;
		struct nt_detect_rank *rank = realloc(detect->rank, cap * sizeof(*rank));
		struct nt_lessons *lessons;

		if (!rank)
			return -ENOMEM;
		detect->rank = rank;
		lessons = realloc(detect->lessons, cap * sizeof(*lessons));
		if (!lessons)
			return -ENOMEM;
		detect->lessons = lessons;
		detect->rank_cap = cap;
	}
	if (nt_detect_make_room(detect, detect->ranks + fresh) < 0)
		return -ENOMEM;
	if (!fresh)
		return 0;

	at = detect->ranks + fresh;
	have = detect->ranks;
	seen = frame->ranks;
	while (seen > 0) {
		const uint32_t number = frame->rank[seen - 1].rank;

		if (have > 0 && detect->rank[have - 1].rank >= number) {
			seen -= detect->rank[have - 1].rank == number;
			detect->rank[--at] = detect->rank[--have];
			detect->lessons[at] = detect->lessons[have];
		} else {
			detect->rank[--at] = (struct nt_detect_rank){.rank = number,
								     .group = NT_NO_INDEX,
								     .stage = -1,
								     .replica = -1,
								     .node = NT_FRAME_NO_NODE};
			seen--;
		}
	}
	detect->ranks += fresh;
	detect->roles.dirty = true;
	return 0;
}

static int renew(struct nt_detect *detect, const struct nt_frame *frame)
{
	int r;

	(void)frame;
	if (!detect->rebaseline)
		return 0;
	detect->rebaseline = false;
	r = nt_incidents_close(detect, NT_FAMILY_END);
	nt_normal_forget(detect, true);
	return r;
}

static void count(struct nt_detect *detect, const struct nt_detect_rank *rank)
{
	struct nt_census *census = &detect->census;
	const uint64_t wait_ns = nt_hang_waited(detect, rank);

	census->here += !rank->ended && !rank->finalized;
	census->gone += rank->ended;
	census->using_gpu += rank->uses_gpu;
	if (wait_ns > census->longest_wait_ns)
		census->longest_wait_ns = wait_ns;
}

/* Marks the ranks from this index up to that number as absent. Returns the index of the number. */
static uint32_t skip(struct nt_detect *detect, uint32_t at, uint64_t number)
{
	for (; at < detect->ranks && detect->rank[at].rank < number; at++) {
		detect->rank[at].observed = false;
		count(detect, &detect->rank[at]);
	}
	return at;
}

/* Prefetches the next ranks: the ranks, then their links, then the linked communicators. */
static void expect(const struct nt_detect *detect, uint32_t at)
{
	const struct nt_detect_rank *rank = &detect->rank[at];
	const uint32_t next = NT_RANKS_AHEAD;

	if (detect->ranks - at <= 3 * next)
		return;
	nt_detect_rank_expect(&rank[3 * next], offsetof(struct nt_detect_rank, step_metric));
	nt_detect_rank_expect(rank[2 * next].link, rank[2 * next].links * sizeof(*rank->link));
	for (uint32_t i = 0; i < rank[next].links; i++)
		nt_detect_rank_expect(rank[next].link[i].comm,
				      offsetof(struct nt_detect_comm, agreed_frame));
}

/* Prefetches their entries in the frame in the same way. */
static void expect_said(const struct nt_frame *frame, size_t at)
{
	const struct nt_frame_rank *seen = &frame->rank[at];
	const size_t next = NT_RANKS_AHEAD;

	if (frame->ranks - at <= 3 * next)
		return;
	nt_detect_rank_expect(&seen[3 * next], sizeof(*seen));
	nt_detect_rank_expect(seen[2 * next].comm, seen[2 * next].comms * sizeof(*seen->comm));
	for (size_t i = 0; i < seen[next].comms; i++)
		nt_detect_rank_expect(seen[next].comm[i].op,
				      seen[next].comm[i].ops * sizeof(*seen->comm->op));
}

/* A sum over several frames is unobservable if one of them is. */
static void note_tier(struct nt_detect_rank *rank, const struct nt_frame_rank *seen)
{
	const bool shows_none = rank->steps && rank->tier == NT_FRAME_T0;

	if (seen->own_tier)
		rank->tier = shows_none ? NT_FRAME_T0 : seen->own_tier;
	if (seen->own_tier)
		rank->own_by_device = seen->own_by_device;
	rank->no_host = (rank->steps && rank->no_host) || (seen->steps && seen->no_host);
}

static int take_in(struct nt_detect *detect, const struct nt_frame *frame)
{
	uint32_t at = 0;

	detect->census = (struct nt_census){0};
	for (size_t i = 0; i < frame->ranks; i++) {
		const struct nt_frame_rank *seen = &frame->rank[i];
		struct nt_detect_rank *rank;
		int r;

		expect_said(frame, i);
		at = skip(detect, at, seen->rank);
		if (at == detect->ranks || detect->rank[at].rank != seen->rank)
			continue;
		expect(detect, at);
		rank = &detect->rank[at++];
		rank->observed = seen->observed;
		rank->silent = seen->silent;
		rank->known = seen->rank_known;
		if (seen->ended && !rank->ended)
			rank->ended_ns = seen->ended_ns;
		rank->ended = seen->ended;
		rank->finalized = seen->finalized;
		rank->exit_signal = seen->exit_signal;
		rank->exit_status = seen->exit_status;
		rank->ended_by_parent = seen->ended_by_parent;
		if (seen->node != rank->node && rank->group != NT_NO_INDEX)
			detect->roles.dirty = true;
		rank->node = seen->node;
		if (seen->stage != rank->stage)
			detect->roles.dirty = true;
		rank->stage = seen->stage;
		rank->replica = seen->replica;
		if (seen->gpu_xids) {
			rank->xid = seen->gpu_last_xid;
			rank->xid_ns = frame->end_ns;
		}
		if (seen->observed) {
			rank->uses_gpu = seen->uses_gpu;
			nt_hang_note(detect, rank, seen);
		}
		count(detect, rank);
		if (!seen->observed)
			continue;
		note_tier(rank, seen);
		nt_peer_deviation_sum(detect, rank, seen);
		nt_gpu_span_learn(detect, rank, seen);
		r = nt_detect_link_note(detect, seen);
		if (r < 0)
			return r;
		r = nt_detect_comm_learn(detect, rank, seen);
		if (r < 0)
			return r;
	}
	(void)skip(detect, at, UINT64_MAX);
	return 0;
}

/* The mix of operations settles in the first windows and rarely changes later. */
static int derive_roles(struct nt_detect *detect, const struct nt_frame *frame)
{
	(void)frame;
	if (!detect->roles.dirty && (detect->frames & (detect->frames - 1)) != 0 &&
	    detect->frames % NT_ROLE_FRAMES != 0)
		return 0;
	return nt_peer_groups_derive(detect);
}

/* The stages of a step. Measurements precede the rules that read them. */
static int (*const stage[])(struct nt_detect *detect, const struct nt_frame *frame) = {
	renew,
	take_in,
	derive_roles,
	nt_peer_deviation_rounds,
	nt_detect_step_learn,
	nt_verdict_slow,
	nt_two_populations_check,
	nt_network_measure,
	nt_detect_link_check,
	nt_network_check,
	nt_imbalance_check,
	nt_whole_role_check,
	nt_gpu_slow_check,
	nt_detect_step_check,
	nt_mismatch_check,
	nt_hang_check,
	nt_hang_missing,
	nt_undecided_check,
	nt_incidents_settle,
};

int nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
		   const struct nt_finding **ret_finding, size_t *ret_findings)
{
	const double length = (double)(frame->end_ns - frame->start_ns);
	int r;

	if (!is_valid(detect, frame))
		return -EINVAL;
	r = admit(detect, frame);
	if (r < 0)
		return r;
	detect->frames++;
	detect->start_ns = detect->began_ns[detect->frames % NT_BEGAN_FRAMES] = frame->start_ns;
	detect->end_ns = frame->end_ns;
	if (detect->frames == 1)
		detect->step.history.begin_ns = frame->start_ns;
	detect->window_ns +=
		(detect->frames == 1 ? 1.0 : NT_WINDOW_PART) * (length - detect->window_ns);
	detect->expected_ranks = frame->expected_ranks;
	nt_completeness_add(&detect->gaps, frame);
	detect->threshold = nt_cusum_threshold(&detect->rules, detect->ranks ? detect->ranks : 1.0,
					       detect->window_ns);
	nt_incidents_begin(detect);
	r = 0;
	for (size_t i = 0; i < sizeof(stage) / sizeof(stage[0]) && r == 0; i++)
		r = stage[i](detect, frame);
	if (r < 0)
		return r;
	*ret_finding = detect->incidents.answer;
	*ret_findings = detect->incidents.answers;
	return 0;
}

int nt_detect_finish(struct nt_detect *detect, const struct nt_finding **ret_finding,
		     size_t *ret_findings)
{
	int r = detect->frames ? nt_incidents_finish(detect) : 0;

	if (r < 0)
		return r;
	*ret_finding = detect->incidents.answer;
	*ret_findings = detect->incidents.answers;
	return 0;
}

int nt_detect_remark(struct nt_detect *detect, const struct nt_finding **ret_finding,
		     size_t *ret_findings)
{
	int r = 0;

	if (detect->frames) {
		nt_incidents_begin(detect);
		r = nt_undecided_remark(detect);
		r = r ?: nt_incidents_conclude(detect);
	}
	if (r < 0)
		return r;
	*ret_finding = detect->incidents.answer;
	*ret_findings = detect->incidents.answers;
	return 0;
}

void nt_detect_open(const struct nt_detect *detect, const struct nt_finding **ret_finding,
		    size_t *ret_findings)
{
	*ret_finding = detect->incidents.standing;
	*ret_findings = detect->incidents.standings;
}

void nt_detect_mark(struct nt_detect *detect, uint64_t id)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++)
		if (detect->incidents.open[i]->id == id)
			detect->incidents.open[i]->is_marked = true;
}

void nt_detect_rebaseline(struct nt_detect *detect)
{
	/* Done in the next step, whose findings then include the resolved incidents. */
	detect->rebaseline = true;
}

double nt_detect_step_ns(const struct nt_detect *detect)
{
	return detect->step.step_ns;
}

uint64_t nt_detect_lapsed_rounds(const struct nt_detect *detect)
{
	return detect->lapsed_collective_rounds;
}

bool nt_detect_rank(const struct nt_detect *detect, uint32_t number,
		    struct nt_detect_rank_view *ret_view)
{
	const struct nt_detect_rank *rank = nt_detect_find(detect, number);
	const struct nt_track *own, *host, *main;
	enum nt_series series;

	if (!rank)
		return false;
	own = &rank->track[NT_SERIES_OWN];
	host = &rank->track[NT_SERIES_HOST];
	main = rank->tier >= NT_FRAME_T2 ? own : host;
	series = main == own ? NT_SERIES_OWN : NT_SERIES_HOST;
	*ret_view = (struct nt_detect_rank_view){
		.tier = rank->tier,
		.own_observable = rank->tier >= NT_FRAME_T2,
		.own_ns = own->value,
		.own_peers_ns = own->peers,
		.host_ns = host->value,
		.host_peers_ns = host->peers,
		.peer_deviation = main->peer_deviation,
		.width = main->width,
		.cusum = nt_track_sum(main, &detect->rules),
		.threshold = rank->group < detect->roles.groups
				     ? nt_detect_rank_threshold(detect, rank, series)
				     : detect->threshold,
	};
	ret_view->peers = nt_peer_group_peers(detect, rank, &ret_view->peer_count);
	return true;
}
