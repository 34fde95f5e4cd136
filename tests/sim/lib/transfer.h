/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What libnccl puts on a stream: a batch of the calls of one group on one communicator. The batch
 * ends when its last call ends.
 */
#ifndef NT_SIM_TRANSFER_H
#define NT_SIM_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/lib/communicator.h"
#include "tests/sim/lib/standin.h"

enum sim_call_kind {
	SIM_CALL_ALL_REDUCE,
	SIM_CALL_ALL_GATHER,
	SIM_CALL_REDUCE_SCATTER,
	SIM_CALL_ALL_TO_ALL,
	SIM_CALL_BROADCAST,
	SIM_CALL_REDUCE,
	SIM_CALL_GATHER,
	SIM_CALL_SCATTER,
	SIM_CALL_SEND,
	SIM_CALL_RECV,
	SIM_CALL_PUT,
};

struct sim_call {
	enum sim_call_kind kind;
	const void *send;
	void *recv;
	size_t count;
	int type, op;
	unsigned int peer; /* or root */
	bool has_data; /* buffers that hold it all, and not too much */
	/* From here on: one launch. */
	uint64_t number;
	bool published, done;
	uint64_t arrive_ns, end_ns; /* the last rank that it waits for has come; it ends */
	double network; /* part of the time between, in which the network has what this rank sends */
};

struct sim_plan;
struct sim_flight;

struct sim_batch {
	struct sim_comm *comm; /* a reference */
	/* For a profiler plugin; NULL: none. References. */
	struct sim_plan *plan;
	struct sim_flight *flight; /* once it is put on a stream */
	size_t calls;
	struct sim_call call[];
};

extern const struct sim_model sim_transfer_model;

/* The kernel of a batch. Under the device's lock; valid for ever. */
const char *sim_transfer_name(const void *state);

/* A reference to the communicator goes along. NULL: no memory. */
struct sim_batch *sim_batch_new(struct sim_comm *comm, const struct sim_call *call, size_t calls);
/* Its times are also those of the plan, which may be NULL. */
void sim_batch_observe(struct sim_batch *batch, struct sim_plan *plan);

/* Of this process's ranks: how much longer their transfers take. */
void sim_transfer_slow_nic(double factor);

/* Bytes that a call reads from `send` or writes to `recv` on a rank. */
size_t sim_call_send_bytes(const struct sim_call *call, const struct sim_comm *comm);
size_t sim_call_recv_bytes(const struct sim_call *call, const struct sim_comm *comm);

#endif
