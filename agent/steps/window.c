/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct nt_window_message {
	struct nt_window window;
	struct nt_comm_window *comm;
	struct nt_comm_op *op;
	struct nt_signature *recent;
	struct nt_sample *sample;
	struct nt_transfer *transfer;
	uint32_t *bucket;
	uint32_t transfers_over_cap;
	struct nt_window_heap heap;
};

enum {
	MAX_SAMPLES = 64,
	MAX_TRANSFERS = 64,
	RECENT_MOVING = 4, /* last calls sent of an active communicator; the rest is hashed */
	/* An exit code as wait(2) has it. */
	SIGNAL_BITS = 0x7f,
	STATUS_SHIFT = 8,
};

/* Numbers of elements in a window. */
struct room {
	size_t comms, ops, recents, samples, transfers, buckets;
};

void nt_window_free(struct nt_window_message *message)
{
	if (!message)
		return;
	free(message->comm);
	free(message->op);
	free(message->recent);
	free(message->sample);
	free(message->transfer);
	free(message->bucket);
	free(message);
}

const struct nt_window *nt_window_get(const struct nt_window_message *message)
{
	return &message->window;
}

uint32_t nt_window_transfers_over_cap(const struct nt_window_message *message)
{
	return message->transfers_over_cap;
}

static size_t used_buckets(const struct nt_sketch *sketch)
{
	size_t used = 0;

	for (int i = 0; i < NT_SKETCH_BUCKETS; i++)
		used += sketch->count[i] != 0;
	return used;
}

/* All of the last calls if the rank is stalled, else only the new ones. */
static uint64_t recents_of(const struct nt_rank *rank, const struct nt_communicator *comm)
{
	bool moves = rank->sums.steps > 0;
	uint64_t wanted = moves ? comm->calls - comm->calls_reported : comm->calls;
	uint64_t most = moves ? RECENT_MOVING : NT_COMMUNICATOR_RECENT;

	return wanted < most ? wanted : most;
}

/* Iterates over the rank's communicators, freed but unreported ones included. */
static const struct nt_communicator *next_comm(const struct nt_rank *rank,
					       const struct nt_communicator *comm, bool *ended)
{
	do {
		if (!comm)
			comm = rank->process->comms;
		else
			comm = *ended ? comm->next_ended : comm->hh.next;
		if (!comm && !*ended) {
			*ended = true;
			comm = rank->process->ended;
		}
	} while (comm && comm->rank_of != rank);
	return comm;
}

static void measure(const struct nt_rank *rank, struct room *room)
{
	const struct nt_communicator *comm = NULL;
	bool ended = false;

	while ((comm = next_comm(rank, comm, &ended))) {
		room->comms++;
		room->recents += (size_t)recents_of(rank, comm);
		room->samples += comm->sampler.count;
		room->transfers += comm->peers.count;
		for (int i = 0; i < NT_OP_END; i++) {
			const struct nt_communicator_sum *sum = comm->sum[i];

			if (!sum || !sum->calls)
				continue;
			room->ops++;
			room->buckets += sum->duration ? 2 * used_buckets(sum->duration) : 0;
			room->buckets +=
				sum->gpu_duration ? 2 * used_buckets(sum->gpu_duration) : 0;
		}
	}
}

static void fill_sketch(const struct nt_sketch *sketch, uint32_t **bucket,
			struct nt_sketch_wire *ret_wire)
{
	size_t used = used_buckets(sketch), n = 0;

	*ret_wire = (struct nt_sketch_wire){
		.bucket = *bucket,
		.count = *bucket + used,
		.buckets = used,
		.sum_ns = sketch->sum_ns,
		.min_ns = sketch->min_ns,
		.max_ns = sketch->max_ns,
	};
	for (uint32_t i = 0; i < NT_SKETCH_BUCKETS; i++) {
		if (!sketch->count[i])
			continue;
		ret_wire->bucket[n] = i;
		ret_wire->count[n++] = sketch->count[i];
	}
	*bucket += 2 * used;
}

static void fill_comm(const struct nt_rank *rank, const struct nt_communicator *comm,
		      struct nt_comm_op **op, struct nt_signature **recent, uint32_t **bucket,
		      struct nt_comm_window *ret_comm)
{
	uint64_t recents = recents_of(rank, comm);

