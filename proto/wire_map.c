/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/wire_map.h"
#include "proto/wire_row.h"

/* One row a line, in the order of the numbers. */
/* clang-format off */
static const struct nt_wire_field fields_nt_rank_id[] = {
	U32(Rank, nt_rank_id, rank),
	U32(Rank, nt_rank_id, size),
	U32(Rank, nt_rank_id, local_rank),
	U32(Rank, nt_rank_id, pid),
	U64(Rank, nt_rank_id, start_boot_ns),
	TEXT(Rank, nt_rank_id, node),
	TEXT(Rank, nt_rank_id, job),
	TEXT_(Rank, nt_rank_id, namespace),
	TEXT(Rank, nt_rank_id, pod),
	TEXT(Rank, nt_rank_id, container),
	TEXT(Rank, nt_rank_id, gpu),
	BOOL(Rank, nt_rank_id, rank_known),
	TEXT(Rank, nt_rank_id, cgroup),
	TEXT(Rank, nt_rank_id, comm),
	TEXT(Rank, nt_rank_id, replica),
	TEXT(Rank, nt_rank_id, pod_uid),
};
SHAPE(nt_rank_id, rank, NULL);

/* Consumers add sketches by bucket, so an index beyond the last must be refused. */
static bool sketch_is_sound(const void *here)
{
	const struct nt_sketch_wire *sketch = here;

	for (size_t i = 0; i < sketch->buckets; i++)
		if (sketch->bucket[i] >= NT_WIRE_MAX_BUCKETS ||
		    (i && sketch->bucket[i] <= sketch->bucket[i - 1]))
			return false;
	return true;
}

static const struct nt_wire_field fields_nt_sketch_wire[] = {
	U32S(Sketch, nt_sketch_wire, bucket, buckets, NT_WIRE_MAX_BUCKETS),
	U32S_PAIRED(Sketch, nt_sketch_wire, count, buckets, NT_WIRE_MAX_BUCKETS),
	U64(Sketch, nt_sketch_wire, sum_ns),
	U64(Sketch, nt_sketch_wire, min_ns),
	U64(Sketch, nt_sketch_wire, max_ns),
};
SHAPE(nt_sketch_wire, sketch, sketch_is_sound);

static const struct nt_wire_field fields_nt_comm_op[] = {
	ENUM(CommOp, nt_comm_op, op, Op, nt_op, NT_OP_END),
	U64(CommOp, nt_comm_op, calls),
	U64(CommOp, nt_comm_op, bytes),
	U64(CommOp, nt_comm_op, first),
	U64(CommOp, nt_comm_op, last),
	ONE(CommOp, nt_comm_op, duration, Sketch, nt_sketch_wire),
	ONE(CommOp, nt_comm_op, gpu_duration, Sketch, nt_sketch_wire),
};
SHAPE(nt_comm_op, comm_op, NULL);

static const struct nt_wire_field fields_nt_signature[] = {
	U64(Signature, nt_signature, number),
	ENUM(Signature, nt_signature, op, Op, nt_op, NT_OP_END),
	U64(Signature, nt_signature, count),
	U32(Signature, nt_signature, type),
	U64(Signature, nt_signature, entry_boot_ns),
};
SHAPE(nt_signature, signature, NULL);

static const struct nt_wire_column column_nt_signature[] = {
	COLUMN(SignatureColumns, number),
	COLUMN(SignatureColumns, op),
	COLUMN(SignatureColumns, count),
	COLUMN(SignatureColumns, type),
	COLUMN(SignatureColumns, entry_boot_ns),
};
COLUMNS_OF(nt_signature, signature_columns);

