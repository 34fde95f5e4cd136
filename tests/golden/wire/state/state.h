/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state message of the golden files, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_STATE_H
#define NT_TESTS_GOLDEN_WIRE_STATE_H

#include "proto/wire.h"

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

/* Later files, with the fields that were added since. */
static struct nt_message golden_state_2;

static inline void golden_fill_state(void)
{
	golden_state_2 = golden_state;
	golden_state_2.state.generation = 5007;
	golden_state_2.state.chunk = 5008;
	golden_state_2.state.chunks = 5009;
	golden_state_2.state.total = 5010;
	golden_state_2.state.hash = 0xa1b2c3d4e5f60718;
	golden_state_2.state.head = (struct nt_wire_job_summary){
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
