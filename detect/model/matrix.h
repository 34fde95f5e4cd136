/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The delay matrix: rows are nodes that send, columns nodes that receive, and a cell is how long a
 * transfer from the one to the other takes, per byte. A blocking send or receive lasts until the other
 * side is there as well; whoever came last waited for nobody, so that the shorter of the two sides'
 * shortest calls is the transfer. A cell is held against its own past, and then against the other
 * cells: a hot row is a node that sends slowly, a hot column one that receives slowly, a single cell the
 * path between two. To read the culprit off a matrix of delays between hosts is Pingmesh's (Guo et al.,
 * SIGCOMM 2015), the times of the job's own transfers in place of probes are C4D's (Dong et al., "Boosting
 * Large-scale Parallel Training Efficiency with C4", 2024).
 */
#ifndef NT_DETECT_MODEL_MATRIX_H
#define NT_DETECT_MODEL_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/math/cusum.h"
#include "detect/model/time.h"

enum {
	NT_MATRIX_CELLS = 16384, /* beyond: dropped, and counted */
};

struct nt_cell {
	uint32_t from, to; /* nodes */
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

/* What is slow: a node's NIC, or the path between two nodes. */
struct nt_culprit_link {
	uint8_t kind; /* NT_CULPRIT_NIC or NT_CULPRIT_PATH; anything else: none is clear */
	uint32_t node, peer; /* peer: of a path */
	/* Of a path: one of its ends talks to nobody else, so that it may be that one's NIC. */
	bool is_one_end;
};

/* What the cell takes longer than it did, in parts of a step that takes step_ns. */
double nt_cell_cost(const struct nt_cell *cell, double step_ns);
/* The evidence of the link's cells is forgotten. */
void nt_matrix_clear(struct nt_matrix *matrix, const struct nt_culprit_link *link);
/* The link holds transfers from the one node to the other. */
bool nt_detect_link_holds(const struct nt_culprit_link *link, uint32_t from, uint32_t to);
void nt_matrix_free(struct nt_matrix *matrix);

#endif