static const struct nt_wire_field fields_nt_comm_window[] = {
	U64(Comm, nt_comm_window, id),
	U32(Comm, nt_comm_window, rank),
	U32(Comm, nt_comm_window, size),
	ENUM(Comm, nt_comm_window, library, Library, nt_library, NT_LIBRARY_END),
	BOOL(Comm, nt_comm_window, id_is_local),
	U64(Comm, nt_comm_window, parent),
	MANY(Comm, nt_comm_window, op, ops, NT_WIRE_MAX_OPS, CommOp, nt_comm_op),
	U64(Comm, nt_comm_window, epoch),
	BOOL(Comm, nt_comm_window, numbered_by_library),
	U64(Comm, nt_comm_window, rolling_hash),
	U64(Comm, nt_comm_window, last),
	MANY_OLD(Comm, nt_comm_window, recent, recents, NT_WIRE_MAX_RECENT, Signature, nt_signature),
	TEXT(Comm, nt_comm_window, name),
	COLUMNS(Comm, nt_comm_window, recent_columns, recent, recents, NT_WIRE_MAX_RECENT, SignatureColumns, nt_signature),
};
SHAPE(nt_comm_window, comm, NULL);

static const struct nt_wire_field fields_nt_sample[] = {
	U64(Sample, nt_sample, comm),
	U64(Sample, nt_sample, number),
	ENUM(Sample, nt_sample, op, Op, nt_op, NT_OP_END),
	U64(Sample, nt_sample, bytes),
	U64(Sample, nt_sample, arrive_boot_ns),
	U64(Sample, nt_sample, release_boot_ns),
	U64(Sample, nt_sample, gpu_start_boot_ns),
	U64(Sample, nt_sample, gpu_end_boot_ns),
	U64(Sample, nt_sample, epoch),
};
SHAPE(nt_sample, sample, NULL);

static const struct nt_wire_column column_nt_sample[] = {
	COLUMN(SampleColumns, comm),
	COLUMN(SampleColumns, number),
	COLUMN(SampleColumns, op),
	COLUMN(SampleColumns, bytes),
	COLUMN(SampleColumns, arrive_boot_ns),
	COLUMN(SampleColumns, release_boot_ns),
	COLUMN(SampleColumns, gpu_start_boot_ns),
	COLUMN(SampleColumns, gpu_end_boot_ns),
	COLUMN(SampleColumns, epoch),
};
COLUMNS_OF(nt_sample, sample_columns);

static const struct nt_wire_field fields_nt_host_evidence[] = {
	U64(HostEvidence, nt_host_evidence, on_cpu_ns),
	U64(HostEvidence, nt_host_evidence, run_queue_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_io_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_lock_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_net_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_sleep_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_other_ns),
	U64(HostEvidence, nt_host_evidence, read_bytes),
	U64(HostEvidence, nt_host_evidence, write_bytes),
	U64(HostEvidence, nt_host_evidence, major_faults),
	U64(HostEvidence, nt_host_evidence, minor_faults),
	U64(HostEvidence, nt_host_evidence, gc_ns),
	U64(HostEvidence, nt_host_evidence, gc_count),
	U64(HostEvidence, nt_host_evidence, voluntary_switches),
	U64(HostEvidence, nt_host_evidence, involuntary_switches),
	TEXT(HostEvidence, nt_host_evidence, state),
	U64(HostEvidence, nt_host_evidence, process_cpu_ns),
	U64(HostEvidence, nt_host_evidence, nic_retransmits),
	U64(HostEvidence, nt_host_evidence, nic_errors),
	U64(HostEvidence, nt_host_evidence, nic_congestion),
	U64(HostEvidence, nt_host_evidence, gpu_thermal_ns),
	U64(HostEvidence, nt_host_evidence, gpu_power_ns),
	U64(HostEvidence, nt_host_evidence, gpu_hardware_ns),
	U64(HostEvidence, nt_host_evidence, gpu_uncorrected),
	U64(HostEvidence, nt_host_evidence, gpu_xids),
	U32(HostEvidence, nt_host_evidence, gpu_last_xid),
	U32(HostEvidence, nt_host_evidence, gpu_clock_mhz),
	U32(HostEvidence, nt_host_evidence, gpu_most_clock_mhz),
	U32(HostEvidence, nt_host_evidence, gpu_celsius),
	U64(HostEvidence, nt_host_evidence, gpu_memory_used),
	U64(HostEvidence, nt_host_evidence, gpu_memory_total),
	U64(HostEvidence, nt_host_evidence, gpu_activity_ns),
	U64(HostEvidence, nt_host_evidence, gpu_sm_ns),
	U64(HostEvidence, nt_host_evidence, gpu_occupancy_ns),
	U64(HostEvidence, nt_host_evidence, gpu_tensor_ns),
	U64(HostEvidence, nt_host_evidence, gpu_dram_ns),
	U64(HostEvidence, nt_host_evidence, gpu_nvlink_bytes),
	U64(HostEvidence, nt_host_evidence, gpu_pcie_bytes),
	U64(HostEvidence, nt_host_evidence, quota_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_file_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_fault_ns),
	U64(HostEvidence, nt_host_evidence, off_cpu_device_ns),
	U64(HostEvidence, nt_host_evidence, reclaim_ns),
	U64(HostEvidence, nt_host_evidence, compaction_ns),
	U64(HostEvidence, nt_host_evidence, interrupt_ns),
	U64(HostEvidence, nt_host_evidence, migrations),
	U64(HostEvidence, nt_host_evidence, numa_moves),
	U64(HostEvidence, nt_host_evidence, taken_ns),
	U64(HostEvidence, nt_host_evidence, taker_ns),
	U32(HostEvidence, nt_host_evidence, taker_pid),
	TEXT(HostEvidence, nt_host_evidence, taker),
	U64(HostEvidence, nt_host_evidence, process_io_ns),
	U64(HostEvidence, nt_host_evidence, process_fault_ns),
	U64(HostEvidence, nt_host_evidence, process_reclaim_ns),
	U64(HostEvidence, nt_host_evidence, block_requests),
	U64(HostEvidence, nt_host_evidence, block_ns),
	TEXT(HostEvidence, nt_host_evidence, block_device),
	U64(HostEvidence, nt_host_evidence, block_device_requests),
	U64(HostEvidence, nt_host_evidence, block_device_ns),
	U64(HostEvidence, nt_host_evidence, tcp_retransmits),
	U64(HostEvidence, nt_host_evidence, tcp_resets),
	U64(HostEvidence, nt_host_evidence, oom_kills),
	U64(HostEvidence, nt_host_evidence, system_ns),
};
SHAPE(nt_host_evidence, host_evidence, NULL);

