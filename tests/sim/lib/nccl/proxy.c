/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/proxy.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/sim/lib/nccl/version.h"

enum {
	STEP_BYTES = 512 << 10,
	FOREIGN_POINTER = 0x1000,
	CONSUME_NS = 1000, /* the GPU takes what has arrived */
	STEP_EVENTS = SIM_PROFILE_PROXY_STEP | SIM_PROFILE_NET_PLUGIN,
	OP_EVENTS = SIM_PROFILE_PROXY_OP | STEP_EVENTS,
};

struct sim_proxy *sim_proxy_new(struct sim_flight *flight, const struct sim_task *task,
				unsigned int channel, int peer, bool is_send, bool is_foreign,
				size_t bytes)
{
	struct sim_proxy *proxy = calloc(1, sizeof(*proxy));

	if (!proxy)
		return NULL;
	proxy->flight = sim_flight_ref(flight);
	proxy->parent = task->event;
	proxy->mask = task->mask;
	proxy->peer = peer;
	proxy->channel = channel;
	proxy->is_send = is_send;
	proxy->is_foreign = is_foreign;
	proxy->steps = (int)(bytes / STEP_BYTES) + 1;
	if (proxy->steps > SIM_PROXY_STEPS)
		proxy->steps = SIM_PROXY_STEPS;
	proxy->bytes = bytes / (size_t)proxy->steps;
	return proxy;
}

void sim_proxy_free(struct sim_proxy *proxy)
{
	sim_flight_unref(proxy->flight);
	free(proxy);
}

/* ---- calls of the plugin ---- */

/* Pointers of another process lead nowhere in this one. */
static void *pointer_of(const struct sim_proxy *proxy, void *own)
{
	return proxy->is_foreign ? (void *)(uintptr_t)FOREIGN_POINTER : own;
}

static void start_op(struct sim_proxy *proxy)
{
	struct sim_profiled *comm = proxy->flight->comm;
	struct sim_descr_v7 descr = {.type = SIM_PROFILE_PROXY_OP,
				     .parent = pointer_of(proxy, proxy->parent),
				     .rank = comm->info.rank};
	union sim_state_args args = {0};

	descr.proxy_op = (struct sim_proxy_op){.pid = proxy->is_foreign ? getppid() : getpid(),
					       .channel = (uint8_t)proxy->channel,
					       .peer = proxy->peer,
					       .steps = proxy->steps,
					       .chunk_bytes = (int)proxy->bytes,
					       .is_send = proxy->is_send};
	if (proxy->mask & OP_EVENTS)
		sim_profiler_start(pointer_of(proxy, comm->context), &proxy->event, &descr,
				   &comm->info);
	sim_profiler_record(proxy->event, SIM_STATE_OP_IN_PROGRESS, &args);
}

static void record_step(struct sim_proxy *proxy, int step, enum sim_profile_state state)
{
	union sim_state_args args = {0};

	if (state == SIM_STATE_SEND_WAIT || state == SIM_STATE_RECV_FLUSH_WAIT ||
	    state == SIM_STATE_RECV_GPU_WAIT)
		args.trans_bytes = proxy->bytes;
	if (proxy->event)
		sim_profiler_record(proxy->step[step], state, &args);
}

static void start_step(struct sim_proxy *proxy, int step)
{
	struct sim_profiled *comm = proxy->flight->comm;
	struct sim_descr_v7 descr = {
		.type = SIM_PROFILE_PROXY_STEP, .parent = proxy->event, .rank = comm->info.rank};

	descr.step = step;
	if (proxy->mask & STEP_EVENTS)
		sim_profiler_start(pointer_of(proxy, comm->context), &proxy->step[step], &descr,
				   &comm->info);
	record_step(proxy, step, proxy->is_send ? SIM_STATE_SEND_GPU_WAIT : SIM_STATE_RECV_WAIT);
	sim_profiler_record_op(proxy->event,
			       proxy->is_send ? SIM_STATE_SEND_POSTED : SIM_STATE_RECV_POSTED, 0,
			       step + 1);
}

static void stop_step(struct sim_proxy *proxy, int step)
{
	int which = step;

	/* 2.24 to 2.26 stop the event of a later receive. */
	if (!proxy->is_send && sim_nccl_minor() <= 26)
		which = step + 1;
	if (which < SIM_PROXY_STEPS) {
		sim_profiler_stop(proxy->step[which]);
		proxy->step[which] = NULL;
	}
	sim_profiler_record_op(proxy->event,
			       proxy->is_send ? SIM_STATE_SEND_DONE : SIM_STATE_RECV_DONE,
			       proxy->bytes, step + 1);
}

