/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A snapshot: an immutable, reference-counted view of all jobs. The deciding thread builds it after
 * its frames; any number of HTTP threads read it. A reader acquires the newest snapshot from the
 * board, reads it without locks for any time, and releases it.
 *
 * A snapshot owns all that it points to; strings are never NULL. Times are real-time nanoseconds.
 */
#ifndef NT_ENGINE_SNAPSHOT_H
#define NT_ENGINE_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_JOB_ID_LEN = 16, /* hex digits of a job's id in URLs */
	NT_SNAPSHOT_MAX_PEERS = 128, /* per rank; the rest is left out */
};

enum nt_job_state {
	NT_JOB_RUNNING,
	NT_JOB_HUNG, /* an open incident of class hang or mismatch */
	NT_JOB_UNOBSERVED, /* no data from any of its agents for 10 s */
	NT_JOB_ENDED,
	NT_JOB_STATE_END,
};

/* "running", "hung", "unobserved", "ended". */
const char *nt_job_state_name(enum nt_job_state state);

/* Totals of one operation of one communicator on one rank, since its agent first saw it. */
struct nt_snapshot_op {
	uint64_t comm; /* id */
	enum nt_library library;
	enum nt_op op;
	uint32_t comm_size, comm_rank;
	uint64_t calls, bytes;
};

/* The state of a rank's GPUs, by their driver; all 0: unknown. */
struct nt_snapshot_gpu {
	uint32_t clock_mhz, most_clock_mhz, celsius;
	uint64_t memory_used, memory_total; /* bytes */
	uint32_t last_xid; /* 0: none */
	/* What held the clock down in the last seconds. */
	bool by_temperature, by_power, by_hardware;
	/* What computed by the last reading of the last seconds: shares, and bytes a second. */
	struct nt_snapshot_gpu_activity {
		bool known;
		double sm, occupancy, tensor, dram, nvlink, pcie;
	} activity;
};

/* ---- the device memory of a rank's process, as its last windows state it --------------------- */

enum {
	NT_RANK_HEAP_DEVICES = 17, /* of a process; more are left out */
	NT_RANK_HEAP_SITES = 8,
	NT_RANK_HEAP_TEXT = 48, /* bytes with the NUL */
};

struct nt_rank_heap_device {
	uint32_t number;
	bool number_known;
	uint64_t live_bytes, high_bytes, managed_bytes, blocks;
};

/* Where an allocating function returns to. file "": not known, and offset is an address. */
struct nt_rank_heap_place {
	char file[NT_RANK_HEAP_TEXT];
	uint64_t offset;
};

struct nt_rank_heap_site {
	struct nt_rank_heap_place place;
	uint64_t live_bytes, blocks, growth_bytes;
	double growth_probability;
	bool leaks;
};

/* The last allocation that failed for want of memory, and who held the most of the card then. */
struct nt_rank_heap_failure {
	char call[NT_RANK_HEAP_TEXT]; /* "": none */
	uint64_t bytes, at_ns, live_bytes;
	uint32_t device;
	bool device_known;
	struct nt_rank_heap_place place, holder_place;
	uint32_t holder_pid, holder_rank;
	bool holder_rank_known, holder_is_whole;
	uint64_t holder_bytes, holder_site_bytes;
};

struct nt_rank_heap {
	bool is_whole; /* false: the process holds at least as much */
	uint64_t since_ns; /* its calls are known from here on; 0: from its start */
	struct nt_rank_heap_device device[NT_RANK_HEAP_DEVICES];
	uint32_t devices;
	struct nt_rank_heap_site site[NT_RANK_HEAP_SITES];
	uint32_t sites;
	uint64_t failures, out_of_memory; /* so far */
	struct nt_rank_heap_failure failure;
};

struct nt_snapshot_rank {
	uint32_t rank, local_rank, pid;
	bool rank_known; /* false: `rank` is only a number that identifies the process */
	bool observed; /* in the last frame */
	bool silent; /* no data from its agent for 10 s */
	bool ended, finalized;
	bool uses_gpu;
	struct nt_snapshot_gpu gpu_state;
	const struct nt_rank_heap *heap; /* NULL: it has allocated no device memory */
	const struct nt_gemm_rate *gemms; /* in the last frame; NULL: none seen so far */
	uint32_t rdma_not_visible; /* NT_WIRE_RDMA_* */
	uint64_t link_ends_over_cap; /* queue pairs and sockets that are not in the links */
	const char *node, *namespace, *pod, *container, *gpu, *process; /* process: command name */
	const char *replica, *pod_uid;
	enum nt_tier tier; /* of its own work in the last frame with steps */
	enum nt_own_source own_source; /* of its last own work */
	/* Per step, of the last frame with steps; peers: the median of its peers, 0: none. */
	uint32_t steps;
	double own_ns, own_peers_ns, host_ns, host_peers_ns, blocked_ns, comm_ns, step_ns;
	double gpu_lag_ns;
	bool own_observable;
	double sampled; /* share of its time with observed calls; 1: all */
	uint32_t shed; /* NT_WIRE_SHED_* */
	uint32_t level; /* of detail in force: 0 to 3 */
	double peer_deviation, width, cusum, threshold;
	const uint32_t *peers;
	size_t peer_count;
	/* The call that it is in. */
	bool inside;
	enum nt_op inside_op;
	uint64_t inside_comm, inside_since_ns;
	/* Since its agent first saw it. */
	const struct nt_snapshot_op *op; /* ascending by (comm, op) */
	size_t ops;
	uint64_t total_steps, launches, copies, copy_bytes, allocs, alloc_bytes, lost;
	uint64_t first_seen_ns, last_seen_ns; /* ends of its first and last window */
};

