/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The tracker: finds out which processes of the node are ranks of which jobs, and what they do. It
 * takes reports of discovery and probes, and emits windows when they are due. It has no clock, no
 * thread and makes no system calls: all input comes from arguments and struct nt_tracker_source.
 */
#ifndef NT_AGENT_TRACKER_TRACKER_H
#define NT_AGENT_TRACKER_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/discover/discover.h"
#include "agent/discover/process_table.h"
#include "agent/host/host.h"
#include "agent/host/memory.h"
#include "agent/identity/share.h"
#include "agent/probes/probe.h"
#include "agent/profile/window_profile.h"
#include "agent/ras/ras_schedule.h"
#include "agent/stack/window_stack.h"
#include "agent/steps/completion.h"
#include "agent/steps/gpu.h"
#include "agent/steps/gpu_records.h"
#include "agent/steps/process.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"
#include "proto/wire.h"

enum {
	NT_TRACKER_PROCESSES = 1024, /* watched; shared among owners */
	NT_TRACKER_CANDIDATES = NT_PROCESS_TABLE_PROCESSES, /* as many as discovery reports */
	NT_TRACKER_ORPHANS = 8192, /* events of processes not yet discovered */
	NT_TRACKER_KEYS = 256, /* shared among owners */
	NT_TRACKER_HELD_BYTES = 8 << 20, /* of windows held until their tenant is known */
	NT_TRACKER_HELD_SHARE = 2 << 20, /* of one pod or container */
	NT_TRACKER_DETAIL_BYTES = 8 << 20, /* of logs of single calls, of all ranks */
};

#define NT_TRACKER_HELD_NS (30 * NT_SECOND) /* the longest hold */

struct nt_tracker;

/* Sources of facts that are not in the events. Any may be called at any time. */
struct nt_tracker_source {
	struct nt_memory memory;
	int (*describe)(void *data, uint32_t pid, struct nt_process_facts *ret_facts);
	/*
	 * gpu: the UUID that the process was given, or other text. *host is the caller's cache of an
	 * open file set; the tracker closes it.
	 */
	int (*sample)(void *data, uint32_t pid, uint32_t tid, const char *gpu,
		      struct nt_host **host, struct nt_host_sample *ret_sample);
	bool (*counters)(void *data, uint32_t pid, struct nt_process_counters *ret_counters);
	/* False: it has made no matrix multiplications. NULL: none has. */
	bool (*gemms)(void *data, uint32_t pid, struct nt_gemm_totals *ret_totals);
	/* The owner of the process. NULL: each is its own. */
	int (*owner)(void *data, uint32_t pid, struct nt_owner *ret_owner);
	/* True if discovery has yet to classify the process. NULL: never. */
	bool (*awaited)(void *data, uint32_t pid);
	/* Adds what is known of a cgroup's placement; leaves the rest unchanged. NULL: nothing. */
	enum nt_tenant_stated (*locate)(void *data, const struct nt_cgroup *cgroup,
					struct nt_placement *placement);
	/* The RDMA of a process since the last call; borrowed until the next. NULL: it uses none. */
	const struct nt_rdma_window *(*rdma)(void *data, uint32_t pid);
	/* The same of its TCP sockets. NULL: none was read. */
	const struct nt_tcp_window *(*tcp)(void *data, uint32_t pid);
	/* Whether both processes compute on one card. NULL: not known. */
	enum nt_gpu_shared (*shared_card)(void *data, uint32_t pid, uint32_t other);
	void *data;
};

