/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages of tests/golden/wire/NAME.txt once more, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_MESSAGES_H
#define NT_TESTS_GOLDEN_WIRE_MESSAGES_H

#include "proto/wire.h"

static struct nt_message golden_window = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-window",
	.body = NT_BODY_WINDOW,
	.window = {
		.rank = {
			.rank = 11,
			.size = 12,
			.local_rank = 13,
			.pid = 14,
			.start_boot_ns = 15,
			.node = "gpu-07",
			.job = "llm-70b",
			.namespace = "train",
			.pod = "llm-70b-11",
			.container = "worker",
			.gpu = "GPU-0a1b2c3d",
			.rank_known = true,
			.cgroup = "/kubepods/pod1/worker",
			.comm = "python3",
		},
		.start_boot_ns = 2001,
		.end_boot_ns = 2002,
		.steps = 2003,
		.first_step = 2004,
		.step_epoch = 2005,
		.own_tier = NT_TIER_T2,
		.own_ns = 2006,
		.host_ns = 2007,
		.blocked_ns = 2008,
		.comm_ns = 2009,
		.step_ns = 2010,
		.own_blocked_ns = 2011,
		.gpu_busy_ns = 2012,
		.launches = 2013,
		.copies = 2014,
		.copy_bytes = 2015,
		.allocs = 2016,
		.alloc_bytes = 2017,
		.errors = 2018,
		.comm = (struct nt_comm_window[]){
			{
				.id = 0xc0000000000007e3,
				.rank = 2020,
				.size = 2021,
				.library = NT_LIBRARY_NCCL,
				.id_is_local = true,
				.parent = 0xd0000000000007e6,
				.op = (struct nt_comm_op[]){
					{
						.op = NT_OP_ALL_REDUCE,
						.calls = 2023,
						.bytes = 2024,
						.first = 2025,
						.last = 2026,
						.duration = {
							.bucket = (uint32_t[]){10, 11, 255},
							.buckets = 3,
							.count = (uint32_t[]){2027, 2028, 2029},
							.sum_ns = 2030,
							.min_ns = 2031,
							.max_ns = 2032,
						},
						.gpu_duration = {
							.bucket = (uint32_t[]){20, 21, 255},
							.buckets = 3,
							.count = (uint32_t[]){2033, 2034, 2035},
							.sum_ns = 2036,
							.min_ns = 2037,
							.max_ns = 2038,
						},
					},
					{
						.op = NT_OP_REDUCE_SCATTER,
						.calls = 2039,
						.bytes = 2040,
						.first = 2041,
						.last = 2042,
						.duration = {
							.bucket = (uint32_t[]){10, 11, 255},
							.buckets = 3,
							.count = (uint32_t[]){2043, 2044, 2045},
							.sum_ns = 2046,
							.min_ns = 2047,
							.max_ns = 2048,
						},
						.gpu_duration = {
							.bucket = (uint32_t[]){20, 21, 255},
							.buckets = 3,
							.count = (uint32_t[]){2049, 2050, 2051},
							.sum_ns = 2052,
							.min_ns = 2053,
							.max_ns = 2054,
						},
					},
				},
				.ops = 2,
				.epoch = 2055,
				.numbered_by_library = true,
				.rolling_hash = 0xe000000000000808,
				.last = 2057,
				.recent = (struct nt_signature[]){
					{
						.number = 2058,
						.op = NT_OP_ALL_REDUCE,
						.count = 2059,
						.type = 2060,
						.entry_boot_ns = 2061,
					},
					{
						.number = 2062,
						.op = NT_OP_REDUCE_SCATTER,
						.count = 2063,
						.type = 2064,
						.entry_boot_ns = 2065,
					},
				},
				.recents = 2,
				.name = "dp group 2066",
			},
			{
				.id = 0xc000000000000813,
				.rank = 2068,
				.size = 2069,
				.library = NT_LIBRARY_GLOO,
				.id_is_local = true,
				.parent = 0xd000000000000816,
				.op = (struct nt_comm_op[]){
					{
						.op = NT_OP_BARRIER,
						.calls = 2071,
						.bytes = 2072,
						.first = 2073,
						.last = 2074,
						.duration = {
							.bucket = (uint32_t[]){10, 11, 255},
							.buckets = 3,
							.count = (uint32_t[]){2075, 2076, 2077},
							.sum_ns = 2078,
							.min_ns = 2079,
							.max_ns = 2080,
						},
						.gpu_duration = {
							.bucket = (uint32_t[]){20, 21, 255},
							.buckets = 3,
							.count = (uint32_t[]){2081, 2082, 2083},
							.sum_ns = 2084,
							.min_ns = 2085,
							.max_ns = 2086,
						},
					},
					{
						.op = NT_OP_GROUP_END,
						.calls = 2087,
						.bytes = 2088,
						.first = 2089,
						.last = 2090,
						.duration = {
							.bucket = (uint32_t[]){10, 11, 255},
							.buckets = 3,
							.count = (uint32_t[]){2091, 2092, 2093},
							.sum_ns = 2094,
							.min_ns = 2095,
							.max_ns = 2096,
						},
						.gpu_duration = {
							.bucket = (uint32_t[]){20, 21, 255},
							.buckets = 3,
							.count = (uint32_t[]){2097, 2098, 2099},
							.sum_ns = 2100,
							.min_ns = 2101,
							.max_ns = 2102,
						},
					},
				},
				.ops = 2,
				.epoch = 2103,
				.numbered_by_library = true,
				.rolling_hash = 0xe000000000000838,
				.last = 2105,
				.recent = (struct nt_signature[]){
					{
						.number = 2106,
						.op = NT_OP_BARRIER,
						.count = 2107,
						.type = 2108,
						.entry_boot_ns = 2109,
					},
					{
						.number = 2110,
						.op = NT_OP_GROUP_END,
						.count = 2111,
						.type = 2112,
						.entry_boot_ns = 2113,
					},
				},
				.recents = 2,
				.name = "dp group 2114",
			},
		},
		.comms = 2,
		.sample = (struct nt_sample[]){
			{
				.comm = 0xc100000000000843,
				.number = 2116,
				.op = NT_OP_ALL_GATHER,
				.bytes = 2117,
				.arrive_boot_ns = 2118,
				.release_boot_ns = 2119,
				.gpu_start_boot_ns = 2120,
				.gpu_end_boot_ns = 2121,
				.epoch = 2122,
			},
			{
				.comm = 0xc10000000000084b,
				.number = 2124,
				.op = NT_OP_SEND_RECV,
				.bytes = 2125,
				.arrive_boot_ns = 2126,
				.release_boot_ns = 2127,
				.gpu_start_boot_ns = 2128,
				.gpu_end_boot_ns = 2129,
				.epoch = 2130,
			},
		},
		.samples = 2,
		.host = {
			.on_cpu_ns = 2131,
			.run_queue_ns = 2132,
			.off_cpu_io_ns = 2133,
			.off_cpu_lock_ns = 2134,
			.off_cpu_net_ns = 2135,
			.off_cpu_sleep_ns = 2136,
			.off_cpu_other_ns = 2137,
			.read_bytes = 2138,
			.write_bytes = 2139,
			.major_faults = 2140,
			.minor_faults = 2141,
			.gc_ns = 2142,
			.gc_count = 2143,
			.voluntary_switches = 2144,
			.involuntary_switches = 2145,
			.state = "D",
			.process_cpu_ns = 2146,
		},
		.inside = {
			.in_call = true,
			.comm = 0xc200000000000863,
			.op = NT_OP_BROADCAST,
			.number = 2148,
			.since_boot_ns = 2149,
			.synchronising = true,
			.count = 2150,
			.type = 2151,
		},
		.peer = (struct nt_peer_time[]){
			{
				.comm = 0xc300000000000868,
				.peer = 2153,
				.send = true,
				.calls = 2154,
				.bytes = 2155,
				.duration = {
					.bucket = (uint32_t[]){30, 31, 255},
					.buckets = 3,
					.count = (uint32_t[]){2156, 2157, 2158},
					.sum_ns = 2159,
					.min_ns = 2160,
					.max_ns = 2161,
				},
			},
			{
				.comm = 0xc300000000000872,
				.peer = 2163,
				.send = true,
				.calls = 2164,
				.bytes = 2165,
				.duration = {
					.bucket = (uint32_t[]){30, 31, 255},
					.buckets = 3,
					.count = (uint32_t[]){2166, 2167, 2168},
					.sum_ns = 2169,
					.min_ns = 2170,
					.max_ns = 2171,
				},
			},
		},
		.peers = 2,
		.ended = true,
		.finalized = true,
		.exit_signal = 2172,
		.lost = 2173,
		.step_own_ns = (uint64_t[]){2174, 2175},
		.step_samples = 2,
		.step_duration_ns = (uint64_t[]){2176, 2177},
		.first_comm_boot_ns = 2178,
		.uses_gpu = true,
		.attempt_hint = 2179,
	},
};

