/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Messages as plain structs, and the only interface to the generated protobuf types. Meaning, unit
 * and clock of each field are documented in proto/neutracer.proto.
 *
 * Encoding borrows everything. A decoded message is one block of memory: nt_message_free() releases
 * it with all it points to. Decoded strings are never NULL and hold no control characters; decoded
 * arrays never exceed NT_WIRE_MAX_*. Messages over a limit are refused with -EBADMSG.
 */
#ifndef NT_PROTO_WIRE_H
#define NT_PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "proto/wire_delivery.h"
#include "proto/wire_profile.h"

enum {
	NT_WIRE_MAX_BYTES = 1 << 20, /* one encoded message */
	NT_WIRE_MAX_TEXT = 1024, /* one string; summaries included */
	NT_WIRE_MAX_COMMS = 256, /* communicators of one rank in one window */
	NT_WIRE_MAX_OPS = 32, /* operations of one communicator */
	NT_WIRE_MAX_SAMPLES = 1024,
	NT_WIRE_MAX_RECENT = 16,
	NT_WIRE_MAX_STEPS = 64,
	NT_WIRE_MAX_BUCKETS = 256,
	NT_WIRE_MAX_CULPRITS = 16384,
	NT_WIRE_MAX_EVIDENCE = 64,
	NT_WIRE_MAX_METRICS = 256,
	NT_WIRE_MAX_PEERS = 1024, /* per-peer times of one rank in one window */
	NT_WIRE_MAX_TRANSFERS = 1024, /* of one rank in one window */
	NT_WIRE_MAX_HEAP_DEVICES = 64, /* of one process */
	NT_WIRE_MAX_HEAP_SITES = 16, /* call sites of one process */
	NT_WIRE_MAX_GEMMS = 16, /* types and modes of one rank in one window */
	NT_WIRE_MAX_RDMA_PAIRS = 256, /* queue pairs of one rank in one window */
	NT_WIRE_MAX_TCP_SOCKETS = 128, /* the same */
	NT_WIRE_MAX_JOBS = 1024, /* jobs of one node */
	NT_WIRE_MAX_LIMITS = 32, /* of one node */
	NT_WIRE_MAX_RDMA_PORTS = 64, /* the same */
	NT_WIRE_MAX_PORT_RATES = 64, /* of one port */
	NT_WIRE_MAX_WORDS = 64,
	NT_WIRE_MAX_STACK = 128,
	NT_WIRE_MAX_DETAILS = 1024, /* calls of one rank in one message */
	NT_WIRE_MAX_DETAIL_KINDS = 16, /* counts in one message */
	NT_WIRE_MAX_DETAIL_WORDS = 8, /* of one of them */
	NT_WIRE_MAX_STACKS = 32, /* threads of one rank in one window */
	NT_WIRE_MAX_FRAMES = 128, /* of one thread */
	NT_WIRE_MAX_PROFILES = 4, /* of one rank in one window */
	NT_WIRE_MAX_PROFILE_STACKS = 2048, /* of one profile, as frames */
	NT_WIRE_MAX_INCIDENT_STACKS = 16, /* threads of one incident */
	NT_WIRE_MAX_DELIVERIES = 64,
	NT_WIRE_MAX_POSITIONS = 1024,
	NT_WIRE_MAX_STATE_BYTES = 256 << 10,
};

enum nt_tier {
	NT_TIER_UNKNOWN,
	NT_TIER_T0,
	NT_TIER_T1,
	NT_TIER_T2,
	NT_TIER_T3,
	NT_TIER_END,
};

/* What own work was measured by: see neutracer.proto. */
enum nt_own_source {
	NT_OWN_SOURCE_UNKNOWN,
	NT_OWN_SOURCE_CALLS,
	NT_OWN_SOURCE_CUPTI,
	NT_OWN_SOURCE_NCCL,
	NT_OWN_SOURCE_QUERIES,
	NT_OWN_SOURCE_END,
};

enum nt_op {
	NT_OP_UNKNOWN,
	NT_OP_ALL_REDUCE,
	NT_OP_ALL_GATHER,
	NT_OP_REDUCE_SCATTER,
	NT_OP_ALL_TO_ALL,
	NT_OP_BARRIER,
	NT_OP_BROADCAST,
	NT_OP_REDUCE,
	NT_OP_GATHER,
	NT_OP_SCATTER,
	NT_OP_SEND,
	NT_OP_RECV,
	NT_OP_PUT,
	NT_OP_SIGNAL,
	NT_OP_WAIT_SIGNAL,
	NT_OP_WAIT,
	NT_OP_SCAN,
	NT_OP_SEND_RECV,
	NT_OP_GROUP_END,
	NT_OP_END,
};

