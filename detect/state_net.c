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
		nt_code_bool(codec, &cell->in_network);
		nt_state_cusum(codec, &cell->level);
		nt_state_past(codec, &cell->past, &cell->lesson);
		nt_code_u64(codec, &cell->frame);
		nt_code_real(codec, &cell->value);
		nt_code_real(codec, &cell->bytes);
		nt_code_real(codec, &cell->calls);
	}
	nt_code_u64(codec, &matrix->dropped);
}

static void code_nic_counters(struct nt_codec *codec, struct nt_nic_counters *counters)
{
	nt_code_count(codec, &counters->entries, NT_NIC_NODES_MAX);
	if (codec->loads && counters->entries) {
		counters->entry = calloc(counters->entries, sizeof(*counters->entry));
		if (!counters->entry) {
			codec->error = -ENOMEM;
			counters->entries = 0;
		}
		counters->entry_cap = counters->entries;
	}
	for (uint32_t i = 0; i < counters->entries && !codec->error; i++) {
		struct nt_nic_node_counters *entry = &counters->entry[i];

		nt_code_u32(codec, &entry->node, UINT32_MAX);
		nt_code_fail(codec, i && entry->node <= entry[-1].node);
		nt_code_u64(codec, &entry->frame);
		nt_code_u32(codec, &entry->learned, NT_PAST_WINDOWS);
		nt_code_reals(codec, entry->rate, NT_NIC_COUNTER_KINDS);
		nt_code_reals(codec, entry->usual, NT_NIC_COUNTER_KINDS);
		nt_state_cusum(codec, &entry->level);
		if (entry->level.windows)
			nt_code_reals(codec, entry->since, NT_NIC_COUNTER_KINDS);
	}
	nt_code_u64(codec, &counters->dropped);
}

void nt_state_links(struct nt_codec *codec, struct nt_links *links)
{
	code_matrix(codec, &links->matrix);
	code_nic_counters(codec, &links->nic_counters);
	nt_code_u64(codec, &links->step_frame);
	nt_code_u32(codec, &links->others, UINT32_MAX);
	if (!links->others)
		return;
	nt_code_u8(codec, &links->other.kind, NT_CULPRIT_PATH);
	nt_code_u32(codec, &links->other.node, UINT32_MAX);
	nt_code_u32(codec, &links->other.peer, UINT32_MAX);
}
