/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/communicator.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

struct nt_communicator *nt_communicator_new(struct nt_communicator_key key)
{
	struct nt_communicator *comm = calloc(1, sizeof(*comm));

	if (comm)
		comm->key = key;
	return comm;
}

void nt_communicator_free(struct nt_communicator *comm)
{
	if (!comm)
		return;
	for (int i = 0; i < NT_OP_END; i++) {
		if (comm->sum[i])
			free(comm->sum[i]->duration);
		if (comm->sum[i])
			free(comm->sum[i]->gpu_duration);
		free(comm->sum[i]);
	}
	nt_p2p_timing_release(&comm->peers);
	if (comm->share)
		nt_share_leave(comm->share, &comm->place);
	free(comm);
}

size_t nt_communicator_bytes(const struct nt_communicator *comm)
{
	size_t bytes = sizeof(*comm);

	for (int i = 0; i < NT_OP_END; i++) {
		const struct nt_communicator_sum *sum = comm->sum[i];

		if (sum)
			bytes += sizeof(*sum) + (sum->duration ? sizeof(*sum->duration) : 0) +
				 (sum->gpu_duration ? sizeof(*sum->gpu_duration) : 0);
	}
	if (comm->peers.transfer)
		bytes += NT_P2P_TIMING_MAX * sizeof(*comm->peers.transfer);
	return bytes;
}

uint64_t nt_communicator_id_world(const char *job_key, const char *mpi_namespace)
{
	uint64_t hash = nt_hash_text(NT_HASH_SEED, "mpi-world");

	return nt_hash_mix(nt_hash_text(nt_hash_text(hash, job_key), mpi_namespace));
}

uint64_t nt_communicator_id_child(uint64_t parent, int64_t color, uint32_t nth, uint64_t where)
{
	uint64_t hash = nt_hash_u64(NT_HASH_SEED, parent);

	hash = nt_hash_u64(hash, (uint64_t)color);
	return nt_hash_mix(nt_hash_u64(nt_hash_u64(hash, nth), where));
}

uint64_t nt_communicator_id_local(uint64_t boot, uint32_t pid, uint64_t start_ns, uint64_t handle)
{
	uint64_t hash = nt_hash_u64(nt_hash_u64(NT_HASH_SEED, boot), pid);

	return nt_hash_mix(nt_hash_u64(nt_hash_u64(hash, start_ns), handle));
}

bool nt_communicator_is_collective(enum nt_op op)
{
	switch (op) {
	case NT_OP_SEND:
	case NT_OP_RECV:
	case NT_OP_SEND_RECV:
	case NT_OP_PUT:
	case NT_OP_SIGNAL:
	case NT_OP_WAIT_SIGNAL:
	case NT_OP_WAIT:
	case NT_OP_GROUP_END:
		return false;
	default:
		return true;
	}
}

/* Calls of a thread pool end in any order: the hash must not depend on it. */
static void remember(struct nt_communicator *comm, const struct nt_communicator_call *call,
		     uint64_t number)
{
	uint64_t hash = nt_hash_u64(nt_hash_u64(NT_HASH_SEED, number), call->op);

	hash = nt_hash_u64(nt_hash_u64(hash, call->count), call->type);
	comm->rolling_hash += nt_hash_mix(hash);
	comm->recent[comm->calls % NT_COMMUNICATOR_RECENT] = (struct nt_signature){
		.number = number,
		.op = call->op,
		.count = call->count,
		.type = call->type,
		.entry_boot_ns = call->entry_ns,
	};
	comm->calls++;
	if (number > comm->last)
		comm->last = number;
}

static void sample(struct nt_communicator *comm, const struct nt_communicator_call *call,
		   uint64_t number, uint64_t nth)
{
	comm->sampler.cap =
		comm->epoch == NT_COMMUNICATOR_EPOCH_WHOLE ? NT_SAMPLER_ALIGNED : NT_SAMPLER_CAP;
	nt_sampler_offer(&comm->sampler,
			 &(struct nt_sample){
				 .comm = comm->id,
				 .number = number,
				 .bytes = call->bytes,
				 .epoch = comm->epoch,
				 .op = call->op,
				 .arrive_boot_ns = call->entry_ns,
				 .release_boot_ns = call->ret_ns,
			 },
			 nth);
}

static struct nt_communicator_sum *sum_of(struct nt_communicator *comm, enum nt_op op)
{
	if (!comm->sum[op])
		comm->sum[op] = calloc(1, sizeof(*comm->sum[op]));
	return comm->sum[op];
}