static struct nt_message golden_node = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-node",
	.body = NT_BODY_NODE,
	.node =
		{
			.node = "gpu-08",
			.metric =
				(struct nt_metric_value[]){
					{
						.name = "cpu.util",
						.value = 0.625,
					},
					{
						.name = "psi.io",
						.value = -1e-300,
					},
				},
			.metrics = 2,
			.job = (const char *[]){"job-a", "job-b"},
			.jobs = 2,
		},
};

static struct nt_message golden_detail = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-detail",
	.body = NT_BODY_DETAIL,
	.detail =
		{
			.rank =
				{
					.rank = 31,
					.size = 32,
					.local_rank = 33,
					.pid = 34,
					.start_boot_ns = 35,
					.node = "gpu-07",
					.job = "llm-70b",
					.namespace = "train",
					.pod = "llm-70b-11",
					.container = "worker",
					.gpu = "GPU-0a1b2c3d",
					.rank_known = true,
					.cgroup = "/kubepods/pod1/worker",
					.comm = "python3",
				},
			.call = "ncclAllReduce",
			.comm = 0xc400000000000001,
			.number = 3001,
			.op = NT_OP_PUT,
			.bytes = 3002,
			.entry_boot_ns = 3003,
			.return_boot_ns = 3004,
			.result = -5,
			.word = (uint64_t[]){3005, 18446744073709551615ULL},
			.words = 2,
			.stack = (uint64_t[]){3006, 3007, 3008},
			.stacks = 3,
		},
};

