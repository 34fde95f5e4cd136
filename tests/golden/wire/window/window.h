/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The window message of the golden files, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_WINDOW_H
#define NT_TESTS_GOLDEN_WIRE_WINDOW_H

#include "proto/wire.h"
#include "tests/golden/wire/windows/profile.h"
#include "tests/golden/wire/windows/rdma.h"
#include "tests/golden/wire/windows/tcp.h"

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

/* Later files, with the fields that were added since. */
static struct nt_message golden_window_2, golden_window_3, golden_window_4, golden_window_5,
	golden_window_6, golden_window_7, golden_window_8, golden_window_9, golden_window_10,
	golden_window_11, golden_window_12, golden_window_13, golden_window_14, golden_window_15,
	golden_window_16, golden_window_17, golden_window_heap, golden_window_gemms,
	golden_window_stacks, golden_window_rdma, golden_window_18, golden_window_system,
	golden_window_19, golden_window_tcp, golden_window_20;

static inline void golden_fill_window_heap(void)
{
	static struct nt_heap_device device[] = {
		{2302, true, 2303, 2304, 2305, 2306},
		{2307, true, 2308, 2309, 2310, 2311},
	};
	static struct nt_heap_site site = {
		"libc10_cuda.so", 2312, 2313, 2314, 2315, 0.96875, true,
	};

	golden_window_heap = golden_window_10;
	golden_window_heap.window.heap = (struct nt_heap_window){
		.is_whole = true,
		.has_sites = true,
		.since_boot_ns = 2301,
		.device = device,
		.devices = 2,
		.site = &site,
		.sites = 1,
		.failure =
			{
				.call = "cudaMalloc",
				.bytes = 2316,
				.boot_ns = 2317,
				.live_bytes = 2318,
				.device = 2319,
				.device_unknown = true,
				.file = "libtrain.so",
				.offset = 2320,
				.holder_pid = 2321,
				.holder_rank = 2322,
				.holder_rank_known = true,
				.holder_is_whole = true,
				.holder_bytes = 2323,
				.holder_file = "libcache.so",
				.holder_offset = 2324,
				.holder_site_bytes = 2325,
			},
		.failures = 2326,
		.out_of_memory = 2327,
	};
}

static inline void golden_fill_window_stacks(void)
{
	static struct nt_wire_stack_frame frame[] = {
		{"nanosleep", "libc.so.6", 2402, true},
		{"Loader.load_batch", "/app/loader.py", 2403, true},
	};
	static struct nt_wire_stack stack[] = {
		{
			.request = 0xb407010203040506,
			.boot_ns = 2404,
			.tid = 2405,
			.name = "python3",
			.state = "S",
			.wait = "hrtimer_nanosleep",
			.is_main = true,
			.holds_gil = true,
			.gc_running = true,
			.interpreter = "CPython 3.11",
			.frame = frame,
			.frames = 2,
			.left_out = 2406,
			.python_reason = "stack changed while it was read",
			.native_reason = "no call-frame information",
			.read_ns = 2407,
		},
		{
			.request = 0xb407010203040507,
			.boot_ns = 2408,
			.tid = 2409,
			.name = "loader",
			.state = "R",
			.wait = "futex_wait",
			.is_main = true,
			.holds_gil = true,
			.gc_running = true,
			.interpreter = "CPython 3.14",
			.frame = frame,
			.frames = 1,
			.left_out = 2410,
			.python_reason = "thread runs no Python code",
			.native_reason = "thread is running",
			.read_ns = 2411,
		},
	};

	golden_window_stacks = golden_window_15;
	golden_window_stacks.window.stack = stack;
	golden_window_stacks.window.stacks = 2;
}