static const struct nt_wire_field fields_nt_inside_wire[] = {
	BOOL(Inside, nt_inside_wire, in_call),
	U64(Inside, nt_inside_wire, comm),
	ENUM(Inside, nt_inside_wire, op, Op, nt_op, NT_OP_END),
	U64(Inside, nt_inside_wire, number),
	U64(Inside, nt_inside_wire, since_boot_ns),
	BOOL(Inside, nt_inside_wire, synchronising),
	U64(Inside, nt_inside_wire, count),
	U32(Inside, nt_inside_wire, type),
};
SHAPE(nt_inside_wire, inside, NULL);

static const struct nt_wire_field fields_nt_peer_time[] = {
	U64(PeerTime, nt_peer_time, comm),
	U32(PeerTime, nt_peer_time, peer),
	BOOL(PeerTime, nt_peer_time, send),
	U64(PeerTime, nt_peer_time, calls),
	U64(PeerTime, nt_peer_time, bytes),
	ONE(PeerTime, nt_peer_time, duration, Sketch, nt_sketch_wire),
};
SHAPE(nt_peer_time, peer_time, NULL);

static const struct nt_wire_field fields_nt_transfer[] = {
	U64(Transfer, nt_transfer, comm),
	U32(Transfer, nt_transfer, peer),
	ENUM(Transfer, nt_transfer, op, Op, nt_op, NT_OP_END),
	U64(Transfer, nt_transfer, calls),
	U64(Transfer, nt_transfer, bytes),
	U64(Transfer, nt_transfer, min_ns),
};
SHAPE(nt_transfer, transfer, NULL);

static const struct nt_wire_column column_nt_transfer[] = {
	COLUMN(TransferColumns, comm),
	COLUMN(TransferColumns, peer),
	COLUMN(TransferColumns, op),
	COLUMN(TransferColumns, calls),
	COLUMN(TransferColumns, bytes),
	COLUMN(TransferColumns, min_ns),
};
COLUMNS_OF(nt_transfer, transfer_columns);

