/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/nccl/profiler.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "plugin/batch.h"
#include "plugin/nccl/bounded_lock.h"
#include "plugin/nccl/device_clock.h"
#include "plugin/nccl/handle.h"
#include "plugin/nccl/operation.h"
#include "plugin/nccl/proxy_send.h"
#include "plugin/nccl/record_batch.h"

/* By which a kernel may begin before its call: steps of the device's clock. */
#define STEP_NS 50000
/* The same where the event of the call is missing: from the launch to the event. */
#define LAUNCH_NS 100000000
/* Between two records that no time is reported. */
#define SAID_NS 1000000000
/* Without measurement, after a call that a graph is made of. */
#define CAPTURED_NS 1000000000

struct profiled_comm {
	uint64_t generation; /* odd: in use */
	uint64_t hash;
	int rank; /* of this process in it */
	int *mask;
	int version;
	enum nt_profiler_use use;
	uint64_t last_start[NT_NCCL_CHANNELS]; /* of the device's clock */
};

struct profiled_call {
	uint64_t generation; /* odd: in use */
	uint32_t window; /* of its enqueuing */
	uint32_t comm; /* its slot */
	uint64_t enqueued_ns; /* boot time */
	int is_called; /* that is when the program made the call; 0: when its event came */
	uint64_t start, stop; /* of the device's clock */
	uint32_t correlation;
	uint8_t channels, ended; /* that the kernel has, and that have ended */
	uint8_t op;
};

struct profiled_channel {
	uint64_t generation; /* odd: in use */
	uint64_t start; /* of the device's clock */
	void *call; /* its handle */
};

int nt_profiler_chained_mask, nt_profiler_is_open, nt_profiler_sends_are_open;

static atomic_flag lock = ATOMIC_FLAG_INIT;
static atomic_uint missed, missed_sends; /* events that could not take the tables */

/* Behind the flag. */
static struct profiled_comm comms[NT_PROFILER_COMMS];
static struct profiled_call calls[NT_PROFILER_CALLS];
static struct profiled_channel channels[NT_PROFILER_CHANNELS];
static uint32_t next_comm, next_call, next_channel;
static int *written_to; /* the mask of the process; NULL: none yet */
static int written;
static uint32_t window, pending; /* calls of this window whose kernels have not ended */
static uint32_t correlation;
static int own_pid;
static uint64_t captured_ns; /* 0: no call of a graph was seen */
static uint64_t said_ns; /* when it was reported last that no time is; 0: never */
static int drifted; /* why times are not used any more: NT_PROFILER_…; 0: they are */
static struct nt_device_clock device_clock;

static uint64_t now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* ---- the tables ----------------------------------------------------------------------------- */

static int take(void)
{
	if (nt_bounded_lock_take(&lock))
		return 1;
	atomic_fetch_add_explicit(&missed, 1, memory_order_relaxed);
	return 0;
}

static void let_go(void)
{
	nt_bounded_lock_let_go(&lock);
}

/* NULL: it is of something else, or of what has ended. As the two below. */
static struct profiled_comm *comm_of(const void *handle)
{
	struct profiled_comm *comm;

	if (nt_handle_kind(handle) != NT_HANDLE_COMM || nt_handle_slot(handle) >= NT_PROFILER_COMMS)
		return NULL;
	comm = &comms[nt_handle_slot(handle)];
	return nt_handle_is_of(handle, comm->generation) ? comm : NULL;
}

static struct profiled_call *call_of(const void *handle)
{
	struct profiled_call *call;

	if (nt_handle_kind(handle) != NT_HANDLE_CALL || nt_handle_slot(handle) >= NT_PROFILER_CALLS)
		return NULL;
	call = &calls[nt_handle_slot(handle)];
	return nt_handle_is_of(handle, call->generation) && call->window == window ? call : NULL;
}

static struct profiled_channel *channel_of(const void *handle)
{
	struct profiled_channel *channel;

	if (nt_handle_kind(handle) != NT_HANDLE_CHANNEL ||
	    nt_handle_slot(handle) >= NT_PROFILER_CHANNELS)
		return NULL;
	channel = &channels[nt_handle_slot(handle)];
	return nt_handle_is_of(handle, channel->generation) ? channel : NULL;
}

