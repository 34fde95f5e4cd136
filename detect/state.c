/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a job's detection as bytes. Whatever a later step reads and does not make is here. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/answer.h"
#include "detect/codec.h"
#include "detect/comm_learn.h"
#include "detect/core.h"
#include "detect/detect.h"
#include "detect/state_part.h"

enum {
	STATE_MAGIC = 0x5344544e, /* "NTDS" */
	STATE_VERSION = 11,
	STATE_SUM_BYTES = 8,
};

void nt_state_cusum(struct nt_codec *codec, struct nt_cusum *cusum)
{
	nt_code_real(codec, &cusum->sum);
	nt_code_fail(codec, cusum->sum < 0.0);
	/* Most sums are zero, and so is then the rest. */
	if (cusum->sum == 0.0)
		return;
	nt_code_u64(codec, &cusum->onset_ns);
	nt_code_u64(codec, &cusum->onset_frame);
	nt_code_u32(codec, &cusum->windows, UINT32_MAX);
	nt_code_u32(codec, &cusum->costly, UINT32_MAX);
	nt_code_fail(codec, cusum->costly > cusum->windows || !cusum->windows);
	nt_code_real(codec, &cusum->cost);
	nt_code_real(codec, &cusum->cost_peak);
	nt_code_real(codec, &cusum->kpi);
	nt_code_real(codec, &cusum->kpi_peak);
}

void nt_state_past(struct nt_codec *codec, struct nt_past *past, struct nt_lesson *lesson)
{
	nt_code_bool(codec, &past->ready);
	if (past->ready) {
		past->count = NT_PAST_WINDOWS;
		nt_code_real(codec, &past->kpi_centre);
		nt_code_real(codec, &past->value_centre);
		nt_code_real(codec, &past->value_width);
		nt_code_real(codec, &past->kpi_width);
		return;
	}
	nt_code_u32(codec, &past->count, NT_PAST_WINDOWS - 1);
	for (uint32_t i = 0; i < past->count; i++) {
		nt_code_real(codec, &lesson->kpi[i]);
		nt_code_real(codec, &lesson->value[i]);
		nt_code_u64(codec, &lesson->frame[i]);
	}
}

static void code_ring(struct nt_codec *codec, struct nt_ring *ring)
{
	nt_code_u32(codec, &ring->count, NT_RING_MAX);
	nt_code_u32(codec, &ring->next, NT_RING_MAX);
	nt_code_reals(codec, ring->value, ring->count);
}

static void code_track(struct nt_codec *codec, struct nt_track *track, struct nt_lesson *lesson)
{
	nt_code_u8(codec, &track->tier, NT_FRAME_T3);
	if (!track->tier)
		return;
	nt_state_cusum(codec, &track->level);
	nt_state_cusum(codec, &track->shift);
	nt_state_past(codec, &track->past, lesson);
	nt_code_u8(codec, &track->mode, NT_MODE_PAST);
	nt_code_bool(codec, &track->far);
	nt_code_bool(codec, &track->always);
	nt_code_u8(codec, &track->peers_seen, UINT8_MAX);
	nt_code_u64(codec, &track->frame);
	nt_code_real(codec, &track->value);
	nt_code_real(codec, &track->peers);
	nt_code_real(codec, &track->kpi);
	nt_code_real(codec, &track->width);
	nt_code_real(codec, &track->growth);
	nt_code_real(codec, &track->slow_cost);
	nt_code_real(codec, &track->residual);
}

static void code_inside(struct nt_codec *codec, struct nt_frame_inside *inside)
{
	nt_code_bool(codec, &inside->in_call);
	nt_code_bool(codec, &inside->synchronising);
	if (!inside->in_call && !inside->synchronising)
		return;
	nt_code_fixed(codec, &inside->comm);
	nt_code_u64(codec, &inside->number);
	nt_code_u64(codec, &inside->since_ns);
	nt_code_u64(codec, &inside->count);
	nt_code_u32(codec, &inside->type, UINT32_MAX);
	nt_code_u8(codec, &inside->op, UINT8_MAX);
	nt_code_u8(codec, &inside->kind, UINT8_MAX);
}

