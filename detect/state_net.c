/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known of networks, as bytes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "detect/state_part.h"

void nt_state_network(struct nt_codec *codec, struct nt_network *network)
{
	nt_code_u8(codec, &network->method, NT_NETWORK_METHODS - 1);
	if (!network->method)
		return;
	nt_state_cusum(codec, &network->level);
	nt_state_past(codec, &network->past, &network->lesson);
	nt_code_u8(codec, &network->tier, NT_FRAME_T3);
	nt_code_u8(codec, &network->op, UINT8_MAX);
	nt_code_real(codec, &network->bytes);
	nt_code_u64(codec, &network->frame);
	nt_code_real(codec, &network->transfer);
	nt_code_real(codec, &network->step_ns);
	nt_code_real(codec, &network->calls);
	nt_code_real(codec, &network->cost);
}

/* Zero: nobody timed it. */
static void code_shortest(struct nt_codec *codec, struct nt_hearing_op *op,
			  enum nt_hearing_clock clock)
{
	nt_code_u32(codec, &op->timed[clock], NT_FRAME_MAX_RANKS);
	if (op->timed[clock])
		nt_code_real(codec, &op->shortest_ns[clock]);
	else if (codec->loads)
		op->shortest_ns[clock] = INFINITY;
}

/* Mostly the last frame ended it. */
void nt_state_hearing(struct nt_codec *codec, struct nt_hearing *hearing)
{
	nt_code_u64(codec, &hearing->frame);
	if (!hearing->frame)
		return;
	nt_code_u64(codec, &hearing->start_ns);
	nt_code_u32(codec, &hearing->heard, NT_FRAME_MAX_RANKS);
	nt_code_real(codec, &hearing->steps);
	nt_code_real(codec, &hearing->step_ns);
	nt_code_fail(codec, (hearing->steps < 1.0) != !hearing->heard);
	nt_code_u8(codec, &hearing->tier, NT_FRAME_T3);
	nt_code_count(codec, &hearing->ops, NT_HEARING_OPS);
	if (codec->loads && hearing->ops) {
		hearing->op = calloc(hearing->ops, sizeof(*hearing->op));
		if (!hearing->op) {
			codec->error = -ENOMEM;
			hearing->ops = 0;
		}
		hearing->op_cap = hearing->ops;
	}
	for (uint32_t i = 0; i < hearing->ops; i++) {
		struct nt_hearing_op *op = &hearing->op[i];

		nt_code_u8(codec, &op->op, NT_HEARING_OPS - 1);
		nt_code_real(codec, &op->bytes);
		nt_code_real(codec, &op->calls);
		nt_code_fail(codec, op->calls < 1.0);
		for (int j = 0; j < NT_HEARING_CLOCKS; j++)
			code_shortest(codec, op, j);
	}
}

static void code_matrix(struct nt_codec *codec, struct nt_matrix *matrix)
{
	nt_code_count(codec, &matrix->cells, NT_MATRIX_CELLS);
	if (codec->loads && matrix->cells) {
		matrix->cell = calloc(matrix->cells, sizeof(*matrix->cell));
		if (!matrix->cell) {
			codec->error = -ENOMEM;
			matrix->cells = 0;
		}
		matrix->cell_cap = matrix->cells;
	}
	for (uint32_t i = 0; i < matrix->cells && !codec->error; i++) {
		struct nt_cell *cell = &matrix->cell[i];

		nt_code_u32(codec, &cell->from, UINT32_MAX);
		nt_code_u32(codec, &cell->to, UINT32_MAX);
		nt_code_fail(codec,
			     i && (cell->from < cell[-1].from ||
				   (cell->from == cell[-1].from && cell->to <= cell[-1].to)));
		nt_state_cusum(codec, &cell->level);
		nt_state_past(codec, &cell->past, &cell->lesson);
		nt_code_u64(codec, &cell->frame);
		nt_code_real(codec, &cell->value);
		nt_code_real(codec, &cell->bytes);
		nt_code_real(codec, &cell->calls);
	}
	nt_code_u64(codec, &matrix->dropped);
}

static void code_ports(struct nt_codec *codec, struct nt_ports *ports)
{
	nt_code_count(codec, &ports->ports, NT_PORTS_MAX);
	if (codec->loads && ports->ports) {
		ports->port = calloc(ports->ports, sizeof(*ports->port));
		if (!ports->port) {
			codec->error = -ENOMEM;
			ports->ports = 0;
		}
		ports->port_cap = ports->ports;
	}
	for (uint32_t i = 0; i < ports->ports && !codec->error; i++) {
		struct nt_port *port = &ports->port[i];

		nt_code_u32(codec, &port->node, UINT32_MAX);
		nt_code_fail(codec, i && port->node <= port[-1].node);
		nt_code_u64(codec, &port->frame);
		nt_code_u32(codec, &port->learned, NT_PAST_WINDOWS);
		nt_code_reals(codec, port->rate, NT_PORT_KINDS);
		nt_code_reals(codec, port->usual, NT_PORT_KINDS);
		nt_state_cusum(codec, &port->level);
		if (port->level.windows)
			nt_code_reals(codec, port->since, NT_PORT_KINDS);
	}
	nt_code_u64(codec, &ports->dropped);
}

void nt_state_links(struct nt_codec *codec, struct nt_links *links)
{
	code_matrix(codec, &links->matrix);
	code_ports(codec, &links->ports);
	nt_code_u64(codec, &links->step_frame);
	nt_code_u32(codec, &links->others, UINT32_MAX);
	if (!links->others)
		return;
	nt_code_u8(codec, &links->other.kind, NT_CULPRIT_PATH);
	nt_code_u32(codec, &links->other.node, UINT32_MAX);
	nt_code_u32(codec, &links->other.peer, UINT32_MAX);
}

/* What the member has said in a hearing that goes on. */
void nt_state_spoken(struct nt_codec *codec, struct nt_link *link)
{
	if (!link->comm->hearing.frame)
		return;
	if (link->hearing != link->comm->hearing.number) {
		/* Nothing: as if it had been cleared. */
		struct nt_link silent = {0};

		nt_code_bool(codec, &silent.spoke);
		for (int i = 0; i < NT_HEARING_CLOCKS; i++)
			nt_code_u32(codec, &silent.timed[i], UINT32_MAX);
		return;
	}
	nt_code_bool(codec, &link->spoke);
	for (int i = 0; i < NT_HEARING_CLOCKS; i++)
		nt_code_u32(codec, &link->timed[i], UINT32_MAX);
}
