/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent's picture of its node: which processes are ranks of which jobs, and what they do. It
 * takes what discovery and probes report, and hands out windows when they are due. No clock, no
 * system call, no thread of its own: all that comes in through arguments and struct nt_tracker_source.
 */
#ifndef NT_AGENT_TRACKER_TRACKER_H
#define NT_AGENT_TRACKER_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/discover/discover.h"
#include "agent/discover/roster.h"
#include "agent/host/host.h"
#include "agent/host/memory.h"
#include "agent/identity/share.h"
#include "agent/probes/probe.h"
#include "agent/steps/gpu.h"
#include "agent/steps/process.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"
#include "proto/wire.h"

enum {
	NT_TRACKER_PROCESSES = 1024, /* that are watched; shared out among owners */
	NT_TRACKER_CANDIDATES = NT_ROSTER_PROCESSES, /* as many as discovery reports */
	NT_TRACKER_ORPHANS = 8192, /* events of processes that discovery has not reported yet */
	NT_TRACKER_KEYS = 256, /* shared out among owners */
	NT_TRACKER_HELD_BYTES = 8 << 20, /* of windows that wait for their tenant */
	NT_TRACKER_HELD_SHARE = 2 << 20, /* of one pod or container */
};

#define NT_TRACKER_HELD_NS (30 * NT_SECOND) /* the longest wait for a tenant */

struct nt_tracker;

/* Where facts come from that are not in the events. Any may be called at any time. */
struct nt_tracker_source {
	struct nt_memory memory;
	int (*describe)(void *data, uint32_t pid, struct nt_process_facts *ret_facts);
	/* *host is the caller's place for an open file set; the tracker closes it. */
	int (*sample)(void *data, uint32_t pid, uint32_t tid, struct nt_host **host,
		      struct nt_host_sample *ret_sample);
	bool (*counters)(void *data, uint32_t pid, struct nt_process_counters *ret_counters);
	/* Whose process it is. NULL: each is its own. */
	int (*owner)(void *data, uint32_t pid, struct nt_owner *ret_owner);
	/* Is discovery still to say what the process is? NULL: never. */
	bool (*awaited)(void *data, uint32_t pid);
	/* What else is known of who runs in a cgroup; leaves alone what is not. NULL: nothing is. */
	enum nt_tenant_stated (*locate)(void *data, const struct nt_cgroup *cgroup,
					struct nt_placement *home);
	void *data;
};

struct nt_tracker_sink {
	/* Borrowed until the call returns. watermark: all of the key before it has been handed out. */
	void (*window)(void *data, const char *key, const struct nt_window *window,
		       uint64_t watermark_ns);
	/* A process has called for the first time. NULL: nobody wants to know. */
	void (*called)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* It made room for another, and is watched no more; it goes on. NULL: as above. */
	void (*dropped)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* A process's events that waited were taken in: memory may be given back. NULL: as above. */
	void (*claimed)(void *data);
	/* A process has become a rank. NULL: nobody wants to know. */
	void (*ranked)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* The key has had nothing to say for a second. */
	void (*heartbeat)(void *data, const char *key, uint32_t ranks, uint64_t watermark_ns);
	void *data;
};

struct nt_tracker_options {
	const char *node; /* borrowed for the tracker's life, as are the others */
	uint64_t boot; /* hash of the boot id */
	uint64_t seed; /* of epochs: differs from run to run */
	uint64_t window_min_ns;
	uint64_t outside_ns; /* what a probed call costs beside its own time; for sampled ranks */
	struct nt_tracker_source source;
	struct nt_tracker_sink sink;
};

struct nt_tracker_stats {
	uint64_t processes, ranks, comms; /* now */
	uint64_t events, windows, steps; /* so far */
	/* Losses, by name. */
	uint64_t malformed_events; /* of no row, or shorter than their role needs */
	uint64_t foreign_events; /* of processes that are not watched */
	uint64_t processes_over_cap, ranks_over_cap, comms_over_cap, keys_over_cap;
	uint64_t threads_over_cap, pending_over_cap;
	uint64_t peers_over_cap; /* calls whose peer had no place in the table */
	uint64_t orphans_over_cap; /* events, which are also counted as lost */
	uint64_t unresolved_comms; /* whose place in the job could not be read */
	uint64_t undescribed; /* processes that /proc told nothing of */
	uint64_t late_ns, step_overruns, unknown_kinds, order_overflows;
	uint64_t gpu_intervals; /* that devices told of */
	uint64_t gpu_lost; /* between those that came: their steps are not T3 */
	uint64_t gpu_malformed; /* that end before they begin, or have not begun yet */
	/* of no process or communicator that is watched, or of several ranks */
	uint64_t gpu_unowned;
	struct nt_gpu_stats gpu;
	struct nt_graph_stats graphs;
	uint64_t no_memory;
	uint64_t memory_given_up; /* processes, by nt_tracker_give_back() */
	uint64_t lost_events; /* as told by nt_tracker_lost_of() and the counters of processes */
	uint64_t paused; /* processes that are paused now */
	uint64_t held, held_bytes; /* windows that wait for their tenant, now */
	uint64_t held_so_far;
	/* processes whose jobs were keyed by pod, container or process alone */
	uint64_t tenants_unknown;
	uint64_t tenants_late; /* of them, those whose namespace has come after all */
};

