/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The profiles of the golden window. */
#ifndef NT_TESTS_GOLDEN_WIRE_WINDOWS_PROFILE_H
#define NT_TESTS_GOLDEN_WIRE_WINDOWS_PROFILE_H

#include "proto/wire.h"

static uint32_t golden_profile_numbers[] = {1, 0};

static struct nt_wire_profile_stack golden_profile_stacks[] = {
	{"python3", true, 2512, golden_profile_numbers, 2, 2513},
	{"pt_autograd_0", false, 2514, golden_profile_numbers + 1, 1, 0},
};

static struct nt_wire_stack_frame golden_profile_frames[] = {
	{.function = "main", .file = "/app/train.py", .line = 2520, .native = true},
	{.function = "poll", .file = "libc.so.6", .native = true},
};

static struct nt_wire_profile golden_profiles[] = {
	{.request = 0x2501250225032504,
	 .is_running = true,
	 .begin_boot_ns = 2505,
	 .duration_ns = 2506,
	 .hz = 2507,
	 .kind = 2508,
	 .taken = 2509,
	 .missed = 2510,
	 .left_out = 2511,
	 .torn = 2521,
	 .empty = 2522,
	 .cpu_ns = 2523,
	 .reason = "thread has ended",
	 .interpreter = "CPython 3.11",
	 .stack = golden_profile_stacks,
	 .stacks = 2,
	 .frame = golden_profile_frames,
	 .frames = 2},
	{.request = 0x2515251625172518,
	 .is_running = true,
	 .hz = 2519,
	 .reason = "",
	 .interpreter = ""},
};

static inline void golden_fill_profiles(struct nt_window *window)
{
	window->profile = golden_profiles;
	window->profiles = 2;
}

#endif
