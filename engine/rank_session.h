/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A rank session: one rank of one process. Holds its identity, totals since it was first seen, its
 * communicators, and the windows that wait for their frame.
 */
#ifndef NT_ENGINE_RANK_SESSION_H
#define NT_ENGINE_RANK_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "engine/gpu/gemm_rate.h"
#include "engine/host/cpu_taker.h"
#include "engine/links/rank_links.h"
#include "engine/snapshot.h"
#include "proto/wire.h"

enum {
	NT_RANK_SESSION_MAX_COMMS = 256, /* communicators of one session */
	NT_RANK_SESSION_MAX_SERIES = 1024, /* (communicator, operation) totals of one session */
	NT_RANK_SESSION_MAX_ALIGNMENTS = 64,
	NT_RANK_SESSION_MAX_WAITING = 1024, /* windows that wait for their frame */
};

/* Totals of one operation of one communicator. */
struct nt_session_series {
	struct {
		uint64_t comm;
		uint64_t op; /* as wide as comm: the key must have no padding */
	} key;
	enum nt_library library;
	uint32_t comm_size, comm_rank;
	uint64_t calls, bytes;
	UT_hash_handle hh;
};

/* A communicator that links the ranks of this process to others. */
struct nt_shared_comm {
	uint64_t comm;
	uint32_t size;
};

/* How to convert the call numbers of a communicator's epoch: see align.h. */
struct nt_alignment {
	uint64_t comm, epoch, group, shift;
};

/* A window that waits for its frame, with its times on the real clock. */
struct nt_waiting {
	struct nt_message *message;
	uint64_t start_ns, end_ns;
};

struct nt_rank_session_counters {
	uint64_t refused_comms, refused_series, evicted_windows, late_windows;
};

struct nt_job;
struct nt_source;

struct nt_rank_session {
	/* Identity. */
	uint32_t node; /* index among all nodes */
	uint32_t pid;
	uint64_t start_boot_ns; /* of the process */
	uint64_t start_ns; /* the same on the real clock */
	uint32_t rank, size, local_rank;
	bool rank_known;
	uint32_t number; /* in frames: the rank, or a number beyond all ranks */
	char *names[8]; /* enum nt_rank_session_name */
	char *job_name;
	uint32_t attempt_hint;

	struct nt_source *source; /* the agent that reports it: borrowed */
	struct nt_job *job; /* NULL: waits for admission */
	uint32_t job_node; /* index among the job's nodes */
	struct nt_rank_session *next; /* of the same process */

	/* Totals. */
	struct nt_shared_comm *shared_comm;
	size_t shared_comms;
	struct nt_session_series *series;
	struct nt_alignment *alignment;
	size_t alignments;
	uint64_t steps, launches, copies, copy_bytes, allocs, alloc_bytes, lost;
	uint64_t first_seen_ns, last_seen_ns;
	bool uses_gpu;
	struct nt_snapshot_gpu gpu; /* by its last windows */
	/* Ends of the last windows in which temperature, a power cap, the hardware held it down. */
	uint64_t gpu_held_ns[3];
	struct nt_cpu_takers cpu_takers; /* not saved */
	uint64_t gpu_activity_end_ns; /* of the last window with what its GPUs computed */
	struct nt_rank_links *links; /* owned; NULL: it uses no RDMA. Not saved */
	struct nt_rank_heap *heap; /* owned; NULL: it has allocated no device memory. Not saved */

	/* Windows by end, oldest first. */
	struct nt_waiting *waiting;
	size_t waitings, waiting_cap;

	uint64_t covered_boot_ns; /* windows cover the time up to here; 0: none judged yet */
	uint64_t absent_ns; /* time of frames since then that was counted as missing */

	/* share of the time of its last windows with observed calls */
	uint32_t sampled_permille;
	uint32_t shed; /* NT_WIRE_SHED_*, of its last window */
	uint32_t level; /* in force in its last window */
	bool lost_sight; /* its agent did not observe it at the end of its last window */

	/* State at the last closed frame. */
	bool observed, silent, ended, finalized,
		retired; /* retired: another process took over its rank */
	uint64_t ended_ns;
	uint8_t exit_signal, exit_status; /* of `ended`; not saved, so unknown after a restart */
	bool ended_by_parent; /* the same: the parent sent exit_signal */
	uint64_t step_end_ns; /* of the last window with steps; 0: none yet */
	uint64_t step_window_ns[2]; /* between such ends, the last two, newest first; 0: none */
	struct nt_inside_wire inside;
	uint64_t inside_since_ns;
	enum nt_tier tier;
	enum nt_own_source own_source; /* of the last window with own work; not saved */
	uint32_t frame_steps; /* the next four: sums of the last frame with steps */
	uint64_t own_ns, host_ns, blocked_ns, comm_ns, step_ns;
	uint64_t gpu_lag_ns; /* of that frame too; not saved */
	/* Of the last frame with windows; owned. NULL: none was seen. Not saved. */
	struct nt_gemm_rate *gemm_rate;
};

enum nt_rank_session_name {
	NT_RANK_SESSION_NODE,
	NT_RANK_SESSION_NAMESPACE,
	NT_RANK_SESSION_POD,
	NT_RANK_SESSION_CONTAINER,
	NT_RANK_SESSION_GPU,
	NT_RANK_SESSION_PROCESS, /* the last one that is saved; every window carries all names */
	NT_RANK_SESSION_REPLICA,
	NT_RANK_SESSION_POD_UID,
	NT_RANK_SESSION_NAMES,
};

NT_MUST_CHECK int nt_rank_session_new(const struct nt_message *message,
				      struct nt_rank_session **ret_session);
void nt_rank_session_free(struct nt_rank_session *session);
NT_DEFINE_AUTO(nt_rank_session, nt_rank_session_free)

/* Never NULL. */
const char *nt_rank_session_text(const struct nt_rank_session *session,
				 enum nt_rank_session_name name);

/* Updates names and sizes, which may become known late. On -ENOMEM nothing changes. */
NT_MUST_CHECK int nt_rank_session_rename(struct nt_rank_session *session,
					 const struct nt_rank_id *id);

/* Adds a window to the totals and shared communicators. */
NT_MUST_CHECK int nt_rank_session_count(struct nt_rank_session *session,
					const struct nt_message *message, uint64_t end_ns,
					struct nt_rank_session_counters *counters);

/* Adds a communicator that connects the session to others; no effect if it is known. */
NT_MUST_CHECK int nt_rank_session_add_comm(struct nt_rank_session *session,
					   const struct nt_shared_comm *shared);

/*
 * Queues the window and takes ownership of the message on success. At the cap the oldest is dropped
 * and counted. On -ENOMEM the caller still owns the message.
 */
NT_MUST_CHECK int nt_rank_session_queue(struct nt_rank_session *session, struct nt_message *message,
					uint64_t start_ns, uint64_t end_ns,
					struct nt_rank_session_counters *counters);

/* Frees the windows that end before end_ns; returns how many. */
size_t nt_rank_session_drop(struct nt_rank_session *session, uint64_t end_ns);

/*
 * engine/rank_heap.c: takes what a window states of device memory that ended at end_ns of the real
 * clock. *heap: owned by the caller, made if missing. -ENOMEM: nothing has changed.
 */
NT_MUST_CHECK int nt_rank_heap_take(struct nt_rank_heap **heap, const struct nt_window *window,
				    uint64_t end_ns);

#endif
