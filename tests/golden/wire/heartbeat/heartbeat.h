/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The heartbeat message of the golden files, in C: every field is filled. */
#ifndef NT_TESTS_GOLDEN_WIRE_HEARTBEAT_H
#define NT_TESTS_GOLDEN_WIRE_HEARTBEAT_H

#include "proto/wire.h"

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

#endif
