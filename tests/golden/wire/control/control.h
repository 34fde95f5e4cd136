/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control messages of the golden files, in C: of the newest, every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_CONTROL_H
#define NT_TESTS_GOLDEN_WIRE_CONTROL_H

#include "proto/wire.h"

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

/* With the kind of the request. */
static struct nt_message golden_control_2 __attribute__((unused)) = {
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
			.set_real_ns = 1763700012000000007UL,
			.request = NT_REQUEST_STACK,
			.id = 0x1122334455667788,
			.reason = "3f0c2a",
		},
};

/* With what a profile asks for. */
static struct nt_message golden_control_3 __attribute__((unused)) = {
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
			.target = "rank:llm/3",
			.level = 3,
			.expires_real_ns = 1763700015000000001UL,
			.set_real_ns = 1763700012000000007UL,
			.request = NT_REQUEST_PROFILE,
			.id = 0x1122334455667788,
			.reason = "3f0c2a",
			.seconds = 10,
			.hz = 49,
			.kind = 2,
		},
};

#endif
