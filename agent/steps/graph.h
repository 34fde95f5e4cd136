/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the CUDA graphs of one process hold. While a stream captures, nothing of what it is given
 * runs: calls are only remembered, and are made each time the graph is launched. A stream that
 * waits for an event of a capturing one captures too, until the capture ends. Handles of graphs and
 * of executable graphs are addresses of one process and share a table.
 */
#ifndef NT_AGENT_STEPS_GRAPH_H
#define NT_AGENT_STEPS_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	/* graphs and executable graphs: inference has one a layer and size */
	NT_GRAPH_HANDLES = 8192,
	NT_GRAPH_CALLS = 8192, /* that one launch makes */
	NT_GRAPH_KEPT = 16384, /* calls that all graphs remember; equal neighbours are one */
	NT_GRAPH_STREAMS = 64, /* that capture at one time */
	NT_GRAPH_EVENTS = 512, /* recorded in captures */
};

/* A communication call as it was captured. */
struct nt_graph_call {
	uint64_t comm; /* handle */
	uint64_t ordinal; /* of the communicator: another may get its handle */
	uint64_t count, bytes;
	uint32_t type;
	uint32_t times; /* in a row */
	uint16_t op, library;
};

/* Counts of all processes; the caller's, so that they outlive these. */
struct nt_graph_stats {
	uint64_t launches; /* of graphs that hold communication */
	uint64_t unknown; /* launches of graphs whose capture was not seen */
	uint64_t gone; /* calls left out: their communicator is gone */
	/* At a cap: what finds no place is not counted when its graph is launched. */
	uint64_t handles_over_cap, calls_over_cap, streams_over_cap, events_over_cap;
	uint64_t no_memory;
};

struct nt_graph;

/* stats: borrowed for its life. */
NT_MUST_CHECK int nt_graph_new(struct nt_graph_stats *stats, struct nt_graph **ret_graph);
void nt_graph_free(struct nt_graph *graph);
NT_DEFINE_AUTO(nt_graph, nt_graph_free)
size_t nt_graph_bytes(const struct nt_graph *graph);

/* A capture begins, into the graph `into` behind what that holds, or (0) into a new one. */
void nt_graph_begin(struct nt_graph *graph, uint64_t stream, uint64_t into);
/* It ends for all its streams. handle: of the graph; 0: it came to nothing. */
void nt_graph_end(struct nt_graph *graph, uint64_t stream, uint64_t handle);
/* Captures that go on are lost, since nobody knows whether they do. */
void nt_graph_lose(struct nt_graph *graph);

bool nt_graph_captures(const struct nt_graph *graph, uint64_t stream);
/* True: the event, or the wait, belongs to a capture and orders nothing now. */
bool nt_graph_record(struct nt_graph *graph, uint64_t event, uint64_t stream);
bool nt_graph_wait(struct nt_graph *graph, uint64_t stream, uint64_t event);
/* The stream captures the call, whose `times` is 1; or the launch of a graph. */
void nt_graph_call(struct nt_graph *graph, uint64_t stream, const struct nt_graph_call *call);
void nt_graph_nest(struct nt_graph *graph, uint64_t stream, uint64_t handle);

/* `to` holds what `from` does, or, where that is not known, is not known either. */
void nt_graph_copy(struct nt_graph *graph, uint64_t to, uint64_t from);
/* The same, behind what it holds. */
void nt_graph_add(struct nt_graph *graph, uint64_t to, uint64_t from);
void nt_graph_drop(struct nt_graph *graph, uint64_t handle);

/* False: the graph is not known. The calls are borrowed until the next change. */
bool nt_graph_find(const struct nt_graph *graph, uint64_t handle,
		   const struct nt_graph_call **ret_call, size_t *ret_calls);

#endif