struct nt_tracker_sink {
	/* Arguments are borrowed. watermark: all of the key before it has been handed out. */
	void (*window)(void *data, const char *key, const struct nt_window *window,
		       uint64_t watermark_ns);
	/* First call of a process. NULL: not reported. */
	void (*called)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* The process was evicted and is no longer watched; it still runs. NULL: as above. */
	void (*dropped)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* Held events of a process were processed: memory can be returned. NULL: as above. */
	void (*claimed)(void *data);
	/* A process has become a rank. NULL: as above. */
	void (*ranked)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* Wanted: nt_tracker_site_found() of an address in the process. NULL: not reported. */
	void (*site_wanted)(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t address);
	/*
	 * Single calls of a rank at level L1; all borrowed. NULL: no process has a level above 0.
	 */
	void (*detail)(void *data, const char *key, const struct nt_detail *detail);
	/* No message of the key was sent for a second. */
	void (*heartbeat)(void *data, const char *key, uint32_t ranks, uint64_t watermark_ns);
	void *data;
};

struct nt_tracker_options {
	const char *node; /* borrowed for the tracker's life, like all others */
	uint64_t boot; /* hash of the boot id */
	uint64_t seed; /* of epochs: differs from run to run */
	uint64_t window_min_ns;
	uint32_t query_max; /* queries of CUDA events of a process and second that are observed */
	uint64_t outside_ns; /* overhead of a probed call outside its own time; for sampled ranks */
	double gpu_peak_flops; /* of one GPU for 16-bit types; 0: by its model */
	struct nt_tracker_source source;
	struct nt_tracker_sink sink;
};

struct nt_tracker_detail_stats {
	uint64_t messages, records;
	uint64_t lost; /* calls over their rate or budget, or without room */
	uint64_t unowned; /* calls of no rank, or of one that has no key yet */
	uint64_t over_cap; /* calls without a log: NT_TRACKER_DETAIL_BYTES are in use */
};

struct nt_tracker_stats {
	uint64_t processes, ranks, comms; /* now */
	uint64_t events, windows, steps; /* so far */
	/* Losses by cause. */
	uint64_t malformed_events; /* unknown row, or shorter than their role needs */
	uint64_t foreign_events; /* of processes not watched */
	uint64_t processes_over_cap, ranks_over_cap, comms_over_cap, keys_over_cap;
	uint64_t threads_over_cap, pending_over_cap;
	uint64_t
		peers_over_cap; /* calls whose peer found the table full, and peers left out of windows */
	uint64_t orphans_over_cap; /* events, which are also counted as lost */
	uint64_t unresolved_comms; /* whose rank could not be read */
	/* layouts of NCCL learned from what RAS states, and communicators read thereby */
	uint64_t stated_layouts, resolved_comms;
	uint64_t undescribed; /* processes without facts from /proc */
	uint64_t late_ns, step_overruns, unknown_kinds, order_overflows;
	uint64_t gpu_intervals; /* reported by devices */
	uint64_t gpu_lost; /* gaps in their numbers: their steps are not T3 */
	uint64_t gpu_malformed; /* that end before they begin, or have not begun yet */
	/* of no process or communicator that is watched, or of several ranks */
	uint64_t gpu_unowned;
	/* Reports of what NCCL's proxies sent to a rank; and what the library could not measure. */
	uint64_t gpu_transfers, gpu_transfers_unowned, gpu_transfers_over_cap;
	struct nt_gpu_stats gpu;
	struct nt_gpu_records_stats gpu_records;
	uint64_t gpu_over_rate; /* batches that were dropped: see tracker_gpu.c */
	uint64_t gpu_refused; /* processes in which the GPU cannot be measured */
	uint64_t gpu_silent; /* processes that launched kernels and reported none */
	uint64_t queries_unowned; /* of no rank, or of several ranks in one process */
	uint64_t queries_over_rate; /* processes whose queries are not observed any more */
	struct nt_completion_stats completion;
	/* Device memory: allocations that failed, of them for want of memory, and losses. */
	uint64_t heap_failures, heap_out_of_memory;
	uint64_t heap_blocks_over_cap, heap_sites_over_cap, heap_malformed, heap_unmatched;
	struct nt_graph_stats graphs;
	/* Matrix multiplications; those that could not be read, or of types beyond the cap. */
	uint64_t gemms, gemms_unread, gemms_over_cap;
	uint64_t gemm_spans_over_cap; /* kernels: more multiplications came since than are kept */
	uint64_t gemm_windows_partial; /* whose share of GPU time is not known */
	struct nt_tracker_detail_stats detail;
	uint64_t stacks_replaced; /* by a newer one, before a window sent them */
	uint64_t profiles_replaced; /* the same of a result */
	uint64_t profiles_left; /* of processes that ended, over the one of the last window */
	uint64_t no_memory;
	uint64_t memory_given_up; /* processes, by nt_tracker_give_back() */
	uint64_t lost_events; /* from nt_tracker_lost_of() and the counters of processes */
	uint64_t paused; /* processes that are paused now */
	uint64_t mpi_code_over_cap; /* mappings */
	uint64_t unprobed; /* processes with much time in MPI's code outside of probed calls */
	uint64_t held, held_bytes; /* windows held for their tenant, now */
	uint64_t held_so_far;
	/* processes whose jobs were keyed by pod, container or process alone */
	uint64_t tenants_unknown;
	uint64_t tenants_late; /* of them, those whose namespace arrived later */
};

