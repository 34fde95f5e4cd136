/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internal state of the agent; only for agent/agent*.c. */
#ifndef NT_AGENT_AGENT_IMPL_H
#define NT_AGENT_AGENT_IMPL_H

#include "agent/agent.h"
#include "agent/discover/attachment.h"
#include "agent/discover/discover.h"
#include "agent/discover/inspector.h"
#include "agent/discover/probed_ranks.h"
#include "agent/discover/process_reader.h"
#include "agent/discover/quarantine.h"
#include "agent/discover/worker.h"
#include "agent/governor/governor.h"
#include "agent/governor/own_links.h"
#include "agent/gpu/gpu_ends.h"
#include "agent/gpu/gpu_health.h"
#include "agent/gpu/gpu_schedule.h"
#include "agent/identity/placement_lookup.h"
#include "agent/node/kernel_identity.h"
#include "agent/node/nic.h"
#include "agent/node/node.h"
#include "agent/node/port_rates.h"
#include "agent/node/rank_times.h"
#include "agent/probes/attach.h"
#include "agent/probes/linker.h"
#include "agent/profile/profiler.h"
#include "agent/publish/enrolment.h"
#include "agent/publish/health_server.h"
#include "agent/publish/limit.h"
#include "agent/publish/metrics_file.h"
#include "agent/publish/publisher.h"
#include "agent/publish/self_metrics.h"
#include "agent/ras/ras.h"
#include "agent/rdma/rdma.h"
#include "agent/socket/sockets.h"
#include "agent/system/quota_reader.h"
#include "agent/system/system.h"
#include "agent/tracker/detail_set.h"
#include "agent/tracker/tracker.h"
#include "common/system/fault_notice.h"
#include "control/control_feed.h"
#include "control/level_table.h"

/* So far. */
struct nt_agent_stack_stats {
	uint64_t read; /* answers; also those that state a reason only */
	uint64_t failed; /* of them, those of processes that could not be read at all */
	uint64_t refused; /* requests over a cap */
	uint64_t unsent; /* the process ended or is no rank any more */
};

struct nt_agent {
	const struct nt_agent_config *config;
	char node[NT_AGENT_MAX_NODE + 1];
	struct nt_bus *bus;
	struct nt_bus *disk_queue; /* the bus, if it is a disk queue; else NULL */
	int spool_lock; /* held while the agent runs; -1: none */
	struct nt_publisher *publisher;
	struct nt_workers workers;
	struct nt_quarantine *quarantine;
	struct nt_process_reader *process_reader;
	struct nt_signer *signer; /* NULL: messages are not signed, or there is no key yet */
	struct nt_enrolment *enrolment; /* NULL: the key comes from a file, or there is none */
	struct nt_fault_notice enrolment_fault_notice;
	struct nt_tracker *tracker;
	struct nt_attachment *attachment;
	struct nt_attach *attach;
	struct nt_governor *governor;
	struct nt_linker *linker;
	struct nt_own_links *own_links;
	bool has_unread; /* the last poll reached its limit: events may remain */
	bool has_new_levels; /* the rates of details are to be divided again */
	uint64_t event_ns; /* boot time of the newest processed event */
	uint64_t read_until_ns; /* boot time before which all events are processed */
	uint64_t reread_ns; /* spent by nt_agent_read_all_events() in this turn */
	uint64_t event_cpu_ns, event_cpu_seen_ns, balanced_ns; /* of reading and taking events */
	struct nt_probed_ranks *interpreters, *gpu_ranks, *query_ranks;
	struct nt_probed_ranks
		*nccl_ranks, /* those without gpu_ranks' library, or where it gave up */
		*send_ranks; /* of which NCCL's sends are measured */
	struct nt_inspector_client rank_file_client;
	struct nt_inspector_client provider_client;
	struct nt_rdma *rdma;
	struct nt_sockets *sockets; /* NULL: they are not observed */
	struct nt_quota_reader *quotas; /* the same */
	struct nt_gpu_schedule gpu_schedule;
	bool is_gpu_open; /* the GPUs are measured now */
	struct nt_inspector_client mpi_code_client, code_place_client, stack_client;
	uint32_t stacks_pending;
	uint64_t stack_second; /* boot time in seconds in which stacks_of_second were read */
	uint32_t stacks_of_second;
	struct nt_agent_stack_stats stack_stats;
	struct nt_profiler *profiler;
	uint64_t profiles_unsent; /* the process ended or is no rank any more */
	uint64_t
		unprobed_ns; /* monotonic, when the minute of these lines of the log began; 0: never */
	uint32_t unprobed_lines; /* so far in that minute */
	struct nt_detail_set *detail_set; /* processes at level L1 or above */
	uint64_t detail_failures; /* limits that the kernel did not take */
	struct nt_discover *discover;
	struct nt_metrics *metrics;
	struct nt_placement_lookup *placement_lookup;
	struct nt_health_server *health_server; /* NULL: no listen address */
	struct nt_node vector;
	struct nt_nic nic; /* read once a second */
	struct nt_port_rates port_rates; /* with each node vector */
	struct nt_rank_times rank_times; /* since the last node vector */
	struct nt_kernel_identity kernel_identity;
	const char *host_sys; /* sysfs of the host's network namespace, if it can be read */
	struct nt_gpu_health *gpu_health; /* NULL: none is read */
	struct nt_system *system; /* NULL: system events are not observed */
	struct nt_ras *ras; /* NULL: not requested */
	const struct nt_ras_answer *ras_answer; /* of the process below; NULL: none is in use */
	struct nt_ras_want ras_asked;
	uint32_t ras_uses; /* so far */
	struct nt_gpu_ends gpu_ends; /* processes that ended, until their GPUs are read again */
	struct nt_control_feed *control_feed; /* NULL: requests are not read */
	struct nt_level_table *levels;
	struct nt_limits limits; /* as often */
	uint32_t recalls; /* still allowed in this second */
	int epoll, timer, signals;
	uint64_t event_since_ns; /* monotonic, when the previous event was processed */
	uint64_t ticks, taken, lost, attach_failures, uncovered_calls, looked_ns;
	bool ends;
	uint64_t bus_failed_ns; /* boot time of the last failure; 0: none since the last success */
	bool warned_budget, warned_metrics, warned_tenants, is_bus_away;
	struct nt_fault_notice bus_fault_notice;
	bool is_bus_fault_logged; /* the end of the failure is to be logged */
	struct nt_fault_notice memory_fault_notice;
	uint64_t memory_limit; /* bytes, where none is configured; 0: not yet computed */
	uint64_t memory_look_ns; /* monotonic: the next check */
	uint64_t memory_spared_ns; /* monotonic, when last no owner exceeded its share */
	/* monotonic, when free memory was last returned to the kernel */
	uint64_t memory_returned_ns;
};