/* ---- time ---- */

static uint64_t slice_ns(const struct sim_proxy *proxy)
{
	const struct sim_flight *flight = proxy->flight;

	return (flight->end_ns - flight->arrive_ns) / (uint64_t)proxy->steps;
}

/* Of a slice: until the network takes a send. */
static uint64_t wait_ns(const struct sim_proxy *proxy)
{
	return (uint64_t)((1 - proxy->flight->network) * (double)slice_ns(proxy));
}

/* When the step gets there. 0: not known yet. */
static uint64_t time_of(const struct sim_proxy *proxy, int step, enum sim_step_stage stage)
{
	const struct sim_flight *flight = proxy->flight;
	uint64_t arrive_ns = flight->arrive_ns;

	if (stage == SIM_STEP_HAS_DATA && step == 0)
		return flight->start_ns;
	if (flight->end_ns == 0)
		return 0;
	if (proxy->is_send && stage != SIM_STEP_DONE)
		return arrive_ns + (uint64_t)step * slice_ns(proxy) + wait_ns(proxy);
	if (stage == SIM_STEP_HAS_DATA)
		return arrive_ns + (uint64_t)step * slice_ns(proxy);
	if (stage == SIM_STEP_SENT)
		return arrive_ns + (uint64_t)(step + 1) * slice_ns(proxy);
	if (!proxy->is_send)
		return arrive_ns + (uint64_t)(step + 1) * slice_ns(proxy) + CONSUME_NS;
	return proxy->sent_ns[step] + slice_ns(proxy) - wait_ns(proxy);
}

static void enter(struct sim_proxy *proxy, int step, enum sim_step_stage stage)
{
	if (stage == SIM_STEP_HAS_DATA && proxy->is_send) {
		record_step(proxy, step, SIM_STATE_SEND_PEER_WAIT);
		sim_profiler_record_op(proxy->event, SIM_STATE_SEND_REM_FIFO_WAIT, 0, step + 1);
	} else if (stage == SIM_STEP_SENT && proxy->is_send) {
		/* Again, as with each attempt to send. */
		record_step(proxy, step, SIM_STATE_SEND_PEER_WAIT);
		record_step(proxy, step, SIM_STATE_SEND_WAIT);
		sim_profiler_record_op(proxy->event, SIM_STATE_SEND_TRANSMITTED, proxy->bytes,
				       step + 1);
	} else if (stage == SIM_STEP_SENT) {
		record_step(proxy, step, SIM_STATE_RECV_FLUSH_WAIT);
		sim_profiler_record_op(proxy->event, SIM_STATE_RECV_RECEIVED, proxy->bytes,
				       step + 1);
		record_step(proxy, step, SIM_STATE_RECV_GPU_WAIT);
		sim_profiler_record_op(proxy->event, SIM_STATE_RECV_TRANSMITTED, proxy->bytes,
				       step + 1);
	} else if (stage == SIM_STEP_DONE) {
		stop_step(proxy, step);
	}
}

bool sim_proxy_moves(struct sim_proxy *proxy, uint64_t now_ns, uint64_t *next_ns, bool *ret_is_done)
{
	pthread_mutex_t *mutex = &proxy->flight->comm->mutex;
	bool any = false, all = true;

	if (!proxy->is_started) {
		proxy->is_started = any = true;
		(void)pthread_mutex_unlock(mutex);
		start_op(proxy);
		for (int i = 0; i < proxy->steps; i++)
			start_step(proxy, i);
		(void)pthread_mutex_lock(mutex);
	}
	for (int i = 0; i < proxy->steps; i++) {
		while (proxy->stage[i] != SIM_STEP_DONE) {
			uint64_t at_ns = time_of(proxy, i, proxy->stage[i] + 1);

			if (at_ns == 0)
				break;
			if (at_ns > now_ns) {
				if (*next_ns == 0 || at_ns < *next_ns)
					*next_ns = at_ns;
				break;
			}
			proxy->sent_ns[i] = now_ns;
			(void)pthread_mutex_unlock(mutex);
			enter(proxy, i, proxy->stage[i] + 1);
			(void)pthread_mutex_lock(mutex);
			proxy->stage[i]++;
			any = true;
		}
		all &= proxy->stage[i] == SIM_STEP_DONE;
	}
	*ret_is_done = all;
	if (!all)
		return any;
	(void)pthread_mutex_unlock(mutex);
	sim_profiler_stop(proxy->event);
	(void)pthread_mutex_lock(mutex);
	return true;
}
