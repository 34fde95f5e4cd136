/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/graph.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory is handled here; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/gpu/gemm_sums.h"
#include "common/base/hash.h"

enum {
	FIRST_CALLS = 4,
	SUM_BYTES = NT_GEMM_SUMS * sizeof(struct nt_gemm_sum),
};

struct call_list {
	struct nt_graph_call *call; /* owned */
	uint32_t count, cap;
	uint32_t made; /* by one launch: the sum of `times` */
};

struct held_graph {
	uint64_t handle;
	struct call_list list;
	struct nt_gemm_sum *sum; /* owned, NT_GEMM_SUMS; NULL: it multiplies nothing */
	bool is_read; /* `sum` is of all its captures so far */
	bool is_unread; /* it is not, for good */
	bool is_lost; /* out of memory for its table entry */
	UT_hash_handle hh;
};

struct capture {
	uint64_t id; /* 0: free */
	uint64_t into;
	struct call_list list;
	bool nests; /* a graph, which multiplies for itself */
};

struct captured_stream {
	uint64_t handle;
	uint64_t capture; /* id */
	bool origin; /* on which it began, and ends */
};

struct captured_event {
	uint64_t handle;
	uint64_t capture; /* id; 0, or one that has ended: of none */
};

struct nt_graph {
	struct nt_graph_stats *stats;
	struct held_graph *held; /* uthash, owned */
	uint32_t kept; /* calls in all lists */
	uint32_t multiplying; /* graphs with sums */
	uint64_t captures; /* so far */
	struct capture capture[NT_GRAPH_STREAMS];
	struct captured_stream stream[NT_GRAPH_STREAMS]; /* oldest first */
	uint32_t streams;
	struct captured_event event[NT_GRAPH_EVENTS]; /* one slot per hash: the newer takes it */
};

int nt_graph_new(struct nt_graph_stats *stats, struct nt_graph **ret_graph)
{
	struct nt_graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return -ENOMEM;
	graph->stats = stats;
	*ret_graph = graph;
	return 0;
}

