/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control message of the golden files, in C: every field is filled. */
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

#endif