static void code_rank_links(struct nt_codec *codec, struct nt_rank *rank,
			    const struct nt_detect *detect)
{
	nt_code_count(codec, &rank->links, NT_FRAME_MAX_COMMS);
	if (codec->loads && rank->links) {
		rank->link = calloc(rank->links, sizeof(*rank->link));
		if (!rank->link) {
			codec->error = -ENOMEM;
			rank->links = 0;
		}
		rank->link_cap = rank->links;
	}
	for (uint32_t i = 0; i < rank->links; i++) {
		struct nt_link *link = &rank->link[i];
		uint32_t index = link->comm ? link->comm->index : 0;

		nt_code_u32(codec, &index, UINT32_MAX);
		nt_code_fail(codec, index >= detect->comm_count);
		nt_code_u64(codec, &link->epoch);
		nt_code_u64(codec, &link->last);
		nt_code_fixed(codec, &link->hash);
		nt_code_u64(codec, &link->progress_ns);
		nt_code_u64(codec, &link->frame);
		if (codec->error) {
			/* A link without a communicator must not be left behind. */
			rank->links = codec->loads ? i : rank->links;
			return;
		}
		if (codec->loads) {
			link->comm = detect->comm[index];
			if (link->progress_ns > link->comm->moved_ns)
				link->comm->moved_ns = link->progress_ns;
		}
		nt_state_spoken(codec, link);
		for (uint32_t j = 0; j < i; j++)
			nt_code_fail(codec, rank->link[j].comm == link->comm);
	}
}

static void code_rank(struct nt_codec *codec, struct nt_rank *rank, struct nt_lessons *lessons)
{
	nt_code_u32(codec, &rank->rank, UINT32_MAX);
	nt_code_u32(codec, &rank->node, UINT32_MAX);
	nt_code_i32(codec, &rank->stage);
	nt_code_i32(codec, &rank->replica);
	nt_code_u8(codec, &rank->tier, NT_FRAME_T3);
	nt_code_bool(codec, &rank->known);
	nt_code_bool(codec, &rank->observed);
	nt_code_bool(codec, &rank->silent);
	nt_code_bool(codec, &rank->ended);
	nt_code_bool(codec, &rank->finalized);
	nt_code_bool(codec, &rank->uses_gpu);
	nt_code_bool(codec, &rank->in_incident);
	nt_code_bool(codec, &rank->accepted);
	nt_code_u64(codec, &rank->ended_ns);
	code_inside(codec, &rank->inside);
	nt_code_u64(codec, &rank->worked_ns);
	nt_code_u64(codec, &rank->stored_ns);
	nt_code_u64(codec, &rank->inside_ns);
	nt_code_u64(codec, &rank->seen_ns);
	nt_code_u64(codec, &rank->seen_frame);
	nt_code_bool(codec, &rank->sampled);
	nt_code_bool(codec, &rank->lost_sight);
	nt_code_bool(codec, &rank->no_host);
	nt_code_u64(codec, &rank->rounds);
	nt_code_u64(codec, &rank->round_frame);
	nt_code_u32(codec, &rank->steps, UINT32_MAX);
	nt_code_u64(codec, &rank->window_ns);
	for (int i = 0; i < NT_PACE_END; i++)
		nt_code_u64(codec, &rank->sum[i]);
	nt_code_bool(codec, &rank->has_habit);
	if (rank->has_habit)
		nt_code_reals(codec, rank->habit, NT_PACE_END);
	for (int i = 0; i < NT_SERIES_END; i++)
		code_track(codec, &rank->track[i], &lessons->of[i]);
	nt_code_real(codec, &rank->evidence.weight);
	nt_code_fail(codec, rank->evidence.weight < 0.0);
	if (rank->evidence.weight != 0.0) {
		nt_code_real(codec, &rank->evidence.own_weight);
		nt_code_fail(codec, rank->evidence.own_weight < 0.0);
		nt_code_reals(codec, rank->evidence.value, NT_PACE_END);
		nt_code_reals(codec, rank->evidence.peers, NT_PACE_END);
	}
}