NT_MUST_CHECK int nt_tracker_new(const struct nt_tracker_options *options,
				 struct nt_tracker **ret_tracker);
void nt_tracker_free(struct nt_tracker *tracker);
NT_DEFINE_AUTO(nt_tracker, nt_tracker_free)

/* From discovery. */
void nt_tracker_mapped(struct nt_tracker *tracker, const struct nt_mapped_file *file);
void nt_tracker_exited(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t boot_ns);
/* Discovery has evicted the process, which still runs: sends its pending data and forgets it. */
void nt_tracker_evicted(struct nt_tracker *tracker, uint32_t pid, uint64_t start_boot_ns);
/*
 * Enclose a discovery scan, which may report processes and read events meanwhile. Events from
 * before a complete scan are foreign if it has not reported their process, and that is not awaited.
 */
void nt_tracker_discovering(struct nt_tracker *tracker);
void nt_tracker_discovered(struct nt_tracker *tracker, bool complete);

/*
 * Between the two: processes with events from before the scan that were not reported and are not
 * awaited, for nt_discover_recall(). Returns their number.
 */
size_t nt_tracker_unknown(const struct nt_tracker *tracker, uint32_t *ret_pid, size_t max);

/* Takes an event from the probes, in ring order. id: NT_ID_BYTES or NULL. */
void nt_tracker_event(struct nt_tracker *tracker, const struct nt_event_call *call,
		      const uint8_t *id);
/* Takes an interval from a plugin inside a rank's process. */
void nt_tracker_gpu(struct nt_tracker *tracker, const struct nt_gpu_interval *interval);
enum nt_gpu_batch_result {
	NT_GPU_BATCH_TAKEN,
	NT_GPU_BATCH_FLOOD, /* the process hands over more than it may, again and again */
	NT_GPU_BATCH_GIVEN_UP, /* the library cannot measure now: see nt_gpu_records_given_up() */
};

/* Takes a batch of records from such a plugin, in ring order. */
enum nt_gpu_batch_result nt_tracker_gpu_batch(struct nt_tracker *tracker,
					      const struct nt_event_gpu *batch);
/* What was multiplied while a stream captured, in ring order before the call that ended it. */
void nt_tracker_capture(struct nt_tracker *tracker, const struct nt_event_capture *capture);
/* A matrix multiplication while kernels are reported, in ring order with the batches. */
void nt_tracker_gemm(struct nt_tracker *tracker, const struct nt_event_gemm *gemm);
/*
 * The result of a query of a CUDA event by a rank's process, in ring order with the calls. False: it
 * makes more queries than it may, which are not to be observed any more.
 */
