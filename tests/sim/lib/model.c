/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Streams, events, graphs, and the thread that moves them on when another process has done its
 * part of a collective, or the time of a host function has come.
 */
#include "tests/sim/lib/model.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	LAUNCH_NS = 2000, /* of a kernel that does nothing, and of a copy */
	ACROSS_BYTES_PER_US = 20000, /* host to device and back: 20 GB/s */
	INSIDE_BYTES_PER_US = 1000000,
};

struct node {
	struct sim_op op;
	int after[2]; /* nodes; -1: none */
};

struct sim_graph {
	struct node *node;
	size_t nodes, room;
	bool broken; /* a node was lost for lack of memory */
};

struct sim_graph_exec {
	struct sim_graph graph;
};

/* One launch of a graph. */
struct sim_run {
	struct sim_graph graph; /* copies of the nodes, with states of their own */
	uint64_t *end_ns; /* by node; 0: not known yet */
	size_t left;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct sim_stream *streams;
static struct sim_stream *default_stream[SIM_DEVICES][2]; /* legacy, per-thread */
static uint64_t stream_ids;
static unsigned int waiters;

static uint32_t *watched[SIM_WATCHED];
static size_t watched_count;
static uint32_t bell; /* wakes the thread; changed under the lock */
static bool thread_runs;
static __thread bool is_device_thread;
static uint64_t next_host_ns; /* 0: no host function waits for its time */
static struct sim_op *ready_host; /* the one to be run now */

void sim_model_lock(void)
{
	(void)pthread_mutex_lock(&mutex);
}

void sim_model_unlock(void)
{
	(void)pthread_mutex_unlock(&mutex);
}

uint64_t sim_model_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000U),
				 .tv_nsec = (long)(ns % 1000000000U)};
}

