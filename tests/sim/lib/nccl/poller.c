/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/poller.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/sim/lib/nccl/nccl_cuda.h"
#include "tests/sim/lib/nccl/profiled.h"
#include "tests/sim/lib/nccl/proxy.h"

enum {
	NS = 1000000000,
};

void sim_poller_init(struct sim_poller *poller, struct sim_profiled *comm, const char *name)
{
	pthread_condattr_t attributes;

	poller->comm = comm;
	poller->name = name;
	poller->kernels_end = &poller->kernels;
	poller->proxies_end = &poller->proxies;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&poller->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

void sim_poller_destroy(struct sim_poller *poller)
{
	(void)pthread_cond_destroy(&poller->changed);
}

static void clear(struct sim_poller *poller)
{
	while (poller->kernels) {
		struct sim_kernel_op *op = poller->kernels;

		poller->kernels = op->next;
		free(op);
	}
	while (poller->proxies) {
		struct sim_proxy *proxy = poller->proxies;

		poller->proxies = proxy->next;
		sim_proxy_free(proxy);
	}
	poller->kernels_end = &poller->kernels;
	poller->proxies_end = &poller->proxies;
}

/* ---- works: the slot of the expected number has it, or a later one ---- */

static void start_kernel(struct sim_profiled *comm, struct sim_kernel_op *op, uint64_t timer)
{
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_KERNEL_CH, .parent = op->parent};

	descr.kernel_ch.channel = (uint8_t)op->channel;
	descr.kernel_ch.timer = timer;
	(void)pthread_mutex_unlock(&comm->mutex);
	sim_profiler_start(comm->context, &op->event, &descr, &comm->info);
	(void)pthread_mutex_lock(&comm->mutex);
	op->is_started = true;
}

static void stop_kernel(struct sim_profiled *comm, struct sim_kernel_op *op, uint64_t timer)
{
	union sim_state_args args = {.timer = timer};

	(void)pthread_mutex_unlock(&comm->mutex);
	sim_profiler_record(op->event, SIM_STATE_KERNEL_CH_STOP, &args);
	sim_profiler_stop(op->event);
	(void)pthread_mutex_lock(&comm->mutex);
}

static bool kernels_move(struct sim_poller *poller)
{
	struct sim_profiled *comm = poller->comm;
	struct sim_kernel_op **at = &poller->kernels;
	bool any = false;

	while (*at) {
		struct sim_kernel_op *op = *at;
		size_t slot = op->counter % SIM_TIMER_SLOTS;
		const struct sim_timer *started = &comm->started[op->channel][slot];
		const struct sim_timer *completed = &comm->completed[op->channel][slot];

		if (!op->is_started && op->counter <= started->counter) {
			start_kernel(comm, op, started->timer);
			any = true;
		}
		if (!op->is_started || op->counter > completed->counter) {
			at = &op->next;
			continue;
		}
		stop_kernel(comm, op, completed->timer);
		any = true;
		*at = op->next;
		if (poller->kernels_end == &op->next)
			poller->kernels_end = at;
		free(op);
	}
	return any;
}

/* ---- proxy operations ---- */

static bool proxies_move(struct sim_poller *poller, uint64_t now_ns, uint64_t *next_ns)
{
	struct sim_proxy **at = &poller->proxies;
	bool any = false;

	while (*at) {
		struct sim_proxy *proxy = *at;
		bool is_done = false;

		any |= sim_proxy_moves(proxy, now_ns, next_ns, &is_done);
		if (!is_done) {
			at = &proxy->next;
			continue;
		}
		*at = proxy->next;
		if (poller->proxies_end == &proxy->next)
			poller->proxies_end = at;
		sim_proxy_free(proxy);
	}
	return any;
}

/* Events of the thread itself: their bit is looked at each time. */
static void *start_control(struct sim_profiled *comm)
{
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_PROXY_CTRL};
	void *event = NULL;

	if (sim_profiler_mask() & SIM_PROFILE_PROXY_CTRL)
		sim_profiler_start(comm->context, &event, &descr, &comm->info);
	return event;
}

static void record_control(void *event, enum sim_profile_state state, int appended)
{
	union sim_state_args args = {.appended = appended};

	if (sim_profiler_mask() & SIM_PROFILE_PROXY_CTRL)
		sim_profiler_record(event, state, &args);
}

static void note_appended(struct sim_poller *poller)
{
	int appended = poller->appended;
	void *event;

	poller->appended = 0;
	(void)pthread_mutex_unlock(&poller->comm->mutex);
	event = start_control(poller->comm);
	record_control(event, SIM_STATE_CTRL_APPEND, 0);
	record_control(event, SIM_STATE_CTRL_APPEND_END, appended);
	sim_profiler_stop(event);
	event = start_control(poller->comm);
	record_control(event, SIM_STATE_CTRL_ACTIVE, 0);
	sim_profiler_stop(event);
	(void)pthread_mutex_lock(&poller->comm->mutex);
}

