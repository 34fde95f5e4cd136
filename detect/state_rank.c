/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of ranks. */
#include <errno.h>
#include <stdlib.h>

#include "detect/state_part.h"

static void code_track(struct nt_codec *codec, struct nt_track *track, struct nt_lesson *lesson)
{
	nt_code_u8(codec, &track->tier, NT_FRAME_T3);
	if (!track->tier)
		return;
	nt_state_cusum(codec, &track->level);
	nt_state_cusum(codec, &track->shift);
	nt_state_cusum(codec, &track->rate);
	nt_state_past(codec, &track->past, lesson);
	nt_code_u8(codec, &track->mode, NT_MODE_PAST);
	nt_code_u8(codec, &track->far_run, UINT8_MAX);
	nt_code_u8(codec, &track->far_fresh, nt_default_pending_windows);
	nt_state_far_rate(codec, &track->far_given);
	for (int i = 0; i <= NT_FAR_SIZES; i++)
		nt_code_u32(codec, &track->far_own.windows[i], UINT32_MAX);
	nt_state_far_rhythm(codec, &track->rhythm);
	nt_code_real(codec, &track->marked);
	nt_code_bool(codec, &track->always);
	nt_code_u8(codec, &track->peers_seen, UINT8_MAX);
	nt_code_u64(codec, &track->frame);
	nt_code_real(codec, &track->value);
	nt_code_real(codec, &track->peers);
	nt_code_real(codec, &track->peer_deviation);
	nt_code_real(codec, &track->width);
	nt_code_real(codec, &track->growth);
	nt_code_bool(codec, &track->growth_known);
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

/* The member's report in an open collective round. */
static void code_spoken(struct nt_codec *codec, struct nt_detect_link *link)
{
	if (!link->comm->collective_round.frame)
		return;
	if (link->collective_round != link->comm->collective_round.number) {
		/* No report: as after clearing. */
		struct nt_detect_link silent = {0};

		nt_code_bool(codec, &silent.reported);
		for (int i = 0; i < NT_COLLECTIVE_ROUND_CLOCKS; i++)
			nt_code_u32(codec, &silent.timed[i], UINT32_MAX);
		return;
	}
	nt_code_bool(codec, &link->reported);
	for (int i = 0; i < NT_COLLECTIVE_ROUND_CLOCKS; i++)
		nt_code_u32(codec, &link->timed[i], UINT32_MAX);
}

static void code_rank_links(struct nt_codec *codec, struct nt_detect_rank *rank,
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
		struct nt_detect_link *link = &rank->link[i];
		uint32_t index = link->comm ? link->comm->index : 0;

		nt_code_u32(codec, &index, UINT32_MAX);
		nt_code_fail(codec, index >= detect->comm_count);
		nt_code_u64(codec, &link->epoch);
		nt_code_u64(codec, &link->last);
		nt_code_fixed(codec, &link->hash);
		nt_code_u64(codec, &link->progress_ns);
		nt_code_u64(codec, &link->frame);
		if (codec->error) {
			/* On error no link without a communicator must remain. */
			rank->links = codec->loads ? i : rank->links;
			return;
		}
		if (codec->loads) {
			link->comm = detect->comm[index];
			if (link->progress_ns > link->comm->moved_ns)
				link->comm->moved_ns = link->progress_ns;
		}
		code_spoken(codec, link);
		for (uint32_t j = 0; j < i; j++)
			nt_code_fail(codec, rank->link[j].comm == link->comm);
	}
}

static void code_gpu_span(struct nt_codec *codec, struct nt_gpu_span *span)
{
	nt_code_real(codec, &span->known_ns);
	if (span->known_ns == 0.0)
		return;
	nt_code_real(codec, &span->sm_ns);
	nt_code_real(codec, &span->tensor_ns);
	nt_code_real(codec, &span->window_ns);
	nt_code_reals(codec, span->held_ns, NT_GPU_HELD_END);
	nt_code_real(codec, &span->step_ns);
	nt_code_real(codec, &span->steps);
	nt_code_fail(codec, span->known_ns < 0.0 || span->window_ns < 0.0 || span->steps < 0.0);
}

static void code_rank(struct nt_codec *codec, struct nt_detect_rank *rank,
		      struct nt_lessons *lessons)
{
	nt_code_u32(codec, &rank->rank, UINT32_MAX);
	nt_code_u32(codec, &rank->node, UINT32_MAX);
	nt_code_i32(codec, &rank->stage);
	nt_code_i32(codec, &rank->replica);
	nt_code_u8(codec, &rank->tier, NT_FRAME_T3);
	nt_code_bool(codec, &rank->own_by_device);
	nt_code_bool(codec, &rank->known);
	nt_code_bool(codec, &rank->observed);
	nt_code_bool(codec, &rank->silent);
	nt_code_bool(codec, &rank->ended);
	nt_code_bool(codec, &rank->finalized);
	nt_code_bool(codec, &rank->uses_gpu);
	nt_code_bool(codec, &rank->in_incident);
	nt_code_bool(codec, &rank->accepted);
	nt_code_u64(codec, &rank->ended_ns);
	nt_code_u32(codec, &rank->xid, UINT32_MAX);
	nt_code_u64(codec, &rank->xid_ns);
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
	for (int i = 0; i < NT_STEP_METRIC_END; i++)
		nt_code_u64(codec, &rank->sum[i]);
	nt_code_u8(codec, &rank->unit_rounds, UINT8_MAX);
	nt_code_bool(codec, &rank->has_metric_mean);
	if (rank->has_metric_mean)
		nt_code_reals(codec, rank->metric_mean, NT_STEP_METRIC_END);
	for (int i = 0; i < NT_SERIES_END; i++)
		code_track(codec, &rank->track[i], &lessons->of[i]);
	nt_code_real(codec, &rank->evidence.weight);
	nt_code_fail(codec, rank->evidence.weight < 0.0);
	if (rank->evidence.weight != 0.0) {
		nt_code_real(codec, &rank->evidence.own_weight);
		nt_code_fail(codec, rank->evidence.own_weight < 0.0);
		nt_code_reals(codec, rank->evidence.value, NT_STEP_METRIC_END);
		nt_code_reals(codec, rank->evidence.peers, NT_STEP_METRIC_END);
	}
	code_gpu_span(codec, &rank->gpu_before);
	code_gpu_span(codec, &rank->gpu_since);
}

void nt_state_ranks(struct nt_codec *codec, struct nt_detect *detect)
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
		struct nt_detect_rank *rank = &detect->rank[i];

		if (codec->loads) {
			rank->group = NT_NO_INDEX;
			detect->ranks = i + 1;
		}
		code_rank(codec, rank, &detect->lessons[i]);
		nt_code_fail(codec, i && rank->rank <= rank[-1].rank);
		code_rank_links(codec, rank, detect);
	}
}