/* agent/agent_event.c: reads the events of one poll; has_unread: more may remain. */
void nt_agent_read_events(struct nt_agent *agent);
/* Ends the processes that have waited for a reading of their GPUs; UINT64_MAX: all. */
void nt_agent_end_processes(struct nt_agent *agent, uint64_t mono_ns);
/*
 * Reads all pending kernel events, within the time budget of one turn of the loop. False: events
 * may remain, so what is processed next can precede calls made earlier.
 */
NT_MUST_CHECK bool nt_agent_read_all_events(struct nt_agent *agent);
/* The same until *spent_ns reaches max_ns. Adds the time spent to *spent_ns. */
bool nt_agent_read_all_within(struct nt_agent *agent, uint64_t *spent_ns, uint64_t max_ns);

/*
 * agent/agent_callbacks.c: opens the parts that call back into others, in this order. The bus and
 * the signer are opened between the second and the third. Errors are logged.
 */
NT_MUST_CHECK int nt_agent_open_workers(struct nt_agent *agent);
NT_MUST_CHECK int nt_agent_open_probes(struct nt_agent *agent);
NT_MUST_CHECK int nt_agent_open_tracker(struct nt_agent *agent, uint64_t boot);

/*
 * agent/agent_ranks.c: what is probed in ranks alone. A process has become a rank, or has ended. The
 * turn comes with each tick, the other once a second.
 */
NT_MUST_CHECK int nt_agent_open_ranks(struct nt_agent *agent);
void nt_agent_probe_rank(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns);
void nt_agent_forget_rank(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns);
void nt_agent_turn_ranks(struct nt_agent *agent, uint64_t real_ns);
void nt_agent_detach_ended_ranks(struct nt_agent *agent);
/* Callbacks of agent/probes/attach.h, whose data is the agent. */
void nt_agent_rank_probe_made(void *data, int library, uint32_t pid, uint64_t start_ns, int result,
			      struct nt_rank_probe *probe);
void nt_agent_gpu_batch(void *data, const struct nt_event_gpu *batch);
void nt_agent_event_query(void *data, const struct nt_event_query *query);
void nt_agent_gemm(void *data, const struct nt_event_gemm *gemm);
void nt_agent_capture(void *data, const struct nt_event_capture *capture);

/* The time of an event to its own process: else the next call, of any process, is charged with it. */
void nt_agent_charge(struct nt_agent *agent, uint32_t pid);

/* agent/agent_governor.c: limits observation; several times a second, and once a second. */
NT_MUST_CHECK int nt_agent_open_governor(struct nt_agent *agent);
void nt_agent_govern(struct nt_agent *agent, uint64_t boot_ns, uint64_t real_ns);
void nt_agent_budget(struct nt_agent *agent, uint64_t boot_ns);