bool nt_tracker_query(struct nt_tracker *tracker, const struct nt_event_query *query);
/* No more records come until the GPUs are measured again. */
void nt_tracker_gpu_closed_all(struct nt_tracker *tracker);
/* Events were lost: reads each process's own losses from its counters. */
void nt_tracker_take_losses(struct nt_tracker *tracker);
/* Events of one process were lost: only its ranks' numbers and sums become unreliable. */
void nt_tracker_lost_of(struct nt_tracker *tracker, uint32_t pid, uint64_t events);
/*
 * Calls of the process from boot_ns on are not observed until it is resumed: the governor samples
 * it. Earlier steps are reported unchanged; what happens in between belongs to no step.
 */
void nt_tracker_paused(struct nt_tracker *tracker, uint32_t pid, uint64_t boot_ns);
void nt_tracker_resumed(struct nt_tracker *tracker, uint32_t pid, uint64_t boot_ns);

/* Traits of a discovered process, for the governor. */
struct nt_tracker_traits {
	uint64_t owner; /* id of struct nt_owner */
	bool is_rank;
	uint64_t measured; /* its steps so far */
	/* uninterrupted observation for which its steps are measured; 0: unknown */
	uint64_t whole_ns;
};

/* False: unknown process. */
bool nt_tracker_traits(const struct nt_tracker *tracker, uint32_t pid,
		       struct nt_tracker_traits *ret_traits);
/* Sets what is not observed of the process at all: NT_WIRE_SHED_*. */
void nt_tracker_shed(struct nt_tracker *tracker, uint32_t pid, uint32_t shed);
struct nt_level_table;

/*
 * What the requests in force change. `changed`: the level of a process is to be set, which may fail:
 * then it is reported again; `stack`: of a new request, until it returns true; `profile`: of a
 * new request. `least`: of all processes.
 */
struct nt_tracker_requests {
	uint32_t least;
	void (*changed)(void *data, uint32_t pid, uint64_t start_boot_ns, uint32_t level);
	bool (*stack)(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t id);
	void (*profile)(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t id,
			const struct nt_profile_wish *wish);
	void *data;
};

/* The level of a process is the highest of its ranks; one without ranks has none. */
void nt_tracker_take_requests(struct nt_tracker *tracker, const struct nt_level_table *table,
			      uint64_t real_ns, const struct nt_tracker_requests *requests);

/*
 * The level of a process, 0 to 3: from 1 on, single calls are handed out. -ESRCH: it is not watched.
 * A level ends with the process, and when it is no longer watched.
 */
NT_MUST_CHECK int nt_tracker_set_level(struct nt_tracker *tracker, uint32_t pid,
				       uint64_t start_boot_ns, uint32_t level);
/*
 * Records a second of the process, of all kinds; and the part of those of the kernel side that its
 * budget leaves (agent/governor/governor.h). Before the first call nothing is recorded.
 */
void nt_tracker_set_detail_rate(struct nt_tracker *tracker, uint32_t pid, uint32_t rate,
				double granted);
/*
 * Takes a call or event of a process at level L1, from other sources than the probe table. Its
 * thread selects the rank; call->call is of static duration; call->probability is that of sampling
 * so far, 1: none. -ESRCH: the process is not at L1; -ENOENT: the thread belongs to no rank, counted.
 */
int nt_tracker_detail(struct nt_tracker *tracker, uint32_t pid, const struct nt_detail_call *call,
		      uint64_t now_ns);
/* Takes a call that the kernel side has sampled. */
void nt_tracker_detail_event(struct nt_tracker *tracker, const struct nt_event_detail *event);
/* Calls and losses of the kernel side so far. */
void nt_tracker_detail_rates(struct nt_tracker *tracker, uint32_t pid,
			     const struct nt_detail_rates *rates);
/* Calls that did not come to nt_tracker_detail(), as they found no room. */
void nt_tracker_detail_lost(struct nt_tracker *tracker, uint32_t pid, enum nt_detail_kind kind,
			    double calls);
/* Reports each thread inside a call at now_ns: nt_tracker_look(), then once per thread. */
void nt_tracker_look(struct nt_tracker *tracker);
void nt_tracker_inside(struct nt_tracker *tracker, uint32_t pid, uint32_t tid, uint16_t row,
		       const struct nt_inside *inside, uint64_t now_ns);

