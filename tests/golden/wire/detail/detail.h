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

/* Later files, with the fields that were added since. */
static struct nt_message golden_detail_2;

static inline void golden_fill_detail(void)
{
	golden_detail_2 = golden_detail;
	golden_detail_2.detail.rank.replica = "worker-3";
	golden_detail_2.detail.rank.pod_uid = "12345678-90ab-cdef-1234-567890abcdef";
}

#endif
