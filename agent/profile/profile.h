/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples of a process's stacks, each distinct stack once with its number of samples. Frames have no
 * lines: one function is one frame. Flat: sent between processes as it is. What exceeds a cap is
 * counted.
 *
 * A stack that is not whole has a mark in place of the frames that are missing, so that its time is
 * not taken for that of the function next to them.
 */
#ifndef NT_AGENT_PROFILE_PROFILE_H
#define NT_AGENT_PROFILE_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/stack/stack.h"
#include "common/base/cleanup.h"
#include "control/level_table.h"

enum {
	NT_PROFILE_STACKS = 2048,
	NT_PROFILE_DEPTH = 64, /* frames of one stack; those further out are counted */
	NT_PROFILE_MARKS = 2, /* beside them: innermost and outermost */
	NT_PROFILE_FRAMES = 2048, /* distinct ones */
	NT_PROFILE_NUMBERS = 96 << 10, /* frames of all stacks together */
	NT_PROFILE_TEXT_BYTES = 192 << 10,
};

#define NT_PROFILE_TORN  "[torn]" /* the thread ran while it was read */
#define NT_PROFILE_OUTER "[outer frames left out]"

struct nt_profile_stack {
	char thread[NT_STACK_NAME];
	uint32_t count; /* samples */
	uint32_t first; /* in `number` */
	uint32_t left_out;
	uint16_t frames;
	uint8_t on_cpu, pad;
};

struct nt_profile {
	uint64_t begin_boot_ns, duration_ns, cpu_ns;
	uint32_t taken, missed; /* times of the process; see Profile of neutracer.proto */
	uint32_t left_out; /* samples of threads whose stack is over a cap */
	uint32_t python_version;
	uint32_t reason; /* enum nt_stack_reason of the last sample of the main thread */
	uint32_t stacks, frames, numbers, text_bytes;
	uint32_t torn, empty; /* samples of threads: marked as torn; without a frame */
	uint32_t pad;
	struct nt_profile_stack stack[NT_PROFILE_STACKS];
	struct nt_stack_frame frame[NT_PROFILE_FRAMES];
	uint16_t number[NT_PROFILE_NUMBERS]; /* of frames, innermost first */
	char text[NT_PROFILE_TEXT_BYTES]; /* begins with an empty text */
};

/* Empties it. */
void nt_profile_init(struct nt_profile *profile);

/*
 * Adds the threads of one sample that are of the kind. Not reentrant: it keeps an index of the one
 * profile that was initialized last, for a worker.
 */
void nt_profile_add(struct nt_profile *profile, const struct nt_stack *stack,
		    enum nt_profile_kind kind);

/*
 * Checks and cleans a profile from a worker, which may have been compromised. wish: of the request that
 * the worker carries out. -EBADMSG.
 */
NT_MUST_CHECK int nt_profile_check(struct nt_profile *profile, const struct nt_profile_wish *wish);

#endif
