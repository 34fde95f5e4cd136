/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/graph.h"

#include <stdlib.h>

#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/operation.h"

static uint32_t exec_ids;

static void graph_clear(struct sim_graph *graph)
{
	for (size_t i = 0; i < graph->nodes; i++)
		sim_op_clear(&graph->node[i].op);
	free(graph->node);
	*graph = (struct sim_graph){0};
}

void sim_run_free(struct sim_run *run)
{
	if (!run)
		return;
	graph_clear(&run->graph);
	free(run->end_ns);
	free(run);
}

bool sim_run_moves(struct sim_run *run, uint64_t start_ns, uint64_t *ret_end_ns)
{
	uint64_t end_ns = start_ns;

	for (size_t i = 0; i < run->graph.nodes; i++) {
		struct sim_node *node = &run->graph.node[i];
		uint64_t node_start_ns = start_ns, node_end_ns = 0;
		bool waits = false;

		for (int k = 0; k < 2; k++) {
			if (node->after[k] < 0)
				continue;
			waits |= run->end_ns[node->after[k]] == 0;
			node_start_ns = sim_later(node_start_ns, run->end_ns[node->after[k]]);
		}
		if (run->end_ns[i] == 0 && !waits &&
		    sim_op_moves(&node->op, node_start_ns, &node_end_ns)) {
			run->end_ns[i] = node_end_ns;
			sim_activity_report(run->stream, &node->op, node_start_ns, node_end_ns);
			run->left--;
		}
		end_ns = sim_later(end_ns, run->end_ns[i]);
	}
	*ret_end_ns = end_ns;
	return run->left == 0;
}

CUresult sim_graph_add(struct sim_graph *graph, int first, int second, const struct sim_op *op,
		       int *ret_node)
{
	if (graph->nodes == graph->room) {
		size_t more = graph->room ? 2 * graph->room : 64;
		struct sim_node *grown = reallocarray(graph->node, more, sizeof(*grown));

		if (!grown) {
			graph->broken = true;
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		graph->node = grown;
		graph->room = more;
	}
	graph->node[graph->nodes] = (struct sim_node){.op = *op, .after = {first, second}};
	*ret_node = (int)graph->nodes++;
	return CUDA_SUCCESS;
}

CUresult sim_capture_begin(struct sim_stream *stream)
{
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	stream->capture = calloc(1, sizeof(*stream->capture));
	if (!stream->capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->captures_as_origin = true;
	stream->last_node = -1;
	return CUDA_SUCCESS;
}

CUresult sim_capture_end(struct sim_stream *stream, CUgraph *ret)
{
	struct sim_graph *graph = stream->capture;

	if (!graph || !stream->captures_as_origin)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	sim_stream_end_capture(graph);
	if (graph->broken) {
		sim_graph_free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = graph;
	return CUDA_SUCCESS;
}

size_t sim_graph_nodes(const struct sim_graph *graph)
{
	return graph->nodes;
}

static bool graph_copy(const struct sim_graph *from, struct sim_graph *to)
{
	*to = (struct sim_graph){0};
	to->node = calloc(from->nodes + 1, sizeof(*to->node));
	if (!to->node)
		return false;
	to->room = from->nodes + 1;
	for (size_t i = 0; i < from->nodes; i++) {
		struct sim_node node = from->node[i];

		if (node.op.kind == SIM_OP_MODEL) {
			node.op.model.state = node.op.model.model->copy(node.op.model.state);
			if (!node.op.model.state) {
				graph_clear(to);
				return false;
			}
		}
		to->node[to->nodes++] = node;
	}
	return true;
}

CUresult sim_graph_instantiate(const struct sim_graph *graph, CUgraphExec *ret)
{
	struct sim_graph_exec *exec = calloc(1, sizeof(*exec));

	if (!exec || !graph_copy(graph, &exec->graph)) {
		free(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->id = ++exec_ids;
	*ret = exec;
	return CUDA_SUCCESS;
}

CUresult sim_graph_launch(const struct sim_graph_exec *exec, struct sim_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_GRAPH, .graph = exec->id};
	CUresult r;

	op.run = calloc(1, sizeof(*op.run));
	if (op.run)
		op.run->end_ns = calloc(exec->graph.nodes + 1, sizeof(*op.run->end_ns));
	if (!op.run || !op.run->end_ns || !graph_copy(&exec->graph, &op.run->graph)) {
		sim_run_free(op.run);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	op.run->left = op.run->graph.nodes;
	op.run->stream = stream;
	for (size_t i = 0; i < op.run->graph.nodes; i++) {
		struct sim_op *node = &op.run->graph.node[i].op;

		if (node->kind == SIM_OP_MODEL)
			node->model.model->launched(node->model.state);
		node->correlation = sim_activity_correlation();
		node->graph = exec->id;
		node->node = (uint32_t)i + 1;
	}
	r = stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim_stream_put(stream, &op);
	if (r != CUDA_SUCCESS)
		sim_run_free(op.run);
	return r;
}

void sim_graph_free(struct sim_graph *graph)
{
	if (!graph)
		return;
	graph_clear(graph);
	free(graph);
}

uint32_t cuSimGraphExecId(const void *exec)
{
	return ((const struct sim_graph_exec *)exec)->id;
}

void sim_graph_exec_free(struct sim_graph_exec *exec)
{
	if (!exec)
		return;
	graph_clear(&exec->graph);
	free(exec);
}
