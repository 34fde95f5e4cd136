/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/plan.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/nccl/proxy.h"
#include "tests/sim/lib/nccl/version.h"
#include "tests/sim/lib/reduce.h"

enum {
	WARPS = 16,
	TASK_EVENTS = SIM_PROFILE_PROXY_OP | SIM_PROFILE_PROXY_STEP | SIM_PROFILE_KERNEL_CH |
		      SIM_PROFILE_NET_PLUGIN,
	GROUP_EVENTS = SIM_PROFILE_GROUP | SIM_PROFILE_COLL | SIM_PROFILE_P2P | TASK_EVENTS,
};

static bool is_p2p(const struct sim_task *task)
{
	return task->kind == SIM_CALL_SEND || task->kind == SIM_CALL_RECV;
}

const char *sim_function_name(enum sim_call_kind kind)
{
	static const char *const names[SIM_FUNCTIONS] = {
		"AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "Broadcast", "Reduce",
		"Gather",    "Scatter",   "Send",          "Recv",     "PutSignal"};

	return names[kind];
}

const char *sim_type_name(int type)
{
	static const char *const names[ncclNumTypes] = {
		"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
		"ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
		"ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

	return type >= 0 && type < ncclNumTypes ? names[type] : "Unknown";
}

/* ---- works ---- */

/* From 2.29 on several broadcasts of a group are one work, of which the host keeps no count. */
static size_t grouped_broadcasts(const struct sim_plan *plan)
{
	const char *enabled = getenv("NCCL_ALLGATHERV_ENABLE");
	size_t count = 0;

	if (sim_nccl_minor() < 29 || (enabled && strcmp(enabled, "0") == 0))
		return 0;
	for (size_t i = 0; i < plan->tasks; i++)
		count += plan->task[i].kind == SIM_CALL_BROADCAST;
	return count > 1 ? count : 0;
}

static int add_work(struct sim_plan *plan, unsigned int first, unsigned int channels)
{
	plan->work[plan->works] =
		(struct sim_work){.first = first, .channels = channels, .is_counted = true};
	return (int)plan->works++;
}

/* The n-th send and the n-th receive are a pair, on a channel of their own. */
static int p2p_work(struct sim_plan *plan, const struct sim_task *task, size_t *ret_sends,
		    size_t *ret_receives, int *pairs)
{
	size_t *own = task->kind == SIM_CALL_SEND ? ret_sends : ret_receives;
	size_t *other = task->kind == SIM_CALL_SEND ? ret_receives : ret_sends;
	size_t index = (*own)++;

	if (index >= *other)
		pairs[index] = add_work(plan, (unsigned int)(index % plan->comm->channels), 1);
	return pairs[index];
}

static bool make_works(struct sim_plan *plan)
{
	int *pairs = calloc(plan->tasks + 1, sizeof(*pairs)), broadcasts = -1;
	bool fused = grouped_broadcasts(plan) > 0;
	size_t sends = 0, receives = 0;

	plan->work = calloc(plan->tasks + 1, sizeof(*plan->work));
	if (!pairs || !plan->work) {
		free(pairs);
		return false;
	}
	for (size_t i = 0; i < plan->tasks; i++) {
		struct sim_task *task = &plan->task[i];

		if (is_p2p(task)) {
			task->work = p2p_work(plan, task, &sends, &receives, pairs);
		} else if (fused && task->kind == SIM_CALL_BROADCAST) {
			if (broadcasts < 0) {
				broadcasts = add_work(plan, 0, plan->comm->channels);
				plan->work[broadcasts].is_counted = false;
			}
			task->work = broadcasts;
			continue; /* nor are its times written */
		} else {
			task->work = add_work(plan, 0, plan->comm->channels);
		}
		plan->work[task->work].is_observed |= task->mask & SIM_PROFILE_KERNEL_CH;
	}
	free(pairs);
	return true;
}

/* Under the mutex. */
static void count_work(struct sim_plan *plan, struct sim_work *work)
{
	for (unsigned int k = 0; k < work->channels; k++)
		work->expected[k] = ++plan->comm->host[work->first + k];
}

static bool is_observed(const struct sim_plan *plan)
{
	for (size_t i = 0; i < plan->works; i++)
		if (plan->work[i].is_observed)
			return true;
	return false;
}

/*
 * Until 2.30 works are counted as they are scheduled. Those in a graph are counted by each replay if they
 * are observed, and once if they are not. [SaveProxyProfiler() and its else-branch, src/proxy.cc] From 2.31
 * on those that are observed are counted as they are posted, and no others. [ncclProfilerPostPlanWork()]
 */
static void count_scheduled(struct sim_plan *plan)
{
	(void)pthread_mutex_lock(&plan->comm->mutex);
	for (size_t i = 0; i < plan->works; i++) {
		struct sim_work *work = &plan->work[i];

		if (sim_nccl_minor() < 31 && work->is_counted &&
		    !(plan->is_persistent && work->is_observed))
			count_work(plan, work);
	}
	(void)pthread_mutex_unlock(&plan->comm->mutex);
}

/* ---- life ---- */

struct sim_plan *sim_plan_new(struct sim_profiled *comm, void *stream, bool is_captured,
			      const struct sim_task *task, size_t tasks)
{
	struct sim_plan *plan = calloc(1, sizeof(*plan) + tasks * sizeof(*task));
	bool needs_host;

	if (!plan)
		return NULL;
	plan->refs = 1;
	plan->comm = sim_profiled_ref(comm);
	plan->stream = stream;
	plan->is_persistent = is_captured;
	plan->flights_end = &plan->flights;
	plan->tasks = tasks;
	memcpy(plan->task, task, tasks * sizeof(*task));
	if (!make_works(plan)) {
		plan->is_persistent = false;
		sim_plan_unref(plan);
		return NULL;
	}
	/*
	 * A host function is costly: only where there is something for the progress thread. While graphs
	 * live, other calls need one too; the real library spares it if no earlier one is pending.
	 */
	needs_host = is_observed(plan) || comm->has_proxy;
	plan->by_callback = needs_host &&
			    (is_captured || __atomic_load_n(&comm->captured, __ATOMIC_RELAXED) > 0);
	if (is_captured)
		(void)__atomic_add_fetch(&comm->captured, 1, __ATOMIC_RELAXED);
	count_scheduled(plan);
	return plan;
}

struct sim_plan *sim_plan_ref(struct sim_plan *plan)
{
	(void)__atomic_add_fetch(&plan->refs, 1, __ATOMIC_RELAXED);
	return plan;
}

void sim_plan_unref(struct sim_plan *plan)
{
	if (!plan || __atomic_sub_fetch(&plan->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (plan->is_persistent)
		(void)__atomic_sub_fetch(&plan->comm->captured, 1, __ATOMIC_RELAXED);
	sim_profiled_unref(plan->comm);
	free(plan->work);
	free(plan);
}

void sim_plan_add_flight(struct sim_plan *plan, struct sim_flight *flight)
{
	if (plan->is_persistent && !plan->by_callback)
		return; /* nobody posts it */
	(void)pthread_mutex_lock(&plan->comm->mutex);
	*plan->flights_end = sim_flight_ref(flight);
	plan->flights_end = &flight->next;
	(void)pthread_mutex_unlock(&plan->comm->mutex);
}

static struct sim_flight *take_flight(struct sim_plan *plan)
{
	struct sim_flight *flight;

	(void)pthread_mutex_lock(&plan->comm->mutex);
	flight = plan->flights;
	if (flight) {
		plan->flights = flight->next;
		if (!plan->flights)
			plan->flights_end = &plan->flights;
	}
	(void)pthread_mutex_unlock(&plan->comm->mutex);
	return flight;
}

void sim_plan_forget_flights(struct sim_plan *plan)
{
	struct sim_flight *flight;

	while ((flight = take_flight(plan)))
		sim_flight_unref(flight);
}

/* ---- events ---- */

/* The mask of the first task that has any. */
static const struct sim_task *masked(const struct sim_plan *plan)
{
	for (int p2p = 0; p2p < 2; p2p++)
		for (size_t i = 0; i < plan->tasks; i++)
			if (is_p2p(&plan->task[i]) == p2p && plan->task[i].mask)
				return &plan->task[i];
	return NULL;
}

void sim_plan_launch_begin(struct sim_plan *plan)
{
	const struct sim_task *first = masked(plan);
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_KERNEL_LAUNCH};

	if (!first || !(first->mask & SIM_PROFILE_KERNEL_LAUNCH) || sim_nccl_minor() < 28)
		return;
	descr.parent = first->group_api;
	descr.kernel_launch.stream = plan->stream;
	sim_profiler_start(plan->comm->context, &plan->launch, &descr, &plan->comm->info);
}

void sim_plan_launch_end(struct sim_plan *plan)
{
	sim_profiler_stop(plan->launch);
}

static void start_coll(struct sim_plan *plan, struct sim_task *task)
{
	struct sim_profiled *comm = plan->comm;
	struct sim_descr_v7 descr = {
		.type = SIM_PROFILE_COLL, .parent = task->api, .rank = comm->info.rank};

	descr.coll.seq = __atomic_load_n(&comm->seq[task->kind], __ATOMIC_RELAXED);
	descr.coll.func = sim_function_name(task->kind);
	descr.coll.send = task->send;
	descr.coll.recv = task->recv;
	descr.coll.count = task->count;
	descr.coll.datatype = sim_type_name(task->type);
	/* The library moves bytes where it reduces nothing. [collTaskAppend(), src/enqueue.cc] */
	if (task->kind == SIM_CALL_ALL_GATHER || task->kind == SIM_CALL_BROADCAST) {
		descr.coll.count *= sim_type_bytes(task->type);
		descr.coll.datatype = sim_type_name(ncclInt8);
	}
	descr.coll.root = (int)task->peer;
	descr.coll.channels = (uint8_t)comm->channels;
	descr.coll.warps = WARPS;
	descr.coll.algo = "RING";
	descr.coll.proto = "LL";
	descr.coll.parent_group = plan->group;
	if (task->mask & (SIM_PROFILE_COLL | TASK_EVENTS))
		sim_profiler_start(comm->context, &task->event, &descr, &comm->info);
	/* Works of graphs are counted only where their replays are seen. */
	if (!plan->is_persistent || task->mask & SIM_PROFILE_KERNEL_CH)
		(void)__atomic_add_fetch(&comm->seq[task->kind], 1, __ATOMIC_RELAXED);
}

static void start_p2p(struct sim_plan *plan, struct sim_task *task)
{
	struct sim_profiled *comm = plan->comm;
	struct sim_descr_v7 descr = {
		.type = SIM_PROFILE_P2P, .parent = task->api, .rank = comm->info.rank};

	descr.p2p.func = sim_function_name(task->kind);
	descr.p2p.buffer = task->kind == SIM_CALL_SEND ? (void *)(uintptr_t)task->send : task->recv;
	descr.p2p.datatype = sim_type_name(task->type);
	descr.p2p.count = task->count;
	descr.p2p.peer = (int)task->peer;
	descr.p2p.channels = 1;
	descr.p2p.parent_group = plan->group;
	if (task->mask & (SIM_PROFILE_P2P | TASK_EVENTS))
		sim_profiler_start(comm->context, &task->event, &descr, &comm->info);
}

/* ---- what hangs on it ---- */

static void post_kernels(struct sim_plan *plan)
{
	struct sim_poller *poller = sim_profiled_poller(plan->comm);

	for (size_t i = 0; i < plan->works; i++) {
		struct sim_work *work = &plan->work[i];

		if (work->is_counted && work->is_observed &&
		    (sim_nccl_minor() >= 31 || plan->is_persistent))
			count_work(plan, work);
	}
	for (size_t i = 0; i < plan->tasks; i++) {
		const struct sim_task *task = &plan->task[i];
		const struct sim_work *work = &plan->work[task->work];

		if (!(task->mask & SIM_PROFILE_KERNEL_CH) || !work->is_counted)
			continue;
		for (unsigned int k = 0; k < work->channels; k++)
			sim_poller_add_kernel(poller, work->first + k, work->expected[k],
					      task->event);
	}
}

static void post_proxy(struct sim_plan *plan, struct sim_flight *flight,
		       const struct sim_task *task, unsigned int channel, int peer, bool is_send)
{
	const struct sim_work *work = &plan->work[task->work];
	size_t bytes = task->count * sim_type_bytes(task->type) / work->channels;
	int count = plan->comm->has_pxn && is_send ? 2 : 1;

	for (int i = 0; i < count; i++) {
		struct sim_proxy *proxy =
			sim_proxy_new(flight, task, channel, peer, is_send, i > 0, bytes);

		if (proxy)
			sim_poller_add_proxy(&plan->comm->progress, proxy);
	}
}

static void post_proxies(struct sim_plan *plan, struct sim_flight *flight)
{
	int rank = plan->comm->info.rank, ranks = plan->comm->info.ranks;

	for (size_t i = 0; i < plan->tasks; i++) {
		const struct sim_task *task = &plan->task[i];
		const struct sim_work *work = &plan->work[task->work];

		if (is_p2p(task)) {
			if ((int)task->peer != rank)
				post_proxy(plan, flight, task, work->first, (int)task->peer,
					   task->kind == SIM_CALL_SEND);
			continue;
		}
		for (unsigned int k = 0; k < work->channels; k++) {
			post_proxy(plan, flight, task, k, (rank + ranks - 1) % ranks, false);
			post_proxy(plan, flight, task, k, (rank + 1) % ranks, true);
		}
	}
}

/* hostStreamPlanTask() of src/enqueue.cc. */
void sim_plan_post(struct sim_plan *plan)
{
	struct sim_profiled *comm = plan->comm;
	struct sim_flight *flight = take_flight(plan);
	const struct sim_task *first = masked(plan);
	struct sim_descr_v7 group = {.type = SIM_PROFILE_GROUP};

	plan->group = NULL;
	if (first && first->mask & GROUP_EVENTS)
		sim_profiler_start(comm->context, &plan->group, &group, &comm->info);
	for (int p2p = 0; p2p < 2; p2p++)
		for (size_t i = 0; i < plan->tasks; i++) {
			struct sim_task *task = &plan->task[i];

			if (is_p2p(task) != p2p)
				continue;
			task->event = NULL;
			if (p2p)
				start_p2p(plan, task);
			else
				start_coll(plan, task);
		}
	(void)pthread_mutex_lock(&comm->mutex);
	post_kernels(plan);
	if (comm->has_proxy && flight)
		post_proxies(plan, flight);
	(void)pthread_mutex_unlock(&comm->mutex);
	for (size_t i = 0; i < plan->tasks; i++)
		sim_profiler_stop(plan->task[i].event);
	sim_profiler_stop(plan->group);
	sim_flight_unref(flight);
}

void sim_plan_callback(void *data)
{
	sim_plan_post(data);
}