static void code_comm(struct nt_codec *codec, struct nt_comm *comm)
{
	nt_code_u32(codec, &comm->size, UINT32_MAX);
	nt_code_count(codec, &comm->members, NT_FRAME_MAX_RANKS);
	if (codec->loads && comm->members) {
		comm->member = calloc(comm->members, sizeof(*comm->member));
		if (!comm->member) {
			codec->error = -ENOMEM;
			comm->members = 0;
		}
		comm->member_cap = comm->members;
	}
	for (uint32_t i = 0; i < comm->members; i++)
		nt_code_u32(codec, &comm->member[i], UINT32_MAX);
	nt_code_real(codec, &comm->steps);
	nt_code_real(codec, &comm->sync_calls);
	nt_code_real(codec, &comm->sync_bytes);
	nt_code_real(codec, &comm->all_to_all_calls);
	nt_code_real(codec, &comm->p2p_calls);
	nt_state_network(codec, &comm->network);
	nt_state_hearing(codec, &comm->hearing);
	for (int i = 0; i < NT_COMM_OPS; i++)
		nt_code_u8(codec, &comm->kind_of[i], NT_FRAME_POINT_TO_POINT + 1);
	nt_code_u32(codec, &comm->agreed, UINT32_MAX);
	nt_code_u32(codec, &comm->matched, UINT32_MAX);
	nt_code_bool(codec, &comm->varies);
	nt_code_u64(codec, &comm->differed_last);
	nt_code_u32(codec, &comm->differed_moves, UINT32_MAX);
}

static void code_comms(struct nt_codec *codec, struct nt_detect *detect)
{
	uint32_t n = detect->comm_count;

	nt_code_count(codec, &n, NT_COMM_MAX);
	for (uint32_t i = 0; i < n && !codec->error; i++) {
		struct nt_comm *comm = codec->loads ? NULL : detect->comm[i];
		uint64_t id = comm ? comm->id : 0;

		nt_code_fixed(codec, &id);
		if (codec->loads) {
			if (codec->error)
				return;
			nt_code_fail(codec, nt_comm_find(detect->comms, id) != NULL);
			comm = codec->error ? NULL : nt_comm_add(detect, id);
			if (!comm && !codec->error)
				codec->error = -ENOMEM;
			if (codec->error)
				return;
		}
		assert(comm);
		comm->index = i;
		code_comm(codec, comm);
	}
}

static void code_group_past(struct nt_codec *codec, struct nt_group_past *past)
{
	for (int i = 0; i < NT_SERIES_END; i++) {
		code_ring(codec, &past->width[i]);
		code_ring(codec, &past->core[i]);
	}
	nt_code_u32(codec, &past->apart, UINT32_MAX);
	nt_code_u64(codec, &past->apart_since_ns);
	nt_code_u32(codec, &past->apart_slower, UINT32_MAX);
	nt_code_real(codec, &past->apart_gap);
	nt_code_real(codec, &past->apart_cost);
	nt_code_real(codec, &past->apart_low);
	nt_code_real(codec, &past->apart_high);
	code_ring(codec, &past->worst);
	code_ring(codec, &past->turn);
	for (uint32_t i = 0; i < past->worst.count; i++)
		nt_code_u32(codec, &past->slowest[i], UINT32_MAX);
}

static void code_group(struct nt_codec *codec, struct nt_group *group)
{
	nt_code_u8(codec, &group->kind, NT_GROUP_STAGE);
	nt_code_u64(codec, &group->id);
	nt_code_u32(codec, &group->members, NT_FRAME_MAX_RANKS);
	nt_code_bool(codec, &group->spans_nodes);
	nt_code_u32(codec, &group->waited, UINT32_MAX);
	nt_code_u64(codec, &group->wait_start_ns);
	nt_code_u64(codec, &group->rounds);
	nt_code_u64(codec, &group->round_frame);
	nt_code_u32(codec, &group->unit_rounds, UINT32_MAX);
	nt_code_real(codec, &group->step_ns);
	nt_code_real(codec, &group->window_ns);
	nt_code_reals(codec, group->median, NT_SERIES_END);
	for (int i = 0; i < NT_SERIES_END; i++)
		nt_code_u8(codec, &group->tier[i], NT_FRAME_T3);
	for (int i = 0; i < NT_SERIES_END; i++) {
		struct nt_tail *tail = &group->tail[i];

		nt_code_real(codec, &tail->windows);
		nt_code_real(codec, &tail->entries);
		nt_code_fail(codec, tail->entries < 0.0 || tail->entries > tail->windows);
	}
	nt_code_real(codec, &group->excess);
	nt_code_real(codec, &group->cost);
	nt_code_u32(codec, &group->long_rounds, UINT32_MAX);
	nt_code_u64(codec, &group->long_since_ns);
	if (group->members > 1 && codec->loads && !codec->error) {
		group->past = calloc(1, sizeof(*group->past));
		if (!group->past)
			codec->error = -ENOMEM;
	}
	if (group->past)
		code_group_past(codec, group->past);
}