/*
 * Reports what the walk over all threads found: the main thread of a process was in no probed call,
 * and last known at this instruction. True: nt_tracker_judge_unprobed() wants the mappings.
 */
bool nt_tracker_outside(struct nt_tracker *tracker, uint32_t pid, uint64_t user_ip, uint64_t now_ns,
			uint64_t *ret_start_ns);

/* A process that spends much of its time in MPI's code outside of probed calls. */
struct nt_tracker_unprobed {
	struct nt_unprobed_finding finding;
	const char *command; /* borrowed until the next call */
};

/* code: NULL if it could not be read. True: such a process, reported once. */
bool nt_tracker_judge_unprobed(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			       const struct nt_mpi_code *code, uint64_t now_ns,
			       struct nt_tracker_unprobed *ret_unprobed);

/*
 * Processes with communicators of NCCL that could not be read: of each library file and owner the
 * one on the lowest node of its job. Returns their number.
 */
size_t nt_tracker_unresolved(const struct nt_tracker *tracker, struct nt_ras_want *ret_want,
			     size_t max);
/*
 * NCCL states these places, sorted, of the process or of others with its pid. If one of them is found in
 * its memory, the communicators of all processes with its library file are read again. False: some
 * could not be read, and may be later: reads of a busy or slow process are refused.
 */
NT_MUST_CHECK bool nt_tracker_stated(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
				     const struct nt_ras_comm *stated, size_t count);

/* Where an address lies that was wanted: the file without its folder, and the offset in it. */
void nt_tracker_site_found(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			   uint64_t address, const char *file, uint64_t offset);

/*
 * Stacks of a rank's process. Sets the threads of its ranks; the rest is 0. False: no such process, or
 * no rank. The stack, of which the tracker takes ownership, is sent with the next window of its first
 * rank. False: the same, and it is freed.
 */
NT_MUST_CHECK bool nt_tracker_stack_threads(const struct nt_tracker *tracker, uint32_t pid,
					    uint64_t start_ns, uint32_t ret_tid[NT_STACK_THREADS]);
NT_MUST_CHECK bool nt_tracker_stack_read(struct nt_tracker *tracker, uint32_t pid,
					 uint64_t start_ns, struct nt_window_stack *stack);
/* The same of a profile. */
NT_MUST_CHECK bool nt_tracker_profile_taken(struct nt_tracker *tracker, uint32_t pid,
					    uint64_t start_ns, struct nt_window_profile *profile);

/* Advances the time; all events up to now_ns have been given. Sends what is due. */
void nt_tracker_tick(struct nt_tracker *tracker, uint64_t now_ns);
/* Shutdown: sends all pending data. */
void nt_tracker_drain(struct nt_tracker *tracker, uint64_t now_ns);

/*
 * Frees about so many bytes of memory, of which there is `limit`. Repeatedly drops the largest
 * process of the owner whose processes take the most. An owner keeps what is within its share of
 * the limit: a quarter, or an equal part if there are more owners. Dropped processes are not
 * watched for half a minute. Returns their number; 0: no owner exceeds its share.
 */
uint32_t nt_tracker_give_back(struct nt_tracker *tracker, size_t bytes, size_t limit);

/* The keys of jobs with ranks here, borrowed until the next call; returns their number. */
size_t nt_tracker_jobs(const struct nt_tracker *tracker, const char **ret_key, size_t max);

/* Slots of processes, keys, communicators and held events, and the owners left out. */
const struct nt_share *nt_tracker_share(const struct nt_tracker *tracker);
const struct nt_share *nt_tracker_key_share(const struct nt_tracker *tracker);
const struct nt_share *nt_tracker_comm_share(const struct nt_tracker *tracker);
const struct nt_share *nt_tracker_orphan_share(const struct nt_tracker *tracker);

void nt_tracker_stats(const struct nt_tracker *tracker, struct nt_tracker_stats *ret_stats);

#endif