size_t nt_graph_bytes(const struct nt_graph *graph)
{
	return sizeof(*graph) + HASH_COUNT(graph->held) * sizeof(struct held_graph) +
	       graph->kept * sizeof(struct nt_graph_call) + graph->multiplying * SUM_BYTES;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void clear(struct nt_graph *graph, struct call_list *list)
{
	graph->kept -= list->count;
	free(list->call);
	*list = (struct call_list){0};
}

static bool is_same(const struct nt_graph_call *a, const struct nt_graph_call *b)
{
	return a->ordinal == b->ordinal && a->comm == b->comm && a->op == b->op &&
	       a->library == b->library && a->count == b->count && a->bytes == b->bytes &&
	       a->type == b->type;
}

static bool make_room(struct nt_graph *graph, struct call_list *list)
{
	uint32_t cap = list->cap ? 2 * list->cap : FIRST_CALLS;
	struct nt_graph_call *grown;

	if (graph->kept == NT_GRAPH_KEPT) {
		graph->stats->calls_over_cap++;
		return false;
	}
	if (list->count < list->cap)
		return true;
	grown = reallocarray(list->call, cap, sizeof(*grown));
	if (!grown) {
		graph->stats->no_memory++;
		return false;
	}
	list->call = grown;
	list->cap = cap;
	return true;
}

static void append(struct nt_graph *graph, struct call_list *list, const struct nt_graph_call *call)
{
	uint32_t times = call->times, room = NT_GRAPH_CALLS - list->made;

	if (times > room) {
		graph->stats->calls_over_cap += times - room;
		times = room;
	}
	if (!times)
		return;
	if (list->count && is_same(&list->call[list->count - 1], call)) {
		list->call[list->count - 1].times += times;
		list->made += times;
		return;
	}
	if (!make_room(graph, list))
		return;
	list->call[list->count] = *call;
	list->call[list->count++].times = times;
	list->made += times;
	graph->kept++;
}

static void append_all(struct nt_graph *graph, struct call_list *list,
		       const struct call_list *other)
{
	/* By index: a list may be appended to itself, and move as it grows. */
	for (uint32_t i = 0, count = other->count; i < count; i++) {
		struct nt_graph_call call = other->call[i];

		append(graph, list, &call);
	}
}

/* ---- handles -------------------------------------------------------------------------------- */

static struct held_graph *find(const struct nt_graph *graph, uint64_t handle)
{
	struct held_graph *held = NULL;

	HASH_FIND(hh, graph->held, &handle, sizeof(handle), held);
	return held;
}

/* NULL at the cap. */
static struct held_graph *take(struct nt_graph *graph, uint64_t handle)
{
	struct held_graph *held = find(graph, handle);

	if (held)
		return held;
	if (HASH_COUNT(graph->held) >= NT_GRAPH_HANDLES) {
		graph->stats->handles_over_cap++;
		return NULL;
	}
	held = calloc(1, sizeof(*held));
	if (held) {
		held->handle = handle;
		HASH_ADD(hh, graph->held, handle, sizeof(held->handle), held);
		if (!held->is_lost)
			return held;
	}
	graph->stats->no_memory++;
	free(held);
	return NULL;
}

/* ---- multiplications ------------------------------------------------------------------------ */

static void clear_sum(struct nt_graph *graph, struct held_graph *held)
{
	graph->multiplying -= held->sum != NULL;
	free(held->sum);
	held->sum = NULL;
}

static bool add_sums(struct nt_graph *graph, struct held_graph *held, const struct nt_gemm_sum *sum)
{
	if (nt_gemm_sums_are_empty(sum))
		return true;
	if (!held->sum) {
		held->sum = calloc(1, SUM_BYTES);
		if (!held->sum) {
			graph->stats->no_memory++;
			return false;
		}
		graph->multiplying++;
	}
	return nt_gemm_sums_add(held->sum, sum);
}

void nt_graph_multiply(struct nt_graph *graph, uint64_t handle, const struct nt_gemm_sum *sum)
{
	struct held_graph *held = find(graph, handle);

	if (!held)
		return;
	held->is_read = true;
	if (!sum || !add_sums(graph, held, sum))
		held->is_unread = true;
}

bool nt_graph_multiplies(const struct nt_graph *graph, uint64_t handle,
			 struct nt_gemm_sum ret_sum[NT_GEMM_SUMS])
{
	const struct held_graph *held = find(graph, handle);

	if (!held || !held->is_read || held->is_unread)
		return false;
	if (held->sum)
		memcpy(ret_sum, held->sum, SUM_BYTES);
	else
		memset(ret_sum, 0, SUM_BYTES);
	return true;
}

/* ---- graphs --------------------------------------------------------------------------------- */

void nt_graph_drop(struct nt_graph *graph, uint64_t handle)
{
	struct held_graph *held = find(graph, handle);

	if (!held)
		return;
	assert(graph->held); /* which holds the result */
	HASH_DEL(graph->held, held);
	clear(graph, &held->list);
	clear_sum(graph, held);
	free(held);
}

void nt_graph_copy(struct nt_graph *graph, uint64_t to, uint64_t from)
{
	if (to == from)
		return;
	nt_graph_drop(graph, to);
	if (find(graph, from))
		nt_graph_add(graph, to, from);
}

void nt_graph_add(struct nt_graph *graph, uint64_t to, uint64_t from)
{
	const struct held_graph *source = find(graph, from);
	struct held_graph *target;

	if (!source) {
		nt_graph_drop(graph, to);
		return;
	}
	target = take(graph, to);
	if (!target)
		return;
	append_all(graph, &target->list, &source->list);
	target->is_unread |= !source->is_read || source->is_unread;
	target->is_read = true;
	if (source->sum && !add_sums(graph, target, source->sum))
		target->is_unread = true;
}

bool nt_graph_find(const struct nt_graph *graph, uint64_t handle,
		   const struct nt_graph_call **ret_call, size_t *ret_calls)
{
	const struct held_graph *held = find(graph, handle);

	if (!held)
		return false;
	*ret_call = held->list.call;
	*ret_calls = held->list.count;
	return true;
}

/* ---- captures ------------------------------------------------------------------------------- */

static struct captured_stream *find_stream(struct nt_graph *graph, uint64_t handle)
{
	for (uint32_t i = 0; i < graph->streams; i++) {
		if (graph->stream[i].handle == handle)
			return &graph->stream[i];
	}
	return NULL;
}

static struct capture *find_capture(struct nt_graph *graph, uint64_t id)
{
	for (int i = 0; id && i < NT_GRAPH_STREAMS; i++) {
		if (graph->capture[i].id == id)
			return &graph->capture[i];
	}
	return NULL;
}

static void free_capture(struct nt_graph *graph, uint64_t id)
{
	struct capture *capture = find_capture(graph, id);
	uint32_t left = 0;

	for (uint32_t i = 0; i < graph->streams; i++) {
		if (graph->stream[i].capture != id)
			graph->stream[left++] = graph->stream[i];
	}
	graph->streams = left;
	if (!capture)
		return;
	clear(graph, &capture->list);
	*capture = (struct capture){0};
}

void nt_graph_lose(struct nt_graph *graph)
{
	while (graph->streams)
		free_capture(graph, graph->stream[0].capture);
}

void nt_graph_free(struct nt_graph *graph)
{
	struct held_graph *held, *next;

	if (!graph)
		return;
	nt_graph_lose(graph);
	HASH_ITER(hh, graph->held, held, next)
	{
		HASH_DEL(graph->held, held);
		free(held->list.call);
		free(held->sum);
		free(held);
	}
	free(graph);
}

/* A full table holds captures whose end was missed: replaces the oldest. */
static void add_stream(struct nt_graph *graph, uint64_t handle, uint64_t capture, bool origin)
{
	if (graph->streams == NT_GRAPH_STREAMS) {
		graph->stats->streams_over_cap++;
		if (graph->stream[0].capture == capture)
			return;
		free_capture(graph, graph->stream[0].capture);
	}
	graph->stream[graph->streams++] =
		(struct captured_stream){.handle = handle, .capture = capture, .origin = origin};
}

void nt_graph_begin(struct nt_graph *graph, uint64_t stream, uint64_t into)
{
	const struct captured_stream *old = find_stream(graph, stream);
	uint64_t id = ++graph->captures;

	if (old)
		free_capture(graph, old->capture);
	/* Each capture has a stream: a free stream slot implies a free capture slot. */
	add_stream(graph, stream, id, true);
	for (int i = 0; i < NT_GRAPH_STREAMS; i++) {
		if (graph->capture[i].id)
			continue;
		graph->capture[i] = (struct capture){.id = id, .into = into};
		return;
	}
}

void nt_graph_end(struct nt_graph *graph, uint64_t stream, uint64_t handle)
{
	const struct captured_stream *ended = find_stream(graph, stream);
	struct capture *capture = ended ? find_capture(graph, ended->capture) : NULL;
	struct held_graph *held;

	/* A capture that began before the agent attached: unknown contents. */
	if (!capture || !ended->origin) {
		nt_graph_drop(graph, handle);
		return;
	}
	if (handle && handle != capture->into)
		nt_graph_drop(graph, handle);
	held = handle ? take(graph, handle) : NULL;
	if (held && !held->list.count) {
		held->list = capture->list;
		capture->list = (struct call_list){0};
	} else if (held) {
		append_all(graph, &held->list, &capture->list);
	}
	if (held)
		held->is_unread |= capture->nests;
	free_capture(graph, capture->id);
}

bool nt_graph_captures(const struct nt_graph *graph, uint64_t stream)
{
	for (uint32_t i = 0; i < graph->streams; i++) {
		if (graph->stream[i].handle == stream)
			return true;
	}
	return false;
}

static struct captured_event *event_place(struct nt_graph *graph, uint64_t handle)
{
	return &graph->event[nt_hash_mix(handle) % NT_GRAPH_EVENTS];
}

bool nt_graph_record(struct nt_graph *graph, uint64_t event, uint64_t stream)
{
	const struct captured_stream *from = find_stream(graph, stream);
	struct captured_event *place = event_place(graph, event);

	if (!from) {
		if (place->handle == event)
			place->capture = 0;
		return false;
	}
	if (place->handle != event && find_capture(graph, place->capture))
		graph->stats->events_over_cap++;
	*place = (struct captured_event){.handle = event, .capture = from->capture};
	return true;
}

bool nt_graph_wait(struct nt_graph *graph, uint64_t stream, uint64_t event)
{
	const struct captured_event *place = event_place(graph, event);

	if (nt_graph_captures(graph, stream))
		return true;
	if (place->handle != event || !find_capture(graph, place->capture))
		return false;
	add_stream(graph, stream, place->capture, false);
	return true;
}

void nt_graph_call(struct nt_graph *graph, uint64_t stream, const struct nt_graph_call *call)
{
	const struct captured_stream *to = find_stream(graph, stream);
	struct capture *capture = to ? find_capture(graph, to->capture) : NULL;

	if (capture)
		append(graph, &capture->list, call);
}

void nt_graph_nest(struct nt_graph *graph, uint64_t stream, uint64_t handle)
{
	const struct captured_stream *to = find_stream(graph, stream);
	struct capture *capture = to ? find_capture(graph, to->capture) : NULL;
	const struct held_graph *held = find(graph, handle);

	if (capture)
		capture->nests = true;
	if (capture && held)
		append_all(graph, &capture->list, &held->list);
}
