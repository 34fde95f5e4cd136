/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/lib/nccl/plan.h"
#include "tests/sim/lib/reduce.h"

enum {
	LATENCY_NS = 15000,
	BYTES_PER_NS = 20, /* 20 GB/s */
	JITTER_NS = 50000, /* at most, and at most a twentieth of the transfer */
};

static double own_nic = 1;

void sim_transfer_slow_nic(double factor)
{
	own_nic = factor > 0 ? factor : 1;
}

/* ---- what a call needs ---- */

static size_t block_bytes(const struct sim_call *call)
{
	return call->count * sim_type_bytes(call->type);
}

size_t sim_call_send_bytes(const struct sim_call *call, const struct sim_comm *comm)
{
	switch (call->kind) {
	case SIM_CALL_REDUCE_SCATTER:
	case SIM_CALL_ALL_TO_ALL:
		return block_bytes(call) * comm->ranks;
	case SIM_CALL_BROADCAST:
		return call->peer == comm->rank ? block_bytes(call) : 0;
	case SIM_CALL_SCATTER:
		return call->peer == comm->rank ? block_bytes(call) * comm->ranks : 0;
	case SIM_CALL_RECV:
		return 0;
	default:
		return block_bytes(call);
	}
}

size_t sim_call_recv_bytes(const struct sim_call *call, const struct sim_comm *comm)
{
	switch (call->kind) {
	case SIM_CALL_ALL_GATHER:
	case SIM_CALL_ALL_TO_ALL:
		return block_bytes(call) * comm->ranks;
	case SIM_CALL_REDUCE:
		return call->peer == comm->rank ? block_bytes(call) : 0;
	case SIM_CALL_GATHER:
		return call->peer == comm->rank ? block_bytes(call) * comm->ranks : 0;
	case SIM_CALL_SEND:
	case SIM_CALL_PUT:
		return 0;
	default:
		return block_bytes(call);
	}
}

/* The rank waits for the parts of all, of the root alone, or of nobody. */
static bool needs(const struct sim_call *call, const struct sim_comm *comm, unsigned int rank)
{
	switch (call->kind) {
	case SIM_CALL_BROADCAST:
	case SIM_CALL_SCATTER:
		return rank == call->peer;
	case SIM_CALL_REDUCE:
	case SIM_CALL_GATHER:
		return comm->rank == call->peer;
	default:
		return true;
	}
}

static uint64_t signature_of(const struct sim_call *call)
{
	uint64_t word[] = {(uint64_t)call->kind, call->count, (uint64_t)call->type, call->peer};

	return sim_hash(1, word, sizeof(word)) | 1;
}

/* ---- time ---- */

static uint64_t transfer_ns(const struct sim_call *call, const struct sim_comm *comm, double nic)
{
	uint64_t bytes = block_bytes(call);

	switch (call->kind) {
	case SIM_CALL_ALL_REDUCE:
		bytes = 2 * bytes * (comm->ranks - 1) / comm->ranks;
		break;
	case SIM_CALL_ALL_GATHER:
	case SIM_CALL_REDUCE_SCATTER:
	case SIM_CALL_ALL_TO_ALL:
	case SIM_CALL_GATHER:
	case SIM_CALL_SCATTER:
		bytes *= comm->ranks - 1;
		break;
	default:
		break;
	}
	return (uint64_t)((double)(LATENCY_NS + bytes / BYTES_PER_NS) * nic);
}

/* The same for the same rank and number, so that a run can be understood. */
static uint64_t jitter_ns(const struct sim_call *call, const struct sim_comm *comm, uint64_t most)
{
	uint64_t word[] = {comm->hash, comm->rank, call->number};

	most /= 20;
	if (most > JITTER_NS)
		most = JITTER_NS;
	return most ? sim_hash(2, word, sizeof(word)) % most : 0;
}

/* ---- data ---- */

static void fetch_reduced(const struct sim_call *call, const struct sim_comm *comm, size_t offset)
{
	memcpy(call->recv, sim_comm_data(comm, call->number, 0) + offset, block_bytes(call));
	for (unsigned int i = 1; i < comm->ranks; i++)
		sim_reduce(call->recv, sim_comm_data(comm, call->number, i) + offset, call->count,
			   call->type, call->op);
	if (call->op == ncclAvg)
		sim_reduce_average(call->recv, call->count, call->type, comm->ranks);
}

