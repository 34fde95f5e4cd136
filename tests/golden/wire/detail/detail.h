/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The detail message of the golden files, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_DETAIL_H
#define NT_TESTS_GOLDEN_WIRE_DETAIL_H

#include "proto/wire.h"

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

static uint64_t golden_detail_words[] = {3035, 18446744073709551614ULL};
static struct nt_detail_call golden_detail_records[] = {
	{
		.kind = NT_DETAIL_KIND_COMM,
		.call = "ncclSend",
		.thread = 3030,
		.entry_boot_ns = 3031,
		.return_boot_ns = 3032,
		.bytes = 3033,
		.result = -6,
		.comm = 0xc400000000000002,
		.number = 3034,
		.op = NT_OP_SEND,
		.peer = 8,
		.probability = 0.5,
		.word = golden_detail_words,
		.words = 2,
	},
	{.kind = NT_DETAIL_KIND_NET, .call = "tcp_retransmit_skb", .probability = 1},
};
static struct nt_detail_count golden_detail_count = {
	.kind = NT_DETAIL_KIND_LAUNCH,
	.seen = 3040,
	.lost = 3041,
};

/* Later files, with the fields that were added since. */
static struct nt_message golden_detail_2, golden_detail_3;

static inline void golden_fill_detail(void)
{
	golden_detail_2 = golden_detail;
	golden_detail_2.detail.rank.replica = "worker-3";
	golden_detail_2.detail.rank.pod_uid = "12345678-90ab-cdef-1234-567890abcdef";

	golden_detail_3 = golden_detail_2;
	golden_detail_3.detail.level = 3;
	golden_detail_3.detail.start_boot_ns = 3020;
	golden_detail_3.detail.end_boot_ns = 3021;
	golden_detail_3.detail.record = golden_detail_records;
	golden_detail_3.detail.records = 2;
	golden_detail_3.detail.count = &golden_detail_count;
	golden_detail_3.detail.counts = 1;
	golden_detail_3.detail.granted = 0.25;
}

#endif
