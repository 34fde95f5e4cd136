/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The delay matrix: rows are sending nodes, columns receiving nodes, and a cell is the transfer
 * time per byte. A blocking send or receive includes the wait for the other side, but the side that
 * comes last does not wait. The shorter of both sides' shortest calls is therefore the transfer
 * time. What a library reports as its time in the network alone needs no second side. A cell is
 * compared with its own past, then with the other cells. A slow row is a node that sends slowly, a
 * slow column one that receives slowly, a single cell the path between two nodes.
 * The localisation follows Pingmesh (Guo et al., SIGCOMM 2015). The use of the job's own transfers
 * in place of probes follows C4D (Dong et al., "Boosting Large-scale Parallel Training Efficiency
 * with C4", 2024).
 */
#ifndef NT_DETECT_MODEL_MATRIX_H
#define NT_DETECT_MODEL_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/math/cusum.h"
#include "detect/model/time.h"

enum {
	NT_MATRIX_CELLS = 16384, /* further cells are dropped and counted */
};

struct nt_cell {
	uint32_t from, to; /* nodes */
	bool in_network; /* values are those of the network alone: others are not compared with them */
	struct nt_cusum level;
	struct nt_past past; /* of ns a byte */
	uint64_t frame; /* of the last value, 0: none */
	double value, bytes, calls; /* of it: ns a byte, bytes a call, calls a step */
	struct nt_lesson lesson; /* of `past` */
};

struct nt_matrix {
	struct nt_cell *cell; /* ascending by (from, to) */
	uint32_t cells, cell_cap;
	uint64_t dropped;
};

/* A culprit: a node's NIC, or the path between two nodes. */
struct nt_culprit_link {
	uint8_t kind; /* NT_CULPRIT_NIC or NT_CULPRIT_PATH; otherwise: ambiguous */
	uint32_t node, peer; /* peer: of a path */
	/* Path: one end has no other transfers, so the fault may be that node's NIC. */
	bool is_one_end;
};

/* The cell's excess over its past, as part of a step of step_ns. */
double nt_cell_cost(const struct nt_cell *cell, double step_ns);
/* Clears the evidence of the link's cells. */
void nt_matrix_clear(struct nt_matrix *matrix, const struct nt_culprit_link *link);
/* Whether transfers between the two nodes use the link. */
bool nt_detect_link_holds(const struct nt_culprit_link *link, uint32_t from, uint32_t to);
void nt_matrix_free(struct nt_matrix *matrix);

#endif