static void fetch_blocks(const struct sim_call *call, const struct sim_comm *comm, size_t offset)
{
	size_t bytes = block_bytes(call);

	for (unsigned int i = 0; i < comm->ranks; i++)
		memcpy((char *)call->recv + i * bytes,
		       sim_comm_data(comm, call->number, i) + offset, bytes);
}

static void fetch(const struct sim_call *call, const struct sim_comm *comm)
{
	size_t own_block = comm->rank * block_bytes(call);

	switch (call->kind) {
	case SIM_CALL_ALL_REDUCE:
		fetch_reduced(call, comm, 0);
		break;
	case SIM_CALL_REDUCE_SCATTER:
		fetch_reduced(call, comm, own_block);
		break;
	case SIM_CALL_ALL_GATHER:
		fetch_blocks(call, comm, 0);
		break;
	case SIM_CALL_ALL_TO_ALL:
		fetch_blocks(call, comm, own_block);
		break;
	case SIM_CALL_BROADCAST:
		memcpy(call->recv, sim_comm_data(comm, call->number, call->peer),
		       block_bytes(call));
		break;
	case SIM_CALL_SCATTER:
		memcpy(call->recv, sim_comm_data(comm, call->number, call->peer) + own_block,
		       block_bytes(call));
		break;
	case SIM_CALL_REDUCE:
		if (comm->rank == call->peer)
			fetch_reduced(call, comm, 0);
		break;
	case SIM_CALL_GATHER:
		if (comm->rank == call->peer)
			fetch_blocks(call, comm, 0);
		break;
	default:
		break;
	}
}

/* ---- collectives ---- */

static bool all_published(const struct sim_comm *comm, uint64_t number)
{
	for (unsigned int i = 0; i < comm->ranks; i++)
		if (!sim_part_is(sim_comm_part(comm, number, i), number))
			return false;
	return true;
}

static void publish(struct sim_call *call, struct sim_comm *comm, uint64_t start_ns)
{
	struct sim_part part = {.number = call->number,
				.arrive_ns = start_ns,
				.signature = signature_of(call),
				.nic = own_nic,
				.has_data = call->has_data};
	bool is_root = call->peer == comm->rank;

	if (call->has_data)
		memcpy(sim_comm_data(comm, call->number, comm->rank), call->send,
		       sim_call_send_bytes(call, comm));
	sim_part_publish(sim_comm_part(comm, call->number, comm->rank), &part);
	call->published = true;

	/* Who can go on now that could not before? */
	if (call->kind == SIM_CALL_BROADCAST || call->kind == SIM_CALL_SCATTER) {
		if (is_root)
			sim_comm_ring_all(comm);
	} else if (all_published(comm, call->number)) {
		if (call->kind == SIM_CALL_REDUCE || call->kind == SIM_CALL_GATHER) {
			if (!is_root)
				sim_comm_ring(comm, call->peer);
		} else {
			sim_comm_ring_all(comm);
		}
	}
}

static bool resolve(struct sim_call *call, struct sim_comm *comm)
{
	const struct sim_part *own = sim_comm_part(comm, call->number, comm->rank),
			      *next = sim_comm_part(comm, call->number,
						    (comm->rank + 1) % comm->ranks);
	uint64_t arrive_ns = own->arrive_ns, took_ns;
	double nic = own->nic;
	bool has_data = call->has_data;

	for (unsigned int i = 0; i < comm->ranks; i++) {
		const struct sim_part *part = sim_comm_part(comm, call->number, i);

		if (!needs(call, comm, i))
			continue;
		if (!sim_part_is(part, call->number) || part->signature != own->signature)
			return false;
		if (part->arrive_ns > arrive_ns)
			arrive_ns = part->arrive_ns;
		if (part->nic > nic)
			nic = part->nic;
		has_data &= part->has_data != 0;
	}
	took_ns = transfer_ns(call, comm, nic);
	/* In a ring: the slower of the two cards. For the rest of the time there is nothing to send. */
	call->network = (next->nic > own->nic ? next->nic : own->nic) / nic;
	call->network = call->network < 1 ? call->network : 1;
	call->arrive_ns = arrive_ns;
	call->end_ns = arrive_ns + took_ns + jitter_ns(call, comm, took_ns);
	call->done = true;
	if (has_data)
		fetch(call, comm);
	sim_comm_resolved(comm, call->number);
	return true;
}