enum nt_library {
	NT_LIBRARY_UNKNOWN,
	NT_LIBRARY_NCCL,
	NT_LIBRARY_RCCL,
	NT_LIBRARY_HCCL,
	NT_LIBRARY_MPI,
	NT_LIBRARY_GLOO,
	NT_LIBRARY_CUDART,
	NT_LIBRARY_CUDA,
	NT_LIBRARY_END,
};

struct nt_rank_id {
	uint32_t rank, size, local_rank, pid;
	uint64_t start_boot_ns;
	const char *node, *job, *namespace, *pod, *container, *gpu, *cgroup, *comm;
	const char *replica, *pod_uid;
	bool rank_known;
};

/* Log buckets: see the proto. Indices ascend and stay below NT_WIRE_MAX_BUCKETS. */
struct nt_sketch_wire {
	uint32_t *bucket, *count;
	size_t buckets;
	uint64_t sum_ns, min_ns, max_ns;
};

struct nt_comm_op {
	enum nt_op op;
	uint64_t calls, bytes, first, last;
	struct nt_sketch_wire duration, gpu_duration;
};

struct nt_signature {
	uint64_t number;
	enum nt_op op;
	uint64_t count;
	uint32_t type;
	uint64_t entry_boot_ns;
};

struct nt_comm_window {
	uint64_t id, parent, epoch, rolling_hash, last;
	uint32_t rank, size;
	enum nt_library library;
	bool id_is_local, numbered_by_library;
	struct nt_comm_op *op;
	size_t ops;
	struct nt_signature *recent;
	size_t recents;
	const char *name;
};

struct nt_sample {
	uint64_t comm, number, bytes, epoch;
	enum nt_op op;
	uint64_t arrive_boot_ns, release_boot_ns, gpu_start_boot_ns, gpu_end_boot_ns;
};

struct nt_host_evidence {
	uint64_t on_cpu_ns, run_queue_ns;
	uint64_t off_cpu_io_ns, off_cpu_lock_ns, off_cpu_net_ns, off_cpu_sleep_ns, off_cpu_other_ns;
	uint64_t read_bytes, write_bytes, major_faults, minor_faults, gc_ns, gc_count;
	uint64_t voluntary_switches, involuntary_switches, process_cpu_ns;
	uint64_t nic_retransmits, nic_errors, nic_congestion;
	uint64_t gpu_thermal_ns, gpu_power_ns, gpu_hardware_ns, gpu_uncorrected, gpu_xids;
	uint32_t gpu_last_xid, gpu_clock_mhz, gpu_most_clock_mhz, gpu_celsius;
	uint64_t gpu_memory_used, gpu_memory_total;
	uint64_t gpu_activity_ns, gpu_sm_ns, gpu_occupancy_ns, gpu_tensor_ns, gpu_dram_ns;
	uint64_t gpu_nvlink_bytes, gpu_pcie_bytes;
	uint64_t quota_ns, off_cpu_file_ns, off_cpu_fault_ns, off_cpu_device_ns;
	uint64_t reclaim_ns, compaction_ns, interrupt_ns, migrations, numa_moves;
	uint64_t taken_ns, taker_ns, process_io_ns, process_fault_ns, process_reclaim_ns;
	uint64_t block_requests, block_ns, block_device_requests, block_device_ns;
	uint64_t tcp_retransmits, tcp_resets, oom_kills, system_ns;
	uint32_t taker_pid;
	const char *taker, *block_device;
	const char *state;
};

struct nt_inside_wire {
	bool in_call, synchronising;
	uint64_t comm, number, since_boot_ns, count;
	enum nt_op op;
	uint32_t type;
};

struct nt_peer_time {
	uint64_t comm, calls, bytes;
	uint32_t peer;
	bool send;
	struct nt_sketch_wire duration;
};

struct nt_transfer {
	uint64_t comm, calls, bytes, min_ns;
	uint32_t peer;
	enum nt_op op;
};

struct nt_heap_device {
	uint32_t number;
	bool number_unknown;
	uint64_t live_bytes, high_bytes, managed_bytes, blocks;
};

struct nt_heap_site {
	const char *file;
	uint64_t offset, live_bytes, blocks, growth_bytes;
	double growth_probability;
	bool leaks;
};