static const struct nt_wire_field fields_nt_heap_device[] = {
	U32(GpuHeapDevice, nt_heap_device, number),
	BOOL(GpuHeapDevice, nt_heap_device, number_unknown),
	U64(GpuHeapDevice, nt_heap_device, live_bytes),
	U64(GpuHeapDevice, nt_heap_device, high_bytes),
	U64(GpuHeapDevice, nt_heap_device, managed_bytes),
	U64(GpuHeapDevice, nt_heap_device, blocks),
};
SHAPE(nt_heap_device, gpu_heap_device, NULL);

static const struct nt_wire_field fields_nt_heap_site[] = {
	TEXT(GpuHeapSite, nt_heap_site, file),
	U64(GpuHeapSite, nt_heap_site, offset),
	U64(GpuHeapSite, nt_heap_site, live_bytes),
	U64(GpuHeapSite, nt_heap_site, blocks),
	F64(GpuHeapSite, nt_heap_site, growth_probability),
	U64(GpuHeapSite, nt_heap_site, growth_bytes),
	BOOL(GpuHeapSite, nt_heap_site, leaks),
};
SHAPE(nt_heap_site, gpu_heap_site, NULL);

static const struct nt_wire_field fields_nt_heap_failure[] = {
	TEXT(GpuHeapFailure, nt_heap_failure, call),
	U64(GpuHeapFailure, nt_heap_failure, bytes),
	U64(GpuHeapFailure, nt_heap_failure, boot_ns),
	U64(GpuHeapFailure, nt_heap_failure, live_bytes),
	U32(GpuHeapFailure, nt_heap_failure, device),
	BOOL(GpuHeapFailure, nt_heap_failure, device_unknown),
	TEXT(GpuHeapFailure, nt_heap_failure, file),
	U64(GpuHeapFailure, nt_heap_failure, offset),
	U32(GpuHeapFailure, nt_heap_failure, holder_pid),
	U32(GpuHeapFailure, nt_heap_failure, holder_rank),
	BOOL(GpuHeapFailure, nt_heap_failure, holder_rank_known),
	U64(GpuHeapFailure, nt_heap_failure, holder_bytes),
	BOOL(GpuHeapFailure, nt_heap_failure, holder_is_whole),
	TEXT(GpuHeapFailure, nt_heap_failure, holder_file),
	U64(GpuHeapFailure, nt_heap_failure, holder_offset),
	U64(GpuHeapFailure, nt_heap_failure, holder_site_bytes),
};
SHAPE(nt_heap_failure, gpu_heap_failure, NULL);

static const struct nt_wire_field fields_nt_heap_window[] = {
	BOOL(GpuHeap, nt_heap_window, is_whole),
	U64(GpuHeap, nt_heap_window, since_boot_ns),
	MANY(GpuHeap, nt_heap_window, device, devices, NT_WIRE_MAX_HEAP_DEVICES, GpuHeapDevice, nt_heap_device),
	BOOL(GpuHeap, nt_heap_window, has_sites),
	MANY(GpuHeap, nt_heap_window, site, sites, NT_WIRE_MAX_HEAP_SITES, GpuHeapSite, nt_heap_site),
	ONE(GpuHeap, nt_heap_window, failure, GpuHeapFailure, nt_heap_failure),
	U64(GpuHeap, nt_heap_window, failures),
	U64(GpuHeap, nt_heap_window, out_of_memory),
};
SHAPE(nt_heap_window, gpu_heap, NULL);

static const struct nt_wire_field fields_nt_gemm[] = {
	U32(Gemm, nt_gemm, type),
	U32(Gemm, nt_gemm, compute),
	U64(Gemm, nt_gemm, calls),
	U64(Gemm, nt_gemm, flops),
	F64(Gemm, nt_gemm, peak_flops),
};
SHAPE(nt_gemm, gemm, NULL);

static const struct nt_wire_field fields_nt_gemms[] = {
	MANY(Gemms, nt_gemms, gemm, gemms, NT_WIRE_MAX_GEMMS, Gemm, nt_gemm),
	U64(Gemms, nt_gemms, launches),
	U64(Gemms, nt_gemms, unread),
	U64(Gemms, nt_gemms, graph_launches),
	U64(Gemms, nt_gemms, captures),
	U64(Gemms, nt_gemms, gpu_ns),
	U64(Gemms, nt_gemms, gpu_inside_ns),
	U64(Gemms, nt_gemms, graph_launches_read),
};
SHAPE(nt_gemms, gemms, NULL);