void sim_model_sleep_until(uint64_t ns)
{
	struct timespec until = to_timespec(ns);

	if (ns <= sim_model_now())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* The thread itself needs no bell: it would never come to rest. */
static void ring(void)
{
	if (is_device_thread)
		return;
	(void)__atomic_add_fetch(&bell, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- points ---- */

static struct sim_point *point_new(void)
{
	struct sim_point *point = calloc(1, sizeof(*point));

	if (point)
		point->refs = 1;
	return point;
}

static void point_drop(struct sim_point *point)
{
	if (point && --point->refs == 0)
		free(point);
}

/* ---- operations ---- */

static void graph_clear(struct sim_graph *graph);

static void run_free(struct sim_run *run)
{
	if (!run)
		return;
	graph_clear(&run->graph);
	free(run->end_ns);
	free(run);
}

static void op_clear(struct sim_op *op)
{
	switch (op->kind) {
	case SIM_OP_COPY:
		free(op->copy.staged);
		break;
	case SIM_OP_RECORD:
	case SIM_OP_WAIT:
		point_drop(op->point);
		break;
	case SIM_OP_MODEL:
		op->model.model->release(op->model.state);
		break;
	case SIM_OP_GRAPH:
		run_free(op->run);
		break;
	default:
		break;
	}
	op->kind = SIM_OP_NOTHING;
}

static void graph_clear(struct sim_graph *graph)
{
	for (size_t i = 0; i < graph->nodes; i++)
		op_clear(&graph->node[i].op);
	free(graph->node);
	*graph = (struct sim_graph){0};
}

static uint64_t set_memory(const struct sim_op *op)
{
	if (op->set.width == 1) {
		memset(op->set.to, (int)op->set.value, op->set.count);
	} else {
		for (size_t i = 0; i < op->set.count; i++)
			memcpy((char *)op->set.to + i * op->set.width, &op->set.value,
			       op->set.width);
	}
	return LAUNCH_NS + op->set.count * op->set.width * 1000 / INSIDE_BYTES_PER_US;
}

/* The device's thread calls the function at its time; until then the stream stands. */
static bool host_moves(struct sim_op *op, uint64_t start_ns, uint64_t *ret_end_ns)
{
	if (op->host.state == SIM_HOST_DONE) {
		*ret_end_ns = op->host.end_ns;
		return true;
	}
	if (op->host.state == SIM_HOST_RUNNING)
		return false;
	if (start_ns <= sim_model_now()) {
		if (!ready_host) {
			ready_host = op;
			ring();
		}
	} else if (next_host_ns == 0 || start_ns < next_host_ns) {
		next_host_ns = start_ns;
		ring();
	}
	return false;
}

static bool run_moves(struct sim_run *run, uint64_t start_ns, uint64_t *ret_end_ns);

/* True when the end of an operation that starts at start_ns is known; its effects are done then. */
static bool op_moves(struct sim_op *op, uint64_t start_ns, uint64_t *ret_end_ns)
{
	switch (op->kind) {
	case SIM_OP_KERNEL:
		*ret_end_ns = start_ns + op->kernel_ns;
		return true;
	case SIM_OP_COPY:
		memmove(op->copy.to, op->copy.staged ? op->copy.staged : op->copy.from,
			op->copy.bytes);
		*ret_end_ns = start_ns + LAUNCH_NS +
			      op->copy.bytes * 1000 /
				      (op->copy.across ? ACROSS_BYTES_PER_US : INSIDE_BYTES_PER_US);
		return true;
	case SIM_OP_SET:
		*ret_end_ns = start_ns + set_memory(op);
		return true;
	case SIM_OP_RECORD:
		op->point->known = true;
		op->point->time_ns = start_ns;
		*ret_end_ns = start_ns;
		return true;
	case SIM_OP_WAIT:
		*ret_end_ns = later(start_ns, op->point->time_ns);
		return op->point->known;
	case SIM_OP_HOST:
		return host_moves(op, start_ns, ret_end_ns);
	case SIM_OP_MODEL:
		return op->model.model->progress(op->model.state, start_ns, ret_end_ns);
	case SIM_OP_GRAPH:
		return run_moves(op->run, start_ns, ret_end_ns);
	default:
		*ret_end_ns = start_ns;
		return true;
	}
}

static bool run_moves(struct sim_run *run, uint64_t start_ns, uint64_t *ret_end_ns)
{
	uint64_t end_ns = start_ns;

	for (size_t i = 0; i < run->graph.nodes; i++) {
		struct node *node = &run->graph.node[i];
		uint64_t node_start_ns = start_ns, node_end_ns = 0;
		bool waits = false;

		for (int k = 0; k < 2; k++) {
			if (node->after[k] < 0)
				continue;
			waits |= run->end_ns[node->after[k]] == 0;
			node_start_ns = later(node_start_ns, run->end_ns[node->after[k]]);
		}
		if (run->end_ns[i] == 0 && !waits &&
		    op_moves(&node->op, node_start_ns, &node_end_ns)) {
			run->end_ns[i] = node_end_ns;
			run->left--;
		}
		end_ns = later(end_ns, run->end_ns[i]);
	}
	*ret_end_ns = end_ns;
	return run->left == 0;
}

/* ---- streams ---- */

struct sim_stream *sim_stream_new(int device, unsigned int flags, int priority)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->tail = &stream->head;
	stream->flags = flags;
	stream->priority = priority;
	stream->device = device;
	stream->last_node = -1;
	stream->id = ++stream_ids;
	stream->next = streams;
	streams = stream;
	return stream;
}

static void stream_free(struct sim_stream *stream)
{
	struct sim_stream **at = &streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	free(stream);
}

void sim_stream_drop(struct sim_stream *stream)
{
	stream->gone = true;
	if (!stream->head && !stream->wanted)
		stream_free(stream);
}

struct sim_stream *sim_stream_of(CUstream handle, int device)
{
	int which = handle == CU_STREAM_PER_THREAD;

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
		return handle;
	if (!default_stream[device][which])
		default_stream[device][which] = sim_stream_new(device, 0, 0);
	return default_stream[device][which];
}

static bool stream_moves(struct sim_stream *stream)
{
	bool any = false;

	while (stream->head) {
		struct sim_op *op = stream->head;
		uint64_t end_ns = 0;

		if (!op_moves(op, later(stream->cursor_ns, op->at_ns), &end_ns))
			break;
		stream->cursor_ns = end_ns;
		stream->done++;
		stream->head = op->next;
		if (!stream->head)
			stream->tail = &stream->head;
		op_clear(op);
		free(op);
		any = true;
	}
	return any;
}

void sim_model_progress(void)
{
	bool any = true, ever = false;

	while (any) {
		struct sim_stream *next;

		any = false;
		for (struct sim_stream *stream = streams; stream; stream = next) {
			next = stream->next;
			if (stream->head && stream_moves(stream))
				any = true;
			if (stream->gone && !stream->head && !stream->wanted)
				stream_free(stream);
		}
		ever |= any;
	}
	if (ever && waiters)
		(void)pthread_cond_broadcast(&moved);
}

/* ---- the thread ---- */

static size_t snapshot(struct futex_waitv *wait)
{
	wait[0] = (struct futex_waitv){.uaddr = (uintptr_t)&bell,
				       .val = __atomic_load_n(&bell, __ATOMIC_SEQ_CST),
				       .flags = FUTEX_32};
	for (size_t i = 0; i < watched_count; i++)
		wait[i + 1] =
			(struct futex_waitv){.uaddr = (uintptr_t)watched[i],
					     .val = __atomic_load_n(watched[i], __ATOMIC_SEQ_CST),
					     .flags = FUTEX_32};
	return watched_count + 1;
}

/* Runs the host functions whose time has come. True when any ran. */
static bool run_host(void)
{
	struct sim_op *op = ready_host;

	if (!op)
		return false;
	ready_host = NULL;
	op->host.state = SIM_HOST_RUNNING;
	sim_model_unlock();
	op->host.fn(op->host.data);
	sim_model_lock();
	op->host.state = SIM_HOST_DONE;
	op->host.end_ns = sim_model_now();
	return true;
}

static void *serve(void *unused)
{
	struct futex_waitv wait[SIM_WATCHED + 1];

	(void)unused;
	is_device_thread = true;
	sim_model_lock();
	for (;;) {
		size_t n = snapshot(wait);
		struct timespec until;
		bool timed;

		next_host_ns = 0;
		sim_model_progress();
		if (run_host())
			continue;
		timed = next_host_ns != 0;
		until = to_timespec(next_host_ns);
		sim_model_unlock();
		if (syscall(SYS_futex_waitv, wait, n, 0, timed ? &until : NULL, CLOCK_MONOTONIC) <
			    0 &&
		    errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR)
			/* An old kernel, or a word that was just unmapped. */
			sim_model_sleep_until(sim_model_now() + 200000);
		sim_model_lock();
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (thread_runs)
		return;
	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, serve, NULL) == 0) {
		(void)pthread_setname_np(thread, "sim-device");
		thread_runs = true;
	}
	(void)pthread_attr_destroy(&attributes);
}

/* ---- putting ---- */

static CUresult capture(struct sim_graph *graph, int first, int second, const struct sim_op *op,
			int *ret_node)
{
	if (graph->nodes == graph->room) {
		size_t more = graph->room ? 2 * graph->room : 64;
		struct node *grown = reallocarray(graph->node, more, sizeof(*grown));

		if (!grown) {
			graph->broken = true;
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		graph->node = grown;
		graph->room = more;
	}
	graph->node[graph->nodes] = (struct node){.op = *op, .after = {first, second}};
	*ret_node = (int)graph->nodes++;
	return CUDA_SUCCESS;
}

static CUresult put(struct sim_stream *stream, const struct sim_op *op)
{
	struct sim_op *copy;

	/* The most common case costs no memory: the end is known at once. */
	if (op->kind == SIM_OP_KERNEL && !stream->head) {
		stream->cursor_ns = later(stream->cursor_ns, op->at_ns) + op->kernel_ns;
		stream->put++;
		stream->done++;
		return CUDA_SUCCESS;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = *op;
	copy->next = NULL;
	*stream->tail = copy;
	stream->tail = &copy->next;
	stream->put++;
	return CUDA_SUCCESS;
}

/* What comes next on `waiting` starts when all that is now on `first` has ended. */
static CUresult order(struct sim_stream *first, struct sim_stream *waiting)
{
	struct sim_op op = {.at_ns = sim_model_now()};
	CUresult r;

	if (first->head == NULL && waiting->head == NULL) {
		waiting->cursor_ns = later(waiting->cursor_ns, first->cursor_ns);
		return CUDA_SUCCESS;
	}
	op.point = point_new();
	if (!op.point)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.kind = SIM_OP_RECORD;
	r = put(first, &op);
	if (r == CUDA_SUCCESS) {
		op.point->refs++;
		op.kind = SIM_OP_WAIT;
		r = put(waiting, &op);
	}
	if (r != CUDA_SUCCESS)
		point_drop(op.point);
	return r;
}

/* The legacy default stream and the blocking streams of its device wait for each other. */
static CUresult order_by_default_stream(struct sim_stream *stream)
{
	struct sim_stream *legacy = default_stream[stream->device][0];
	CUresult r = CUDA_SUCCESS;

	if (!legacy || stream->flags & CU_STREAM_NON_BLOCKING)
		return CUDA_SUCCESS;
	if (stream != legacy)
		return order(legacy, stream);
	for (struct sim_stream *other = streams; other && r == CUDA_SUCCESS; other = other->next)
		if (other != legacy && other->device == stream->device &&
		    !(other->flags & CU_STREAM_NON_BLOCKING) && !other->capture)
			r = order(other, stream);
	return r;
}

CUresult sim_stream_put(struct sim_stream *stream, const struct sim_op *op)
{
	struct sim_op timed = *op;
	CUresult r;

	if (stream->capture)
		return capture(stream->capture, stream->last_node, -1, op, &stream->last_node);

	timed.at_ns = sim_model_now();
	r = order_by_default_stream(stream);
	if (r == CUDA_SUCCESS)
		r = put(stream, &timed);
	if (r != CUDA_SUCCESS)
		return r;
	if (op->kind == SIM_OP_MODEL)
		op->model.model->launched(op->model.state);
	if (op->kind == SIM_OP_HOST || op->kind == SIM_OP_GRAPH)
		start_thread();
	if (stream->head)
		sim_model_progress();
	return CUDA_SUCCESS;
}

void sim_stream_wait(struct sim_stream *stream)
{
	uint64_t end_ns, target = stream->put;

	waiters++;
	stream->wanted++;
	while (stream->done < target)
		(void)pthread_cond_wait(&moved, &mutex);
	stream->wanted--;
	waiters--;
	end_ns = stream->cursor_ns;
	sim_model_unlock();
	sim_model_sleep_until(end_ns);
	sim_model_lock();
}

static struct sim_stream *find_busy(int device)
{
	struct sim_stream *stream = streams;

	while (stream && (stream->device != device || !stream->head))
		stream = stream->next;
	return stream;
}

void sim_device_wait_all(int device)
{
	uint64_t end_ns = 0;

	waiters++;
	while (find_busy(device))
		(void)pthread_cond_wait(&moved, &mutex);
	waiters--;
	for (struct sim_stream *stream = streams; stream; stream = stream->next)
		if (stream->device == device)
			end_ns = later(end_ns, stream->cursor_ns);
	sim_model_unlock();
	sim_model_sleep_until(end_ns);
	sim_model_lock();
}

bool sim_stream_ready(const struct sim_stream *stream)
{
	return !stream->head && stream->cursor_ns <= sim_model_now();
}

/* ---- events ---- */

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_RECORD};
	CUresult r;

	if (stream->capture) {
		event->capture = stream->capture;
		event->node = stream->last_node;
		return CUDA_SUCCESS;
	}
	op.point = point_new();
	if (!op.point)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op.point->refs++; /* the event's own; the queue may already be done with its */
	r = sim_stream_put(stream, &op);
	point_drop(r == CUDA_SUCCESS ? event->point : op.point);
	if (r != CUDA_SUCCESS) {
		point_drop(op.point);
		return r;
	}
	event->point = op.point;
	event->capture = NULL;
	return CUDA_SUCCESS;
}

CUresult sim_event_await(struct sim_event *event, struct sim_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_WAIT, .point = event->point};
	CUresult r;

	if (event->capture) {
		struct sim_op nothing = {.kind = SIM_OP_NOTHING};

		if (stream->capture && stream->capture != event->capture)
			return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		stream->capture = event->capture;
		return capture(stream->capture, stream->last_node, event->node, &nothing,
			       &stream->last_node);
	}
	if (!event->point || stream->capture)
		return CUDA_SUCCESS;
	op.point->refs++;
	r = sim_stream_put(stream, &op);
	if (r != CUDA_SUCCESS)
		point_drop(op.point);
	return r;
}