	*ret_comm = (struct nt_comm_window){
		.id = comm->id,
		.parent = comm->parent,
		.epoch = comm->epoch,
		.rolling_hash = comm->rolling_hash,
		.last = comm->last,
		.rank = comm->rank,
		.size = comm->size,
		.library = (enum nt_library)comm->key.library,
		.id_is_local = comm->id_is_local,
		.numbered_by_library = comm->numbered_by_library,
		.op = *op,
		.recent = *recent,
		.recents = (size_t)recents,
		.name = comm->name,
	};
	for (int i = 0; i < NT_OP_END; i++) {
		const struct nt_communicator_sum *sum = comm->sum[i];

		if (!sum || !sum->calls)
			continue;
		**op = (struct nt_comm_op){
			.op = (enum nt_op)i,
			.calls = sum->calls,
			.bytes = sum->bytes,
			.first = sum->first,
			.last = sum->last,
		};
		if (sum->duration)
			fill_sketch(sum->duration, bucket, &(*op)->duration);
		if (sum->gpu_duration)
			fill_sketch(sum->gpu_duration, bucket, &(*op)->gpu_duration);
		(*op)++;
		ret_comm->ops++;
	}
	for (uint64_t i = comm->calls - recents; i < comm->calls; i++) {
		**recent = comm->recent[i % NT_COMMUNICATOR_RECENT];
		/* Only the last call locates the rank, and times compress badly. */
		if (i + 1 < comm->calls || rank->sums.steps)
			(*recent)->entry_boot_ns = 0;
		(*recent)++;
	}
}

static void add_samples(const struct nt_communicator *comm, struct nt_window_message *message)
{
	const struct nt_sampler *sampler = &comm->sampler;

	for (uint32_t i = 0; i < sampler->count && message->window.samples < MAX_SAMPLES; i++)
		message->sample[message->window.samples++] = sampler->sample[i];
}

static void add_transfers(const struct nt_communicator *comm, struct nt_window_message *message)
{
	struct nt_window *window = &message->window;

	for (uint32_t i = 0; i < comm->peers.count; i++) {
		struct nt_transfer *transfer;

		if (window->transfers == MAX_TRANSFERS) {
			message->transfers_over_cap += comm->peers.count - i;
			return;
		}
		transfer = &message->transfer[window->transfers++];
		*transfer = comm->peers.transfer[i];
		transfer->comm = comm->id;
	}
}

static void fill_comms(const struct nt_rank *rank, struct nt_window_message *message)
{
	struct nt_comm_op *op = message->op;
	struct nt_signature *recent = message->recent;
	uint32_t *bucket = message->bucket;
	const struct nt_communicator *comm = NULL;
	bool ended = false;

	/* No more than NT_PROCESS_COMMS, which all fit. */
	while ((comm = next_comm(rank, comm, &ended))) {
		fill_comm(rank, comm, &op, &recent, &bucket,
			  &message->comm[message->window.comms++]);
		add_samples(comm, message);
		add_transfers(comm, message);
	}
	message->window.comm = message->comm;
	message->window.sample = message->sample;
	message->window.transfer = message->transfer;
}

void nt_window_name(const struct nt_rank *rank, struct nt_rank_id *id)
{
	const struct nt_process *process = rank->process;

	id->job = rank->name;
	id->namespace = process->placement.namespace;
	id->pod = process->placement.pod;
	id->container = process->placement.container;
	id->gpu = process->ranks == 1 ? process->placement.gpu : "";
	id->replica = process->placement.workload.replica;
	id->pod_uid = process->placement.pod_uid;
}

void nt_window_rank(const struct nt_rank *rank, const char *node, struct nt_rank_id *ret_id)
{
	const struct nt_process *process = rank->process;

	*ret_id = (struct nt_rank_id){
		.rank = rank->rank,
		.size = rank->size,
		.local_rank = rank->local_rank,
		.pid = process->pid,
		.start_boot_ns = process->start_ns,
		.node = node,
		.cgroup = process->facts.cgroup.path,
		.comm = process->facts.command,
		.rank_known = rank->known,
	};
	nt_window_name(rank, ret_id);
}

/* True if returns of calls made since then are observed. */
static bool is_seen_since(const struct nt_rank *rank, uint64_t ns)
{
	const struct nt_process *process = rank->process;

	return !process->paused && !(process->shed & NT_WIRE_SHED_COMMUNICATION) &&
	       (!process->resumed_ns || ns >= process->resumed_ns);
}

