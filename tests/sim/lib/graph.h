/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inside of graphs, for those who fill them and move them on. */
#ifndef NT_SIM_GRAPH_H
#define NT_SIM_GRAPH_H

#include "tests/sim/lib/model.h"

struct sim_node {
	struct sim_op op;
	int after[2]; /* nodes; -1: none */
};

struct sim_graph {
	struct sim_node *node;
	size_t nodes, room;
	bool broken; /* a node was lost for lack of memory */
};

struct sim_graph_exec {
	struct sim_graph graph;
	uint32_t id; /* from 1 */
};

/* One launch of a graph. */
struct sim_run {
	struct sim_graph graph; /* copies of the nodes, with states of their own */
	const struct sim_stream *stream; /* borrowed: it lives until the run has ended */
	uint64_t *end_ns; /* by node; 0: not known yet */
	size_t left;
};

/*
 * Adds a node behind two others (-1: none), and takes what the operation owns. CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY with nothing taken.
 */
CUresult sim_graph_add(struct sim_graph *graph, int first, int second, const struct sim_op *op,
		       int *ret_node);

/* As sim_op_moves(): true when the ends of all nodes are known. */
bool sim_run_moves(struct sim_run *run, uint64_t start_ns, uint64_t *ret_end_ns);
void sim_run_free(struct sim_run *run);

#endif
