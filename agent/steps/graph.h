/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Communication calls in the CUDA graphs of one process. While a stream captures, its calls are
 * recorded instead of executed, and are made at each launch of the graph. A stream that waits for
 * an event of a capturing one captures too, until the capture ends. Handles of graphs and of
 * executable graphs are addresses of one process and share a table.
 */
#ifndef NT_AGENT_STEPS_GRAPH_H
#define NT_AGENT_STEPS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "common/base/cleanup.h"

enum {
	/* graphs and executable graphs: inference has one per layer and size */
	NT_GRAPH_HANDLES = 8192,
	NT_GRAPH_CALLS = 8192, /* that one launch makes */
	NT_GRAPH_KEPT = 16384, /* recorded calls of all graphs; equal neighbours are merged */
	NT_GRAPH_STREAMS = 64, /* capturing at the same time */
	NT_GRAPH_EVENTS = 512, /* recorded in captures */
};

/* A communication call as it was captured. */
struct nt_graph_call {
	uint64_t comm; /* handle */
	uint64_t ordinal; /* of the communicator: its handle may be reused */
	uint64_t count, bytes;
	uint32_t type;
	uint32_t times; /* in a row */
	uint16_t op, library;
};

/* Totals of all processes; owned by the caller, so that they outlive these. */
struct nt_graph_stats {
	uint64_t launches; /* of graphs that hold communication */
	uint64_t unknown; /* launches of graphs whose capture was not seen */
	uint64_t gone; /* calls left out: their communicator is gone */
	/* Over a cap: such calls are not counted when their graph is launched. */
	uint64_t handles_over_cap, calls_over_cap, streams_over_cap, events_over_cap;
	uint64_t no_memory;
};

struct nt_graph;

/* stats: borrowed for its life. */
NT_MUST_CHECK int nt_graph_new(struct nt_graph_stats *stats, struct nt_graph **ret_graph);
void nt_graph_free(struct nt_graph *graph);
NT_DEFINE_AUTO(nt_graph, nt_graph_free)
size_t nt_graph_bytes(const struct nt_graph *graph);

/* A capture begins, appended to the graph `into`, or (0) into a new one. */
void nt_graph_begin(struct nt_graph *graph, uint64_t stream, uint64_t into);
/* Ends a capture for all its streams. handle: of the graph; 0: the capture failed. */
void nt_graph_end(struct nt_graph *graph, uint64_t stream, uint64_t handle);
/* Events were lost: drops captures in progress, as their end may have been missed. */
void nt_graph_lose(struct nt_graph *graph);

bool nt_graph_captures(const struct nt_graph *graph, uint64_t stream);
/* True: the event or wait belongs to a capture and orders nothing now. */
bool nt_graph_record(struct nt_graph *graph, uint64_t event, uint64_t stream);
bool nt_graph_wait(struct nt_graph *graph, uint64_t stream, uint64_t event);
/* Records a call, whose `times` is 1, or the launch of a graph in a capture. */
void nt_graph_call(struct nt_graph *graph, uint64_t stream, const struct nt_graph_call *call);
void nt_graph_nest(struct nt_graph *graph, uint64_t stream, uint64_t handle);

/* Copies the contents of `from` to `to`; unknown contents stay unknown. */
void nt_graph_copy(struct nt_graph *graph, uint64_t to, uint64_t from);
/* The same, appended to its contents. */
void nt_graph_add(struct nt_graph *graph, uint64_t to, uint64_t from);
void nt_graph_drop(struct nt_graph *graph, uint64_t handle);

/*
 * What a capture that has just ended in this graph multiplied, NT_GEMM_SUMS of them; NULL: unknown.
 * Without it nothing is known of the graph's multiplications.
 */
void nt_graph_multiply(struct nt_graph *graph, uint64_t handle, const struct nt_gemm_sum *sum);
/* What each launch multiplies. False: that is unknown. Sums without calls are empty. */
bool nt_graph_multiplies(const struct nt_graph *graph, uint64_t handle,
			 struct nt_gemm_sum ret_sum[NT_GEMM_SUMS]);

/* False: unknown graph. The calls are borrowed until the next change. */
bool nt_graph_find(const struct nt_graph *graph, uint64_t handle,
		   const struct nt_graph_call **ret_call, size_t *ret_calls);

#endif
