/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The incident message of the golden files, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_INCIDENT_H
#define NT_TESTS_GOLDEN_WIRE_INCIDENT_H

#include "proto/wire.h"

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
				(struct nt_wire_evidence[]){
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

/* Later files, with the fields that were added since. */
static struct nt_message golden_incident_2, golden_incident_3, golden_incident_4, golden_incident_5,
	golden_incident_stacks, golden_incident_handling;

static inline void golden_fill_incident(void)
{
	static struct nt_delivery delivery[2];
	static struct nt_culprit culprit[2];
	static struct nt_wire_stack_frame frame = {"Loader.load_batch", "/app/loader.py", 4012,
						   true};
	static struct nt_wire_incident_stack stack[] = {
		{
			.rank = 4013,
			.is_culprit = true,
			.real_ns = 4014,
			.stack =
				{
					.request = 0xb407010203040508,
					.boot_ns = 4015,
					.tid = 4016,
					.name = "python3",
					.state = "D",
					.wait = "folio_wait_bit_common",
					.is_main = true,
					.holds_gil = true,
					.gc_running = true,
					.interpreter = "CPython 3.14",
					.frame = &frame,
					.frames = 1,
					.left_out = 4017,
					.python_reason = "stack changed while it was read",
					.native_reason = "thread is running",
					.read_ns = 4018,
				},
		},
	};

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

	golden_incident_5 = golden_incident_4;
	golden_incident_5.incident.own_source = NT_OWN_SOURCE_CUPTI;

	golden_incident_stacks = golden_incident_5;
	golden_incident_stacks.incident.stack = stack;
	golden_incident_stacks.incident.stacks = 1;

	golden_incident_handling = golden_incident_stacks;
	golden_incident_handling.incident.handling = (struct nt_handling){
		.revision = 4019,
		.acknowledged_real_ns = 1763700015000000004UL,
		.acknowledged_by = "anna",
		.silenced_real_ns = 1763700016000000005UL,
		.silenced_by = "bert",
		.silenced_until_real_ns = 1763700017000000006UL,
	};
}

#endif