static const struct nt_wire_field fields_nt_rdma_pair[] = {
	U32(RdmaPair, nt_rdma_pair, qpn),
	U32(RdmaPair, nt_rdma_pair, remote_qpn),
	TEXT(RdmaPair, nt_rdma_pair, local_gid),
	TEXT(RdmaPair, nt_rdma_pair, remote_gid),
	U32(RdmaPair, nt_rdma_pair, local_lid),
	U32(RdmaPair, nt_rdma_pair, remote_lid),
	TEXT(RdmaPair, nt_rdma_pair, device),
	U32(RdmaPair, nt_rdma_pair, port),
	U32(RdmaPair, nt_rdma_pair, type),
	U32(RdmaPair, nt_rdma_pair, state),
	BOOL(RdmaPair, nt_rdma_pair, not_visible),
	U64(RdmaPair, nt_rdma_pair, writes),
	U64(RdmaPair, nt_rdma_pair, write_bytes),
	U64(RdmaPair, nt_rdma_pair, sends),
	U64(RdmaPair, nt_rdma_pair, send_bytes),
	U64(RdmaPair, nt_rdma_pair, reads),
	U64(RdmaPair, nt_rdma_pair, read_bytes),
	U64(RdmaPair, nt_rdma_pair, atomics),
	U64(RdmaPair, nt_rdma_pair, atomic_bytes),
	U64(RdmaPair, nt_rdma_pair, others),
	U64(RdmaPair, nt_rdma_pair, other_bytes),
	U64(RdmaPair, nt_rdma_pair, completions),
	U64(RdmaPair, nt_rdma_pair, received),
	U64(RdmaPair, nt_rdma_pair, received_bytes),
	U64(RdmaPair, nt_rdma_pair, errors),
	U32(RdmaPair, nt_rdma_pair, error_status),
	U64(RdmaPair, nt_rdma_pair, timed),
	U64(RdmaPair, nt_rdma_pair, latency_ns),
	U64(RdmaPair, nt_rdma_pair, latency_least_ns),
	U64(RdmaPair, nt_rdma_pair, latency_most_ns),
	U64(RdmaPair, nt_rdma_pair, untimed),
};
SHAPE(nt_rdma_pair, rdma_pair, NULL);

static const struct nt_wire_field fields_nt_rdma_window[] = {
	MANY(Rdma, nt_rdma_window, pair, pair_count, NT_WIRE_MAX_RDMA_PAIRS, RdmaPair, nt_rdma_pair),
	U64(Rdma, nt_rdma_window, observed_ns),
	U64(Rdma, nt_rdma_window, polled_ns),
	U32(Rdma, nt_rdma_window, pairs),
	U64(Rdma, nt_rdma_window, pairs_over_cap),
	U32(Rdma, nt_rdma_window, unsent),
	U64(Rdma, nt_rdma_window, regions),
	U64(Rdma, nt_rdma_window, region_bytes),
	U32(Rdma, nt_rdma_window, not_visible),
	U64(Rdma, nt_rdma_window, cut),
	U64(Rdma, nt_rdma_window, unread),
};
SHAPE(nt_rdma_window, rdma, NULL);