static void collective_moves(struct sim_call *call, struct sim_comm *comm, uint64_t start_ns)
{
	if (comm->resolved + 1 != call->number)
		return;
	if (!call->published) {
		if (!sim_comm_has_room(comm, call->number))
			return;
		publish(call, comm, start_ns);
	}
	(void)resolve(call, comm);
}

/* ---- sends and receives ---- */

static bool is_eager(const struct sim_call *call)
{
	return block_bytes(call) <= SIM_EAGER_BYTES;
}

static void finish(struct sim_call *call, const struct sim_comm *comm, uint64_t arrive_ns,
		   double nic)
{
	uint64_t took_ns = transfer_ns(call, comm, nic);

	call->network = 1;
	call->arrive_ns = arrive_ns;
	call->end_ns = arrive_ns + took_ns + jitter_ns(call, comm, took_ns);
	call->done = true;
}

static void send_moves(struct sim_call *call, struct sim_comm *comm, uint64_t start_ns)
{
	struct sim_channel *channel = sim_comm_channel(comm, comm->rank, call->peer);
	struct sim_part *own = &channel->send[call->number % SIM_CHANNEL_SLOTS];
	const struct sim_part *other = &channel->recv[call->number % SIM_CHANNEL_SLOTS];
	double nic = own_nic;

	if (!call->published) {
		struct sim_part part = {.number = call->number,
					.arrive_ns = start_ns,
					.signature = call->count,
					.nic = own_nic,
					.has_data = call->has_data};

		if (__atomic_load_n(&channel->received, __ATOMIC_SEQ_CST) + SIM_CHANNEL_SLOTS <
		    call->number)
			return; /* the receiver rings after each message that it has taken */
		if (call->has_data)
			memcpy(sim_comm_channel_data(comm, comm->rank, call->peer, call->number),
			       call->send, block_bytes(call));
		sim_part_publish(own, &part);
		call->published = true;
		sim_comm_ring(comm, call->peer);
	}
	if (is_eager(call)) {
		finish(call, comm, own->arrive_ns, own->nic);
	} else if (sim_part_is(other, call->number)) {
		if (other->nic > nic)
			nic = other->nic;
		finish(call, comm,
		       other->arrive_ns > own->arrive_ns ? other->arrive_ns : own->arrive_ns, nic);
	}
}

static void recv_moves(struct sim_call *call, struct sim_comm *comm, uint64_t start_ns)
{
	struct sim_channel *channel = sim_comm_channel(comm, call->peer, comm->rank);
	struct sim_part *own = &channel->recv[call->number % SIM_CHANNEL_SLOTS];
	const struct sim_part *other = &channel->send[call->number % SIM_CHANNEL_SLOTS];

	if (!call->published) {
		struct sim_part part = {.number = call->number,
					.arrive_ns = start_ns,
					.signature = call->count,
					.nic = own_nic};

		if (call->number > SIM_CHANNEL_SLOTS &&
		    __atomic_load_n(&channel->received, __ATOMIC_SEQ_CST) + SIM_CHANNEL_SLOTS <
			    call->number)
			return;
		sim_part_publish(own, &part);
		call->published = true;
		if (!is_eager(call))
			sim_comm_ring(comm, call->peer);
	}
	/* In order: a later message is not taken before an earlier one. */
	if (channel->received + 1 != call->number || !sim_part_is(other, call->number) ||
	    other->signature != call->count)
		return;
	if (call->has_data && other->has_data)
		memcpy(call->recv,
		       sim_comm_channel_data(comm, call->peer, comm->rank, call->number),
		       block_bytes(call));
	finish(call, comm, other->arrive_ns > own->arrive_ns ? other->arrive_ns : own->arrive_ns,
	       other->nic > own->nic ? other->nic : own->nic);
	__atomic_store_n(&channel->received, call->number, __ATOMIC_SEQ_CST);
	sim_comm_ring(comm, call->peer);
}

/* ---- batches ---- */