/* Every rank is in one group, each group's ranks ascend, and so do the groups. */
static void code_groups(struct nt_codec *codec, struct nt_detect *detect)
{
	struct nt_roles *roles = &detect->roles;
	uint32_t groups = roles->groups, at = 0;

	nt_code_count(codec, &groups, NT_FRAME_MAX_RANKS);
	if (codec->loads) {
		roles->group = calloc((size_t)groups + 1, sizeof(*roles->group));
		roles->member = calloc((size_t)detect->ranks + 1, sizeof(*roles->member));
		roles->peer = calloc(2 * (size_t)detect->ranks + 1, sizeof(*roles->peer));
		if (!roles->group || !roles->member || !roles->peer) {
			codec->error = -ENOMEM;
			return;
		}
	}
	for (uint32_t i = 0; i < groups && !codec->error; i++) {
		struct nt_group *group = &roles->group[i];

		if (codec->loads)
			roles->groups = i + 1;
		code_group(codec, group);
		nt_code_fail(codec, !group->members || group->members > detect->ranks - at);
		nt_code_fail(codec,
			     i && (group->kind < group[-1].kind ||
				   (group->kind == group[-1].kind && group->id <= group[-1].id)));
		if (codec->error)
			return;
		group->first = at;
		for (uint32_t j = 0; j < group->members; j++, at++) {
			struct nt_rank *rank;

			nt_code_u32(codec, &roles->member[at], UINT32_MAX);
			nt_code_fail(codec, roles->member[at] >= detect->ranks);
			nt_code_fail(codec, j && roles->member[at] <= roles->member[at - 1]);
			if (codec->error)
				return;
			rank = &detect->rank[roles->member[at]];
			nt_code_fail(codec, rank->group != NT_NO_INDEX);
			if (!codec->loads)
				continue;
			rank->group = i;
			rank->place = j;
			rank->group_kind = group->kind;
			rank->group_id = group->id;
			roles->peer[2 * (size_t)group->first + j] = rank->rank;
			roles->peer[2 * (size_t)group->first + group->members + j] = rank->rank;
		}
	}
	nt_code_fail(codec, at != detect->ranks);
	nt_code_bool(codec, &roles->dirty);
}

static void code_history(struct nt_codec *codec, struct nt_history *history)
{
	nt_code_u32(codec, &history->count, NT_HISTORY_ROUNDS);
	nt_code_u32(codec, &history->next, NT_HISTORY_ROUNDS - 1);
	nt_code_fail(codec, history->count < NT_HISTORY_ROUNDS && history->next != history->count);
	for (uint32_t i = 0; i < history->count && i < NT_HISTORY_ROUNDS; i++) {
		nt_code_u64(codec, &history->round[i].start_ns);
		nt_code_real(codec, &history->round[i].steps);
		nt_code_real(codec, &history->round[i].step_ns);
		nt_code_real(codec, &history->round[i].calls);
	}
	nt_code_real(codec, &history->steps);
	nt_code_real(codec, &history->calls);
	nt_code_u64(codec, &history->begin_ns);
}

static void code_step(struct nt_codec *codec, struct nt_step *step)
{
	nt_code_real(codec, &step->step_ns);
	nt_code_real(codec, &step->gc_ns);
	nt_code_real(codec, &step->gc_habit_ns);
	nt_state_past(codec, &step->past, &step->lesson);
	nt_state_cusum(codec, &step->level);
	code_history(codec, &step->history);
	nt_code_u64(codec, &step->charged_ns);
	nt_code_u64(codec, &step->moved_ns);
	nt_code_u64(codec, &step->longest_pause_ns);
	for (int i = 0; i < NT_SERIES_END; i++) {
		nt_state_cusum(codec, &step->wide[i].level);
		nt_code_real(codec, &step->wide[i].growth);
		nt_code_real(codec, &step->wide[i].slow_cost);
		nt_code_real(codec, &step->wide[i].drop);
		nt_code_u64(codec, &step->wide[i].dropped_ns);
	}
}