static const struct nt_wire_field fields_nt_window[] = {
	ONE(Window, nt_window, rank, Rank, nt_rank_id),
	U64(Window, nt_window, start_boot_ns),
	U64(Window, nt_window, end_boot_ns),
	U32(Window, nt_window, steps),
	U64(Window, nt_window, first_step),
	U64(Window, nt_window, step_epoch),
	ENUM(Window, nt_window, own_tier, Tier, nt_tier, NT_TIER_END),
	ENUM(Window, nt_window, own_source, OwnSource, nt_own_source, NT_OWN_SOURCE_END),
	U64(Window, nt_window, own_ns),
	U64(Window, nt_window, host_ns),
	U64(Window, nt_window, blocked_ns),
	U64(Window, nt_window, comm_ns),
	U64(Window, nt_window, step_ns),
	U64(Window, nt_window, own_blocked_ns),
	U64(Window, nt_window, gpu_busy_ns),
	U64(Window, nt_window, launches),
	U64(Window, nt_window, copies),
	U64(Window, nt_window, copy_bytes),
	U64(Window, nt_window, allocs),
	U64(Window, nt_window, alloc_bytes),
	U64(Window, nt_window, errors),
	MANY(Window, nt_window, comm, comms, NT_WIRE_MAX_COMMS, Comm, nt_comm_window),
	MANY_OLD(Window, nt_window, sample, samples, NT_WIRE_MAX_SAMPLES, Sample, nt_sample),
	ONE(Window, nt_window, host, HostEvidence, nt_host_evidence),
	ONE(Window, nt_window, inside, Inside, nt_inside_wire),
	MANY(Window, nt_window, peer, peers, NT_WIRE_MAX_PEERS, PeerTime, nt_peer_time),
	BOOL(Window, nt_window, ended),
	BOOL(Window, nt_window, finalized),
	U32(Window, nt_window, exit_signal),
	U64(Window, nt_window, lost),
	U64S(Window, nt_window, step_own_ns, step_samples, NT_WIRE_MAX_STEPS),
	U64S_PAIRED(Window, nt_window, step_duration_ns, step_samples, NT_WIRE_MAX_STEPS),
	U64(Window, nt_window, first_comm_boot_ns),
	BOOL(Window, nt_window, uses_gpu),
	U32(Window, nt_window, attempt_hint),
	COLUMNS(Window, nt_window, sample_columns, sample, samples, NT_WIRE_MAX_SAMPLES, SampleColumns, nt_sample),
	COLUMNS(Window, nt_window, transfer_columns, transfer, transfers, NT_WIRE_MAX_TRANSFERS, TransferColumns, nt_transfer),
	U64(Window, nt_window, gpu_lag_ns),
	U64(Window, nt_window, taken),
	U64(Window, nt_window, unobserved_ns),
	U32(Window, nt_window, shed),
	BOOL(Window, nt_window, whereabouts_unknown),
	U32(Window, nt_window, exit_status),
	BOOL(Window, nt_window, ended_by_parent),
	U64(Window, nt_window, ended_early_ns),
	ONE(Window, nt_window, heap, GpuHeap, nt_heap_window),
	ONE(Window, nt_window, gemms, Gemms, nt_gemms),
	U32(Window, nt_window, level),
	MANY(Window, nt_window, stack, stacks, NT_WIRE_MAX_STACKS, Stack, nt_wire_stack),
	ONE(Window, nt_window, rdma, Rdma, nt_rdma_window),
};
SHAPE(nt_window, window, NULL);

static const struct nt_wire_field fields_nt_metric_value[] = {
	TEXT(Metric, nt_metric_value, name),
	F64(Metric, nt_metric_value, value),
};
SHAPE(nt_metric_value, metric, NULL);

static const struct nt_wire_field fields_nt_node_limit[] = {
	TEXT(NodeLimit, nt_node_limit, what),
	TEXT(NodeLimit, nt_node_limit, unit),
	TEXT(NodeLimit, nt_node_limit, owner),
	U64(NodeLimit, nt_node_limit, left_out),
	U64(NodeLimit, nt_node_limit, owner_left_out),
	U32(NodeLimit, nt_node_limit, cap),
};
SHAPE(nt_node_limit, node_limit, NULL);

static const struct nt_wire_field fields_nt_rdma_port[] = {
	TEXT(RdmaPort, nt_rdma_port, device),
	U32(RdmaPort, nt_rdma_port, port),
	MANY(RdmaPort, nt_rdma_port, rate, rates, NT_WIRE_MAX_PORT_RATES, Metric, nt_metric_value),
};
SHAPE(nt_rdma_port, rdma_port, NULL);