/* A plan in a graph has a flight for each launch, any other one that is there already. */
static void number_flight(struct sim_batch *batch)
{
	if (!batch->plan)
		return;
	if (!batch->flight) {
		batch->flight = sim_flight_new(batch->plan);
		if (!batch->flight)
			return;
		sim_plan_add_flight(batch->plan, batch->flight);
	}
	sim_flight_number(batch->flight);
}

static void end_flight(const struct sim_batch *batch, uint64_t end_ns)
{
	uint64_t arrive_ns = 0;
	double network = 0;

	if (!batch->flight || batch->comm->aborted)
		return;
	for (size_t i = 0; i < batch->calls; i++) {
		if (batch->call[i].arrive_ns > arrive_ns)
			arrive_ns = batch->call[i].arrive_ns;
		if (batch->call[i].network > network)
			network = batch->call[i].network;
	}
	sim_flight_end(batch->flight, arrive_ns, end_ns, network);
}

static void launched(void *state)
{
	struct sim_batch *batch = state;
	struct sim_comm *comm = batch->comm;

	number_flight(batch);
	for (size_t i = 0; i < batch->calls; i++) {
		struct sim_call *call = &batch->call[i];

		if (call->kind == SIM_CALL_SEND)
			call->number = ++comm->sent[call->peer];
		else if (call->kind == SIM_CALL_RECV)
			call->number = ++comm->received[call->peer];
		else if (call->kind != SIM_CALL_PUT)
			call->number = ++comm->numbered;
	}
}

static bool progress(void *state, uint64_t start_ns, uint64_t *ret_end_ns)
{
	struct sim_batch *batch = state;
	struct sim_comm *comm = batch->comm;
	uint64_t end_ns = start_ns;
	bool all = true;

	if (batch->flight)
		sim_flight_start(batch->flight, start_ns);
	for (size_t i = 0; i < batch->calls; i++) {
		struct sim_call *call = &batch->call[i];

		if (!call->done && comm->aborted) {
			call->end_ns = start_ns;
			call->done = true;
		} else if (call->done) {
			/* known */
		} else if (call->kind == SIM_CALL_PUT) {
			finish(call, comm, start_ns, own_nic);
		} else if (call->kind == SIM_CALL_SEND) {
			send_moves(call, comm, start_ns);
		} else if (call->kind == SIM_CALL_RECV) {
			recv_moves(call, comm, start_ns);
		} else {
			collective_moves(call, comm, start_ns);
		}
		all &= call->done;
		if (call->done && call->end_ns > end_ns)
			end_ns = call->end_ns;
	}
	*ret_end_ns = end_ns;
	if (all)
		end_flight(batch, end_ns);
	return all;
}

struct sim_batch *sim_batch_new(struct sim_comm *comm, const struct sim_call *call, size_t calls)
{
	struct sim_batch *batch = malloc(sizeof(*batch) + calls * sizeof(*call));

	if (!batch)
		return NULL;
	batch->comm = comm;
	batch->plan = NULL;
	batch->flight = NULL;
	batch->calls = calls;
	memcpy(batch->call, call, calls * sizeof(*call));
	comm->refs++;
	return batch;
}

void sim_batch_observe(struct sim_batch *batch, struct sim_plan *plan)
{
	if (!plan)
		return;
	batch->plan = sim_plan_ref(plan);
	if (plan->is_persistent)
		return;
	batch->flight = sim_flight_new(plan);
	if (batch->flight)
		sim_plan_add_flight(plan, batch->flight);
}

static void *copy(const void *state)
{
	const struct sim_batch *batch = state;
	struct sim_batch *made = sim_batch_new(batch->comm, batch->call, batch->calls);

	for (size_t i = 0; made && i < made->calls; i++) {
		made->call[i].number = 0;
		made->call[i].published = false;
		made->call[i].done = false;
	}
	if (made)
		sim_batch_observe(made, batch->plan);
	return made;
}

static void release(void *state)
{
	struct sim_batch *batch = state;

	sim_flight_unref(batch->flight);
	sim_plan_unref(batch->plan);
	sim_comm_unref(batch->comm);
	free(batch);
}

const struct sim_model sim_transfer_model = {
	.launched = launched,
	.progress = progress,
	.copy = copy,
	.release = release,
	.name = sim_transfer_name,
};