static void code_recovery(struct nt_codec *codec, struct nt_recovery *recovery)
{
	nt_code_u32(codec, &recovery->buckets, NT_RECOVERY_BUCKETS);
	nt_code_u64(codec, &recovery->bad_ns);
	for (uint32_t i = 0; i < recovery->buckets; i++) {
		nt_code_u64(codec, &recovery->bucket[i].start_ns);
		nt_code_u32(codec, &recovery->bucket[i].windows, UINT32_MAX);
		nt_code_real(codec, &recovery->bucket[i].sum);
	}
}

static void code_blame(struct nt_codec *codec, struct nt_blame *blame)
{
	nt_code_u32(codec, &blame->rank, UINT32_MAX);
	nt_code_u64(codec, &blame->onset_ns);
	nt_code_real(codec, &blame->cost);
	nt_code_real(codec, &blame->chance);
	nt_code_u8(codec, &blame->class, NT_CLASS_END - 1);
	nt_code_u8(codec, &blame->cause, NT_WORD_END - 1);
	nt_code_u8(codec, &blame->tier, NT_FRAME_T3);
	nt_code_u8(codec, &blame->series, NT_SERIES_END - 1);
	nt_code_u32(codec, &blame->absent, UINT32_MAX);
	code_recovery(codec, &blame->recovery);
}

static void code_incident_lists(struct nt_codec *codec, struct nt_incident *incident)
{
	nt_code_count(codec, &incident->blames, NT_FRAME_MAX_RANKS);
	nt_code_count(codec, &incident->listed, NT_FRAME_MAX_RANKS);
	if (codec->loads) {
		incident->blame = calloc((size_t)incident->blames + 1, sizeof(*incident->blame));
		incident->list = calloc((size_t)incident->listed + 1, sizeof(*incident->list));
		if (!incident->blame || !incident->list) {
			codec->error = -ENOMEM;
			incident->blames = incident->listed = 0;
			return;
		}
		incident->blame_cap = incident->blames + 1;
		incident->list_cap = incident->listed + 1;
	}
	for (uint32_t i = 0; i < incident->blames && !codec->error; i++) {
		code_blame(codec, &incident->blame[i]);
		nt_code_fail(codec, i && incident->blame[i].rank <= incident->blame[i - 1].rank);
	}
	for (uint32_t i = 0; i < incident->listed && !codec->error; i++)
		nt_code_u32(codec, &incident->list[i], UINT32_MAX);
}

static void code_evidence(struct nt_codec *codec, struct nt_evidence *evidence, uint32_t *rows)
{
	nt_code_u32(codec, rows, NT_FINDING_MAX_EVIDENCE);
	for (uint32_t i = 0; i < *rows; i++) {
		struct nt_evidence *row = &evidence[i];

		nt_code_u8(codec, &row->what, NT_WORD_END - 1);
		nt_code_u8(codec, &row->unit, NT_WORD_END - 1);
		nt_code_u8(codec, &row->method, NT_WORD_END - 1);
		nt_code_real(codec, &row->value);
		nt_code_real(codec, &row->peers);
		nt_code_real(codec, &row->width);
		nt_code_u32(codec, &row->windows, UINT32_MAX);
	}
}

static void code_fault(struct nt_codec *codec, struct nt_fault *fault)
{
	nt_code_bool(codec, &fault->held);
	if (!fault->held)
		return;
	nt_code_u8(codec, &fault->class, NT_CLASS_END - 1);
	nt_code_u8(codec, &fault->cause, NT_WORD_END - 1);
	nt_code_u8(codec, &fault->tier, NT_FRAME_T3);
	nt_code_real(codec, &fault->cost);
	nt_code_real(codec, &fault->worst_cost);
	nt_code_real(codec, &fault->chance);
	nt_code_real(codec, &fault->slowdown);
	nt_code_real(codec, &fault->gpu_hours);
	nt_code_real(codec, &fault->steps);
	nt_code_real(codec, &fault->step_ns);
	code_evidence(codec, fault->evidence, &fault->evidences);
}

static void code_toll(struct nt_codec *codec, struct nt_toll *toll)
{
	nt_code_real(codec, &toll->before_ns);
	nt_code_real(codec, &toll->clean_ns);
	nt_code_real(codec, &toll->first);
	nt_code_real(codec, &toll->steps);
	nt_code_real(codec, &toll->step_ns);
	nt_code_real(codec, &toll->due_ns);
	nt_code_u64(codec, &toll->frame);
	nt_code_bool(codec, &toll->unknown);
}