struct nt_heap_failure {
	const char *call;
	uint64_t bytes, boot_ns, live_bytes;
	uint32_t device;
	bool device_unknown;
	const char *file;
	uint64_t offset;
	uint32_t holder_pid, holder_rank;
	bool holder_rank_known, holder_is_whole;
	uint64_t holder_bytes;
	const char *holder_file;
	uint64_t holder_offset, holder_site_bytes;
};

/* The device memory of a process. No devices and no failures: it has made no such call. */
struct nt_heap_window {
	bool is_whole, has_sites;
	uint64_t since_boot_ns;
	struct nt_heap_device *device;
	size_t devices;
	struct nt_heap_site *site;
	size_t sites;
	struct nt_heap_failure failure;
	uint64_t failures, out_of_memory;
};

struct nt_gemm {
	uint32_t type, compute; /* cudaDataType, cublasComputeType_t */
	uint64_t calls, flops;
	double peak_flops; /* in a second; 0: unknown */
};

struct nt_gemms {
	struct nt_gemm *gemm;
	size_t gemms;
	uint64_t launches, unread, graph_launches, captures;
	uint64_t gpu_ns, gpu_inside_ns; /* of kernels; 0: not measured */
	uint64_t graph_launches_read; /* of graph_launches */
};

struct nt_wire_stack_frame {
	const char *function, *file;
	uint32_t line;
	bool native;
};

/* The stack of one thread. */
struct nt_wire_stack {
	uint64_t request, boot_ns, read_ns;
	uint32_t tid, left_out;
	bool is_main, holds_gil, gc_running;
	const char *name, *state, *wait, *interpreter, *python_reason, *native_reason;
	struct nt_wire_stack_frame *frame;
	size_t frames;
};

struct nt_wire_incident_stack {
	uint32_t rank;
	bool is_culprit;
	struct nt_wire_stack stack;
	uint64_t real_ns; /* when it was read */
};

/* A queue pair: see RdmaPair of neutracer.proto. */
struct nt_rdma_pair {
	uint32_t qpn, remote_qpn, local_lid, remote_lid, port, type, state;
	const char *local_gid, *remote_gid, *device;
	bool not_visible;
	uint64_t writes, write_bytes, sends, send_bytes, reads, read_bytes;
	uint64_t atomics, atomic_bytes, others, other_bytes;
	uint64_t completions, received, received_bytes, errors;
	uint32_t error_status;
	uint64_t timed, latency_ns, latency_least_ns, latency_most_ns, untimed;
};

/* What of the traffic of a process cannot be observed. */
enum {
	NT_WIRE_RDMA_EXTENDED = 1,
	NT_WIRE_RDMA_DIRECT = 2,
	NT_WIRE_RDMA_PROVIDER = 4,
	NT_WIRE_RDMA_SHED = 8,
};

struct nt_rdma_window {
	struct nt_rdma_pair *pair;
	size_t pair_count;
	uint64_t observed_ns, polled_ns;
	uint32_t pairs, unsent, not_visible;
	uint64_t pairs_over_cap, regions, region_bytes, cut, unread;
};

/* A connected socket: see TcpSocket of neutracer.proto. */
struct nt_tcp_socket {
	const char *local, *remote;
	uint32_t local_port, remote_port;
	uint64_t sent_bytes, received_bytes, segments, retransmits, rtt_ns;
};

struct nt_tcp_window {
	struct nt_tcp_socket *socket;
	size_t socket_count;
	uint64_t observed_ns;
	uint32_t sockets, sockets_over_cap, unsent;
};

/* What the governor does not observe of a process. */
enum {
	NT_WIRE_SHED_LAUNCHES = 1,
	NT_WIRE_SHED_COPIES = 2,
	NT_WIRE_SHED_ALLOCATIONS = 4,
	NT_WIRE_SHED_SYNCS = 8,
	NT_WIRE_SHED_ORDER = 16,
	NT_WIRE_SHED_FUNCTIONS = 32, /* single functions that are called too often */
	NT_WIRE_SHED_COMMUNICATION = 64, /* of these, some that communicate or wait for it */
	NT_WIRE_SHED_GEMMS = 128,
	NT_WIRE_SHED_SYSTEM = 256, /* system events */
	NT_WIRE_SHED_SWITCHES = 512, /* of these, most context switches: waits are estimates */
};