/* ---- windows -------------------------------------------------------------------------------- */

static void report_state(enum nt_gpu_record_kind kind, uint32_t code, uint64_t now_ns)
{
	nt_record_batch_add(&(struct nt_gpu_record){.start_ns = now_ns,
						    .end_ns = now_ns,
						    .stream = code,
						    .kind = (uint16_t)kind},
			    now_ns);
	nt_record_batch_flush();
}

/* What is enqueued from now on is reported: NCCL reads the mask at the begin of a call. */
static void open_window(uint64_t now_ns)
{
	window++;
	pending = 0;
	nt_device_clock_reset(&device_clock);
	report_state(NT_GPU_RECORD_OPEN, 0, now_ns);
	if (drifted)
		report_state(NT_GPU_RECORD_GIVEN_UP, (uint32_t)drifted, now_ns);
	__atomic_store_n(&nt_profiler_is_open, 1, __ATOMIC_RELAXED);
}

static void close_window(void)
{
	window++; /* what has not ended is not awaited */
	nt_record_batch_drop();
	__atomic_store_n(&nt_profiler_is_open, 0, __ATOMIC_RELAXED);
}

static void give_up(int result, uint64_t now_ns)
{
	if (!drifted)
		report_state(NT_GPU_RECORD_GIVEN_UP, (uint32_t)result, now_ns);
	drifted = result;
}

/* No window is open. */
static void report_not_requested(uint64_t now_ns)
{
	if (said_ns && now_ns - said_ns < SAID_NS)
		return;
	said_ns = now_ns;
	report_state(NT_GPU_RECORD_GIVEN_UP, (uint32_t)NT_PROFILER_ON_REQUEST, now_ns);
}

/* ---- the mask ------------------------------------------------------------------------------- */

/* The event that costs least and comes with each call. */
static int idle_mask(int version)
{
	return version >= 5 ? NT_NCCL_GROUP_API : NT_NCCL_GROUP;
}

/* NCCL keeps the mask of a call that becomes part of a graph for all of its replays. */
static int is_capturing(uint64_t now_ns)
{
	return captured_ns && now_ns - captured_ns < CAPTURED_NS;
}

static int wanted_mask(const struct profiled_comm *comm, uint64_t now_ns)
{
	const int kernels = NT_NCCL_COLLECTIVE | NT_NCCL_P2P | NT_NCCL_KERNEL_CHANNEL;
	int mask = __atomic_load_n(&nt_profiler_chained_mask, __ATOMIC_RELAXED);

	if (comm->use == NT_PROFILER_NEVER)
		return mask;
	mask |= idle_mask(comm->version);
	if (nt_profiler_sends_are_open && !is_capturing(now_ns))
		mask |= NT_NCCL_PROXY_OP | NT_NCCL_PROXY_STEP;
	if (comm->use == NT_PROFILER_ALWAYS ||
	    (comm->use == NT_PROFILER_IN_WINDOWS && nt_profiler_is_open && !drifted &&
	     !is_capturing(now_ns)))
		mask |= kernels;
	return mask;
}

/*
 * All communicators of a process have one mask. Only its changes are written: NCCL's operator may set it,
 * too.
 */