static void code_incident(struct nt_codec *codec, struct nt_incident *incident)
{
	nt_code_fixed(codec, &incident->id);
	nt_code_u64(codec, &incident->version);
	nt_code_u8(codec, &incident->family, NT_FAMILY_END - 1);
	nt_code_u8(codec, &incident->class, NT_CLASS_END - 1);
	nt_code_u8(codec, &incident->cause, NT_WORD_END - 1);
	nt_code_u8(codec, &incident->severity, NT_SEVERITY_CRITICAL);
	nt_code_u8(codec, &incident->state, NT_INCIDENT_FIRING);
	nt_code_u8(codec, &incident->kind, NT_CULPRIT_STAGE);
	nt_code_u8(codec, &incident->tier, NT_FRAME_T3);
	nt_code_bool(codec, &incident->note);
	nt_code_bool(codec, &incident->unsure);
	nt_code_u32(codec, &incident->stood, UINT32_MAX);
	nt_code_u32(codec, &incident->absent, UINT32_MAX);
	nt_code_fixed(codec, &incident->comm);
	nt_code_u64(codec, &incident->since_ns);
	nt_code_u64(codec, &incident->seen_ns);
	nt_code_u64(codec, &incident->fired_ns);
	nt_code_u64(codec, &incident->counted_ns);
	nt_code_real(codec, &incident->slowdown);
	nt_code_real(codec, &incident->gpu_hours);
	nt_code_real(codec, &incident->confidence);
	nt_code_real(codec, &incident->completeness);
	nt_code_real(codec, &incident->told_slowdown);
	nt_code_real(codec, &incident->told_completeness);
	nt_code_real(codec, &incident->missing_before_ns);
	code_toll(codec, &incident->toll);
	nt_code_real(codec, &incident->cost);
	nt_code_real(codec, &incident->chance);
	nt_code_u32(codec, &incident->culprits, UINT32_MAX);
	code_incident_lists(codec, incident);
	code_recovery(codec, &incident->recovery);
	code_evidence(codec, incident->evidence, &incident->evidences);
	code_fault(codec, &incident->fault);
}

static void code_incidents(struct nt_codec *codec, struct nt_incidents *incidents)
{
	uint32_t opens = incidents->opens, names = incidents->names;

	nt_code_count(codec, &opens, NT_INCIDENT_MAX_OPEN);
	if (codec->loads) {
		incidents->open = calloc((size_t)opens + 1, sizeof(*incidents->open));
		if (!incidents->open) {
			codec->error = -ENOMEM;
			return;
		}
		incidents->open_cap = opens + 1;
	}
	for (uint32_t i = 0; i < opens && !codec->error; i++) {
		if (codec->loads) {
			incidents->open[i] = calloc(1, sizeof(*incidents->open[i]));
			if (!incidents->open[i]) {
				codec->error = -ENOMEM;
				return;
			}
			incidents->opens = i + 1;
		}
		assert(incidents->open[i]);
		code_incident(codec, incidents->open[i]);
	}
	nt_code_count(codec, &names, NT_INCIDENT_MAX_NAMES);
	if (codec->loads) {
		incidents->name = calloc((size_t)names + 1, sizeof(*incidents->name));
		if (!incidents->name) {
			codec->error = -ENOMEM;
			return;
		}
		incidents->name_cap = names + 1;
		incidents->names = names;
	}
	for (uint32_t i = 0; i < names && !codec->error; i++) {
		struct nt_name *name = &incidents->name[i];

		nt_code_u8(codec, &name->kind, UINT8_MAX);
		nt_code_u64(codec, &name->id);
		nt_code_u32(codec, &name->count, UINT32_MAX);
		nt_code_fail(codec,
			     i && (name->kind < name[-1].kind ||
				   (name->kind == name[-1].kind && name->id <= name[-1].id)));
	}
	nt_code_u64(codec, &incidents->refused);
}

static void code_ranks(struct nt_codec *codec, struct nt_detect *detect)
{
	uint32_t ranks = detect->ranks;

	nt_code_count(codec, &ranks, NT_FRAME_MAX_RANKS);
	if (codec->loads) {
		detect->rank = calloc((size_t)ranks + 1, sizeof(*detect->rank));
		detect->lessons = calloc((size_t)ranks + 1, sizeof(*detect->lessons));
		if (!detect->rank || !detect->lessons) {
			codec->error = -ENOMEM;
			return;
		}
		detect->rank_cap = ranks + 1;
	}
	for (uint32_t i = 0; i < ranks && !codec->error; i++) {
		struct nt_rank *rank = &detect->rank[i];

		if (codec->loads) {
			rank->group = NT_NO_INDEX;
			detect->ranks = i + 1;
		}
		code_rank(codec, rank, &detect->lessons[i]);
		nt_code_fail(codec, i && rank->rank <= rank[-1].rank);
		code_rank_links(codec, rank, detect);
	}
}

