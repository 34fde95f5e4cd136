/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A communicator as one process sees it, and its call accounting: call numbers, sums of the window,
 * recent calls. Communicators are learned from calls, not configured.
 */
#ifndef NT_AGENT_STEPS_COMMUNICATOR_H
#define NT_AGENT_STEPS_COMMUNICATOR_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "agent/identity/share.h"
#include "agent/steps/call_order.h"
#include "agent/steps/comm_layout.h"
#include "agent/steps/p2p_timing.h"
#include "agent/steps/sampler.h"
#include "common/base/sketch.h"
#include "plugin/gpu_record.h"
#include "proto/wire.h"

struct nt_rank;

enum {
	NT_COMMUNICATOR_RECENT = NT_WIRE_MAX_RECENT,
	NT_COMMUNICATOR_NOBODY = UINT32_MAX,
	NT_COMMUNICATOR_EPOCH_WHOLE = 1, /* numbers count from the communicator's creation */
};

struct nt_communicator_call {
	enum nt_op op;
	uint64_t count, bytes;
	uint32_t type;
	uint64_t number; /* the library's own; 0: counted here */
	uint64_t entry_ns;
	uint64_t ret_ns; /* 0: the call does not block, or its return is not seen */
	/* Peer ranks of a send or receive; NT_COMMUNICATOR_NOBODY: unknown. */
	uint32_t to, from;
};

/* Of one operation, since the last window. */
struct nt_communicator_sum {
	uint64_t calls, bytes, first, last;
	struct nt_sketch *duration; /* owned; NULL until a call was timed */
	struct nt_sketch *gpu_duration; /* owned; NULL until a device reported a call */
};

struct nt_communicator_key {
	uint64_t handle; /* the library's own: a pointer of the process, or MPICH's number */
	uint64_t library; /* enum nt_library */
};

struct nt_communicator {
	struct nt_communicator_key key;
	uint64_t id, parent;
	uint64_t ordinal; /* in the process, in order of appearance */
	uint32_t rank, size; /* size 0: size and rank are unknown */
	/* Results of the program's own queries; a size without a rank is not used. */
	bool is_rank_set;
	uint32_t stated_size;
	uint64_t whole_id; /* its id if it turns out to be as large as its parent */
	uint32_t whole_size; /* 0: unknown even then */
	bool id_is_local;
	bool from_unique_id; /* derived from a unique id: may key a job */
	bool is_world; /* MPI_COMM_WORLD */
	bool numbered_by_library;
	char name[NT_COMM_LAYOUT_NAME];
	uint32_t children; /* communicators derived from it so far */

	uint64_t epoch, last, rolling_hash;
	uint64_t own_number[NT_OP_END]; /* calls of each operation so far */
	struct nt_communicator_sum *sum[NT_OP_END]; /* owned; NULL until the operation is used */
	/* a ring: calls % NT_COMMUNICATOR_RECENT is next */
	struct nt_signature recent[NT_COMMUNICATOR_RECENT];
	uint64_t calls, calls_reported; /* of numbered operations */
	uint64_t calls_window; /* of any operation, since the last window */
	uint64_t last_call_ns; /* entry of the last call of any operation */
	struct nt_call_series series; /* of a library whose calls may return out of order */

	struct nt_sampler sampler;
	struct nt_p2p_timing peers; /* of its blocking sends and receives */

	struct nt_rank *rank_of; /* borrowed */
	struct nt_share *share; /* borrowed: holds its slot; NULL: none */
	struct nt_share_entry place;
	/* list of those freed but not yet reported */
	struct nt_communicator *next_ended;
	UT_hash_handle hh;
};

/* NULL: out of memory. nt_communicator_free() accepts NULL. */
struct nt_communicator *nt_communicator_new(struct nt_communicator_key key);
void nt_communicator_free(struct nt_communicator *comm);
size_t nt_communicator_bytes(const struct nt_communicator *comm);

/* Ids that are equal on all ranks of the communicator. */
uint64_t nt_communicator_id_world(const char *job_key, const char *mpi_namespace);
uint64_t nt_communicator_id_child(uint64_t parent, int64_t color, uint32_t nth, uint64_t where);
/* An id that is valid only inside the process. */
uint64_t nt_communicator_id_local(uint64_t boot, uint32_t pid, uint64_t start_ns, uint64_t handle);

/*
 * True if all ranks of a communicator make this call in the same order. Only such calls are
 * numbered together, hashed and compared; others (send, receive, put) are numbered separately.
 */
bool nt_communicator_is_collective(enum nt_op op);

/*
 * The device has executed the nth call of the operation; 0: unknown which. The report may come
 * windows after the call.
 */
void nt_communicator_gpu(struct nt_communicator *comm, enum nt_op op, uint64_t nth,
			 uint64_t start_ns, uint64_t end_ns);

/* Accounts for a call; returns its number. Without memory its sum is omitted. */
uint64_t nt_communicator_count(struct nt_communicator *comm,
			       const struct nt_communicator_call *call);

/*
 * Accounts for the duration of a blocking send or receive by peer; of a send-receive, both. 0, or
 * the errors of nt_p2p_timing_note().
 */
NT_MUST_CHECK int nt_communicator_time_peers(struct nt_communicator *comm,
					     const struct nt_communicator_call *call);
/* What a proxy of NCCL sent to a member. Values that make no sense are ignored. Errors as above. */
NT_MUST_CHECK int nt_communicator_sent(struct nt_communicator *comm,
				       const struct nt_gpu_transfer *transfer);

/* Call numbers are no longer reliable: sets a new epoch. */
void nt_communicator_set_epoch(struct nt_communicator *comm, uint64_t epoch);

/* Clears the sums after their window was sent. */
void nt_communicator_clear(struct nt_communicator *comm);

#endif