/*
 * An earlier result is valid only if nothing has happened since. Unobserved, a call may have ended
 * and another begun.
 */
static void fill_inside(const struct nt_rank *rank, struct nt_window *window)
{
	bool in_call = rank->inside.in_call && rank->last_event_ns <= rank->inside.seen_ns &&
		       is_seen_since(rank, rank->inside.since_ns);

	window->whereabouts_unknown = !in_call && !is_seen_since(rank, rank->last_event_ns);
	if (!in_call)
		return;
	window->inside = (struct nt_inside_wire){
		.in_call = true,
		.synchronising = rank->inside.synchronising,
		.comm = rank->inside.comm,
		.number = rank->inside.number,
		.since_boot_ns = rank->inside.since_ns,
		.count = rank->inside.count,
		.op = rank->inside.op,
		.type = rank->inside.type,
	};
}

static void fill_sums(const struct nt_rank *rank, struct nt_window *window)
{
	const struct nt_rank_sums *sums = &rank->sums;

	window->steps = sums->steps;
	window->first_step = sums->first_step;
	window->step_epoch = sums->step_epoch;
	window->own_tier =
		nt_rank_own(rank, &window->own_ns, &window->own_blocked_ns, &window->own_source);
	window->gpu_lag_ns = window->own_tier == NT_TIER_T3
				     ? sums->gpu_lag_ns / sums->gpu_steps * sums->steps
				     : 0;
	window->host_ns = sums->host_ns;
	window->blocked_ns = sums->blocked_ns;
	window->comm_ns = sums->comm_ns;
	window->step_ns = sums->step_ns;
}

static uint64_t without(uint64_t value, uint64_t part)
{
	/* More than half would be probe overhead: then the correction is wrong, not the value. */
	return value - (part < value / 2 ? part : value / 2);
}

/* Probe overhead outside the calls of the whole steps, which are a part of what was observed. */
static uint64_t probes_of_steps(const struct nt_rank *rank, const struct nt_window_context *context)
{
	uint64_t probes_ns = context->outside_ns * rank->probed_calls;
	uint64_t unobserved_ns = rank->window_ns + context->unobserved_ns;
	uint64_t observed_ns =
		context->end_ns > unobserved_ns ? context->end_ns - unobserved_ns : 0;

	if (rank->sums.step_ns >= observed_ns)
		return probes_ns;
	return (uint64_t)((double)probes_ns * (double)rank->sums.step_ns / (double)observed_ns);
}

/*
 * A rank is sampled because of its many calls: the overhead of each would count as own work. If
 * launches or waits are not observed, it is unknown what a wait covers; unobserved calls are in
 * neither own nor host work.
 */
static void correct_sums(const struct nt_rank *rank, const struct nt_window_context *context,
			 struct nt_window *window)
{
	const bool is_by_device = window->own_source == NT_OWN_SOURCE_CUPTI ||
				  window->own_source == NT_OWN_SOURCE_NCCL;

	if (context->unobserved_ns) {
		uint64_t probes_ns = probes_of_steps(rank, context);

		window->own_ns = without(window->own_ns, probes_ns);
		window->host_ns = without(window->host_ns, probes_ns);
		window->step_ns = without(window->step_ns, probes_ns);
	}
	if (window->own_tier == NT_TIER_T2 && rank->sums.asynchronous && !is_by_device &&
	    (context->shed & (NT_WIRE_SHED_LAUNCHES | NT_WIRE_SHED_SYNCS | NT_WIRE_SHED_ORDER))) {
		window->own_tier = NT_TIER_T1;
		window->own_ns = window->own_blocked_ns = 0;
		window->own_source = NT_OWN_SOURCE_UNKNOWN;
	}
	if (window->steps && !is_by_device && (context->shed & NT_WIRE_SHED_COMMUNICATION)) {
		window->own_tier = NT_TIER_T0;
		window->own_ns = window->own_blocked_ns = 0;
		window->own_source = NT_OWN_SOURCE_UNKNOWN;
	}
}