struct nt_window {
	struct nt_rank_id rank;
	uint64_t start_boot_ns, end_boot_ns;
	uint32_t steps;
	uint64_t first_step, step_epoch;
	enum nt_tier own_tier;
	enum nt_own_source own_source;
	uint64_t own_ns, host_ns, blocked_ns, comm_ns, step_ns, own_blocked_ns, gpu_busy_ns;
	uint64_t gpu_lag_ns, launches, copies, copy_bytes, allocs, alloc_bytes, errors;
	struct nt_comm_window *comm;
	size_t comms;
	struct nt_sample *sample;
	size_t samples;
	struct nt_host_evidence host;
	struct nt_inside_wire inside;
	struct nt_peer_time *peer;
	size_t peers;
	struct nt_transfer *transfer;
	size_t transfers;
	bool ended, finalized, uses_gpu;
	uint32_t exit_signal, exit_status, attempt_hint;
	bool ended_by_parent; /* the parent sent exit_signal, as launchers do */
	uint64_t ended_early_ns; /* before end_boot_ns */
	uint64_t lost, taken, first_comm_boot_ns;
	/* of the window, in which the rank's calls were not observed (sampling) */
	uint64_t unobserved_ns;
	uint32_t shed; /* NT_WIRE_SHED_* */
	bool whereabouts_unknown; /* `inside` is empty, but the rank may be inside a call */
	uint64_t *step_own_ns, *step_duration_ns; /* `step_samples` each */
	size_t step_samples;
	struct nt_heap_window heap;
	struct nt_gemms gemms;
	uint32_t level; /* in force, 0 to 3 */
	struct nt_wire_stack *stack;
	size_t stacks;
	struct nt_wire_profile *profile;
	size_t profiles;
	struct nt_rdma_window rdma;
	struct nt_tcp_window tcp;
};

struct nt_metric_value {
	const char *name;
	double value;
};

/* A cap of the agent that was reached. */
struct nt_node_limit {
	const char *what, *unit, *owner; /* owner: the one with the most left out */
	uint64_t left_out, owner_left_out;
	uint32_t cap;
};

/* An RDMA port: see RdmaPort of neutracer.proto. */
struct nt_rdma_port {
	const char *device;
	uint32_t port;
	struct nt_metric_value *rate;
	size_t rates;
};

struct nt_node_vector {
	const char *node;
	struct nt_metric_value *metric;
	size_t metrics;
	const char **job;
	size_t jobs;
	struct nt_node_limit *limit;
	size_t limits;
	struct nt_rdma_port *rdma_port;
	size_t rdma_ports;
	const char *boot_id, *kernel; /* "" or NULL: not sent */
};

enum nt_detail_kind {
	NT_DETAIL_KIND_UNKNOWN,
	NT_DETAIL_KIND_COMM,
	NT_DETAIL_KIND_SYNC,
	NT_DETAIL_KIND_LAUNCH,
	NT_DETAIL_KIND_COPY,
	NT_DETAIL_KIND_ALLOC,
	NT_DETAIL_KIND_RDMA,
	NT_DETAIL_KIND_SCHED,
	NT_DETAIL_KIND_BLOCK,
	NT_DETAIL_KIND_NET,
	NT_DETAIL_KIND_END,
};

/* One call or event at level L1. */
struct nt_detail_call {
	enum nt_detail_kind kind;
	const char *call;
	uint32_t thread;
	uint32_t peer; /* 1 + its rank; 0: none */
	uint64_t entry_boot_ns, return_boot_ns, bytes, comm, number;
	int64_t result;
	enum nt_op op;
	double probability;
	uint64_t *word;
	size_t words;
};

struct nt_detail_count {
	enum nt_detail_kind kind;
	uint64_t seen, lost;
};

struct nt_detail {
	struct nt_rank_id rank;
	/* of a message with one call, which no release has written */
	const char *call;
	uint64_t comm, number, bytes, entry_boot_ns, return_boot_ns;
	enum nt_op op;
	int64_t result;
	uint64_t *word, *stack;
	size_t words, stacks;
	/* of all others */
	uint32_t level;
	uint64_t start_boot_ns, end_boot_ns;
	struct nt_detail_call *record;
	size_t records;
	struct nt_detail_count *count;
	size_t counts;
	double granted;
};

struct nt_culprit {
	const char *kind, *node, *pod, *container, *gpu, *peer, *name, *pod_uid;
	uint32_t rank;
	bool has_rank;
	uint32_t *peers, *ranks;
	size_t peer_count, rank_count;
};

