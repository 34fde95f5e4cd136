/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/self_metrics.h"

#include <stddef.h>

#include "agent/publish/self_metrics_text.h"

/* A row: a metric and its number in the reading. */
struct metric_row {
	struct nt_metric metric;
	size_t offset;
};

#define FIELD(path) offsetof(struct nt_self_metrics_reading, path)
#define COUNTER(name_, labels_, path, help_)                                                       \
	{                                                                                          \
		.metric = {.name = "neutracer_agent_" name_ "_total",                              \
			   .kind = NT_METRIC_COUNTER,                                              \
			   .help = (help_),                                                        \
			   .labels = (labels_)},                                                   \
		.offset = FIELD(path)                                                              \
	}
#define GAUGE(name_, path, help_)                                                                  \
	{                                                                                          \
		.metric = {.name = "neutracer_agent_" name_,                                       \
			   .kind = NT_METRIC_GAUGE,                                                \
			   .help = (help_)},                                                       \
		.offset = FIELD(path)                                                              \
	}
#define LEFT_OUT(what_, limit_)                                                                    \
	{                                                                                          \
		.metric = {.name = "neutracer_agent_left_out",                                     \
			   .kind = NT_METRIC_GAUGE,                                                \
			   .help = "Items omitted now because a table is full; above 0 while "     \
				   "the cap is reached.",                                          \
			   .labels = "what=\"" what_ "\""},                                        \
		.offset = FIELD(left_out[limit_])                                                  \
	}
#define SECONDS(name_, path, help_)                                                                \
	{                                                                                          \
		.metric = {.name = "neutracer_agent_" name_ "_seconds_total",                      \
			   .kind = NT_METRIC_COUNTER_NS,                                           \
			   .help = (help_)},                                                       \
		.offset = FIELD(path)                                                              \
	}

#define DISK_QUEUE_COUNTER(name_, path_, help_)                                                    \
	COUNTER("shelter_" name_, "class=\"verdict\"", disk_queue.path_(NT_DISK_QUEUE_VERDICT),    \
		help_),                                                                            \
		COUNTER("shelter_" name_, "class=\"other\"",                                       \
			disk_queue.path_(NT_DISK_QUEUE_OTHER), help_),                             \
		COUNTER("shelter_" name_, "class=\"detail\"",                                      \
			disk_queue.path_(NT_DISK_QUEUE_DETAIL), help_)
#define FOUND(class_)   class[class_].found
#define STORED(class_)  class[class_].stored
#define DRAINED(class_) class[class_].drained
#define EVICTED(class_) class[class_].evicted
#define EXPIRED(class_) class[class_].expired
#define CORRUPT(class_) class[class_].corrupt
#define LOST(class_)    class[class_].dropped
#define REFUSED(class_) refused[class_]

#define BUS_ERROR(label_, cause_)                                                                  \
	COUNTER("bus_errors", "cause=\"" label_ "\"", bus.errors[cause_],                          \
		"Errors of the brokers, by cause.")
#define UNDELIVERED(label_, cause_)                                                                \
	COUNTER("bus_undelivered", "cause=\"" label_ "\"", bus.undelivered[cause_],                \
		"Records that brokers did not acknowledge; lost unless there is a disk queue.")

#define KUBE_FAILED(label_, fault_notice_)                                                         \
	COUNTER("kube_failed", "cause=\"" label_ "\"",                                             \
		placement_lookup.kube.failed[fault_notice_],                                       \
		"Failed lists and watches of pods, by cause.")
#define KUBE_DROPPED(label_, path_)                                                                \
	COUNTER("kube_pods_dropped", "cause=\"" label_ "\"", placement_lookup.kube.path_,          \
		"Pods not recorded, by cause.")

#define RAS_REQUEST(label_, result_)                                                               \
	COUNTER("nccl_ras_requests", "result=\"" label_ "\"", ras.results[result_],                \
		"Requests for the status of a job to NCCL's RAS, by result.")

