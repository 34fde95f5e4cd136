/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The device that the stand-in libcuda plays. A stream is a queue of operations with a cursor: the
 * monotonic time at which its last known operation ends. Where an operation's end can be known it
 * is known at once, as a time that may lie ahead; so a stream of kernels costs no thread a wake-up,
 * and only the host sleeps, until the end of what it waits for. An operation whose end hangs on
 * others (an event of another stream, a collective, a host function) holds its queue until then.
 *
 * Everything here is called with the device's lock held, but sim_model_lock() itself.
 */
#ifndef NT_SIM_MODEL_H
#define NT_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

enum {
	SIM_DEVICES = 8,
	SIM_WATCHED = 120, /* futex_waitv() takes 128 */
};

/* A place in a stream. Its time is known once the stream's cursor has got there. */
struct sim_point {
	unsigned int refs;
	bool known;
	uint64_t time_ns;
};

enum sim_op_kind {
	SIM_OP_NOTHING,
	SIM_OP_KERNEL,
	SIM_OP_COPY,
	SIM_OP_SET,
	SIM_OP_RECORD,
	SIM_OP_WAIT,
	SIM_OP_HOST,
	SIM_OP_MODEL,
	SIM_OP_GRAPH,
};

enum sim_host_state {
	SIM_HOST_WAITING,
	SIM_HOST_RUNNING,
	SIM_HOST_DONE,
};

/* Where memory lies. */
enum sim_memory {
	SIM_MEMORY_NONE, /* pageable memory of the host */
	SIM_MEMORY_DEVICE,
	SIM_MEMORY_HOST, /* pinned */
	SIM_MEMORY_MANAGED,
};

struct sim_op {
	struct sim_op *next;
	enum sim_op_kind kind;
	/* For an observer: the call that put it, and the graph and node that it ran in. */
	uint32_t correlation, graph, node;
	uint64_t at_ns; /* put on the stream */
	union {
		struct {
			uint64_t ns;
			const char *name;
		} kernel;
		struct {
			void *to;
			const void *from;
			size_t bytes;
			void *staged; /* owned: a pageable source may change after the call */
			enum sim_memory source : 4, target : 4;
			bool across; /* between host and device */
		} copy;
		struct {
			void *to;
			size_t count;
			uint32_t value;
			unsigned int width;
		} set;
		struct sim_point *point; /* owned reference */
		struct {
			CUhostFn fn;
			void *data;
			enum sim_host_state state;
			uint64_t end_ns;
		} host;
		struct {
			const struct sim_model *model;
			void *state; /* owned */
		} model;
		struct sim_run *run; /* owned */
	};
};

struct sim_stream {
	struct sim_stream *next; /* of all streams */
	struct sim_op *head, **tail;
	uint64_t cursor_ns;
	uint64_t put, done, wanted; /* counts of operations; wanted: some thread waits for it */
	uint64_t id;
	unsigned int flags;
	int priority, device;
	bool gone; /* destroyed: freed when drained */
	CUgraph capture; /* borrowed: the graph that is being captured */
	bool captures_as_origin;
	int last_node; /* in capture; -1: none */
};

struct sim_event {
	unsigned int flags;
	struct sim_point *point; /* NULL: never recorded */
	CUgraph capture; /* recorded in this capture, at `node` */
	int node;
};

void sim_model_lock(void);
void sim_model_unlock(void);
uint64_t sim_model_now(void);
struct timespec sim_model_timespec(uint64_t ns);
void sim_model_sleep_until(uint64_t ns);
/* Unlocks until some stream has moved on. */
void sim_model_await(void);
/* Some stream has. */
void sim_model_moved(void);

struct sim_stream *sim_stream_new(int device, unsigned int flags, int priority);
/* Freed now, or when its queue has drained. */
void sim_stream_drop(struct sim_stream *stream);
/* The stream of a handle: the default streams of the device, or the handle itself. */
struct sim_stream *sim_stream_of(CUstream handle, int device);

/*
 * Takes the operation, and moves the streams on. In a capture it becomes a node of the graph.
 * CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY with nothing taken.
 */
CUresult sim_stream_put(struct sim_stream *stream, const struct sim_op *op);

/* Unlocks while waiting. */
void sim_stream_wait(struct sim_stream *stream);
void sim_device_wait_all(int device);
bool sim_stream_ready(const struct sim_stream *stream);
/* Streams that were captured into the graph no longer are. */
void sim_stream_end_capture(const struct sim_graph *graph);

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream);
CUresult sim_event_await(struct sim_event *event, struct sim_stream *stream);
void sim_event_wait(struct sim_event *event); /* the host */
bool sim_event_ready(const struct sim_event *event);
void sim_event_drop(struct sim_event *event);

CUresult sim_capture_begin(struct sim_stream *stream);
CUresult sim_capture_end(struct sim_stream *stream, CUgraph *ret);
size_t sim_graph_nodes(const struct sim_graph *graph);
CUresult sim_graph_instantiate(const struct sim_graph *graph, CUgraphExec *ret);
CUresult sim_graph_launch(const struct sim_graph_exec *exec, struct sim_stream *stream);
void sim_graph_free(struct sim_graph *graph);
void sim_graph_exec_free(struct sim_graph_exec *exec);

/* Moves all streams as far as they go. */
void sim_model_progress(void);

/* Allocations. */
void *sim_memory_alloc(size_t bytes, enum sim_memory kind, int device);
bool sim_memory_register(void *pointer, size_t bytes, int device);
/* Releases what was allocated, or forgets what was registered. */
bool sim_memory_free(void *pointer);
enum sim_memory sim_memory_find(const void *pointer, int *ret_device, void **ret_start,
				size_t *ret_bytes);
/* Bytes of the device's own memory in use: allocations and physical memory. */
size_t sim_memory_used(int device);
void sim_memory_use(int device, int64_t bytes);
/* A mapping of physical memory at an address that is reserved already; it uses none. */
bool sim_memory_map(void *pointer, size_t bytes, int device);

#endif