struct nt_wire_evidence {
	const char *what, *unit, *method;
	double value, peers, width;
	uint32_t windows;
};

struct nt_cost {
	double gpu_hours, money, energy_kwh, co2_kg;
	bool gpu_hours_unknown; /* then gpu_hours is 0, and the others are unknown */
	bool has_money, has_energy, has_co2;
	const char *currency;
};

struct nt_wire_incident {
	const char *id, *state, *severity, *class, *cause, *job, *namespace, *summary, *job_key;
	uint32_t attempt, shard;
	struct nt_culprit *culprit;
	size_t culprits;
	uint64_t since_real_ns, until_real_ns, seen_real_ns, version;
	double slowdown, confidence, completeness;
	struct nt_cost cost;
	enum nt_tier tier;
	enum nt_own_source own_source;
	struct nt_wire_evidence *evidence;
	size_t evidences;
	struct nt_delivery *delivery;
	size_t deliveries;
	struct nt_handling handling;
	struct nt_wire_incident_stack *stack;
	size_t stacks;
};

struct nt_position {
	const char *topic;
	uint32_t partition;
	uint64_t offset;
};

struct nt_wire_job_summary {
	const char *id, *name, *namespace, *state;
	uint32_t attempt, size, live, nodes;
	double step_ns, completeness;
	uint64_t cell_ns, frames, since_real_ns, seen_real_ns, ended_real_ns;
};

struct nt_state {
	const char *job_key, *owner;
	uint32_t shard, version, chunk, chunks;
	uint64_t generation, total, hash; /* total: bytes of all chunks */
	struct nt_wire_job_summary head;
	const uint8_t *data;
	size_t size;
	struct nt_position *position;
	size_t positions;
};

enum nt_request {
	NT_REQUEST_UNKNOWN,
	NT_REQUEST_LEVEL,
	NT_REQUEST_AUTO_LEVEL,
	NT_REQUEST_STACK,
	NT_REQUEST_PROFILE,
	NT_REQUEST_END,
};

struct nt_control {
	const char *target;
	uint32_t level;
	uint64_t expires_real_ns, set_real_ns;
	enum nt_request request;
	uint64_t id;
	const char *reason;
	uint32_t seconds, hz, kind; /* of a profile */
};

enum nt_body {
	NT_BODY_NONE, /* a body unknown to this version */
	NT_BODY_WINDOW,
	NT_BODY_NODE,
	NT_BODY_DETAIL,
	NT_BODY_INCIDENT,
	NT_BODY_STATE,
	NT_BODY_CONTROL,
	NT_BODY_HEARTBEAT,
};

struct nt_message {
	const char *agent, *key;
	uint64_t boot, seq, boot_ns, real_ns, watermark_boot_ns;
	enum nt_body body;
	union {
		struct nt_window window;
		struct nt_node_vector node;
		struct nt_detail detail;
		struct nt_wire_incident incident;
		struct nt_state state;
		struct nt_control control;
		uint32_t heartbeat_ranks;
	};
};

/* Appends the encoded message to buf. -EMSGSIZE over NT_WIRE_MAX_BYTES, -EINVAL without a body. */
NT_MUST_CHECK int nt_message_encode(const struct nt_message *message, struct nt_buf *buf);

/*
 * Decodes untrusted bytes. The caller owns *ret_message. -EBADMSG if the bytes are no message or
 * exceed a limit, -ENOMEM.
 */
NT_MUST_CHECK int nt_message_decode(const void *data, size_t size, struct nt_message **ret_message);

/* Accepts NULL. */
void nt_message_free(struct nt_message *message);
NT_DEFINE_AUTO(nt_message, nt_message_free)

/* Converts a time of the sender's boot clock to real time, by the message's clock pair. */
uint64_t nt_message_real_ns(const struct nt_message *message, uint64_t boot_ns);

/* "T2", "all-reduce", "nccl": for JSON, tables and logs. Never NULL. */
const char *nt_tier_name(enum nt_tier tier);
/* As in JSON; NULL: unknown. */
const char *nt_own_source_name(enum nt_own_source source);
const char *nt_op_name(enum nt_op op);
const char *nt_library_name(enum nt_library library);
const char *nt_detail_kind_name(enum nt_detail_kind kind);

/* True if the last arrival releases all members: AllReduce, … (docs/verdicts.md). */
bool nt_op_synchronises(enum nt_op op);

#endif
