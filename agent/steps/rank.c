/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

int nt_rank_new(struct nt_process *process, struct nt_rank **ret_rank)
{
	nt_auto(nt_rank) struct nt_rank *rank = calloc(1, sizeof(*rank));
	int r;

	if (!rank)
		return -ENOMEM;
	rank->process = process;
	rank->shed = process->shed;
	r = nt_step_new(&rank->step);
	if (r < 0)
		return r;
	*ret_rank = nt_take(rank);
	return 0;
}

size_t nt_rank_bytes(const struct nt_rank *rank)
{
	return sizeof(*rank) + nt_step_bytes(rank->step) +
	       (rank->order ? nt_stream_order_bytes() : 0) + (rank->gpu ? nt_gpu_bytes() : 0) +
	       (rank->completion ? nt_completion_bytes() : 0);
}

void nt_rank_free(struct nt_rank *rank)
{
	if (!rank)
		return;
	nt_step_free(rank->step);
	nt_stream_order_free(rank->order);
	nt_gpu_free(rank->gpu);
	nt_completion_free(rank->completion);
	nt_host_close(rank->host);
	free(rank);
}

/* ---- identity ------------------------------------------------------------------------------- */

/* The largest communicator with this rank's number; of several, the first. */
static const struct nt_communicator *largest_comm(const struct nt_rank *rank)
{
	const struct nt_communicator *best = NULL;

	for (const struct nt_communicator *comm = rank->process->comms; comm;
	     comm = comm->hh.next) {
		if (comm->rank_of != rank || !comm->size)
			continue;
		if (!best || comm->size > best->size ||
		    (comm->size == best->size && comm->ordinal < best->ordinal))
			best = comm;
	}
	return best;
}

void nt_rank_identify(struct nt_rank *rank)
{
	struct nt_identity_rank stated = nt_identity_rank(&rank->process->facts.env);
	const struct nt_communicator *world = largest_comm(rank);

	/* Ranks in one process share its environment: only communicators distinguish them. */
	if (rank->process->ranks > 1)
		stated = (struct nt_identity_rank){0};
	rank->local_rank = stated.local_rank;
	rank->world = NULL;
	/* A group smaller than the environment's world is not the world. */
	if (world && (!stated.known || world->size >= stated.size)) {
		rank->known = true;
		rank->rank = world->rank;
		rank->size = world->size;
		rank->world = world;
	} else if (stated.known) {
		rank->known = true;
		rank->rank = stated.rank;
		rank->size = stated.size;
	}
}

