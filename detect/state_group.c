/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of peer groups. */
#include <errno.h>
#include <stdlib.h>

#include "detect/state_part.h"

static void code_group_past(struct nt_codec *codec, struct nt_group_past *past)
{
	for (int i = 0; i < NT_SERIES_END; i++) {
		nt_state_ring(codec, &past->width[i]);
		nt_state_ring(codec, &past->core[i]);
		if (codec->version >= NT_STATE_RESIDUAL_WIDTH)
			nt_state_ring(codec, &past->residual_width[i]);
		nt_code_reals(codec, past->turns[i], 2);
		nt_code_real(codec, &past->shared[i]);
	}
	nt_code_u32(codec, &past->apart, UINT32_MAX);
	nt_code_u64(codec, &past->apart_since_ns);
	nt_code_u32(codec, &past->apart_slower, UINT32_MAX);
	nt_code_real(codec, &past->apart_gap);
	nt_code_real(codec, &past->apart_cost);
	nt_code_real(codec, &past->apart_low);
	nt_code_real(codec, &past->apart_high);
	nt_state_ring(codec, &past->worst);
	nt_state_ring(codec, &past->turn);
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
		struct nt_adaptation *tail = &group->tail[i];

		nt_code_real(codec, &tail->windows);
		nt_code_real(codec, &tail->entries);
		nt_code_fail(codec, tail->entries < 0.0 || tail->entries > tail->windows);
		nt_code_real(codec, &tail->after);
		nt_code_real(codec, &tail->stayed);
		nt_code_fail(codec, tail->stayed < 0.0 || tail->stayed > tail->after);
		nt_state_far_rate(codec, &group->far_rate[i]);
	}
	nt_code_real(codec, &group->shared_growth);
	nt_code_bool(codec, &group->jumped);
	nt_code_fail(codec, group->jumped && group->shared_growth <= 0.0);
	nt_code_u32(codec, &group->jump_rounds, UINT32_MAX);
	nt_code_u64(codec, &group->jump_since_ns);
	nt_code_real(codec, &group->jump_growth);
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

/* Invariants: every rank is in one group; ranks in a group, and groups, are ascending. */
void nt_state_groups(struct nt_codec *codec, struct nt_detect *detect)
{
	struct nt_peer_groups *roles = &detect->roles;
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
			struct nt_detect_rank *rank;

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
