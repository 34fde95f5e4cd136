/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of communicators. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "detect/baseline/communicator_learn.h"
#include "detect/state_part.h"

static void code_loss(struct nt_codec *codec, struct nt_network *network)
{
	nt_code_real(codec, &network->retransmits_usual);
	nt_code_real(codec, &network->retransmits);
	nt_code_u32(codec, &network->loss_rounds, UINT32_MAX);
}

static void code_rate(struct nt_codec *codec, struct nt_network *network)
{
	nt_state_cusum(codec, &network->rate);
	nt_state_far_rhythm(codec, &network->rhythm);
	nt_code_u8(codec, &network->far_fresh, nt_default_pending_windows);
}

/* Older formats have no usual part of starving, and no loss of a network whose transfers are not measured. */
static void code_network(struct nt_codec *codec, struct nt_network *network)
{
	const bool is_older = codec->version < NT_STATE_LOSS_LEARNED;

	if (!is_older)
		code_loss(codec, network);
	nt_code_u8(codec, &network->method, NT_NETWORK_METHODS - 1);
	if (!network->method)
		return;
	nt_state_cusum(codec, &network->level);
	if (codec->version >= NT_STATE_NETWORK_RATE)
		code_rate(codec, network);
	nt_state_past(codec, &network->past, &network->lesson);
	nt_code_u8(codec, &network->tier, NT_FRAME_T3);
	nt_code_u8(codec, &network->op, UINT8_MAX);
	nt_code_real(codec, &network->bytes);
	nt_code_u64(codec, &network->frame);
	nt_code_real(codec, &network->transfer);
	nt_code_real(codec, &network->step_ns);
	nt_code_real(codec, &network->calls);
	nt_code_real(codec, &network->cost);
	nt_code_real(codec, &network->reference);
	nt_code_u8(codec, &network->compared, NT_NETWORK_COMPARED);
	if (is_older) {
		nt_code_real(codec, &network->retransmits_usual);
		nt_code_real(codec, &network->retransmits);
		network->loss_rounds = NT_PAST_WINDOWS;
		return;
	}
	nt_code_real(codec, &network->starved_part);
	nt_code_u32(codec, &network->starved_rounds, UINT32_MAX);
}

/* Zero: not timed by any member. */
static void code_shortest(struct nt_codec *codec, struct nt_collective_round_op *op,
			  enum nt_collective_round_clock clock)
{
	nt_code_u32(codec, &op->timed[clock], NT_FRAME_MAX_RANKS);
	if (op->timed[clock])
		nt_code_real(codec, &op->shortest_ns[clock]);
	else if (codec->loads)
		op->shortest_ns[clock] = INFINITY;
}

/* Usually the round ended with the last frame. */
static void code_collective_round(struct nt_codec *codec,
				  struct nt_collective_round *collective_round)
{
	nt_code_u64(codec, &collective_round->frame);
	if (!collective_round->frame)
		return;
	nt_code_u64(codec, &collective_round->start_ns);
	nt_code_u32(codec, &collective_round->reporters, NT_FRAME_MAX_RANKS);
	nt_code_real(codec, &collective_round->steps);
	nt_code_real(codec, &collective_round->step_ns);
	nt_code_fail(codec, (collective_round->steps < 1.0) != !collective_round->reporters);
	nt_code_u8(codec, &collective_round->tier, NT_FRAME_T3);
	nt_code_count(codec, &collective_round->ops, NT_COLLECTIVE_ROUND_OPS);
	if (codec->loads && collective_round->ops) {
		collective_round->op = calloc(collective_round->ops, sizeof(*collective_round->op));
		if (!collective_round->op) {
			codec->error = -ENOMEM;
			collective_round->ops = 0;
		}
		collective_round->op_cap = collective_round->ops;
	}
	for (uint32_t i = 0; i < collective_round->ops; i++) {
		struct nt_collective_round_op *op = &collective_round->op[i];

		nt_code_u8(codec, &op->op, NT_COLLECTIVE_ROUND_OPS - 1);
		nt_code_real(codec, &op->bytes);
		nt_code_real(codec, &op->calls);
		nt_code_fail(codec, op->calls < 1.0);
		for (int j = 0; j < NT_COLLECTIVE_ROUND_CLOCKS; j++)
			code_shortest(codec, op, j);
	}
}

static void code_comm(struct nt_codec *codec, struct nt_detect_comm *comm)
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
	code_network(codec, &comm->network);
	code_network(codec, &comm->other_network);
	nt_code_u32(codec, &comm->strange_rounds, UINT32_MAX);
	code_collective_round(codec, &comm->collective_round);
	for (int i = 0; i < NT_DETECT_COMM_OPS; i++)
		nt_code_u8(codec, &comm->kind_of[i], NT_FRAME_POINT_TO_POINT + 1);
	nt_code_u32(codec, &comm->agreed, UINT32_MAX);
	nt_code_u32(codec, &comm->matched, UINT32_MAX);
	nt_code_bool(codec, &comm->varies);
	nt_code_u64(codec, &comm->differed_last);
	nt_code_u32(codec, &comm->differed_moves, UINT32_MAX);
}

void nt_state_comms(struct nt_codec *codec, struct nt_detect *detect)
{
	uint32_t n = detect->comm_count;

	nt_code_count(codec, &n, NT_DETECT_COMM_MAX);
	for (uint32_t i = 0; i < n && !codec->error; i++) {
		struct nt_detect_comm *comm = codec->loads ? NULL : detect->comm[i];
		uint64_t id = comm ? comm->id : 0;

		nt_code_fixed(codec, &id);
		if (codec->loads) {
			if (codec->error)
				return;
			nt_code_fail(codec, nt_detect_comm_find(detect->comms, id) != NULL);
			comm = codec->error ? NULL : nt_detect_comm_add(detect, id);
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