uint64_t nt_communicator_count(struct nt_communicator *comm,
			       const struct nt_communicator_call *call)
{
	enum nt_op op = (unsigned int)call->op < NT_OP_END ? call->op : NT_OP_UNKNOWN;
	struct nt_communicator_sum *sum = sum_of(comm, op);
	uint64_t number = call->number, nth = ++comm->own_number[op];

	if (!nt_communicator_is_collective(op)) {
		number = nth;
	} else {
		if (number) {
			comm->numbered_by_library = true;
			comm->epoch = NT_COMMUNICATOR_EPOCH_WHOLE;
		} else {
			number = comm->last + 1;
		}
		remember(comm, call, number);
	}
	comm->calls_window++;
	comm->last_call_ns = call->entry_ns;
	if (nt_communicator_is_collective(op))
		sample(comm, call, number, nth);
	if (!sum)
		return number;
	if (!sum->calls || number < sum->first)
		sum->first = number;
	if (number > sum->last)
		sum->last = number;
	sum->calls++;
	sum->bytes += call->bytes;
	if (call->ret_ns && !sum->duration)
		sum->duration = calloc(1, sizeof(*sum->duration));
	if (call->ret_ns && sum->duration)
		nt_sketch_add(sum->duration,
			      call->ret_ns > call->entry_ns ? call->ret_ns - call->entry_ns : 0);
	return number;
}

int nt_communicator_time_peers(struct nt_communicator *comm,
			       const struct nt_communicator_call *call)
{
	const uint64_t ns = call->ret_ns > call->entry_ns ? call->ret_ns - call->entry_ns : 0;
	int r = 0, r_from = 0;

	/* Peers are identified in the job only by an id that they share. */
	if (!call->ret_ns || comm->id_is_local)
		return 0;
	/* MPI_PROC_NULL and MPI_ANY_SOURCE are beyond any size, too. */
	if (call->to < comm->size && call->to != comm->rank)
		r = nt_p2p_timing_note(&comm->peers, call->to, NT_OP_SEND, call->bytes, 1, ns);
	if (call->from < comm->size && call->from != comm->rank)
		r_from = nt_p2p_timing_note(&comm->peers, call->from, NT_OP_RECV, call->bytes, 1,
					    ns);
	return r < 0 ? r : r_from;
}

int nt_communicator_sent(struct nt_communicator *comm, const struct nt_gpu_transfer *transfer)
{
	/* Those under way together took as long as so many one after the other. */
	const uint64_t in_turn = transfer->busy_ns / (transfer->shortest_ns ?: 1),
		       calls = in_turn < transfer->sends ? in_turn : transfer->sends;

	if (comm->id_is_local || transfer->peer >= comm->size || transfer->peer == comm->rank)
		return 0;
	return nt_p2p_timing_note(&comm->peers, transfer->peer, NT_OP_PUT, transfer->bytes,
				  calls ? calls : 1, transfer->shortest_ns);
}

void nt_communicator_gpu(struct nt_communicator *comm, enum nt_op op, uint64_t nth,
			 uint64_t start_ns, uint64_t end_ns)
{
	struct nt_communicator_sum *sum = (unsigned int)op < NT_OP_END ? sum_of(comm, op) : NULL;

	if (!sum)
		return;
	if (!sum->gpu_duration)
		sum->gpu_duration = calloc(1, sizeof(*sum->gpu_duration));
	if (sum->gpu_duration)
		nt_sketch_add(sum->gpu_duration, end_ns - start_ns);
	/* The library counts from the communicator's creation. */
	if (nth && comm->epoch == NT_COMMUNICATOR_EPOCH_WHOLE && nt_communicator_is_collective(op))
		nt_sampler_gpu(&comm->sampler, op, nth, start_ns, end_ns);
}

void nt_communicator_set_epoch(struct nt_communicator *comm, uint64_t epoch)
{
	/* A library's own numbers survive lost events. */
	if (!comm->numbered_by_library)
		comm->epoch = epoch;
}

void nt_communicator_clear(struct nt_communicator *comm)
{
	for (int i = 0; i < NT_OP_END; i++) {
		struct nt_communicator_sum *sum = comm->sum[i];

		/* Device times of earlier windows are sent with the next window that has calls. */
		if (!sum || !sum->calls)
			continue;
		if (sum->duration)
			*sum->duration = (struct nt_sketch){0};
		if (sum->gpu_duration)
			*sum->gpu_duration = (struct nt_sketch){0};
		sum->calls = 0;
		sum->bytes = 0;
		sum->first = 0;
		sum->last = 0;
	}
	nt_sampler_clear(&comm->sampler);
	nt_p2p_timing_clear(&comm->peers);
	comm->calls_reported = comm->calls;
	comm->calls_window = 0;
}
