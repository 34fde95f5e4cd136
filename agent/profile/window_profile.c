/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/profile/window_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	INTERPRETER_BYTES = 16,
	MAJOR_SHIFT = 8,
	MINOR_MASK = 0xff,
	STACK_COST = 24 + NT_STACK_NAME, /* bytes of a stack's encoding, without frames: at most */
	NUMBER_COST = 2, /* of one frame's number: below 2^14 */
	FRAME_COST = 16, /* of a frame, without its texts */
};

/* One block; `wire` points into it. */
struct profile_block {
	struct nt_window_profile profile;
	char interpreter[INTERPRETER_BYTES];
	uint16_t order[NT_PROFILE_STACKS]; /* of stacks, the most frequent first */
	bool is_sent[NT_PROFILE_FRAMES];
	char thread[NT_PROFILE_STACKS][NT_STACK_NAME];
	struct nt_wire_profile_stack stack[NT_PROFILE_STACKS];
	struct nt_wire_stack_frame frame[NT_PROFILE_FRAMES];
	uint32_t number_of[NT_PROFILE_FRAMES]; /* of sent frames, among those sent */
	uint32_t number[NT_PROFILE_NUMBERS];
	char text[NT_PROFILE_TEXT_BYTES];
};

static int by_count(const void *a, const void *b, void *data)
{
	const struct nt_profile *profile = data;
	const uint16_t one = *(const uint16_t *)a, other = *(const uint16_t *)b;
	const uint32_t left = profile->stack[one].count, right = profile->stack[other].count;

	if (left != right)
		return left < right ? 1 : -1;
	return one < other ? -1 : one > other;
}

/* What sending the stack adds. Frames are counted with the first stack that has them. */
static size_t cost_of(const struct nt_profile *profile, const struct nt_profile_stack *stack,
		      const struct profile_block *block)
{
	size_t cost = STACK_COST + (size_t)NUMBER_COST * stack->frames;

	for (uint32_t i = 0; i < stack->frames; i++) {
		const uint16_t number = profile->number[stack->first + i];
		const struct nt_stack_frame *frame = &profile->frame[number];

		if (!block->is_sent[number])
			cost += FRAME_COST + strlen(profile->text + frame->function) +
				strlen(profile->text + frame->file);
	}
	return cost;
}

static uint32_t send_frame(const struct nt_profile *profile, uint16_t number,
			   struct profile_block *block)
{
	struct nt_wire_profile *wire = &block->profile.wire;
	const struct nt_stack_frame *frame = &profile->frame[number];

	if (block->is_sent[number])
		return block->number_of[number];
	block->is_sent[number] = true;
	block->number_of[number] = (uint32_t)wire->frames;
	block->frame[wire->frames++] = (struct nt_wire_stack_frame){
		.function = block->text + frame->function,
		.file = block->text + frame->file,
		.native = frame->is_native,
	};
	return block->number_of[number];
}

static void send_stack(const struct nt_profile *profile, const struct nt_profile_stack *stack,
		       struct profile_block *block)
{
	struct nt_wire_profile *wire = &block->profile.wire;
	struct nt_wire_profile_stack *to = &block->stack[wire->stacks];

	*to = (struct nt_wire_profile_stack){
		.thread = block->thread[wire->stacks],
		.on_cpu = stack->on_cpu,
		.count = stack->count,
		.frame = block->number + stack->first,
		.frames = stack->frames,
		.left_out = stack->left_out,
	};
	memcpy(block->thread[wire->stacks], stack->thread, sizeof(stack->thread));
	for (uint32_t i = 0; i < stack->frames; i++)
		to->frame[i] = send_frame(profile, profile->number[stack->first + i], block);
	wire->stacks++;
}

static void send_stacks(const struct nt_profile *profile, struct profile_block *block)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < profile->stacks; i++)
		block->order[i] = (uint16_t)i;
	qsort_r(block->order, profile->stacks, sizeof(block->order[0]), by_count,
		(void *)(uintptr_t)profile);
	for (uint32_t i = 0; i < profile->stacks; i++) {
		const struct nt_profile_stack *stack = &profile->stack[block->order[i]];

		bytes += cost_of(profile, stack, block);
		if (bytes <= NT_WINDOW_PROFILE_BYTES)
			send_stack(profile, stack, block);
		else
			block->profile.wire.left_out += stack->count;
	}
}

int nt_window_profile_state(uint64_t request, const struct nt_profile_wish *wish, bool is_running,
			    const char *reason, struct nt_window_profile **ret_profile)
{
	struct nt_window_profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return -ENOMEM;
	profile->wire = (struct nt_wire_profile){
		.request = request,
		.is_running = is_running,
		.hz = wish->hz,
		.kind = wish->kind,
		.reason = reason,
		.interpreter = "",
	};
	*ret_profile = profile;
	return 0;
}

int nt_window_profile_new(const struct nt_profile *profile, uint64_t request,
			  const struct nt_profile_wish *wish,
			  struct nt_window_profile **ret_profile)
{
	struct profile_block *block = calloc(1, sizeof(*block));

	if (!block)
		return -ENOMEM;
	memcpy(block->text, profile->text, profile->text_bytes);
	if (profile->python_version)
		(void)snprintf(block->interpreter, sizeof(block->interpreter), "CPython %u.%u",
			       (unsigned int)(profile->python_version >> MAJOR_SHIFT & MINOR_MASK),
			       (unsigned int)(profile->python_version & MINOR_MASK));
	block->profile.wire = (struct nt_wire_profile){
		.request = request,
		.begin_boot_ns = profile->begin_boot_ns,
		.duration_ns = profile->duration_ns,
		.hz = wish->hz,
		.kind = wish->kind,
		.taken = profile->taken,
		.missed = profile->missed,
		.left_out = profile->left_out,
		.torn = profile->torn,
		.empty = profile->empty,
		.cpu_ns = profile->cpu_ns,
		.reason = nt_stack_reason_text((enum nt_stack_reason)profile->reason),
		.interpreter = block->interpreter,
		.stack = block->stack,
		.frame = block->frame,
	};
	send_stacks(profile, block);
	*ret_profile = &block->profile;
	return 0;
}

void nt_window_profile_free(struct nt_window_profile *profile)
{
	free(profile); /* the first member of its block */
}