/*
 * agent/agent_unprobed.c: time that processes spend in MPI's code outside of probed calls. An
 * nt_outside_fn, whose data is the agent.
 */
void nt_agent_outside(void *data, uint32_t pid, uint64_t user_ip);
void nt_agent_open_unprobed(struct nt_agent *agent);

/*
 * agent/agent_detail.c: sets the level of a rank's process, 0 to 3; from 1 on its single calls are
 * sent. -ESRCH: it is not watched; -ENOSPC: too many have one; -ENOMEM. The turn comes once a second.
 */
NT_MUST_CHECK int nt_agent_set_level(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns,
				     uint32_t level);
void nt_agent_forget_level(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns);
/* Reports calls of the process that the kernel side has counted since the last turn. */
void nt_agent_count_details(struct nt_agent *agent, uint32_t pid);
/* System events of the process that the kernel side dropped since the last call. */
void nt_agent_count_system_events(struct nt_agent *agent, uint32_t pid);
void nt_agent_turn_details(struct nt_agent *agent);
void nt_agent_read_details(struct nt_agent *agent);
void nt_agent_detail(void *data, const struct nt_event_detail *detail);
NT_MUST_CHECK int nt_agent_open_details(struct nt_agent *agent);

/* agent/agent_heap.c: looks up call sites for the tracker, whose sink has the agent as its data. */
void nt_agent_site_wanted(void *data, uint32_t pid, uint64_t start_ns, uint64_t address);
void nt_agent_open_heap(struct nt_agent *agent);

/* agent/agent_stack.c: stacks of ranks on request; see nt_agent_want_stack(). */
void nt_agent_open_stacks(struct nt_agent *agent);

/* agent/agent_profile.c: the rank's windows send that it has begun, or why not, and the result. */
void nt_agent_want_profile(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns,
			   uint64_t request, const struct nt_profile_wish *wish);
NT_MUST_CHECK int nt_agent_open_profiler(struct nt_agent *agent);

/* agent/agent_callbacks.c: a process has kept a worker waiting, which is logged. */
void nt_agent_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held);

/*
 * agent/agent_rdma.c: queue pairs. The first is a callback of agent/probes/attach.h, the second one of
 * the tracker. made: true if the library is its own.
 */
NT_MUST_CHECK int nt_agent_open_rdma(struct nt_agent *agent);
void nt_agent_verbs(void *data, const struct nt_event_verbs *verbs);
void nt_agent_executed(void *data, uint32_t pid, uint64_t boot_ns);
const struct nt_rdma_window *nt_agent_rdma_window(void *data, uint32_t pid);
bool nt_agent_rdma_made(struct nt_agent *agent, int library, uint32_t pid, uint64_t start_ns,
			int result, struct nt_rank_probe *probe);
void nt_agent_govern_rdma(struct nt_agent *agent, uint32_t pid,
			  const struct nt_governor_plan *plan);

/* agent/agent_ras.c: requests to NCCL's RAS; the turn comes once a second. */
NT_MUST_CHECK int nt_agent_open_ras(struct nt_agent *agent);
void nt_agent_turn_ras(struct nt_agent *agent);

/* agent/agent_level.c: requests for more detail; the turn comes once a second. */
NT_MUST_CHECK int nt_agent_open_level(struct nt_agent *agent);
/* Sets the level of a process in all that depends on it. A failure is counted. */
void nt_agent_raise(struct nt_agent *agent, uint32_t pid, uint64_t start_boot_ns, uint32_t level);
void nt_agent_turn_level(struct nt_agent *agent, uint64_t real_ns);
void nt_agent_close_level(struct nt_agent *agent);
/*
 * agent/agent_system.c: system events and TCP sockets of ranks. The poll comes with each tick, the turn
 * once a second; the windows are a callback of the tracker.
 */
const struct nt_tcp_window *nt_agent_tcp_window(void *data, uint32_t pid);
void nt_agent_open_system(struct nt_agent *agent);
void nt_agent_poll_system(struct nt_agent *agent);
void nt_agent_turn_system(struct nt_agent *agent, uint64_t boot_ns);
/* Adds what was observed of the process and its thread. */
void nt_agent_sample_system(const struct nt_agent *agent, uint32_t pid, uint32_t tid,
			    struct nt_host_sample *sample);

/*
 * agent/agent_node.c: opens what the node vector needs; sends one; reads the counters of ports and TCP,
 * once a second.
 */
void nt_agent_open_node(struct nt_agent *agent);
void nt_agent_send_node(struct nt_agent *agent);
void nt_agent_read_nic(struct nt_agent *agent);

/* agent/agent_memory.c: keeps memory under --memory-max; several times a second and per event. */
void nt_agent_keep_memory(struct nt_agent *agent);

#endif
