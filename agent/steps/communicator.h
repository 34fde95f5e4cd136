/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A communicator as one process sees it, and the account of its calls: numbers, sums of the window,
 * the last calls. Communicators are learned from calls; nobody configures them.
 */
#ifndef NT_AGENT_STEPS_COMMUNICATOR_H
#define NT_AGENT_STEPS_COMMUNICATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "agent/identity/share.h"
#include "agent/steps/comm_layout.h"
#include "agent/steps/p2p_timing.h"
#include "agent/steps/sampler.h"
#include "common/base/sketch.h"
#include "proto/wire.h"

struct nt_rank;

enum {
	NT_COMMUNICATOR_RECENT = NT_WIRE_MAX_RECENT,
	NT_COMMUNICATOR_NOBODY = UINT32_MAX,
	NT_COMMUNICATOR_EPOCH_WHOLE = 1, /* numbers count from the making of the communicator */
};

struct nt_communicator_call {
	enum nt_op op;
	uint64_t count, bytes;
	uint32_t type;
	uint64_t number; /* the library's own; 0: it is counted here */
	uint64_t entry_ns;
	uint64_t ret_ns; /* 0: the call does not block, or its return is not seen */
	/* Ranks in the communicator of a send's or receive's other side; NT_COMMUNICATOR_NOBODY: none told. */
	uint32_t to, from;
};

/* Of one operation, since the last window. */
struct nt_communicator_sum {
	uint64_t calls, bytes, first, last;
	struct nt_sketch *duration; /* owned; NULL until a call was timed */
	struct nt_sketch *gpu_duration; /* owned; NULL until a device told of a call */
};

struct nt_communicator_key {
	uint64_t handle; /* the library's own: a pointer of the process, or MPICH's number */
	uint64_t library; /* enum nt_library */
};

struct nt_communicator {
	struct nt_communicator_key key;
	uint64_t id, parent;
	uint64_t ordinal; /* in the process, in order of appearance */
	uint32_t rank, size; /* size 0: not known, and then the rank is not either */
	/* What the program was told when it asked; a size without a rank is none. */
	bool rank_told;
	uint32_t size_told;
	uint64_t whole_id; /* its id if it turns out to be as large as its parent */
	uint32_t whole_size; /* 0: it would not be known even then */
	bool id_is_local;
	bool from_unique_id; /* the id is that of a unique id, which a job's key may be made of */
	bool is_world; /* MPI_COMM_WORLD */
	bool numbered_by_library;
	char name[NT_COMM_LAYOUT_NAME];
	uint32_t children; /* communicators made of this one so far */

	uint64_t epoch, last, rolling_hash;
	uint64_t own_number[NT_OP_END]; /* calls of each operation so far */
	struct nt_communicator_sum *sum[NT_OP_END]; /* owned; NULL until the operation is used */
	/* a ring: calls % NT_COMMUNICATOR_RECENT is next */
	struct nt_signature recent[NT_COMMUNICATOR_RECENT];
	uint64_t calls, calls_reported; /* of numbered operations */
	uint64_t calls_window; /* of any operation, since the last window */
	uint64_t last_call_ns; /* entry of the last call of any operation */

	struct nt_sampler sampler;
	struct nt_p2p_timing peers; /* of its blocking sends and receives */

	struct nt_rank *rank_of; /* borrowed */
	struct nt_share *share; /* borrowed: that it has a place in; NULL: none */
	struct nt_share_entry place;
	/* in the list of those that are gone but not yet reported */
	struct nt_communicator *next_ended;
	UT_hash_handle hh;
};

/* NULL where memory is short. nt_communicator_free() accepts NULL. */
struct nt_communicator *nt_communicator_new(struct nt_communicator_key key);
void nt_communicator_free(struct nt_communicator *comm);
size_t nt_communicator_bytes(const struct nt_communicator *comm);

/* Ids that every rank of the communicator computes alike. */
uint64_t nt_communicator_id_world(const char *job_key, const char *mpi_namespace);
uint64_t nt_communicator_id_child(uint64_t parent, int64_t color, uint32_t nth, uint64_t where);
/* One that only holds inside the process. */
uint64_t nt_communicator_id_local(uint64_t boot, uint32_t pid, uint64_t start_ns, uint64_t handle);

/*
 * Do all ranks of a communicator make this call, in the same order? Only such calls are numbered
 * together, hashed and compared; the others (send, receive, put) have numbers of their own.
 */
bool nt_communicator_is_collective(enum nt_op op);

/*
 * The device has made the nth call of the operation, 0: nobody knows which. It may be told windows
 * after the call.
 */
void nt_communicator_gpu(struct nt_communicator *comm, enum nt_op op, uint64_t nth,
			 uint64_t start_ns, uint64_t end_ns);

/* Accounts for a call; returns its number. -ENOMEM does not happen: a sum is then not kept. */
uint64_t nt_communicator_count(struct nt_communicator *comm,
			       const struct nt_communicator_call *call);

/*
 * Accounts for how long a blocking send or receive took, by peer; of a send-receive both. 0, or as
 * nt_p2p_timing_note() says.
 */
NT_MUST_CHECK int nt_communicator_time_peers(struct nt_communicator *comm,
					     const struct nt_communicator_call *call);

/* Numbers are no longer certain. */
void nt_communicator_set_epoch(struct nt_communicator *comm, uint64_t epoch);

/* The window with these sums has been sent. */
void nt_communicator_clear(struct nt_communicator *comm);

#endif