static void code_gaps(struct nt_codec *codec, struct nt_gaps *gaps)
{
	nt_code_count(codec, &gaps->gaps, NT_GAPS_MAX);
	for (uint32_t i = 0; i < gaps->gaps; i++) {
		nt_code_u64(codec, &gaps->gap[i].start_ns);
		nt_code_u64(codec, &gaps->gap[i].end_ns);
		nt_code_real(codec, &gaps->gap[i].missing_ns);
	}
	nt_code_real(codec, &gaps->missing_ns);
}

static void code_detect(struct nt_codec *codec, struct nt_detect *detect)
{
	nt_code_fixed(codec, &detect->job_hash);
	nt_code_u32(codec, &detect->attempt, UINT32_MAX);
	nt_code_u64(codec, &detect->frames);
	nt_code_u64(codec, &detect->start_ns);
	nt_code_u64(codec, &detect->end_ns);
	nt_code_real(codec, &detect->window_ns);
	nt_code_u32(codec, &detect->expected_ranks, UINT32_MAX);
	code_gaps(codec, &detect->gaps);
	nt_code_real(codec, &detect->threshold);
	nt_code_bool(codec, &detect->rebaseline);
	nt_code_u64(codec, &detect->dropped_ranks);
	nt_code_u64(codec, &detect->dropped_comms);
	nt_code_u64(codec, &detect->implausible);
	nt_code_u64(codec, &detect->lapsed_hearings);
	code_comms(codec, detect);
	if (!codec->error)
		code_ranks(codec, detect);
	if (!codec->error)
		code_groups(codec, detect);
	code_step(codec, &detect->step);
	if (!codec->error)
		nt_state_links(codec, &detect->links);
	if (!codec->error)
		code_incidents(codec, &detect->incidents);
}

static void code_head(struct nt_codec *codec)
{
	uint64_t magic = STATE_MAGIC, version = STATE_VERSION;

	nt_code_fixed(codec, &magic);
	nt_code_number(codec, &version, STATE_VERSION);
	nt_code_fail(codec, magic != STATE_MAGIC || version != STATE_VERSION);
}

int nt_detect_save(const struct nt_detect *detect, uint8_t **ret_data, size_t *ret_size)
{
	struct nt_codec codec = {.loads = false};
	uint64_t sum;

	code_head(&codec);
	/* The one walk serves both ways; saving changes nothing but the communicators' index. */
	code_detect(&codec, (struct nt_detect *)(uintptr_t)detect);
	sum = codec.error ? 0 : nt_codec_sum(codec.out, codec.out_size);
	nt_code_fixed(&codec, &sum);
	if (codec.error) {
		free(codec.out);
		return codec.error;
	}
	*ret_data = codec.out;
	*ret_size = codec.out_size;
	return 0;
}

int nt_detect_load(const struct nt_rules *rules, const uint8_t *data, size_t size,
		   struct nt_detect **ret_detect)
{
	struct nt_codec codec = {.loads = true, .in = data};
	struct nt_codec tail = {.loads = true, .in = data, .in_size = size};
	struct nt_detect *detect;
	uint64_t sum;
	int r;

	if (size < STATE_SUM_BYTES)
		return -EBADMSG;
	codec.in_size = tail.at = size - STATE_SUM_BYTES;
	nt_code_fixed(&tail, &sum);
	if (sum != nt_codec_sum(data, codec.in_size))
		return -EBADMSG;
	code_head(&codec);
	if (codec.error)
		return codec.error;
	r = nt_detect_new(rules, 0, 0, &detect);
	if (r < 0)
		return r;
	code_detect(&codec, detect);
	nt_code_fail(&codec, codec.at != codec.in_size);
	r = codec.error;
	if (r == 0)
		r = nt_detect_make_room(detect, detect->ranks);
	if (r == 0)
		r = nt_answers_make(detect);
	if (r < 0) {
		nt_detect_free(detect);
		return r;
	}
	*ret_detect = detect;
	return 0;
}
