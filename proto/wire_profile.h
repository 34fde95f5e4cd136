/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile of a process, as proto/wire.h encodes and decodes it. */
#ifndef NT_PROTO_WIRE_PROFILE_H
#define NT_PROTO_WIRE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_wire_stack_frame;

/* Samples of a process's threads with the same stack: see Profile of neutracer.proto. */
struct nt_wire_profile_stack {
	const char *thread;
	bool on_cpu;
	uint64_t count;
	uint32_t *frame; /* numbers in the profile's, not checked */
	size_t frames;
	uint32_t left_out;
};

struct nt_wire_profile {
	uint64_t request, begin_boot_ns, duration_ns;
	bool is_running;
	uint32_t hz, kind;
	uint64_t taken, missed, left_out, torn, empty, cpu_ns;
	const char *reason, *interpreter;
	struct nt_wire_profile_stack *stack;
	size_t stacks;
	struct nt_wire_stack_frame *frame;
	size_t frames;
};

#endif