void sim_event_wait(struct sim_event *event)
{
	struct sim_point *point = event->point;
	uint64_t end_ns;

	if (!point)
		return;
	point->refs++;
	waiters++;
	while (!point->known)
		(void)pthread_cond_wait(&moved, &mutex);
	waiters--;
	end_ns = point->time_ns;
	point_drop(point);
	sim_model_unlock();
	sim_model_sleep_until(end_ns);
	sim_model_lock();
}

bool sim_event_ready(const struct sim_event *event)
{
	return !event->point || (event->point->known && event->point->time_ns <= sim_model_now());
}

void sim_event_drop(struct sim_event *event)
{
	if (!event)
		return;
	point_drop(event->point);
	free(event);
}

/* ---- graphs ---- */

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
	for (struct sim_stream *other = streams; other; other = other->next) {
		if (other->capture != graph)
			continue;
		other->capture = NULL;
		other->captures_as_origin = false;
		other->last_node = -1;
	}
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
		struct node node = from->node[i];

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
	*ret = exec;
	return CUDA_SUCCESS;
}

CUresult sim_graph_launch(const struct sim_graph_exec *exec, struct sim_stream *stream)
{
	struct sim_op op = {.kind = SIM_OP_GRAPH};
	CUresult r;

	op.run = calloc(1, sizeof(*op.run));
	if (op.run)
		op.run->end_ns = calloc(exec->graph.nodes + 1, sizeof(*op.run->end_ns));
	if (!op.run || !op.run->end_ns || !graph_copy(&exec->graph, &op.run->graph)) {
		run_free(op.run);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	op.run->left = op.run->graph.nodes;
	for (size_t i = 0; i < op.run->graph.nodes; i++) {
		struct sim_op *node = &op.run->graph.node[i].op;

		if (node->kind == SIM_OP_MODEL)
			node->model.model->launched(node->model.state);
	}
	r = stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim_stream_put(stream, &op);
	if (r != CUDA_SUCCESS)
		run_free(op.run);
	return r;
}

void sim_graph_free(struct sim_graph *graph)
{
	if (!graph)
		return;
	graph_clear(graph);
	free(graph);
}

void sim_graph_exec_free(struct sim_graph_exec *exec)
{
	if (!exec)
		return;
	graph_clear(&exec->graph);
	free(exec);
}

int cuSimWatch(uint32_t *word)
{
	if (watched_count == SIM_WATCHED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	watched[watched_count++] = word;
	start_thread();
	ring();
	return CUDA_SUCCESS;
}

void cuSimUnwatch(uint32_t *word)
{
	for (size_t i = 0; i < watched_count; i++) {
		if (watched[i] != word)
			continue;
		watched[i] = watched[--watched_count];
		ring();
		return;
	}
}
