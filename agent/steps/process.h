/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A watched process, identified by (pid, start time): its facts, communicators, ranks and
 * communicating threads. The process can grow all of them, so all are capped.
 */
#ifndef NT_AGENT_STEPS_PROCESS_H
#define NT_AGENT_STEPS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "agent/gpu/gemm_spans.h"
#include "agent/heap/gpu_heap.h"
#include "agent/heap/window_heap.h"
#include "agent/identity/cgroup.h"
#include "agent/identity/environ.h"
#include "agent/identity/identity.h"
#include "agent/identity/owner.h"
#include "agent/identity/placement.h"
#include "agent/identity/tenant.h"
#include "agent/steps/communicator.h"
#include "agent/steps/graph.h"
#include "agent/steps/unprobed_time.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"

struct nt_held;
struct nt_rank;
struct nt_tracker_candidate;
struct nt_window_stack;
struct nt_window_profile;

enum {
	NT_PROCESS_COMMS = NT_WIRE_MAX_COMMS,
	NT_PROCESS_PROFILES = 4, /* that wait for a window, which has one at most */
	NT_PROCESS_RANKS = 16,
	NT_PROCESS_THREADS = 64,
	NT_PROCESS_PENDING = 32,
	NT_PROCESS_COMMAND = 32,
};

/* Facts from /proc, read once the process has begun to map libraries. */
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
	uint32_t groups; /* so far, of the outermost */
	uint64_t comm_calls;
	struct nt_rank *rank; /* of the communicator that it used last; NULL: none yet */
	uint32_t device; /* that it set last, by the runtime's number */
	bool has_device;
};

/* A communicator whose creation was observed, but whose handle is not written yet. */
struct nt_pending {
	uint64_t address; /* where the handle will be */
	uint64_t library;
	uint32_t tid, rank, size; /* size 0: unknown */
	uint64_t id, parent;
	bool from_unique_id, id_is_local;
	bool was_due; /* the call that writes the handle has returned, and `address` was read */
	uint64_t seen; /* the value at the last read */
	uint64_t read_ns; /* boot time of the event of that read; 0: none yet */
	struct nt_rank *rank_of; /* the parent's; NULL: none */
};

struct nt_process {
	uint32_t pid;
	uint64_t start_ns; /* boot time */
	struct nt_tracker_candidate *candidate; /* borrowed: the tracker's entry of it */
	const struct nt_owner *owner; /* borrowed; NULL: unknown */
	struct nt_process_facts facts;
	struct nt_placement placement; /* as of its last window */
	struct nt_tenant tenant; /* decided with its first window */
	struct nt_held *held,
		*held_last; /* held until it is decided; owned by agent/tracker/tracker_tenant.c */
	uint64_t held_since_ns; /* boot time of the first of them */
	size_t held_bytes;
	uint32_t libraries; /* bits: 1 << enum nt_library */
	uint64_t nccl_file; /* the NCCL file that it maps */
	bool late; /* it started before the agent */
	bool has_called; /* an event of it has been seen */
	bool is_awaited; /* its events were held until all that it maps was known */
	bool met; /* its facts were read after its first call */
	bool mpich; /* its MPI's handles are numbers */
	bool mpi_begun; /* its MPI calls are observed from the first on */
	bool mpi_called; /* it has communicated through MPI */
	bool runtime; /* CUDA runtime calls are observed: driver calls come from the runtime */
	bool finalized;

	struct nt_communicator *comms; /* uthash, owned */
	uint32_t comm_count;
	uint64_t ordinals; /* communicators so far */
	/* owned: freed, but not yet reported; counted under the same cap */
	struct nt_communicator *ended;
	uint32_t ended_count;

	struct nt_graph *graph; /* owned; NULL until a stream captures */

	struct nt_rank *rank[NT_PROCESS_RANKS]; /* owned by agent/tracker/tracker.c */
	uint32_t ranks;
	struct nt_thread thread[NT_PROCESS_THREADS];
	uint32_t threads;
	struct nt_pending pending[NT_PROCESS_PENDING];
	uint32_t pendings;