static const struct nt_wire_field fields_nt_node_vector[] = {
	TEXT(NodeVector, nt_node_vector, node),
	MANY(NodeVector, nt_node_vector, metric, metrics, NT_WIRE_MAX_METRICS, Metric, nt_metric_value),
	TEXTS(NodeVector, nt_node_vector, job, jobs, NT_WIRE_MAX_JOBS),
	MANY(NodeVector, nt_node_vector, limit, limits, NT_WIRE_MAX_LIMITS, NodeLimit, nt_node_limit),
	MANY(NodeVector, nt_node_vector, rdma_port, rdma_ports, NT_WIRE_MAX_RDMA_PORTS, RdmaPort, nt_rdma_port),
	TEXT(NodeVector, nt_node_vector, boot_id),
	TEXT(NodeVector, nt_node_vector, kernel),
};
SHAPE(nt_node_vector, node_vector, NULL);

static const struct nt_wire_field fields_nt_detail_call[] = {
	ENUM(DetailCall, nt_detail_call, kind, DetailKind, nt_detail_kind, NT_DETAIL_KIND_END),
	TEXT(DetailCall, nt_detail_call, call),
	U32(DetailCall, nt_detail_call, thread),
	U64(DetailCall, nt_detail_call, entry_boot_ns),
	U64(DetailCall, nt_detail_call, return_boot_ns),
	U64(DetailCall, nt_detail_call, bytes),
	I64(DetailCall, nt_detail_call, result),
	U64(DetailCall, nt_detail_call, comm),
	U64(DetailCall, nt_detail_call, number),
	ENUM(DetailCall, nt_detail_call, op, Op, nt_op, NT_OP_END),
	U32(DetailCall, nt_detail_call, peer),
	F64(DetailCall, nt_detail_call, probability),
	U64S(DetailCall, nt_detail_call, word, words, NT_WIRE_MAX_DETAIL_WORDS),
};
SHAPE(nt_detail_call, detail_call, NULL);

static const struct nt_wire_field fields_nt_detail_count[] = {
	ENUM(DetailCount, nt_detail_count, kind, DetailKind, nt_detail_kind, NT_DETAIL_KIND_END),
	U64(DetailCount, nt_detail_count, seen),
	U64(DetailCount, nt_detail_count, lost),
};
SHAPE(nt_detail_count, detail_count, NULL);

static const struct nt_wire_field fields_nt_detail[] = {
	ONE(Detail, nt_detail, rank, Rank, nt_rank_id),
	TEXT(Detail, nt_detail, call),
	U64(Detail, nt_detail, comm),
	U64(Detail, nt_detail, number),
	ENUM(Detail, nt_detail, op, Op, nt_op, NT_OP_END),
	U64(Detail, nt_detail, bytes),
	U64(Detail, nt_detail, entry_boot_ns),
	U64(Detail, nt_detail, return_boot_ns),
	I64(Detail, nt_detail, result),
	U64S(Detail, nt_detail, word, words, NT_WIRE_MAX_WORDS),
	U64S(Detail, nt_detail, stack, stacks, NT_WIRE_MAX_STACK),
	U32(Detail, nt_detail, level),
	U64(Detail, nt_detail, start_boot_ns),
	U64(Detail, nt_detail, end_boot_ns),
	MANY(Detail, nt_detail, record, records, NT_WIRE_MAX_DETAILS, DetailCall, nt_detail_call),
	MANY(Detail, nt_detail, count, counts, NT_WIRE_MAX_DETAIL_KINDS, DetailCount, nt_detail_count),
	F64(Detail, nt_detail, granted),
};
SHAPE(nt_detail, detail, NULL);

static const struct nt_wire_field fields_nt_position[] = {
	TEXT(Position, nt_position, topic),
	U32(Position, nt_position, partition),
	U64(Position, nt_position, offset),
};
SHAPE(nt_position, position, NULL);