NT_MUST_CHECK int nt_tracker_new(const struct nt_tracker_options *options,
				 struct nt_tracker **ret_tracker);
void nt_tracker_free(struct nt_tracker *tracker);
NT_DEFINE_AUTO(nt_tracker, nt_tracker_free)

/* From discovery. */
void nt_tracker_mapped(struct nt_tracker *tracker, const struct nt_mapped_file *file);
void nt_tracker_exited(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t boot_ns);
/* Discovery has no room for it any more: sends what there is, and forgets it. It has not ended. */
void nt_tracker_evicted(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns);
/*
 * Around a look for processes, which may report some and read events meanwhile. Events from before a
 * complete look whose processes it has not reported, and that are not awaited, are strangers'.
 */
void nt_tracker_discovering(struct nt_tracker *tracker);
void nt_tracker_discovered(struct nt_tracker *tracker, bool complete);

/*
 * Between the two: processes with events from before the look that were not reported and are not awaited,
 * for nt_discover_recall(). Returns their number.
 */
size_t nt_tracker_unknown(const struct nt_tracker *tracker, uint32_t *ret_pid, size_t max);

/* From the probes, in the order of the ring. id: NT_ID_BYTES or NULL. */
void nt_tracker_event(struct nt_tracker *tracker, const struct nt_event_call *call,
		      const uint8_t *id);
/* From a plugin inside a rank's process, by way of probes. */
void nt_tracker_gpu(struct nt_tracker *tracker, const struct nt_gpu_interval *interval);
/* Events have been lost, of which the counters of each process tell how many were its own. */
void nt_tracker_take_losses(struct nt_tracker *tracker);
/* Events of one process have been lost: numbers and sums of its ranks alone are no longer certain. */
void nt_tracker_lost_of(struct nt_tracker *tracker, uint32_t pid, uint64_t events);
/*
 * Calls of the process that enter from boot_ns on are not observed, until it is resumed: the governor
 * samples it. Its steps of before are told as they are; what happens in between is no one's step.
 */
void nt_tracker_paused(struct nt_tracker *tracker, uint32_t pid, uint64_t boot_ns);
void nt_tracker_resumed(struct nt_tracker *tracker, uint32_t pid, uint64_t boot_ns);

/* What a process that discovery has reported is like, for the governor. */
struct nt_tracker_traits {
	uint64_t owner; /* id of struct nt_owner */
	bool is_rank;
	uint64_t measured; /* steps of it so far */
	/* observed for so long at a time, its steps are measured; 0: not known */
	uint64_t whole_ns;
};

/* False: it is not known. */
bool nt_tracker_traits(const struct nt_tracker *tracker, uint32_t pid,
		       struct nt_tracker_traits *ret_traits);
/* What is not observed of the process at all: NT_WIRE_SHED_*. */
void nt_tracker_shed(struct nt_tracker *tracker, uint32_t pid, uint32_t shed);
/* A thread that is inside a call at now_ns; after nt_tracker_look(), once for each. */
void nt_tracker_look(struct nt_tracker *tracker);
void nt_tracker_inside(struct nt_tracker *tracker, uint32_t pid, uint32_t tid, uint16_t row,
		       const struct nt_inside *inside, uint64_t now_ns);

/* Time passes; every event up to now_ns has been given. Sends what is due. */
void nt_tracker_tick(struct nt_tracker *tracker, uint64_t now_ns);
/* The agent ends: sends what there is. */
void nt_tracker_drain(struct nt_tracker *tracker, uint64_t now_ns);

/*
 * Memory is needed, of which there is `limit`. The owner whose processes take the most gives up the one
 * that takes the most, and so on, until about so many bytes are free. An owner keeps what is within its
 * share of the limit: a quarter, or an equal part where there are more owners. Those processes are
 * watched no more for half a minute. Returns their number: 0 where nobody exceeds its share.
 */
uint32_t nt_tracker_give_back(struct nt_tracker *tracker, size_t bytes, size_t limit);

/* The keys of the jobs with ranks here, borrowed until the next call of any; returns their number. */
size_t nt_tracker_jobs(const struct nt_tracker *tracker, const char **ret_key, size_t max);

/* The places of processes, keys, communicators and events that wait, and which owners found none. */
const struct nt_share *nt_tracker_share(const struct nt_tracker *tracker);
const struct nt_share *nt_tracker_key_share(const struct nt_tracker *tracker);
const struct nt_share *nt_tracker_comm_share(const struct nt_tracker *tracker);
const struct nt_share *nt_tracker_orphan_share(const struct nt_tracker *tracker);

void nt_tracker_stats(const struct nt_tracker *tracker, struct nt_tracker_stats *ret_stats);

#endif