static inline void golden_fill_window_later(void)
{
	static struct nt_gemm gemm[] = {{14, 68, 2213, 2214, 989.4e12}, {1, 70, 2215, 2216, 0}};

	golden_window_10 = golden_window_9;
	golden_window_10.window.host.gpu_thermal_ns = 2202;
	golden_window_10.window.host.gpu_power_ns = 2203;
	golden_window_10.window.host.gpu_hardware_ns = 2204;
	golden_window_10.window.host.gpu_uncorrected = 2205;
	golden_window_10.window.host.gpu_xids = 2206;
	golden_window_10.window.host.gpu_last_xid = 2207;
	golden_window_10.window.host.gpu_clock_mhz = 2208;
	golden_window_10.window.host.gpu_most_clock_mhz = 2209;
	golden_window_10.window.host.gpu_celsius = 2210;
	golden_window_10.window.host.gpu_memory_used = 2211;
	golden_window_10.window.host.gpu_memory_total = 2212;

	golden_window_11 = golden_window_10;
	golden_window_11.window.host.gpu_activity_ns = 2213;
	golden_window_11.window.host.gpu_sm_ns = 2214;
	golden_window_11.window.host.gpu_occupancy_ns = 2215;
	golden_window_11.window.host.gpu_tensor_ns = 2216;
	golden_window_11.window.host.gpu_dram_ns = 2217;
	golden_window_11.window.host.gpu_nvlink_bytes = 2218;
	golden_window_11.window.host.gpu_pcie_bytes = 2219;

	golden_window_12 = golden_window_11;
	golden_window_12.window.own_source = NT_OWN_SOURCE_NCCL;

	golden_fill_window_heap();

	golden_window_gemms = golden_window_10;
	golden_window_gemms.window.gemms = (struct nt_gemms){
		.gemm = gemm,
		.gemms = 2,
		.launches = 2217,
		.unread = 2218,
		.graph_launches = 2219,
		.captures = 2220,
	};

	golden_window_13 = golden_window_12;
	golden_window_13.window.heap = golden_window_heap.window.heap;
	golden_window_13.window.gemms = golden_window_gemms.window.gemms;

	golden_window_14 = golden_window_13;
	golden_window_14.window.gemms.gpu_ns = 2221;
	golden_window_14.window.gemms.gpu_inside_ns = 2222;

	golden_window_15 = golden_window_14;
	golden_window_15.window.gemms.graph_launches_read = 2223;
}

static inline void golden_fill_window_latest(void)
{
	golden_window_16 = golden_window_15;
	golden_window_16.window.level = 3;
	golden_fill_window_stacks();
	golden_window_17 = golden_window_16;
	golden_window_17.window.stack = golden_window_stacks.window.stack;
	golden_window_17.window.stacks = golden_window_stacks.window.stacks;
	golden_window_rdma = golden_window_15;
	golden_fill_rdma(&golden_window_rdma.window.rdma);
	golden_window_18 = golden_window_17;
	golden_window_18.window.rdma = golden_window_rdma.window.rdma;
	golden_window_system = golden_window_15;
	golden_window_system.window.host.quota_ns = 2224;
	golden_window_system.window.host.off_cpu_file_ns = 2225;
	golden_window_system.window.host.off_cpu_fault_ns = 2226;
	golden_window_system.window.host.off_cpu_device_ns = 2227;
	golden_window_system.window.host.reclaim_ns = 2228;
	golden_window_system.window.host.compaction_ns = 2229;
	golden_window_system.window.host.interrupt_ns = 2230;
	golden_window_system.window.host.migrations = 2231;
	golden_window_system.window.host.numa_moves = 2232;
	golden_window_system.window.host.taken_ns = 2233;
	golden_window_system.window.host.taker_ns = 2234;
	golden_window_system.window.host.taker_pid = 2235;
	golden_window_system.window.host.taker = "stress-ng";
	golden_window_system.window.host.process_io_ns = 2236;
	golden_window_system.window.host.process_fault_ns = 2237;
	golden_window_system.window.host.process_reclaim_ns = 2238;
	golden_window_system.window.host.block_requests = 2239;
	golden_window_system.window.host.block_ns = 2240;
	golden_window_system.window.host.block_device = "nvme0n1";
	golden_window_system.window.host.block_device_requests = 2241;
	golden_window_system.window.host.block_device_ns = 2242;
	golden_window_system.window.host.tcp_retransmits = 2243;
	golden_window_system.window.host.tcp_resets = 2244;
	golden_window_system.window.host.oom_kills = 2245;
	golden_window_system.window.host.system_ns = 2246;
	golden_window_19 = golden_window_18;
	golden_window_19.window.host = golden_window_system.window.host;
	golden_window_tcp = golden_window_19;
	golden_fill_tcp(&golden_window_tcp.window);
	golden_window_20 = golden_window_tcp;
	golden_fill_profiles(&golden_window_20.window);
}

static inline void golden_fill_window(void)
{
	static struct nt_transfer transfer[] = {
		{0xc500000000000883, 2184, 2185, 2186, 2187, NT_OP_SEND},
		{0xc500000000000883, 2188, 2189, 2190, 2191, NT_OP_RECV},
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

	golden_window_8 = golden_window_7;
	golden_window_8.window.exit_status = 2200;

	golden_window_9 = golden_window_8;
	golden_window_9.window.ended_by_parent = true;
	golden_window_9.window.ended_early_ns = 2201;
	golden_fill_window_later();
	golden_fill_window_latest();
}

#endif
