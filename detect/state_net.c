/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Serialization of links between nodes. */
#include <errno.h>
#include <stdlib.h>

#include "detect/state_part.h"
#include "detect/thresholds/thresholds.h"

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

static void code_ports(struct nt_codec *codec, struct nt_nic_ports *ports)
{
	nt_code_count(codec, &ports->ports, NT_NIC_PORTS_MAX);
	if (codec->loads && ports->ports) {
		ports->port = calloc(ports->ports, sizeof(*ports->port));
		if (!ports->port) {
			codec->error = -ENOMEM;
			ports->ports = 0;
		}
		ports->port_cap = ports->ports;
	}
	for (uint32_t i = 0; i < ports->ports && !codec->error; i++) {
		struct nt_nic_port *port = &ports->port[i];

		nt_code_u32(codec, &port->node, UINT32_MAX);
		nt_code_fail(codec, i && port->node <= port[-1].node);
		nt_code_u64(codec, &port->frame);
		nt_code_u32(codec, &port->learned, NT_PAST_WINDOWS);
		nt_code_reals(codec, port->rate, NT_NIC_PORT_KINDS);
		nt_code_reals(codec, port->usual, NT_NIC_PORT_KINDS);
		nt_state_cusum(codec, &port->level);
		if (port->level.windows)
			nt_code_reals(codec, port->since, NT_NIC_PORT_KINDS);
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