static const struct metric_row rows[] = {
	COUNTER("events", NULL, tracker.events, "Events read from the kernel."),
	COUNTER("events_dropped", "type=\"call\"", attach.dropped[NT_EVENT_CALL], DROPPED),
	COUNTER("events_dropped", "type=\"init\"", attach.dropped[NT_EVENT_INIT], DROPPED),
	COUNTER("events_dropped", "type=\"end\"", attach.dropped[NT_EVENT_END], DROPPED),
	COUNTER("events_dropped", "type=\"gpu\"", attach.dropped[NT_EVENT_GPU], DROPPED),
	COUNTER("events_dropped", "type=\"query\"", attach.dropped[NT_EVENT_QUERY], DROPPED),
	COUNTER("events_dropped", "type=\"gemm\"", attach.dropped[NT_EVENT_GEMM], DROPPED),
	COUNTER("events_dropped", "type=\"capture\"", attach.dropped[NT_EVENT_CAPTURE], DROPPED),
	COUNTER("events_dropped", "type=\"verbs\"", attach.dropped[NT_EVENT_VERBS], DROPPED),
	COUNTER("events_malformed", NULL, tracker.malformed_events,
		"Malformed events, which were discarded."),
	COUNTER("events_foreign", NULL, tracker.foreign_events,
		"Events of processes that this agent does not watch."),
	COUNTER("events_over_share", NULL, attach.over_share,
		"Events lost because their process or user exceeded its share of the ring buffer."),
	COUNTER("calls_untracked", NULL, attach.untracked,
		"Calls lost because the kernel had no memory."),
	COUNTER("calls_unreturned", NULL, attach.unreturned,
		"Calls lost because their probes were detached before they returned."),
	GAUGE("governed_processes", governor.governed,
	      "Processes observed only in part now, to limit their overhead."),
	GAUGE("sampled_processes", governor.sliced, "Processes observed only in time slices now."),
	GAUGE("hot_functions", governor.hot_functions,
	      "Functions detached from a process now because they are called too often."),
	GAUGE("shed_subjects", governor.shed_subjects,
	      "Subjects of processes that are not observed now."),
	GAUGE("paused_processes", tracker.paused, "Processes between two time slices now."),
	COUNTER("governor_decisions", NULL, governor.decisions,
		"Changes of what is observed of a process."),
	COUNTER("governor_looks", NULL, own_links.looks,
		"Checks of functions that were called too often."),
	GAUGE("split_files", own_links.files_split,
	      "Library files whose processes have links of their own now."),
	COUNTER("file_splits", NULL, own_links.splits,
		"Replacements of shared links by links of single processes."),
	COUNTER("own_link_failures", NULL, own_links.failed,
		"Links of single processes that the kernel failed to create."),
	COUNTER("own_links_put_off", NULL, own_links.put_off,
		"Links of single processes deferred because the queue was full."),
	COUNTER("over_cap", "what=\"governed\"", governor.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"mpi-code\"", tracker.mpi_code_over_cap, OVER_CAP),
	COUNTER("probe_misses", NULL, attach.missed, "Probe hits that the kernel skipped."),
	COUNTER("probes_refused", NULL, attach.refused_slow,
		"Functions not probed because a probe on their first instruction is slow."),
	COUNTER("probes_failed", NULL, attach.failed,
		"Functions that the kernel failed to "
		"attach."),
	COUNTER("attach_failures", NULL, attach_failures,
		"Library files that could not be attached."),
	COUNTER("gpu_reads", NULL, gpu_health.reads, "Readings of the health of the node's GPUs."),
	COUNTER("gpu_read_failures", "reason=\"refused\"", gpu_health.failures,
		"Failed readings of the health of GPUs; retried after a minute."),
	COUNTER("gpu_read_failures", "reason=\"stalled\"", gpu_health.stalls,
		"Failed readings of the health of GPUs; retried after a minute."),
	COUNTER("uncovered_calls", NULL, uncovered_calls,
		"Communication calls of attached libraries that have no probe."),
	COUNTER("stacks", NULL, stacks_read, "Stacks of processes that were read on request."),
	COUNTER("stack_failures", NULL, stacks_failed,
		"Of these, the ones of processes that could not be read at all."),
	COUNTER("stacks_refused", NULL, stacks_refused,
		"Requests for stacks that were refused: too many at a time, or in a second."),
	COUNTER("stacks_unsent", "reason=\"gone\"", stacks_unsent, UNSENT_STACKS),
	COUNTER("stacks_unsent", "reason=\"replaced\"", tracker.stacks_replaced, UNSENT_STACKS),
	COUNTER("profiles", NULL, profiler.taken, "Profiles of processes taken on request."),
	COUNTER("profile_failures", NULL, profiler.failed,
		"Profiles whose worker failed or was late."),
	COUNTER("profiles_refused", "reason=\"node\"", profiler.refused, NO_PROFILE),
	COUNTER("profiles_refused", "reason=\"owner\"", profiler.refused_owner, NO_PROFILE),
	COUNTER("profiles_refused", "reason=\"quarantine\"", profiler.refused_held, NO_PROFILE),
	COUNTER("profile_times", "result=\"taken\"", profiler.times, PROFILE_TIMES),
	COUNTER("profile_times", "result=\"missed\"", profiler.missed, PROFILE_TIMES),
	COUNTER("profile_samples_not_whole", "reason=\"torn\"", profiler.torn, NOT_WHOLE),
	COUNTER("profile_samples_not_whole", "reason=\"empty\"", profiler.empty, NOT_WHOLE),
	COUNTER("profile_samples_not_whole", "reason=\"lost\"", profiler.lost, NOT_WHOLE),
	COUNTER("profiles_unsent", "reason=\"gone\"", profiles_unsent, UNSENT_PROFILE),
	COUNTER("profiles_unsent", "reason=\"ended\"", tracker.profiles_left, UNSENT_PROFILE),
	COUNTER("profiles_unsent", "reason=\"replaced\"", tracker.profiles_replaced,
		UNSENT_PROFILE),
	COUNTER("profiles_unsent", "reason=\"too-large\"", publisher.dropped_profiles,
		UNSENT_PROFILE),
	COUNTER("unprobed_processes", NULL, tracker.unprobed,
		"Processes found to spend much of their time in MPI outside of probed calls."),
	COUNTER("interpreter_failures", NULL, interpreters.failed,
		"Interpreters of ranks that could not be attached."),
	COUNTER("spans_unmeasured", NULL, attach.unmeasured,
		"Garbage collections without a recorded begin, or nested in another."),
	GAUGE("attached_interpreters", interpreters.attached,
	      "Processes whose garbage collections are timed now."),
	COUNTER("gpu_library_failures", NULL, gpu_ranks.failed,
		"GPU libraries of ranks that could not be attached."),
	GAUGE("measured_gpu_processes", gpu_ranks.attached,
	      "Processes whose GPU time is measured now."),
	COUNTER("nccl_library_failures", NULL, nccl_ranks.failed,
		"NCCL profiler libraries of ranks that could not be attached."),
	GAUGE("measured_nccl_processes", nccl_ranks.attached,
	      "Processes in which the kernels of NCCL alone are measured now."),
	COUNTER("nccl_send_failures", NULL, send_ranks.failed,
		"NCCL profiler libraries of ranks whose sends could not be attached."),
	GAUGE("measured_send_processes", send_ranks.attached,
	      "Processes in which what NCCL's proxies send is measured now."),
	COUNTER("event_query_failures", NULL, query_ranks.failed,
		"Ranks whose queries of CUDA events could not be attached, or were too many."),
	GAUGE("queried_processes", query_ranks.attached,
	      "Processes whose queries of CUDA events are observed now."),
	GAUGE("attached_files", attach.files, "Library files with probes now."),
	GAUGE("attached_links", attach.links, "Links to the kernel now."),
	GAUGE("attached_probes", attach.probes, "Functions with probes now."),
	COUNTER("discovery_scans", NULL, discover.scans, "Scans of all processes."),
	COUNTER("discovery_lost_records", NULL, discover.lost_records,
		"Lost records of mappings, each followed by a scan."),
	COUNTER("discovery_unreadable", NULL, discover.unreadable,
		"Processes that could not be inspected."),
	COUNTER("files_refused", "reason=\"budget\"", discover.refused[NT_REFUSED_BUDGET],
		REFUSED_FILES),
	COUNTER("files_refused", "reason=\"deadline\"", discover.refused[NT_REFUSED_DEADLINE],
		REFUSED_FILES),
	COUNTER("files_refused", "reason=\"not-regular\"", discover.refused[NT_REFUSED_NOT_REGULAR],
		REFUSED_FILES),
	COUNTER("files_refused", "reason=\"fuse\"", discover.refused[NT_REFUSED_FUSE],
		REFUSED_FILES),
	COUNTER("files_refused", "reason=\"changes\"", discover.refused[NT_REFUSED_CHANGES],
		REFUSED_FILES),
	COUNTER("stalls", "what=\"read\"", process_reader.stalled, STALLS),
	COUNTER("stalls", "what=\"inspection\"", discover.inspector.stalled, STALLS),
	COUNTER("reads_refused", "what=\"read\"", process_reader.refused, UNREAD),
	COUNTER("reads_refused", "what=\"allowance\"", process_reader.over_allowance, UNREAD),
	COUNTER("reads_refused", "what=\"inspection\"", discover.inspector.refused, UNREAD),
	GAUGE("inspections_pending", discover.inspector.pending,
	      "Inspections of processes and files that are queued or running."),
	COUNTER("workers_started", NULL, workers_started, "Worker processes started."),
	COUNTER("workers_killed", NULL, workers_killed, "Worker processes killed or ended."),
	GAUGE("workers_left_behind", workers_left,
	      "Worker processes that were killed and have not exited yet."),
	GAUGE("quarantined_processes", quarantine.processes,
	      "Processes in quarantine now because they blocked a worker."),
	GAUGE("quarantined_owners", quarantine.owners,
	      "Pods, containers and users in quarantine now with all their processes."),
	COUNTER("over_cap", "what=\"inspections\"", discover.inspector.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"quarantine\"", quarantine.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"allowances\"", process_reader.debts_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"discovery\"", discover.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"attachments\"", attachments_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"interpreters\"", interpreters.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"gpu-processes\"", gpu_ranks.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"nccl-processes\"", nccl_ranks.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"send-processes\"", send_ranks.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"gpu-ends\"", gpu_ends_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"queried-processes\"", query_ranks.over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"completion-events\"", tracker.completion.marks_over_cap,
		OVER_CAP),
	COUNTER("over_cap", "what=\"completion-queries\"", tracker.completion.queries_over_cap,
		OVER_CAP),
	COUNTER("over_cap", "what=\"processes\"", tracker.processes_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"memory\"", tracker.memory_given_up, OVER_CAP),
	COUNTER("over_cap", "what=\"ranks\"", tracker.ranks_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"communicators\"", tracker.comms_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"keys\"", tracker.keys_over_cap, OVER_CAP),
	GAUGE("windows_waiting", tracker.held,
	      "Windows held now until the namespace of their pod is found."),
	COUNTER("windows_held", NULL, tracker.held_so_far,
		"Windows that were held until the namespace of their pod was found."),
	COUNTER("tenants_unknown", NULL, tracker.tenants_unknown,
		"Processes without a known namespace or user; their jobs include no other pod."),
	GAUGE("messages_held_bytes", publisher.held_bytes,
	      "Bytes of messages held now until the key of this node is available."),
	COUNTER("enrolment_requests", "result=\"granted\"", enrolment.granted, ENROLMENT),
	COUNTER("enrolment_requests", "result=\"failed\"", enrolment.failed, ENROLMENT),
	COUNTER("requests", "result=\"taken\"", levels.taken, REQUESTS),
	COUNTER("requests", "result=\"outdated\"", levels.outdated, REQUESTS),
	COUNTER("requests", "result=\"malformed\"", levels.malformed, REQUESTS),
	COUNTER("requests", "result=\"undecodable\"", control_feed.bad, REQUESTS),
	COUNTER("over_cap", "what=\"requests\"", levels.over_cap, OVER_CAP),
	COUNTER("control_topic_failures", NULL, control_feed.open_failures,
		"Failed attempts to read the control topic."),
	GAUGE("control_topic_open", control_feed.open_now,
	      "Whether the control topic is being read: 1 or 0."),
	COUNTER("messages_signed", NULL, publisher.signed_messages,
		"Signed messages passed to the bus."),
	COUNTER("tenants_late", NULL, tracker.tenants_late,
		"Of tenants_unknown: processes whose namespace was found later. Each then starts "
		"a new job."),
	COUNTER("over_cap", "what=\"threads\"", tracker.threads_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"pending\"", tracker.pending_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"peers\"", tracker.peers_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"ports\"", ports_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"port-rates\"", port_rates_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"node-devices\"", node_devices_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"rdma-processes\"", rdma.processes_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"queue-pairs\"", rdma.queue_pairs_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"queue-pairs-of-windows\"", rdma.unsent, OVER_CAP),
	COUNTER("over_cap", "what=\"socket-processes\"", sockets.processes_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"sockets\"", sockets.sockets_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"sockets-of-windows\"", sockets.unsent, OVER_CAP),
	GAUGE("sockets", sockets.sockets, "Connected TCP sockets of ranks that are known now."),
	COUNTER("socket_readings", NULL, sockets.readings,
		"Readings of the TCP sockets of a process."),
	COUNTER("socket_readings_failed", NULL, sockets.failed,
		"Of socket_readings: those that failed."),
	COUNTER("socket_reading_nanoseconds", NULL, sockets.read_ns,
		"Time of these readings, on a thread of their own."),
	GAUGE("rdma_processes", rdma.processes, "Processes that use RDMA now."),
	GAUGE("rdma_queue_pairs", rdma.queue_pairs, "Queue pairs that are known now."),
	GAUGE("rdma_attached", rdma.attached,
	      "Probes of RDMA traffic that are attached now, posts and polls apart."),
	COUNTER("rdma_refused", NULL, rdma.refused,
		"Processes whose provider of RDMA cannot be probed."),
	COUNTER("rdma_not_visible", NULL, rdma.not_visible,
		"Queue pairs whose traffic cannot be observed."),
	COUNTER("rdma_cut", NULL, rdma.cut,
		"Calls with more work requests or elements than are read."),
	COUNTER("rdma_unread", NULL, rdma.unread,
		"Work requests in memory that could not be read."),
	COUNTER("rdma_untimed", NULL, rdma.untimed,
		"Completions whose post was not observed: they have no latency."),
	COUNTER("over_cap", "what=\"orphans\"", tracker.orphans_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"call-kinds\"", tracker.unknown_kinds, OVER_CAP),
	COUNTER("over_cap", "what=\"streams\"", tracker.order_overflows, OVER_CAP),
	COUNTER("over_cap", "what=\"steps\"", tracker.step_overruns, OVER_CAP),
	COUNTER("over_cap", "what=\"graphs\"", tracker.graphs.handles_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"graph-calls\"", tracker.graphs.calls_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"graph-streams\"", tracker.graphs.streams_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"graph-events\"", tracker.graphs.events_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"gemm-types\"", tracker.gemms_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"gemm-spans\"", tracker.gemm_spans_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"gpu-steps\"", tracker.gpu.steps_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"gpu-streams\"", tracker.gpu.streams_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"heap-blocks\"", tracker.heap_blocks_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"heap-sites\"", tracker.heap_sites_over_cap, OVER_CAP),
	LEFT_OUT("discovery", NT_LIMIT_DISCOVERY),
	LEFT_OUT("processes", NT_LIMIT_PROCESSES),
	LEFT_OUT("keys", NT_LIMIT_KEYS),
	LEFT_OUT("communicators", NT_LIMIT_COMMS),
	LEFT_OUT("orphans", NT_LIMIT_ORPHANS),
	LEFT_OUT("attachments", NT_LIMIT_ATTACHMENTS),
	COUNTER("gpu_records", NULL, tracker.gpu_records.records,
		"Records that libraries inside processes reported of their GPUs."),
	COUNTER("gpu_records_lost", NULL, tracker.gpu_records.lost,
		"Missing sequence numbers of these records."),
	COUNTER("gpu_records_malformed", NULL, tracker.gpu_records.malformed,
		"Malformed records, which were discarded."),
	COUNTER("gpu_records_unmatched", NULL, tracker.gpu_records.unmatched,
		"Kernels of which the call that enqueued them is unknown."),
	COUNTER("gpu_records_earlier", NULL, tracker.gpu_records.earlier,
		"Kernels that were enqueued before a measurement and ran in it."),
	COUNTER("gpu_transfers", NULL, tracker.gpu_transfers,
		"Reports of what NCCL's proxies sent to a rank."),
	COUNTER("gpu_transfers_unowned", NULL, tracker.gpu_transfers_unowned,
		"The same of an unknown communicator, discarded."),
	COUNTER("gpu_transfers_over_cap", NULL, tracker.gpu_transfers_over_cap,
		"Operations of NCCL's proxies that were not measured: to more ranks than the library measures, or events lost in the library."),
	COUNTER("gpu_batches_over_rate", NULL, tracker.gpu_over_rate,
		"Batches of GPU records that were dropped: more in a second than a process or the node may have."),
	COUNTER("gpu_processes_refused", NULL, tracker.gpu_refused,
		"Processes whose GPU time the library in them does not report: CUPTI is not there, "
		"refuses or has another user, or NCCL's times are not usable."),
	COUNTER("gpu_processes_silent", NULL, tracker.gpu_silent,
		"Processes that launched kernels while they were measured, and reported none."),
	COUNTER("event_queries", "proves=\"inside\"", tracker.completion.inside, QUERIES),
	COUNTER("event_queries", "proves=\"outside\"", tracker.completion.outside, QUERIES),
	COUNTER("event_queries", "proves=\"nothing\"", tracker.completion.unproved, QUERIES),
	COUNTER("event_queries_unowned", NULL, tracker.queries_unowned,
		"Queries of CUDA events of no rank, or of several ranks in one process."),
	COUNTER("event_queries_over_rate", NULL, tracker.queries_over_rate,
		"Processes with more queries of CUDA events in a second than --event-queries: not "
		"observed any more."),
	COUNTER("completion_batches", "result=\"measured\"", tracker.completion.measured, BATCHES),
	COUNTER("completion_batches", "result=\"unknown\"", tracker.completion.given_up, BATCHES),
	COUNTER("gpu_intervals", NULL, tracker.gpu_intervals,
		"Busy intervals of streams that plugins reported."),
	COUNTER("gpu_intervals_lost", NULL, tracker.gpu_lost,
		"Missing sequence numbers of intervals that plugins reported."),
	COUNTER("gpu_intervals_malformed", NULL, tracker.gpu_malformed,
		"Malformed intervals, which were discarded."),
	COUNTER("gpu_intervals_unowned", NULL, tracker.gpu_unowned,
		"Intervals without a known owner."),
	COUNTER("gpu_intervals_late", NULL, tracker.gpu.late,
		"Intervals that arrived after their step was reported."),
	COUNTER("gpu_steps_unknown", NULL, tracker.gpu.steps_unknown,
		"Steps reported without device times, which had not arrived."),
	SECONDS("gpu_overlap", tracker.gpu.overlap_ns,
		"Device time discarded because it arrived too late to determine its overlap."),
	COUNTER("gpu_allocations_failed", NULL, tracker.heap_failures,
		"Allocations of device memory that failed in watched processes."),
	COUNTER("gpu_out_of_memory", NULL, tracker.heap_out_of_memory,
		"Of these, the ones for want of memory."),
	COUNTER("gpu_allocations_malformed", NULL, tracker.heap_malformed,
		"Allocations of device memory of an impossible size, which were discarded."),
	COUNTER("gpu_releases_unmatched", NULL, tracker.heap_unmatched,
		"Releases of device memory whose allocation was not observed, or the reverse."),
	GAUGE("detail_processes", detailed, "Processes at level L1 or above now."),
	COUNTER("detail_records", NULL, tracker.detail.records,
		"Records of single calls sent, at level L1 or above."),
	COUNTER("detail_lost", NULL, tracker.detail.lost,
		"Calls at level L1 that were lost: over the rate, or without room. Those that are "
		"sampled out are not among them."),
	COUNTER("detail_events_dropped", NULL, attach.dropped[NT_EVENT_DETAIL],
		"Sampled calls dropped in the kernel: their ring was full, or it had no memory."),
	COUNTER("detail_unowned", NULL, tracker.detail.unowned,
		"Calls at level L1 of no known rank, or of one whose job is not known yet."),
	COUNTER("detail_failures", NULL, detail_failures,
		"Levels or limits of processes that could not be set."),
	COUNTER("over_cap", "what=\"details\"", tracker.detail.over_cap, OVER_CAP),
	COUNTER("graph_launches", NULL, tracker.graphs.launches,
		"Launches of CUDA graphs that contain communication."),
	COUNTER("gemms", NULL, tracker.gemms,
		"Matrix multiplications of ranks: calls of cuBLAS and cuBLASLt."),
	COUNTER("gemms_unread", NULL, tracker.gemms_unread,
		"Matrix multiplications whose arguments fit no known layout: they count no operations."),
	COUNTER("gemm_windows_partial", NULL, tracker.gemm_windows_partial,
		"Windows whose share of GPU time is unknown: records or multiplications were lost."),
	COUNTER("graph_launches_unknown", NULL, tracker.graphs.unknown,
		"Launches of CUDA graphs whose capture was not seen."),
	COUNTER("graph_calls_gone", NULL, tracker.graphs.gone,
		"Captured calls discarded because their communicator no longer exists."),
	COUNTER("communicators_unresolved", NULL, tracker.unresolved_comms,
		"Communicators whose place in the job could not be read."),
	COUNTER("communicators_resolved", NULL, tracker.resolved_comms,
		"Of communicators_unresolved: those that were read later, by what NCCL's RAS states."),
	COUNTER("nccl_layouts_stated", NULL, tracker.stated_layouts,
		"Layouts of NCCL's communicators that were found by what its RAS states."),
	RAS_REQUEST("answered", NT_RAS_ANSWERED),
	RAS_REQUEST("off", NT_RAS_OFF),
	RAS_REQUEST("bad-port", NT_RAS_BAD_PORT),
	RAS_REQUEST("denied", NT_RAS_DENIED),
	RAS_REQUEST("unreachable", NT_RAS_UNREACHABLE),
	RAS_REQUEST("unsupported", NT_RAS_UNSUPPORTED),
	RAS_REQUEST("malformed", NT_RAS_MALFORMED),
	RAS_REQUEST("stalled", NT_RAS_STALLED),
	RAS_REQUEST("failed", NT_RAS_FAILED),
	COUNTER("nccl_ras_dropped", "reason=\"over-cap\"", ras.over_cap, RAS_DROPPED),
	COUNTER("nccl_ras_dropped", "reason=\"impossible\"", ras.impossible, RAS_DROPPED),
	COUNTER("nccl_ras_unplaced", NULL, ras.unplaced,
		"Library files whose jobs are not requested: the number of the node in the job is not "
		"known."),
	COUNTER("over_cap", "what=\"nccl-ras-files\"", ras.files_over_cap, OVER_CAP),
	GAUGE("system_events_processes", system.processes,
	      "Ranks whose system events are observed now."),
	GAUGE("system_events_attached", system.is_attached,
	      "1 while the tracepoints of system events are attached, else 0."),
	GAUGE("system_events_shed", system.is_shed,
	      "1 while they are detached because they cost more than the budget, else 0."),
	COUNTER("system_events_sheds", NULL, system.sheds,
		"Times that tracepoints of system events were detached because of the budget."),
	GAUGE("system_events_sliced", system.is_sliced,
	      "1 while context switches are observed in slices because of the budget, else 0."),
	COUNTER("system_events_slices", NULL, system.slices,
		"Slices in which context switches were observed."),
	GAUGE("system_events_cost_ns", system.cost_ns,
	      "What they cost the whole node in the last second, in ns."),
	GAUGE("system_events_switch_ns", system.switch_ns,
	      "Measured cost of a context switch without an observed thread, in ns."),
	GAUGE("system_events_thread_ns", system.side_ns,
	      "Measured cost of each observed thread in a context switch, in ns."),
	GAUGE("system_events_absent", system.absent, "Tracepoints that this kernel does not have."),
	COUNTER("system_events_attach_failures", NULL, system.attach_failures,
		"Tracepoints that could not be attached."),
	COUNTER("over_cap", "what=\"system-processes\"", system.processes_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"system-threads\"", system.threads_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"system-helpers\"", system.helpers_over_cap, OVER_CAP),
	COUNTER("over_cap", "what=\"system-takers\"", system.takers_dropped, OVER_CAP),
	COUNTER("over_cap", "what=\"system-devices\"", system.devices_dropped, OVER_CAP),
	COUNTER("system_events_single", NULL, system.events,
		"Single events of processes at level 1 or above."),
	COUNTER("system_events_dropped", NULL, system.events_dropped,
		"The same that were dropped: over the rate of a process, or without room."),
	COUNTER("system_events_missed", NULL, system.missed,
		"Hits of tracepoints inside of another program, which are not counted."),
	COUNTER("system_events_sockets_unowned", NULL, system.sockets_unowned,
		"Retransmits and resets of sockets that belong to no known rank."),
	COUNTER("system_events_oom_kills", NULL, system.oom_kills,
		"Processes of the node killed for want of memory, while observed."),
	GAUGE("nccl_ras_ranks", ras.ranks, "Ranks that answered in the last status of NCCL's RAS."),
	GAUGE("nccl_ras_missing_ranks", ras.missing,
	      "Ranks that did not answer in the last status of NCCL's RAS."),
	COUNTER("processes_undescribed", NULL, tracker.undescribed,
		"Processes whose environment could not be read."),
	COUNTER("out_of_memory", NULL, tracker.no_memory, "Allocations that failed."),
	SECONDS("late", tracker.late_ns,
		"Time in calls that were reported too late to be "
		"included."),
	GAUGE("processes", tracker.processes, "Processes watched now."),
	GAUGE("ranks", tracker.ranks, "Ranks known now."),
	GAUGE("communicators", tracker.comms, "Communicators known now."),
	COUNTER("windows", NULL, tracker.windows, "Windows sent."),
	COUNTER("steps", NULL, tracker.steps, "Steps measured."),
	COUNTER("messages", NULL, publisher.messages, "Messages passed to the bus."),
	COUNTER("message_bytes", NULL, publisher.bytes, "Bytes of the messages passed to the bus."),
	COUNTER("messages_dropped", "reason=\"bus\"", publisher.dropped_bus, UNSENT),
	COUNTER("messages_dropped", "reason=\"invalid\"", publisher.dropped_invalid, UNSENT),
	COUNTER("messages_dropped", "reason=\"keys\"", publisher.dropped_keys, UNSENT),
	COUNTER("messages_dropped", "reason=\"no-node-key\"", publisher.dropped_held, UNSENT),
	COUNTER("over_cap", "what=\"sequences\"", publisher.forgotten_keys, OVER_CAP),
	COUNTER("bus_dropped_full", NULL, bus.dropped_full,
		"Records dropped because the bus was "
		"full."),
	COUNTER("bus_dropped_too_large", NULL, bus.dropped_too_large,
		"Records larger than the bus accepts."),
	COUNTER("bus_delivered", NULL, bus.delivered, "Records that brokers have acknowledged."),
	COUNTER("bus_reconnected", NULL, bus.reconnected, "Recreations of the Kafka client."),
	BUS_ERROR("unreachable", NT_BUS_UNREACHABLE),
	BUS_ERROR("refused", NT_BUS_REFUSED),
	BUS_ERROR("certificate", NT_BUS_CERTIFICATE),
	BUS_ERROR("denied", NT_BUS_DENIED),
	BUS_ERROR("no-topic", NT_BUS_NO_TOPIC),
	BUS_ERROR("too-large", NT_BUS_TOO_LARGE),
	BUS_ERROR("timed-out", NT_BUS_TIMED_OUT),
	BUS_ERROR("failed", NT_BUS_FAILED),
	UNDELIVERED("unreachable", NT_BUS_UNREACHABLE),
	UNDELIVERED("refused", NT_BUS_REFUSED),
	UNDELIVERED("certificate", NT_BUS_CERTIFICATE),
	UNDELIVERED("denied", NT_BUS_DENIED),
	UNDELIVERED("no-topic", NT_BUS_NO_TOPIC),
	UNDELIVERED("too-large", NT_BUS_TOO_LARGE),
	UNDELIVERED("timed-out", NT_BUS_TIMED_OUT),
	UNDELIVERED("failed", NT_BUS_FAILED),
	GAUGE("bus_queued", bus.queued_now, "Records that brokers have not acknowledged yet."),
	COUNTER("bus_evicted", NULL, bus.evicted_records,
		"Records removed by the bus's size or age limit."),
	COUNTER("bus_recovered_torn", NULL, bus.recovered_torn,
		"Incomplete ends of files after a crash."),
	DISK_QUEUE_COUNTER("found", FOUND, "Records found in the disk queue at start."),
	DISK_QUEUE_COUNTER("stored", STORED, "Records written to the disk queue."),
	DISK_QUEUE_COUNTER("drained", DRAINED, "Records moved from the disk queue to the bus."),
	DISK_QUEUE_COUNTER("evicted", EVICTED, "Records lost because the disk queue was full."),
	DISK_QUEUE_COUNTER("expired", EXPIRED,
			   "Records lost because they were in the disk queue too long."),
	DISK_QUEUE_COUNTER("corrupt", CORRUPT,
			   "Records lost because a file of the disk queue was damaged."),
	DISK_QUEUE_COUNTER("dropped", LOST,
			   "Records lost because they could not be written to the disk "
			   "queue."),
	DISK_QUEUE_COUNTER("refused", REFUSED,
			   "Records lost because brokers refuse them permanently."),
	COUNTER("shelter_given_back", NULL, disk_queue.given_back,
		"Records that the bus could not deliver and returned."),
	COUNTER("shelter_outages", NULL, disk_queue.outages, "Outages of the bus."),
	GAUGE("shelter_bytes", disk_queue.bytes, "Disk space of the disk queue now."),
	GAUGE("shelter_away", disk_queue.is_away, "1 if the bus is unreachable now, 0 otherwise."),
	GAUGE("kube_synced", placement_lookup.kube.is_synced,
	      "1 if the pods of this node are listed and watched now, 0 otherwise."),
	GAUGE("kube_pods", placement_lookup.kube.pods.pods,
	      "Pods of this node that are known now."),
	GAUGE("kube_pods_gone", placement_lookup.kube.pods.gone,
	      "Deleted pods that are kept for late events."),
	COUNTER("kube_lists", NULL, placement_lookup.kube.lists, "Lists of pods requested."),
	COUNTER("kube_watches", NULL, placement_lookup.kube.watches, "Watches of pods started."),
	COUNTER("kube_events", NULL, placement_lookup.kube.events, "Changes of pods processed."),
	COUNTER("kube_versions_gone", NULL, placement_lookup.kube.gone,
		"Watches that ended because the API server no longer had their resource version."),
	KUBE_FAILED("away", NT_KUBE_AWAY),
	KUBE_FAILED("untrusted", NT_KUBE_UNTRUSTED),
	KUBE_FAILED("denied", NT_KUBE_DENIED),
	KUBE_FAILED("refused", NT_KUBE_REFUSED),
	KUBE_FAILED("malformed", NT_KUBE_MALFORMED),
	KUBE_DROPPED("too-large", too_large),
	KUBE_DROPPED("malformed", malformed),
	KUBE_DROPPED("nameless", pods.malformed),
	KUBE_DROPPED("over-cap", pods.over_cap),
	KUBE_DROPPED("forgotten", pods.forgotten),
	KUBE_DROPPED("no-memory", pods.no_memory),
	COUNTER("kube_containers_dropped", NULL, placement_lookup.kube.pods.containers_over_cap,
		"Containers removed for newer ones of their pod."),
	COUNTER("kubelet_asked", NULL, placement_lookup.kubelet.requests,
		"Requests to the kubelet for the GPUs of pods."),
	COUNTER("kubelet_failed", NULL, placement_lookup.kubelet.failed,
		"Requests to the kubelet that failed."),
	GAUGE("kubelet_synced", placement_lookup.kubelet.is_there,
	      "1 if the last request to the kubelet succeeded, 0 otherwise."),
	GAUGE("kubelet_devices", placement_lookup.kubelet.devices, "GPUs assigned to pods."),
	GAUGE("kubelet_devices_over_cap", placement_lookup.kubelet.over_cap,
	      "GPUs assigned to pods that were omitted because the table is full."),
	COUNTER("http_connections_reaped", NULL, http.reaped,
		"Connections closed because a request took too long to arrive."),
	COUNTER("http_connections_over_limit", NULL, http.over_limit,
		"Connections above the limits, which use reserved slots."),
	COUNTER("http_connections_evicted", NULL, http.evicted,
		"Connections above the limits that were closed for a later one."),
	SECONDS("cpu", cpu_ns, "Processor time of the agent."),
	GAUGE("resident_bytes", resident_bytes, "Memory of the agent."),
};

enum {
	ROWS = sizeof(rows) / sizeof(rows[0]),
};

int nt_self_metrics_new(struct nt_metrics **ret_metrics)
{
	static struct nt_metric table[ROWS];

	for (size_t i = 0; i < ROWS; i++)
		table[i] = rows[i].metric;
	return nt_metrics_new(table, ROWS, ret_metrics);
}

void nt_self_metrics_set(struct nt_metrics *metrics, const struct nt_self_metrics_reading *reading)
{
	for (size_t i = 0; i < ROWS; i++)
		nt_metrics_set(
			metrics, i,
			*(const uint64_t *)(const void *)((const char *)reading + rows[i].offset));
}

uint64_t nt_self_metrics_lost(const struct nt_attach_stats *attach)
{
	uint64_t lost = attach->untracked + attach->unreturned;

	for (int i = 0; i < NT_EVENT_TYPE_END; i++) {
		if (i != NT_EVENT_GPU && i != NT_EVENT_QUERY && i != NT_EVENT_GEMM &&
		    i != NT_EVENT_CAPTURE && i != NT_EVENT_DETAIL) /* no calls */
			lost += attach->dropped[i];
	}
	return lost;
}