static void fill_counters(const struct nt_process_counters *counters, struct nt_window *window)
{
	bool runtime = counters->calls[NT_COUNTER_LAUNCH] || counters->calls[NT_COUNTER_COPY];

	/* Runtime calls end in driver calls: use one of the two. */
	window->launches = counters->calls[runtime ? NT_COUNTER_LAUNCH : NT_COUNTER_DRIVER_LAUNCH];
	window->copies = counters->calls[runtime ? NT_COUNTER_COPY : NT_COUNTER_DRIVER_COPY];
	window->copy_bytes = counters->bytes[runtime ? NT_COUNTER_COPY : NT_COUNTER_DRIVER_COPY];
	window->allocs = counters->calls[NT_COUNTER_ALLOC];
	window->alloc_bytes = counters->bytes[NT_COUNTER_ALLOC];
	if (!window->allocs) {
		window->allocs = counters->calls[NT_COUNTER_DRIVER_ALLOC];
		window->alloc_bytes = counters->bytes[NT_COUNTER_DRIVER_ALLOC];
	}
}

/* A process may have ended before its last window was sent and this was noticed. */
static uint64_t ended_early_ns(const struct nt_rank *rank, uint64_t end_ns)
{
	const uint64_t ended_ns = rank->process->ended_ns;

	return ended_ns && ended_ns < end_ns ? end_ns - ended_ns : 0;
}

int nt_window_build(const struct nt_rank *rank, const struct nt_window_context *context,
		    struct nt_window_message **ret_message)
{
	nt_auto(nt_window_message) struct nt_window_message *message = NULL;
	const uint32_t exit_code = rank->process->counters.exit_code;
	struct room room = {0};

	message = calloc(1, sizeof(*message));
	if (!message)
		return -ENOMEM;
	measure(rank, &room);
	message->comm = calloc(room.comms + 1, sizeof(*message->comm));
	message->op = calloc(room.ops + 1, sizeof(*message->op));
	message->recent = calloc(room.recents + 1, sizeof(*message->recent));
	message->sample = calloc(room.samples + 1, sizeof(*message->sample));
	message->transfer = calloc(room.transfers + 1, sizeof(*message->transfer));
	message->bucket = calloc(room.buckets + 1, sizeof(*message->bucket));
	if (!message->comm || !message->op || !message->recent || !message->sample ||
	    !message->transfer || !message->bucket)
		return -ENOMEM;

	message->window = (struct nt_window){
		.start_boot_ns = rank->window_ns,
		.end_boot_ns = context->end_ns,
		.errors = rank->errors,
		.host = *context->host,
		.ended = context->ended,
		.finalized = context->ended && rank->process->finalized,
		.exit_signal = context->ended ? exit_code & SIGNAL_BITS : 0,
		.exit_status = context->ended ? exit_code >> STATUS_SHIFT : 0,
		.ended_early_ns = context->ended ? ended_early_ns(rank, context->end_ns) : 0,
		.ended_by_parent =
			context->ended && rank->process->counters.ended & NT_ENDED_BY_PARENT,
		.uses_gpu = nt_process_uses_gpu(rank->process),
		.lost = context->lost,
		.taken = context->taken,
		.unobserved_ns = context->unobserved_ns,
		.shed = context->shed,
		.level = rank->process->level,
		.gemms = context->gemms ? *context->gemms : (struct nt_gemms){0},
		.rdma = context->rdma ? *context->rdma : (struct nt_rdma_window){0},
		.tcp = context->tcp ? *context->tcp : (struct nt_tcp_window){0},
	};
	if (rank->process->facts.env.restart_count > 0)
		message->window.attempt_hint = (uint32_t)rank->process->facts.env.restart_count;
	nt_window_rank(rank, context->node, &message->window.rank);
	fill_sums(rank, &message->window);
	correct_sums(rank, context, &message->window);
	fill_counters(context->counters, &message->window);
	fill_comms(rank, message);
	if (context->heap)
		nt_window_heap_fill(context->heap, context->holder, context->with_heap_sites,
				    context->end_ns, &message->heap, &message->window.heap);
	if (context->stack) {
		message->window.stack = context->stack->thread;
		message->window.stacks = context->stack->threads;
	}
	if (context->profile) {
		message->window.profile = &context->profile->wire;
		message->window.profiles = 1;
	}
	if (!context->ended)
		fill_inside(rank, &message->window);
	*ret_message = nt_take(message);
	return 0;
}