static const struct nt_wire_field fields_nt_wire_job_summary[] = {
	TEXT(JobHead, nt_wire_job_summary, id),
	TEXT(JobHead, nt_wire_job_summary, name),
	TEXT_(JobHead, nt_wire_job_summary, namespace),
	U32(JobHead, nt_wire_job_summary, attempt),
	TEXT(JobHead, nt_wire_job_summary, state),
	U32(JobHead, nt_wire_job_summary, size),
	U32(JobHead, nt_wire_job_summary, live),
	U32(JobHead, nt_wire_job_summary, nodes),
	F64(JobHead, nt_wire_job_summary, step_ns),
	U64(JobHead, nt_wire_job_summary, cell_ns),
	U64(JobHead, nt_wire_job_summary, frames),
	F64(JobHead, nt_wire_job_summary, completeness),
	U64(JobHead, nt_wire_job_summary, since_real_ns),
	U64(JobHead, nt_wire_job_summary, seen_real_ns),
	U64(JobHead, nt_wire_job_summary, ended_real_ns),
};
SHAPE(nt_wire_job_summary, job_head, NULL);

static const struct nt_wire_field fields_nt_state[] = {
	TEXT(State, nt_state, job_key),
	U32(State, nt_state, shard),
	U32(State, nt_state, version),
	DATA(State, nt_state, data, size, NT_WIRE_MAX_STATE_BYTES),
	MANY(State, nt_state, position, positions, NT_WIRE_MAX_POSITIONS, Position, nt_position),
	TEXT(State, nt_state, owner),
	U64(State, nt_state, generation),
	U32(State, nt_state, chunk),
	U32(State, nt_state, chunks),
	{.kind = NT_WIRE_U64, .there = OFFSET(THERE(State), size, uint64_t), .here = OFFSET(struct nt_state, total, uint64_t)},
	U64(State, nt_state, hash),
	ONE(State, nt_state, head, JobHead, nt_wire_job_summary),
};
SHAPE(nt_state, state, NULL);

static const struct nt_wire_field fields_nt_control[] = {
	TEXT(Control, nt_control, target),
	U32(Control, nt_control, level),
	U64(Control, nt_control, expires_real_ns),
	U64(Control, nt_control, set_real_ns),
	ENUM(Control, nt_control, request, Request, nt_request, NT_REQUEST_END),
	U64(Control, nt_control, id),
	TEXT(Control, nt_control, reason),
};
SHAPE(nt_control, control, NULL);

/* A heartbeat has one number, which wire.h keeps without a struct. */
static const struct nt_wire_field fields_heartbeat[] = {
	{.kind = NT_WIRE_U32, .there = OFFSET(THERE(Heartbeat), ranks, uint32_t)},
};
static struct nt_wire_plan plan_heartbeat;
static const struct nt_wire_shape shape_heartbeat = {
	.there = &neutracer__v1__heartbeat__descriptor,
	.here_bytes = sizeof(uint32_t),
	.field = fields_heartbeat,
	.fields = 1,
	.plan = &plan_heartbeat,
};

static const struct nt_wire_field fields_nt_message[] = {
	TEXT(Envelope, nt_message, agent),
	U64(Envelope, nt_message, boot),
	U64(Envelope, nt_message, seq),
	U64(Envelope, nt_message, boot_ns),
	U64(Envelope, nt_message, real_ns),
	U64(Envelope, nt_message, watermark_boot_ns),
	TEXT(Envelope, nt_message, key),
};
static struct nt_wire_plan plan_envelope;
const struct nt_wire_shape nt_wire_envelope = {
	.there = &neutracer__v1__envelope__descriptor,
	.here_bytes = sizeof(struct nt_message),
	.field = fields_nt_message,
	.fields = sizeof(fields_nt_message) / sizeof(fields_nt_message[0]),
	.plan = &plan_envelope,
};

/* clang-format on */
#define BODY(NAME, shape_, member)                                                                 \
	[NT_BODY_##NAME] = {.shape = &(shape_),                                                    \
			    .body_case = NEUTRACER__V1__ENVELOPE__BODY_##NAME,                     \
			    .here = offsetof(struct nt_message, member)}

const struct nt_wire_body nt_wire_bodies[NT_WIRE_BODIES] = {
	BODY(WINDOW, shape_nt_window, window),
	BODY(NODE, shape_nt_node_vector, node),
	BODY(DETAIL, shape_nt_detail, detail),
	BODY(INCIDENT, shape_nt_wire_incident, incident),
	BODY(STATE, shape_nt_state, state),
	BODY(CONTROL, shape_nt_control, control),
	BODY(HEARTBEAT, shape_heartbeat, heartbeat_ranks),
};