/* ---- the thread ---- */

static void wait_until(struct sim_poller *poller, uint64_t next_ns)
{
	struct timespec until = {.tv_sec = (time_t)(next_ns / NS), .tv_nsec = (long)(next_ns % NS)};

	if (next_ns)
		(void)pthread_cond_timedwait(&poller->changed, &poller->comm->mutex, &until);
	else
		(void)pthread_cond_wait(&poller->changed, &poller->comm->mutex);
}

/* The progress thread has nothing to do: as it sleeps, an event of its own lasts. */
static void sleep_until(struct sim_poller *poller, uint64_t next_ns)
{
	struct sim_profiled *comm = poller->comm;
	void *event;

	if (!comm->has_proxy || poller != &comm->progress) {
		wait_until(poller, next_ns);
		return;
	}
	(void)pthread_mutex_unlock(&comm->mutex);
	event = start_control(comm);
	record_control(event, SIM_STATE_CTRL_SLEEP, 0);
	(void)pthread_mutex_lock(&comm->mutex);
	if (!poller->appended && !poller->stops)
		wait_until(poller, next_ns);
	(void)pthread_mutex_unlock(&comm->mutex);
	record_control(event, SIM_STATE_CTRL_WAKEUP, 0);
	sim_profiler_stop(event);
	(void)pthread_mutex_lock(&comm->mutex);
}

static void *serve(void *data)
{
	struct sim_poller *poller = data;
	struct sim_profiled *comm = poller->comm;
	bool polls_slots = poller == sim_profiled_poller(comm);

	(void)pthread_mutex_lock(&comm->mutex);
	for (;;) {
		uint64_t now_ns = sim_cuda.now(), next_ns = 0;
		bool any = false;

		if (poller->appended)
			note_appended(poller);
		any |= proxies_move(poller, now_ns, &next_ns);
		if (polls_slots) {
			any |= sim_profiled_advance(comm, now_ns);
			any |= kernels_move(poller);
			if (comm->writes && (next_ns == 0 || comm->writes->at_ns < next_ns))
				next_ns = comm->writes->at_ns;
		}
		if (any)
			continue;
		if (poller->stops && (!poller->drains || next_ns == 0))
			break;
		if (poller->proxies || poller->kernels || poller->stops)
			wait_until(poller, next_ns);
		else
			sleep_until(poller, next_ns);
	}
	(void)pthread_mutex_unlock(&comm->mutex);
	return NULL;
}

void sim_poller_start(struct sim_poller *poller)
{
	char name[16];

	if (poller->runs)
		return;
	(void)snprintf(name, sizeof(name), "%s%2d", poller->name, poller->comm->info.device);
	poller->runs = pthread_create(&poller->thread, NULL, serve, poller) == 0;
	if (poller->runs)
		(void)pthread_setname_np(poller->thread, name);
}

void sim_poller_stop(struct sim_poller *poller, bool drains)
{
	bool runs;

	(void)pthread_mutex_lock(&poller->comm->mutex);
	poller->stops = true;
	poller->drains = drains;
	runs = poller->runs;
	sim_poller_wake(poller);
	(void)pthread_mutex_unlock(&poller->comm->mutex);
	if (runs)
		(void)pthread_join(poller->thread, NULL);
	(void)pthread_mutex_lock(&poller->comm->mutex);
	clear(poller);
	(void)pthread_mutex_unlock(&poller->comm->mutex);
}

void sim_poller_wake(struct sim_poller *poller)
{
	(void)pthread_cond_signal(&poller->changed);
}

void sim_poller_add_kernel(struct sim_poller *poller, unsigned int channel, uint64_t counter,
			   void *parent)
{
	struct sim_kernel_op *op = poller->stops ? NULL : calloc(1, sizeof(*op));

	if (!op)
		return;
	op->channel = channel;
	op->counter = counter;
	op->parent = parent;
	*poller->kernels_end = op;
	poller->kernels_end = &op->next;
	sim_poller_start(poller);
	sim_poller_wake(poller);
}

void sim_poller_add_proxy(struct sim_poller *poller, struct sim_proxy *proxy)
{
	if (poller->stops) {
		sim_proxy_free(proxy);
		return;
	}
	*poller->proxies_end = proxy;
	poller->proxies_end = &proxy->next;
	poller->appended++;
	sim_poller_start(poller);
	sim_poller_wake(poller);
}