static struct nt_message golden_incident = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-incident",
	.body = NT_BODY_INCIDENT,
	.incident =
		{
			.id = "inc-0001",
			.state = "firing",
			.severity = "critical",
			.class = "compute",
			.cause = "clock-held-down: power",
			.job = "llm-70b",
			.attempt = 4001,
			.namespace = "train",
			.culprit =
				(struct nt_culprit[]){
					{
						.kind = "rank",
						.rank = 4002,
						.has_rank = true,
						.node = "gpu-07",
						.pod = "llm-70b-11",
						.container = "worker",
						.gpu = "GPU-1",
						.peers = (uint32_t[]){3, 7, 4294967295},
						.peer_count = 3,
						.peer = "gpu-09",
						.ranks = (uint32_t[]){11, 12},
						.rank_count = 2,
						.name = "stage 3",
					},
					{
						.kind = "path",
						.rank = 4003,
						.has_rank = true,
						.node = "gpu-08",
						.pod = "llm-70b-12",
						.container = "worker-2",
						.gpu = "GPU-2",
						.peers = (uint32_t[]){4},
						.peer_count = 1,
						.peer = "gpu-10",
						.ranks = (uint32_t[]){13},
						.rank_count = 1,
						.name = "rail 1",
					},
				},
			.culprits = 2,
			.since_real_ns = 1763700012000000001UL,
			.until_real_ns = 1763700013000000002UL,
			.seen_real_ns = 1763700014000000003UL,
			.slowdown = 1.3125,
			.cost =
				{
					.gpu_hours = 12.5,
					.currency = "USD",
					.money = 31.25,
					.has_money = true,
					.energy_kwh = 7.125,
					.has_energy = true,
					.co2_kg = 2.75,
					.has_co2 = true,
				},
			.tier = NT_TIER_T3,
			.confidence = 0.984375,
			.completeness = 0.96875,
			.evidence =
				(struct nt_evidence[]){
					{
						.what = "own work of the step",
						.unit = "ms",
						.value = 412.5,
						.peers = 314.5,
						.width = 3.125,
						.method = "ratio",
						.windows = 4004,
					},
					{
						.what = "on-CPU time",
						.unit = "s",
						.value = -1.5,
						.peers = 0.25,
						.width = 0.0625,
						.method = "cusum",
						.windows = 4005,
					},
				},
			.evidences = 2,
			.summary =
				"rank 11 (gpu-07) computes 31 % slower \342\200\223 since 03:00:12",
			.delivery =
				(struct nt_delivery[]){
					{
						.receiver = "chat",
						.event = "firing",
						.state = "sent",
						.attempts = 4006,
						.real_ns = 4007,
					},
					{
						.receiver = "pager",
						.event = "resolved",
						.state = "queued",
						.attempts = 4008,
						.real_ns = 4009,
					},
				},
			.deliveries = 2,
			.job_key = "job-key",
			.version = 4010,
		},
};

static struct nt_message golden_state = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-state",
	.body = NT_BODY_STATE,
	.state =
		{
			.job_key = "job-key",
			.shard = 5001,
			.version = 5002,
			.data = (const uint8_t *)"\000\001\377state",
			.size = 8,
			.position =
				(struct nt_position[]){
					{
						.topic = "neutracer.window.v1",
						.partition = 5003,
						.offset = 5004,
					},
					{
						.topic = "neutracer.node.v1",
						.partition = 5005,
						.offset = 18446744073709551614ULL,
					},
				},
			.positions = 2,
			.owner = "https://aggregator-0:8443",
		},
};