static void write_mask(struct profiled_comm *comm, uint64_t now_ns)
{
	const int mask = wanted_mask(comm, now_ns);

	if (!comm->mask || (comm->mask == written_to && mask == written))
		return;
	written_to = comm->mask;
	written = mask;
	__atomic_store_n(comm->mask, mask, __ATOMIC_RELAXED);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void *add_call(const struct profiled_comm *comm, const struct nt_nccl_event *event,
		      int is_p2p, uint64_t now_ns)
{
	const uint32_t slot = next_call++ % NT_PROFILER_CALLS;
	const uint64_t made_ns = nt_operation_called_ns(event, now_ns);
	const uint64_t enqueued_ns = made_ns ? made_ns : now_ns;
	struct profiled_call *call = &calls[slot];

	/* The oldest has not ended after so many: the gap in the numbers says so. */
	if (call->generation % 2 && call->window == window) {
		nt_record_batch_lose(1);
		pending--;
	}
	correlation += correlation == UINT32_MAX ? 2 : 1;
	*call = (struct profiled_call){
		.generation = call->generation + (call->generation % 2 ? 2 : 1),
		.window = window,
		.comm = (uint32_t)(comm - comms),
		.enqueued_ns = enqueued_ns,
		.is_called = made_ns != 0,
		.correlation = correlation,
		.channels = is_p2p ? event->p2p.channels : event->collective.channels,
		.op = (uint8_t)nt_operation_of(event, is_p2p),
	};
	pending++;
	nt_record_batch_add(&(struct nt_gpu_record){.start_ns = enqueued_ns,
						    .end_ns = now_ns,
						    .correlation = correlation,
						    .kind = NT_GPU_RECORD_LAUNCH},
			    now_ns);
	return nt_handle_of(NT_HANDLE_CALL, slot, call->generation);
}

static void end_call(struct profiled_call *call, uint64_t now_ns)
{
	const uint64_t start_ns = nt_device_clock_boot(&device_clock, call->start);
	const uint64_t end_ns = nt_device_clock_boot(&device_clock, call->stop);

	nt_record_batch_add(
		&(struct nt_gpu_record){
			/* The clock has steps. */
			.start_ns = start_ns > call->enqueued_ns ? start_ns : call->enqueued_ns,
			.end_ns = end_ns > call->enqueued_ns ? end_ns : call->enqueued_ns,
			.correlation = call->correlation,
			.stream = call->comm,
			.kind = NT_GPU_RECORD_COMMUNICATION,
			.op = call->op,
		},
		now_ns);
	call->generation++;
	if (--pending == 0)
		nt_record_batch_flush();
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* Its kernel is not known: the agent gets no more of it than the call. */
static void drop_call(struct profiled_call *call)
{
	call->generation++;
	pending--;
}

/* What a reported time means for the call: 0, or why the times are given up. *ret_is_late: see there. */
static int check_clock(uint64_t time, uint64_t now_ns, int *ret_is_late)
{
	const enum nt_device_clock_result result =
		nt_device_clock_seen(&device_clock, time, now_ns);

	*ret_is_late = result == NT_DEVICE_CLOCK_LATE;
	return result == NT_DEVICE_CLOCK_OTHER ? NT_PROFILER_OTHER_CLOCK : 0;
}

/* Each channel runs its kernels one after the other, and none before its call. 0: so it is. */
static int check_start(struct profiled_comm *comm, const struct profiled_call *call,
		       const struct nt_nccl_event *event)
{
	const uint64_t start = event->kernel_channel.start;
	const uint64_t before_ns = call->is_called ? STEP_NS : LAUNCH_NS;
	uint64_t *last = &comm->last_start[event->kernel_channel.channel];

	if (start < *last)
		return NT_PROFILER_BACKWARDS;
	if (nt_device_clock_boot(&device_clock, start) + before_ns < call->enqueued_ns)
		return NT_PROFILER_BEFORE_CALL;
	*last = start;
	return 0;
}

static void *add_channel(const struct nt_nccl_event *event, uint64_t now_ns)
{
	const uint32_t slot = next_channel % NT_PROFILER_CHANNELS;
	struct profiled_channel *channel = &channels[slot];
	struct profiled_call *call = call_of(event->parent);
	int is_late, r;

	if (!call || event->kernel_channel.channel >= NT_NCCL_CHANNELS)
		return NULL;
	r = check_clock(event->kernel_channel.start, now_ns, &is_late);
	if (r == 0 && is_late) {
		drop_call(call);
		return NULL;
	}
	if (r == 0)
		r = check_start(&comms[call->comm], call, event);
	if (r < 0) {
		give_up(r, now_ns);
		return NULL;
	}
	next_channel++;
	*channel = (struct profiled_channel){
		.generation = channel->generation + (channel->generation % 2 ? 2 : 1),
		.start = event->kernel_channel.start,
		.call = event->parent,
	};
	if (!call->start || channel->start < call->start)
		call->start = channel->start;
	return nt_handle_of(NT_HANDLE_CHANNEL, slot, channel->generation);
}

static void end_channel(struct profiled_channel *channel, uint64_t stop, uint64_t now_ns)
{
	struct profiled_call *call = call_of(channel->call);
	int is_late, r;

	channel->generation++;
	if (!call)
		return;
	r = stop < channel->start ? NT_PROFILER_BACKWARDS : check_clock(stop, now_ns, &is_late);
	if (r < 0) {
		give_up(r, now_ns);
		return;
	}
	if (is_late) {
		drop_call(call);
		return;
	}
	if (stop > call->stop)
		call->stop = stop;
	if (++call->ended == call->channels)
		end_call(call, now_ns);
}

/* ---- the interface -------------------------------------------------------------------------- */

void *nt_profiler_add(int *mask, int version, enum nt_profiler_use use, uint64_t hash, int rank)
{
	struct profiled_comm *comm = NULL;
	void *context = NULL;
	uint32_t slot = 0;

	if (!take())
		return NULL;
	for (uint32_t i = 0; i < NT_PROFILER_COMMS && !comm; i++) {
		slot = next_comm++ % NT_PROFILER_COMMS;
		if (comms[slot].generation % 2 == 0)
			comm = &comms[slot];
	}
	own_pid = (int)getpid();
	if (comm) {
		*comm = (struct profiled_comm){.generation = comm->generation + 1,
					       .hash = hash,
					       .rank = rank,
					       .mask = mask,
					       .version = version,
					       .use = use};
		written_to = NULL; /* NCCL may have set it anew */
		write_mask(comm, now());
		context = nt_handle_of(NT_HANDLE_COMM, slot, comm->generation);
	}
	let_go();
	return context;
}

void nt_profiler_remove(void *context)
{
	struct profiled_comm *comm;

	if (!take())
		return;
	comm = comm_of(context);
	if (comm)
		comm->generation++;
	let_go();
}

void nt_profiler_write_mask(void *context)
{
	struct profiled_comm *comm;

	if (!take())
		return;
	comm = comm_of(context);
	if (comm)
		write_mask(comm, now());
	let_go();
}

static void *start_event(struct profiled_comm *comm, const struct nt_nccl_event *event,
			 uint64_t type, uint64_t now_ns)
{
	switch (type) {
	case NT_NCCL_COLLECTIVE_API:
	case NT_NCCL_P2P_API:
		return nt_handle_of_time(now_ns);
	case NT_NCCL_COLLECTIVE:
	case NT_NCCL_P2P:
		if (comm)
			return add_call(comm, event, type == NT_NCCL_P2P, now_ns);
		/* Of a communicator over the cap: the gap in the numbers says so. */
		nt_record_batch_lose(1);
		return NULL;
	case NT_NCCL_KERNEL_CHANNEL:
		return add_channel(event, now_ns);
	default:
		return NULL;
	}
}

/*
 * False: the event is not looked at. Of a communicator that is not measured it comes because another
 * plugin asks for it, and up to version 3 its layout is another.
 */
static int turn_window(const struct profiled_comm *comm, int is_wanted, uint64_t now_ns)
{
	if (comm && comm->use == NT_PROFILER_NOT_REQUESTED && is_wanted)
		report_not_requested(now_ns);
	if (comm && (comm->use == NT_PROFILER_NEVER || comm->use == NT_PROFILER_NOT_REQUESTED))
		return 0;
	if (comm && is_wanted && !nt_profiler_is_open)
		open_window(now_ns);
	else if (comm && !is_wanted && nt_profiler_is_open)
		close_window(); /* with the communicator's mask, which is written behind it */
	return nt_profiler_is_open;
}

static void *start_in_window(struct profiled_comm *comm, const struct nt_nccl_event *event,
			     uint64_t type, uint64_t now_ns)
{
	const uint32_t lost = atomic_exchange_explicit(&missed, 0, memory_order_relaxed);

	if (lost)
		nt_record_batch_lose(lost);
	nt_record_batch_tick(now_ns);
	return drifted ? NULL : start_event(comm, event, type, now_ns);
}

/* ---- sends ---------------------------------------------------------------------------------- */

/* True while they are measured. They have windows of their own. */
static int turn_sends(const struct profiled_comm *comm)
{
	const int are_wanted = nt_send_batch_is_wanted();

	if (comm && comm->use != NT_PROFILER_NEVER && are_wanted != nt_profiler_sends_are_open) {
		nt_proxy_send_reset();
		__atomic_store_n(&nt_profiler_sends_are_open, are_wanted, __ATOMIC_RELAXED);
	}
	return nt_profiler_sends_are_open;
}

static void *start_send(const struct profiled_comm *comm, const struct nt_nccl_event *event,
			uint64_t type, uint64_t now_ns)
{
	const uint32_t lost = atomic_exchange_explicit(&missed_sends, 0, memory_order_relaxed);

	nt_proxy_send_miss(lost);
	nt_proxy_send_report(now_ns);
	if (type != NT_NCCL_PROXY_OP || !comm)
		return NULL;
	/* That of another process comes with its communicator, a pointer that means nothing here. */
	return event->proxy_op.pid == own_pid && event->rank == comm->rank
		       ? nt_proxy_send_op(comm->hash, event)
		       : NULL;
}

/* Kernels are complete without it. False also if no send is measured. */
static int take_for_send(void)
{
	if (!nt_bounded_lock_take(&lock)) {
		atomic_fetch_add_explicit(&missed_sends, 1, memory_order_relaxed);
		return 0;
	}
	if (nt_profiler_sends_are_open)
		return 1;
	let_go();
	return 0;
}

static void end_send(const void *handle)
{
	if (!take_for_send())
		return;
	nt_proxy_send_done(handle, now());
	let_go();
}

/* Attempts are many, and mean nothing once it is known that some are refused. */
static void record_send(const void *handle, int state, const union nt_nccl_state_args *args)
{
	const int tries = state == NT_NCCL_STEP_PEER_WAIT && nt_proxy_send_is_credit_unknown();
	const int is_taken = state == NT_NCCL_STEP_SEND_WAIT && args;

	if ((!tries && !is_taken) || !take_for_send())
		return;
	if (tries)
		nt_proxy_send_tries(handle);
	else
		nt_proxy_send_taken(handle, args->bytes, now());
	let_go();
}

/* ---- events --------------------------------------------------------------------------------- */

/* Only while something is measured: a mask that is held back then is one of a measurement. */
static void note_capture(const struct nt_nccl_event *event, uint64_t type, uint64_t now_ns)
{
	if ((nt_profiler_is_open || nt_profiler_sends_are_open) && type == NT_NCCL_GROUP_API &&
	    event->group_api.is_captured)
		captured_ns = now_ns;
}

void *nt_profiler_start(int version, void *context, const struct nt_nccl_event *event)
{
	const uint64_t type = version >= 5 ? event->type : (uint8_t)event->type;
	struct profiled_comm *comm;
	void *handle = NULL;
	uint64_t now_ns;

	if (!nt_profiler_is_active())
		return NULL;
	if (type == NT_NCCL_PROXY_STEP)
		return version >= 4 ? nt_proxy_send_step(event) : NULL;
	if (!take())
		return NULL;
	now_ns = now();
	comm = comm_of(context);
	if (turn_window(comm, nt_batch_is_wanted(), now_ns))
		handle = start_in_window(comm, event, type, now_ns);
	if (turn_sends(comm) && !handle)
		handle = start_send(comm, event, type, now_ns);
	note_capture(event, type, now_ns);
	if (comm)
		write_mask(comm, now_ns);
	let_go();
	return handle;
}

void nt_profiler_stop(void *handle)
{
	struct profiled_channel *channel;

	if (nt_handle_kind(handle) == NT_HANDLE_PROXY_STEP)
		end_send(handle);
	/* A call has ended when its kernel has; this is the end of its enqueuing. */
	if (nt_handle_kind(handle) != NT_HANDLE_CHANNEL || !take())
		return;
	channel = channel_of(handle);
	if (channel)
		channel->generation++;
	let_go();
}

void nt_profiler_state(void *handle, int state, const union nt_nccl_state_args *args)
{
	struct profiled_channel *channel;

	if (nt_handle_kind(handle) == NT_HANDLE_PROXY_STEP)
		record_send(handle, state, args);
	if (nt_handle_kind(handle) != NT_HANDLE_CHANNEL || state != NT_NCCL_KERNEL_CHANNEL_STOP ||
	    !args || !take())
		return;
	channel = channel_of(handle);
	if (channel && nt_profiler_is_open && !drifted)
		end_channel(channel, args->stop, now());
	let_go();
}
