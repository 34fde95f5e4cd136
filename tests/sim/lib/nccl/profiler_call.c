/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/profiler_call.h"

#include <stdlib.h>

#include "tests/sim/lib/nccl/version.h"

enum {
	HAS_API_EVENTS = 28, /* from 2.28 on */
	CE_EVENTS = SIM_PROFILE_CE_COLL | SIM_PROFILE_CE_SYNC | SIM_PROFILE_CE_BATCH,
	BELOW_TASK = SIM_PROFILE_PROXY_OP | SIM_PROFILE_PROXY_STEP | SIM_PROFILE_KERNEL_CH |
		     SIM_PROFILE_NET_PLUGIN,
	/* A parent has an event where any of its children may have one. */
	P2P_API_EVENTS = SIM_PROFILE_P2P_API | SIM_PROFILE_P2P | BELOW_TASK,
	COLL_API_EVENTS = SIM_PROFILE_COLL_API | SIM_PROFILE_COLL | BELOW_TASK | CE_EVENTS,
	GROUP_API_EVENTS = SIM_PROFILE_GROUP_API | SIM_PROFILE_KERNEL_LAUNCH | SIM_PROFILE_GROUP |
			   P2P_API_EVENTS | COLL_API_EVENTS,
};

enum group_state {
	GROUP_NONE,
	GROUP_STARTED,
	GROUP_STOPPED, /* its GroupStart */
};

/* ncclProfilerApiState */
static __thread struct {
	int depth; /* of groups; 0: no event was started */
	int mask; /* of the last call */
	enum group_state state;
	void *group, *p2p, *coll; /* events; that of a collective is never cleared */
} api;

static void record_group(enum sim_profile_state state)
{
	if (state == SIM_STATE_GROUP_START_API_STOP && api.state == GROUP_STARTED)
		api.state = GROUP_STOPPED;
	else if (state == SIM_STATE_GROUP_END_API_START && api.state == GROUP_STOPPED)
		api.state = GROUP_NONE;
	else
		return;
	sim_profiler_record(api.group, state, NULL);
}

void sim_profiler_enter(void)
{
	if (api.depth > 0)
		api.depth++;
}

void sim_profiler_leave(void)
{
	if (api.depth > 0)
		api.depth--;
	if (api.depth == 0)
		record_group(SIM_STATE_GROUP_END_API_START);
}

void sim_profiler_left(void)
{
	if (!api.group || api.depth > 0)
		return;
	sim_profiler_stop(api.group);
	api.group = NULL;
}

/* ---- one call ---- */

static void start_group(struct sim_profiled *comm, bool is_captured, int depth)
{
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_GROUP_API};

	/* Of the events of the program's calls, that of the group has it, from 2.32 on. */
	if (sim_nccl_minor() >= 32)
		descr.rank = comm->info.rank;
	api.mask = sim_profiler_mask();
	if (sim_nccl_minor() < HAS_API_EVENTS)
		return;
	if (api.mask & GROUP_API_EVENTS && api.depth == 0 && sim_profiler_is_loaded()) {
		descr.group_api.graph_captured = is_captured;
		descr.group_api.depth = depth;
		sim_profiler_start(comm->context, &api.group, &descr, &comm->info);
		api.depth = depth;
		api.state = GROUP_STARTED;
	}
	record_group(SIM_STATE_GROUP_START_API_STOP);
}

static void add_task(const struct sim_call *call, enum sim_call_kind kind, unsigned int peer,
		     void *event, struct sim_tasks *tasks)
{
	tasks->task[tasks->count++] = (struct sim_task){.kind = kind,
							.mask = api.mask,
							.type = call->type,
							.group_api = api.group,
							.api = event,
							.send = call->send,
							.recv = call->recv,
							.count = call->count,
							.peer = peer};
}

static void call_p2p(struct sim_profiled *comm, const struct sim_call *call, void *stream,
		     bool is_captured, int depth, enum sim_call_kind kind, unsigned int peer,
		     struct sim_tasks *tasks)
{
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_P2P_API};

	start_group(comm, is_captured, depth);
	descr.parent = api.group;
	descr.p2p_api.func = sim_function_name(kind);
	descr.p2p_api.count = call->count;
	descr.p2p_api.datatype = sim_type_name(call->type);
	descr.p2p_api.stream = stream;
	descr.p2p_api.graph_captured = is_captured;
	if (api.mask & P2P_API_EVENTS && sim_nccl_minor() >= HAS_API_EVENTS)
		sim_profiler_start(comm->context, &api.p2p, &descr, &comm->info);
	add_task(call, kind, peer, api.p2p, tasks);
	sim_profiler_stop(api.p2p);
	api.p2p = NULL;
}

static void call_coll(struct sim_profiled *comm, const struct sim_call *call, void *stream,
		      bool is_captured, int depth, struct sim_tasks *tasks)
{
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_COLL_API};

	start_group(comm, is_captured, depth);
	descr.parent = api.group;
	descr.coll_api.func = sim_function_name(call->kind);
	descr.coll_api.count = call->count;
	descr.coll_api.datatype = sim_type_name(call->type);
	descr.coll_api.root = (int)call->peer;
	descr.coll_api.stream = stream;
	descr.coll_api.graph_captured = is_captured;
	if (api.mask & COLL_API_EVENTS && sim_nccl_minor() >= HAS_API_EVENTS)
		sim_profiler_start(comm->context, &api.coll, &descr, &comm->info);
	add_task(call, call->kind, call->peer, api.coll, tasks);
	/* The handle stays: with a mask of 0 the next call stops it once more. */
	sim_profiler_stop(api.coll);
}

void sim_profiler_call(struct sim_profiled *comm, const struct sim_call *call, void *stream,
		       bool is_captured, int depth, struct sim_tasks *ret)
{
	unsigned int ranks = (unsigned int)comm->info.ranks, rank = (unsigned int)comm->info.rank;
	bool has_root = call->kind == SIM_CALL_GATHER || call->kind == SIM_CALL_SCATTER;

	if (call->kind == SIM_CALL_PUT)
		return;
	if (call->kind < SIM_CALL_SEND && (ranks == 1 || call->count == 0))
		return; /* a copy, or nothing */
	ret->task = calloc(2 * (size_t)ranks + 1, sizeof(*ret->task));
	if (!ret->task)
		return;
	if (call->kind == SIM_CALL_SEND || call->kind == SIM_CALL_RECV) {
		call_p2p(comm, call, stream, is_captured, depth, call->kind, call->peer, ret);
		return;
	}
	if (call->kind != SIM_CALL_ALL_TO_ALL && !has_root) {
		call_coll(comm, call, stream, is_captured, depth, ret);
		return;
	}
	/* These are made of sends and receives, one with the own rank among them. */
	for (unsigned int i = 0; i < ranks; i++) {
		bool is_own = i == call->peer;
		bool sends = call->kind == SIM_CALL_ALL_TO_ALL ||
			     (call->kind == SIM_CALL_GATHER ? is_own : rank == call->peer);
		bool receives = call->kind == SIM_CALL_ALL_TO_ALL ||
				(call->kind == SIM_CALL_SCATTER ? is_own : rank == call->peer);

		if (sends)
			call_p2p(comm, call, stream, is_captured, depth, SIM_CALL_SEND, i, ret);
		if (receives)
			call_p2p(comm, call, stream, is_captured, depth, SIM_CALL_RECV, i, ret);
	}
}