/* A link from a rank to another: engine/links/job_links.h. */
struct nt_snapshot_link {
	const struct nt_snapshot_rank *rank, *peer; /* peer NULL: not a known rank of the job */
	const struct nt_job_link *link;
};

struct nt_snapshot_job {
	atomic_uint refs; /* private */
	struct nt_arena *arena; /* private */
	char id[NT_JOB_ID_LEN + 1];
	const char *key, *name, *namespace;
	bool is_summary; /* another aggregator owns it, and has its ranks and incidents */
	const char *owner; /* that aggregator's address; "" if unknown */
	uint32_t attempt; /* from 1 */
	enum nt_job_state state;
	uint32_t size; /* ranks according to its members */
	uint32_t live; /* observed ranks that have not ended */
	uint32_t nodes;
	double step_ns; /* median of the last frame with steps; 0: none yet */
	double completeness; /* of the last frame */
	double sampled; /* minimum of its live ranks */
	uint32_t shed; /* of any of them */
	uint64_t frames, cell_ns; /* frames judged, and the current cell length */
	uint64_t since_ns, last_seen_ns, ended_ns; /* ended_ns 0: running */
	const struct nt_snapshot_rank *rank; /* ascending by rank */
	size_t ranks;
	const struct nt_snapshot_link *link; /* as nt_job_links_join() orders them */
	size_t links;
	uint64_t links_over_cap;
	const struct nt_wire_incident *const *incident; /* open ones, without pending */
	size_t incidents;
};

struct nt_shortage_limit; /* engine/agents/shortage.h */

struct nt_snapshot_node {
	const char *name;
	uint32_t ranks; /* live ones */
	bool silent;
	uint64_t last_seen_ns;
	const struct nt_shortage_limit *limit; /* reached caps of its agent */
	size_t limits;
};

/* A row of /metrics. `name` is "neutracer_…" without a suffix for the type; `labels` is "" or
 * `reason="undecodable"`. Rows of one name are neighbours. */
struct nt_snapshot_metric {
	const char *name, *help, *labels;
	bool gauge; /* otherwise a counter */
	double value;
};

struct nt_snapshot {
	atomic_uint refs; /* private */
	struct nt_arena *arena; /* private */
	uint64_t made_ns; /* event time of the most advanced agent; 0: no data yet */
	const struct nt_snapshot_job *const *job; /* running first, then newest first */
	size_t jobs;
	const struct nt_snapshot_node *node; /* ascending by name */
	size_t nodes;
	const struct nt_snapshot_metric *metric;
	size_t metrics;
};

/* Holds the newest snapshot. */
struct nt_board;

NT_MUST_CHECK int nt_board_new(struct nt_board **ret_board);
void nt_board_free(struct nt_board *board);
NT_DEFINE_AUTO(nt_board, nt_board_free)

/* Publishes a snapshot and takes ownership in every case. */
void nt_board_post(struct nt_board *board, struct nt_snapshot *snapshot);

/* Never NULL after the first post; the caller releases it. From any thread. */
const struct nt_snapshot *nt_snapshot_acquire(struct nt_board *board);
void nt_snapshot_release(const struct nt_snapshot *snapshot);

/* The job with an id, or NULL. */
const struct nt_snapshot_job *nt_snapshot_find(const struct nt_snapshot *snapshot, const char *id);

/* The bytes of a job's name without the part of the key that agents may add; all, without one. */
size_t nt_snapshot_name_without_part(const char *name);

/* Whether a filter names the job: by its name, with or without the part of the key, its key or id. */
bool nt_snapshot_job_matches(const struct nt_snapshot_job *job, const char *wanted);

/*
 * Construction, by the service and by tests. Allocations live as long as their snapshot or job;
 * NULL on allocation failure. A snapshot holds a reference to each job in its `job` array.
 */
struct nt_snapshot *nt_snapshot_new(void);
void *nt_snapshot_alloc(struct nt_snapshot *snapshot, size_t count, size_t size);
const char *nt_snapshot_text(struct nt_snapshot *snapshot, const char *text);
struct nt_snapshot_job *nt_snapshot_job_new(void);
void *nt_snapshot_job_alloc(struct nt_snapshot_job *job, size_t count, size_t size);
const char *nt_snapshot_job_text(struct nt_snapshot_job *job, const char *text);
struct nt_snapshot_job *nt_snapshot_job_ref(struct nt_snapshot_job *job);
void nt_snapshot_job_unref(struct nt_snapshot_job *job);

#endif