	/* Number of the last interval of kernels and of communication; 0: none so far. */
	uint64_t gpu_number[2];
	struct nt_gpu_records *gpu_records; /* owned; NULL: its GPU is not measured now */
	uint64_t gpu_open_ns; /* boot time, since when it is measured; 0: it is not */
	uint64_t gpu_open_launches; /* so far, at that time */
	uint64_t gpu_second; /* in which these batches came */
	uint32_t gpu_batches;
	uint32_t gpu_floods; /* seconds with too many of them */
	bool gpu_is_refused
		[2]; /* it cannot be measured, which was logged; [1]: by NCCL's library */
	bool gpu_is_silent; /* it launched kernels while it was measured, and reported none */
	struct nt_gemm_spans
		*gemm_spans; /* owned; NULL: kernels of all kinds are not reported now */
	struct nt_gemm_time gemm_time; /* since the last window */
	uint64_t gpu_lost, gpu_taken; /* intervals since the last window; lost: with late ones */

	/* Queries of CUDA events: their number, and when it was read; 0: never. */
	uint64_t queries, queries_ns;

	struct nt_gpu_heap *heap; /* owned; NULL until it allocates device memory */
	bool heap_is_partial; /* some of its calls were not observed so far */
	struct nt_window_holder heap_holder; /* of the heap's last failure */
	bool heap_holder_is_due; /* it was not looked for after that */
	uint32_t heap_searches; /* for holders, since … */
	uint64_t heap_searches_ns; /* boot time */
	uint64_t heap_sent_ns; /* when its call sites were sent last; 0: never, or they changed */
	uint32_t heap_leaks; /* sites that were reported as leaks */

	struct nt_window_stack *stack; /* owned: for the next window; NULL: none */
	struct nt_window_profile
		*profile[NT_PROCESS_PROFILES]; /* the same, the next window's first */
	uint32_t profiles;

	struct nt_process_counters counters; /* at the last window */
	struct nt_gemm_totals gemms; /* the same */
	bool has_gemms; /* a window has ended: they are no longer of the time before */
	/* Since the last window. _read: what it multiplies is known. */
	uint64_t graph_launches, graph_launches_read, captures, captures_read;
	/* Multiplications of the capture that is about to end: of which call; 0: none. */
	struct nt_event_capture capture;
	/* By type and mode: made by launches of graphs; captured, and so not made. */
	struct nt_gemm_sum replayed[NT_GEMM_SUMS], captured[NT_GEMM_SUMS];
	bool has_replayed; /* so far */
	uint64_t events, lost_events; /* so far; those that were lost */
	uint64_t starts; /* calls so far that only begin communication */
	uint64_t lost_counted; /* as last read from its counters in the kernel */
	uint32_t shed; /* NT_WIRE_SHED_*: what of it is not observed */
	bool paused;
	uint64_t paused_ns; /* begin of the current or last pause */
	uint64_t resumed_ns; /* completely observed since then; 0: from the start */
	uint64_t unobserved_ns; /* sum of the pauses that have ended */
	uint64_t ended_ns; /* boot time of its end; 0: it runs */
	struct nt_unprobed_time unprobed;
	/* Single calls, at level L1 or above (agent/tracker/tracker_detail.c). */
	uint32_t level; /* in force, 0 to 3 */
	uint32_t detail_rate; /* records a second, of one rank */
	double detail_granted; /* part of the kernel side's that its budget leaves */
	struct nt_detail_rates detail_rates; /* as last read */
	UT_hash_handle hh;
};

/* Creates a process with empty facts. NULL: out of memory. */
struct nt_process *nt_process_new(uint32_t pid, uint64_t start_ns);
/* Releases the communicators; the ranks must be gone. Accepts NULL. */
void nt_process_free(struct nt_process *process);

/* The thread's entry, made if missing; NULL at the cap. */
struct nt_thread *nt_process_thread(struct nt_process *process, uint32_t tid);

bool nt_process_uses_gpu(const struct nt_process *process);

/*
 * Facts of a running process from /proc, except its environment, which is read elsewhere as that
 * may block. -ESRCH and the like if it is gone.
 */
NT_MUST_CHECK int nt_process_describe(uint32_t pid, const struct nt_environ *env,
				      struct nt_process_facts *ret_facts);

/* 0: the owner is unknown. */
static inline uint64_t nt_process_owner_id(const struct nt_process *process)
{
	return process->owner ? process->owner->id : 0;
}

#endif