uint32_t nt_rank_thread(const struct nt_rank *rank)
{
	const struct nt_process *process = rank->process;
	uint32_t tid = process->pid;
	uint64_t most = 0;

	if (rank->gloo && !rank->asynchronous)
		return tid;
	for (uint32_t i = 0; i < process->threads; i++) {
		const struct nt_thread *thread = &process->thread[i];

		if (thread->rank == rank && thread->comm_calls > most) {
			most = thread->comm_calls;
			tid = thread->tid;
		}
	}
	return tid;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void add_step(struct nt_rank *rank, const struct nt_accounting_step *step)
{
	struct nt_rank_sums *sums = &rank->sums;
	bool covered = nt_accounting_is_covered(step);

	if (!sums->steps) {
		sums->first_step = step->number;
		sums->step_epoch = rank->step_epoch;
	}
	sums->steps++;
	sums->covered += covered;
	rank->synchronises |= covered && step->local_syncs;
	if (covered) {
		sums->own_ns += step->own_ns;
		sums->own_blocked_ns += step->own_blocked_ns;
	}
	if (step->has_gpu) {
		sums->gpu_steps++;
		sums->gpu_ns += step->gpu_ns;
		sums->gpu_lag_ns += step->gpu_lag_ns;
		sums->gpu_queued_ns += step->gpu_queued_ns;
		sums->gpu_by_communication = step->gpu_by_communication;
	}
	sums->host_ns += step->host_ns;
	sums->blocked_ns += step->blocked_ns;
	sums->comm_ns += step->comm_ns;
	sums->step_ns += step->gpu_step_ns ?: step->end_ns - step->start_ns;
	sums->launches += step->launches;
	sums->local_syncs += step->local_syncs;
	sums->asynchronous = step->asynchronous;
	sums->end_ns = step->end_ns;
}

/* Step numbers are comparable between ranks if call numbers are. */
static uint64_t step_epoch(const struct nt_ordered_call *anchor, const struct nt_step_info *info)
{
	uint64_t hash = nt_hash_u64(NT_HASH_SEED, anchor->comm_id);

	hash = nt_hash_u64(hash, anchor->epoch);
	hash = nt_hash_u64(hash, info->anchor_kind);
	return nt_hash_mix(nt_hash_u64(hash, info->anchors));
}

static bool is_blocking_library(const struct nt_communicator *comm)
{
	return comm->key.library == NT_LIBRARY_MPI || comm->key.library == NT_LIBRARY_GLOO;
}

/* All calls of the rank up to here are known: checks whether a step begins. */
static void follow_steps(struct nt_rank *rank, const struct nt_ordered_call *call)
{
	bool begins = nt_step_call(rank->step, &call->call);
	struct nt_step_info info;

	nt_step_info(rank->step, &info);
	if (!info.found || info.found_count != rank->found_count) {
		nt_accounting_reset(&rank->work);
		rank->work.ready_count = 0;
		if (rank->gpu)
			nt_gpu_reset(rank->gpu);
		if (rank->completion)
			nt_completion_reset(rank->completion);
		rank->synchronises = false;
		rank->sums = (struct nt_rank_sums){0}; /* steps of another kind do not add up */
		rank->found_count = info.found_count;
	}
	if (!begins)
		return;
	rank->step_epoch = step_epoch(call, &info);
	rank->step_before_ns = rank->work.end_ns ? rank->work.end_ns : rank->work.start_ns;
	nt_accounting_boundary(&rank->work, call->call.entry_ns, call->call.launches, info.number);
}

static void order_calls(struct nt_rank *rank, struct nt_communicator *comm,
			const struct nt_communicator_call *call, uint64_t launches)
{
	const struct nt_ordered_call next = {
		.call = {.comm = comm->ordinal,
			 .comm_size = comm->size,
			 .op = call->op,
			 .bytes = call->bytes,
			 .type = call->type,
			 .entry_ns = call->entry_ns,
			 .ret_ns = is_blocking_library(comm) ? call->ret_ns : 0,
			 .launches = launches},
		.number = call->number,
		.comm_id = comm->id,
		.epoch = comm->epoch,
	};
	struct nt_ordered_call due[NT_CALL_ORDER_DUE];
	uint32_t n;

	if (comm->key.library != NT_LIBRARY_GLOO || !call->number) {
		follow_steps(rank, &next);
		return;
	}
	n = nt_call_order_add(&rank->call_order, &comm->series, &next, due);
	for (uint32_t i = 0; i < n; i++)
		follow_steps(rank, &due[i]);
}

static bool take_gpu_steps(struct nt_rank *rank, uint64_t now_ns)
{
	struct nt_accounting_step step;
	bool any = false;

	while (nt_gpu_next(rank->gpu, now_ns, &step)) {
		add_step(rank, &step);
		any = true;
	}
	return any;
}

static bool take_steps(struct nt_rank *rank, uint64_t now_ns)
{
	struct nt_accounting_step step;
	bool any = rank->gpu && take_gpu_steps(rank, now_ns);

	while (nt_accounting_next(&rank->work, &step)) {
		if (rank->completion)
			nt_completion_step(rank->completion, step.start_ns, step.end_ns);
		if (!rank->gpu) {
			add_step(rank, &step);
			any = true;
			continue;
		}
		nt_gpu_step(rank->gpu, &step);
		any |= take_gpu_steps(rank, now_ns);
	}
	return any;
}

bool nt_rank_settle(struct nt_rank *rank, uint64_t now_ns)
{
	nt_accounting_settle(&rank->work, now_ns);
	return take_steps(rank, now_ns);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void see(struct nt_rank *rank, uint64_t entry_ns, uint64_t end_ns)
{
	if (!rank->window_ns)
		rank->window_ns = entry_ns;
	if (end_ns > rank->last_event_ns)
		rank->last_event_ns = end_ns;
}

static void become_asynchronous(struct nt_rank *rank)
{
	if (!rank->asynchronous) {
		nt_accounting_reset(&rank->work);
		rank->asynchronous = true;
		rank->work.asynchronous = true;
	}
	/* Without memory for it, own work is not observable; the rest continues. */
	if (!rank->order && nt_stream_order_new(&rank->order) < 0)
		rank->order = NULL;
}

/* Handles of both kinds are addresses, and stream 0 is shared. */
static uint64_t lane_of(const struct nt_communicator *comm, uint64_t stream)
{
	return comm->key.library == NT_LIBRARY_HCCL ? stream : comm->key.handle;
}

bool nt_rank_comm(struct nt_rank *rank, struct nt_communicator *comm,
		  const struct nt_communicator_call *call, uint64_t stream, uint64_t launches)
{
	see(rank, call->entry_ns, call->ret_ns ? call->ret_ns : call->entry_ns);
	rank->probed_calls++;
	if (comm->key.library == NT_LIBRARY_GLOO) {
		rank->gloo = true;
		rank->work.overlapping = true;
	}
	if (!is_blocking_library(comm))
		become_asynchronous(rank);

	(void)nt_communicator_count(comm, call);
	if (!is_blocking_library(comm) && rank->order)
		nt_stream_order_enqueue(rank->order, &rank->work, lane_of(comm, stream), stream,
					call->entry_ns, launches);
	if (!is_blocking_library(comm) && rank->completion)
		nt_completion_collective(rank->completion, stream);
	order_calls(rank, comm, call, launches);
	if (call->ret_ns && is_blocking_library(comm))
		nt_accounting_comm(&rank->work, call->entry_ns, call->ret_ns);
	return take_steps(rank, call->entry_ns);
}

void nt_rank_wait(struct nt_rank *rank, uint64_t entry_ns, uint64_t ret_ns)
{
	see(rank, entry_ns, ret_ns);
	rank->probed_calls++;
	nt_step_wait(rank->step, entry_ns, ret_ns);
	nt_accounting_comm(&rank->work, entry_ns, ret_ns);
}

void nt_rank_sync(struct nt_rank *rank, enum nt_stream_order_sync what, uint64_t handle,
		  bool counted, uint64_t entry_ns, uint64_t ret_ns, uint64_t launches)
{
	see(rank, entry_ns, ret_ns);
	if (counted)
		nt_accounting_sync(&rank->work, entry_ns, ret_ns);
	if (rank->order)
		nt_stream_order_sync(rank->order, &rank->work, what, handle, ret_ns, launches);
}

void nt_rank_record(struct nt_rank *rank, uint64_t event, uint64_t stream)
{
	if (rank->order)
		nt_stream_order_record(rank->order, event, stream);
	if (rank->completion)
		nt_completion_record(rank->completion, event, stream);
}

void nt_rank_stream_wait(struct nt_rank *rank, uint64_t stream, uint64_t event)
{
	if (rank->order)
		nt_stream_order_wait(rank->order, stream, event);
}

void nt_rank_query(struct nt_rank *rank, uint64_t event, bool is_complete, uint64_t ns)
{
	/* Without memory for it, own work is not observable; the rest continues. */
	if (!rank->completion && (!rank->asynchronous || nt_completion_new(&rank->completion) < 0))
		return;
	nt_completion_query(rank->completion, event, is_complete, ns);
}

static bool has_silent_comm(const struct nt_rank *rank)
{
	for (const struct nt_communicator *comm = rank->process->comms; comm;
	     comm = comm->hh.next) {
		if (comm->rank_of == rank && comm->size != 1 && comm->last_call_ns &&
		    comm->last_call_ns < rank->step_before_ns)
			return true;
	}
	return false;
}

void nt_rank_graph(struct nt_rank *rank, uint64_t stream, uint64_t entry_ns, uint64_t launches)
{
	if (rank->order && has_silent_comm(rank))
		nt_stream_order_enqueue(rank->order, &rank->work, stream, stream, entry_ns,
					launches);
}

void nt_rank_gap(struct nt_rank *rank)
{
	nt_accounting_reset(&rank->work);
	nt_step_gap(rank->step);
	nt_call_order_gap(&rank->call_order);
	/* The order of streams is no longer known. */
	nt_stream_order_free(rank->order);
	rank->order = NULL;
	rank->step_before_ns = 0;
	if (rank->gpu)
		nt_gpu_reset(rank->gpu);
	if (rank->completion)
		nt_completion_reset(rank->completion);
}

/* ---- the device ------------------------------------------------------------------------------ */

bool nt_rank_gpu(struct nt_rank *rank, struct nt_communicator *comm,
		 const struct nt_gpu_interval *interval, uint64_t now_ns)
{
	if (interval->communicates && comm)
		nt_communicator_gpu(comm, interval->op, interval->nth, interval->start_ns,
				    interval->end_ns);
	if (interval->communicates && !(rank->gpu && nt_gpu_is_by_communication(rank->gpu)))
		return true;
	/* Without memory for it, the rank keeps the tier of its calls. */
	if (!rank->gpu && nt_gpu_new(&rank->gpu) < 0)
		return false;
	return nt_gpu_add(rank->gpu, interval, now_ns);
}

void nt_rank_gpu_open(struct nt_rank *rank, uint64_t from_ns, bool by_communication)
{
	if (rank->gpu || nt_gpu_new(&rank->gpu) == 0)
		nt_gpu_open(rank->gpu, from_ns, by_communication);
}

void nt_rank_gpu_close(struct nt_rank *rank)
{
	if (rank->gpu)
		nt_gpu_close(rank->gpu);
}

void nt_rank_gpu_lost(struct nt_rank *rank)
{
	if (rank->gpu)
		nt_gpu_lose(rank->gpu);
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Of calls that only enqueue, and of hosts that do not synchronise on local work. */
static enum nt_tier own_of_completion(const struct nt_rank *rank, uint64_t *ret_own_ns,
				      uint64_t *ret_own_blocked_ns, enum nt_own_source *ret_source)
{
	const struct nt_rank_sums *sums = &rank->sums;
	uint64_t own_ns;

	/* A rank has one history of this tier: what the kernels of NCCL show is not mixed with it. */
	if (rank->synchronises || !rank->completion ||
	    (rank->gpu && nt_gpu_is_by_communication(rank->gpu)) ||
	    !nt_completion_own(rank->completion, sums->end_ns, sums->steps, sums->step_ns, &own_ns))
		return NT_TIER_T1;
	/* The device's: the host is not at work in it. */
	*ret_own_ns = *ret_own_blocked_ns = own_ns;
	*ret_source = NT_OWN_SOURCE_QUERIES;
	return NT_TIER_T2;
}

enum nt_tier nt_rank_own(const struct nt_rank *rank, uint64_t *ret_own_ns,
			 uint64_t *ret_own_blocked_ns, enum nt_own_source *ret_source)
{
	const struct nt_rank_sums *sums = &rank->sums;
	const bool has_gpu = sums->gpu_steps && sums->gpu_steps * 2 >= sums->steps;

	*ret_own_ns = 0;
	*ret_own_blocked_ns = 0;
	*ret_source = NT_OWN_SOURCE_UNKNOWN;
	if (!sums->steps)
		return NT_TIER_UNKNOWN;
	if (has_gpu && !sums->gpu_by_communication) {
		*ret_own_ns = (uint64_t)((double)sums->gpu_ns * sums->steps / sums->gpu_steps);
		*ret_source = NT_OWN_SOURCE_CUPTI;
		return NT_TIER_T3;
	}
	if (sums->asynchronous && (sums->covered * 2 < sums->steps || !sums->local_syncs)) {
		if (!has_gpu)
			return own_of_completion(rank, ret_own_ns, ret_own_blocked_ns, ret_source);
		*ret_own_ns = (uint64_t)((double)sums->gpu_ns * sums->steps / sums->gpu_steps);
		*ret_own_blocked_ns =
			(uint64_t)((double)sums->gpu_queued_ns * sums->steps / sums->gpu_steps);
		*ret_source = NT_OWN_SOURCE_NCCL;
		return NT_TIER_T2;
	}
	/* Steps that are not covered are assumed to be like the others. */
	*ret_own_ns = (uint64_t)((double)sums->own_ns * sums->steps / sums->covered);
	*ret_own_blocked_ns =
		(uint64_t)((double)sums->own_blocked_ns * sums->steps / sums->covered);
	*ret_source = NT_OWN_SOURCE_CALLS;
	return NT_TIER_T2;
}

void nt_rank_clear(struct nt_rank *rank, uint64_t end_ns)
{
	rank->sums = (struct nt_rank_sums){0};
	rank->window_ns = end_ns;
	rank->errors = 0;
	rank->probed_calls = 0;
	rank->shed = rank->process->shed;
}
