/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The node message of the golden files, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_NODE_H
#define NT_TESTS_GOLDEN_WIRE_NODE_H

#include "proto/wire.h"

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

/* Later files, with the fields that were added since. */
static struct nt_message golden_node_2, golden_node_3, golden_node_4;

static inline void golden_fill_node(void)
{
	static struct nt_node_limit limit[] = {
		{"processes", "processes", "user 65534", 6001, 6002, 6003},
		{"keys", "ranks", "pod 12345678-90ab-cdef-1234-567890abcdef", 6004, 6005, 6006},
	};

	static struct nt_metric_value rate[] = {{"xmit_bytes", 6101.5}, {"packet_seq_err", 0.25}};
	static struct nt_rdma_port port[] = {{"mlx5_0", 6102, rate, 2}, {"mlx5_1", 6103, NULL, 0}};

	golden_node_2 = golden_node;
	golden_node_2.node.limit = limit;
	golden_node_2.node.limits = 2;

	golden_node_3 = golden_node_2;
	golden_node_3.node.rdma_port = port;
	golden_node_3.node.rdma_ports = 2;

	golden_node_4 = golden_node_3;
	golden_node_4.node.boot_id = "6b1f9c3a-1b0e-4f9e-9d0a-7c5d3c2b1a00";
	golden_node_4.node.kernel = "6.12.48+deb13-amd64";
}

#endif