static struct nt_message golden_control = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-control",
	.body = NT_BODY_CONTROL,
	.control =
		{
			.target = "node:gpu-07",
			.level = 3,
			.expires_real_ns = 1763700015000000001UL,
		},
};

static struct nt_message golden_heartbeat = {
	.agent = "node-07",
	.boot = 0xb0070102030405ff,
	.seq = 1001,
	.boot_ns = 1002000000001,
	.real_ns = 1763700012000000003UL,
	.watermark_boot_ns = 1002000000004,
	.key = "job-heartbeat",
	.body = NT_BODY_HEARTBEAT,
	.heartbeat_ranks = 8,
};

/*
 * Later files, with the fields that were added since. The earlier ones stay as they are: their bytes
 * must decode for ever.
 */
static struct nt_message golden_window_2, golden_window_3, golden_window_4, golden_window_5,
	golden_window_6, golden_window_7;
static struct nt_message golden_detail_2, golden_node_2, golden_state_2;
static struct nt_message golden_incident_2, golden_incident_3, golden_incident_4;

/* Call it first. */
static inline void golden_fill(void)
{
	static struct nt_delivery delivery[2];
	static struct nt_culprit culprit[2];
	static struct nt_transfer transfer[] = {
		{0xc500000000000883, 2184, 2185, 2186, 2187, NT_OP_SEND},
		{0xc500000000000883, 2188, 2189, 2190, 2191, NT_OP_RECV},
	};
	static struct nt_node_limit limit[] = {
		{"processes", "processes", "user 65534", 6001, 6002, 6003},
		{"keys", "ranks", "pod 12345678-90ab-cdef-1234-567890abcdef", 6004, 6005, 6006},
	};

	golden_window_2 = golden_window;
	golden_window_2.window.host.nic_retransmits = 2180;
	golden_window_2.window.host.nic_errors = 2181;
	golden_window_2.window.host.nic_congestion = 2182;
	golden_window_2.window.transfer = transfer;
	golden_window_2.window.transfers = 2;

	golden_window_3 = golden_window_2;
	golden_window_3.window.rank.replica = "worker-3";
	golden_window_3.window.rank.pod_uid = "12345678-90ab-cdef-1234-567890abcdef";

	golden_window_4 = golden_window_3;
	golden_window_4.window.gpu_lag_ns = 2192;

	golden_window_5 = golden_window_4;
	golden_window_5.window.taken = 2193;

	golden_window_6 = golden_window_5;
	golden_window_6.window.unobserved_ns = 2194;
	golden_window_6.window.shed = 33;

	golden_window_7 = golden_window_6;
	golden_window_7.window.whereabouts_unknown = true;

	golden_detail_2 = golden_detail;
	golden_detail_2.detail.rank.replica = "worker-3";
	golden_detail_2.detail.rank.pod_uid = "12345678-90ab-cdef-1234-567890abcdef";

	golden_incident_2 = golden_incident;
	for (size_t i = 0; i < 2; i++)
		delivery[i] = golden_incident.incident.delivery[i];
	delivery[0].severity = "warning";
	delivery[1].severity = "critical";
	golden_incident_2.incident.delivery = delivery;
	golden_incident_2.incident.shard = 4011;

	golden_incident_3 = golden_incident_2;
	for (size_t i = 0; i < 2; i++)
		culprit[i] = golden_incident.incident.culprit[i];
	culprit[0].pod_uid = "12345678-90ab-cdef-1234-567890abcdef";
	golden_incident_3.incident.culprit = culprit;

	golden_incident_4 = golden_incident_3;
	golden_incident_4.incident.cost.gpu_hours_unknown = true;

	golden_node_2 = golden_node;
	golden_node_2.node.limit = limit;
	golden_node_2.node.limits = 2;

	golden_state_2 = golden_state;
	golden_state_2.state.generation = 5007;
	golden_state_2.state.chunk = 5008;
	golden_state_2.state.chunks = 5009;
	golden_state_2.state.total = 5010;
	golden_state_2.state.hash = 0xa1b2c3d4e5f60718;
	golden_state_2.state.head = (struct nt_job_head){
		.id = "0123456789abcdef",
		.name = "llm-70b",
		.namespace = "train",
		.attempt = 5011,
		.state = "running",
		.size = 5012,
		.live = 5013,
		.nodes = 5014,
		.step_ns = 0.5,
		.cell_ns = 5015,
		.frames = 5016,
		.completeness = 0.25,
		.since_real_ns = 5017,
		.seen_real_ns = 5018,
		.ended_real_ns = 5019,
	};
}

#endif
