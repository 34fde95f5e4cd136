/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A watched process: (pid, start time), what it says of itself, its communicators, its ranks and
 * those of its threads that communicate. Everything in it can be grown by the process and is capped.
 */
#ifndef NT_AGENT_STEPS_PROCESS_H
#define NT_AGENT_STEPS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "agent/identity/cgroup.h"
#include "agent/identity/environ.h"
#include "agent/identity/identity.h"
#include "agent/identity/owner.h"
#include "agent/identity/placement.h"
#include "agent/identity/tenant.h"
#include "agent/steps/communicator.h"
#include "agent/steps/graph.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"

struct nt_held;
struct nt_rank;
struct nt_tracker_candidate;

enum {
	NT_PROCESS_COMMS = NT_WIRE_MAX_COMMS,
	NT_PROCESS_RANKS = 16,
	NT_PROCESS_THREADS = 64,
	NT_PROCESS_PENDING = 32,
	NT_PROCESS_COMMAND = 32,
};

/* What /proc tells of a process once it has begun to map libraries. */
struct nt_process_facts {
	struct nt_environ env;
	char command[NT_PROCESS_COMMAND];
	struct nt_cgroup cgroup;
	uint64_t parent; /* hash of the parent process */
	uint32_t uid; /* real, as the agent's user namespace shows it */
	bool has_uid;
};

struct nt_thread {
	uint32_t tid;
	uint32_t group_depth; /* ncclGroupStart calls not yet ended */
	uint64_t comm_calls;
	struct nt_rank *rank; /* of the communicator that it used last; NULL: none yet */
};

/* A communicator whose making was seen, but whose handle was not written yet. */
struct nt_pending {
	uint64_t address; /* where the handle will be */
	uint64_t library;
	uint32_t tid, rank, size; /* size 0: not known */
	uint64_t id, parent;
	bool from_unique_id, id_is_local;
	bool was_due; /* the call that writes the handle has returned, and the place was read */
	uint64_t seen; /* what was there when it was read last */
	uint64_t read_ns; /* boot time of the event at which that was; 0: not yet */
	struct nt_rank *rank_of; /* the parent's; NULL: none */
};

struct nt_process {
	uint32_t pid;
	uint64_t start_ns; /* boot time */
	struct nt_tracker_candidate *candidate; /* borrowed: what the tracker keeps of it */
	const struct nt_owner *owner; /* borrowed; NULL: not known */
	struct nt_process_facts facts;
	struct nt_placement home; /* as was known when its last window was made */
	struct nt_tenant tenant; /* decided with its first window */
	struct nt_held *held,
		*held_last; /* windows that wait for it, owned by agent/tracker/tracker_wait.c */
	uint64_t held_since_ns; /* boot time of the first of them */
	size_t held_bytes;
	uint32_t libraries; /* bits: 1 << enum nt_library */
	uint64_t nccl_file; /* which file of NCCL it maps */
	bool late; /* it ran before the agent */
	bool has_called; /* an event of it has been seen */
	bool is_awaited; /* events of it were kept until all that it maps is known */
	bool met; /* its facts were read since it makes calls */
	bool mpich; /* its MPI's handles are numbers */
	bool mpi_begun; /* all its MPI calls are seen, from the first on */
	bool mpi_called; /* it has communicated through MPI */
	bool runtime; /* its calls of the CUDA runtime are seen: the driver's are made by it */
	bool finalized;

	struct nt_communicator *comms; /* uthash, owned */
	uint32_t comm_count;
	uint64_t ordinals; /* communicators so far */
	/* owned: gone, but not yet reported; with the others under the cap */
	struct nt_communicator *ended;
	uint32_t ended_count;

	struct nt_graph *graph; /* owned; NULL until a stream captures */

	struct nt_rank *rank[NT_PROCESS_RANKS]; /* owned by agent/tracker/tracker.c */
	uint32_t ranks;
	struct nt_thread thread[NT_PROCESS_THREADS];
	uint32_t threads;
	struct nt_pending pending[NT_PROCESS_PENDING];
	uint32_t pendings;

	/* Of the last interval that was told, of kernels and of communication; 0: none so far. */
	uint64_t gpu_number[2];
	uint64_t gpu_lost, gpu_taken; /* of them, since the last window; lost: late ones, too */

	struct nt_process_counters counters; /* at the last window */
	uint64_t events, lost_events; /* of it so far; those that were lost */
	uint64_t lost_counted; /* as its counters in the kernel said last */
	uint32_t shed; /* NT_WIRE_SHED_*: what of it is not observed */
	bool paused;
	uint64_t paused_ns; /* since when; the last time, where it is not */
	uint64_t resumed_ns; /* all its calls are seen since then; 0: they always were */
	uint64_t unobserved_ns; /* sum of the pauses that have ended */
	UT_hash_handle hh;
};

/* Its facts are empty. NULL where memory is short. */
struct nt_process *nt_process_new(uint32_t pid, uint64_t start_ns);
/* Releases the communicators; the ranks must be gone. Accepts NULL. */
void nt_process_free(struct nt_process *process);

/* The thread's entry, made if missing; NULL at the cap. */
struct nt_thread *nt_process_thread(struct nt_process *process, uint32_t tid);

bool nt_process_uses_gpu(const struct nt_process *process);

/*
 * Facts of a living process from /proc, beside its environment, which is read elsewhere since that may
 * block. -ESRCH and the like where it has gone.
 */
NT_MUST_CHECK int nt_process_describe(uint32_t pid, const struct nt_environ *env,
				      struct nt_process_facts *ret_facts);

#endif
