/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/window_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	INTERPRETER_BYTES = 16,
	MINOR_MASK = 0xff,
	MAJOR_SHIFT = 8,
};

/* One block; `thread` points into it. */
struct block {
	struct nt_window_stack stack;
	char interpreter[INTERPRETER_BYTES];
	struct {
		char name[NT_STACK_NAME], wait[NT_STACK_WAIT], state[2];
	} text_of[NT_STACK_THREADS];
	struct nt_wire_stack_frame *frame; /* behind it */
	char *text; /* behind those */
};

static void fill_frames(const struct nt_stack *stack, struct block *block)
{
	for (uint32_t i = 0; i < stack->frames; i++)
		block->frame[i] = (struct nt_wire_stack_frame){
			.function = block->text + stack->frame[i].function,
			.file = block->text + stack->frame[i].file,
			.line = stack->frame[i].line,
			.native = stack->frame[i].is_native,
		};
}

static void fill_thread(const struct nt_stack *stack, uint32_t i, uint64_t request,
			struct block *block)
{
	const struct nt_stack_thread *thread = &stack->thread[i];

	memcpy(block->text_of[i].name, thread->name, sizeof(thread->name));
	memcpy(block->text_of[i].wait, thread->wait, sizeof(thread->wait));
	block->text_of[i].state[0] = thread->state == '?' ? '\0' : thread->state;
	block->stack.thread[i] = (struct nt_wire_stack){
		.request = request,
		.boot_ns = stack->boot_ns,
		.read_ns = stack->read_ns,
		.tid = thread->tid,
		.left_out = thread->left_out,
		.is_main = thread->is_main,
		.holds_gil = thread->holds_gil,
		.gc_running = stack->gc_running,
		.name = block->text_of[i].name,
		.state = block->text_of[i].state,
		.wait = block->text_of[i].wait,
		.interpreter = block->interpreter,
		.python_reason = nt_stack_reason_text((enum nt_stack_reason)thread->python),
		.native_reason = nt_stack_reason_text((enum nt_stack_reason)thread->native),
		.frame = block->frame + thread->first,
		.frames = thread->frames,
	};
}

int nt_window_stack_new(const struct nt_stack *stack, uint64_t request,
			struct nt_window_stack **ret_stack)
{
	const size_t frame_bytes = stack->frames * sizeof(struct nt_wire_stack_frame);
	struct block *block = calloc(1, sizeof(*block) + frame_bytes + stack->text_bytes);

	if (!block)
		return -ENOMEM;
	block->frame = (struct nt_wire_stack_frame *)(block + 1);
	block->text = (char *)block->frame + frame_bytes;
	memcpy(block->text, stack->text, stack->text_bytes);
	if (stack->python_version)
		(void)snprintf(block->interpreter, sizeof(block->interpreter), "CPython %u.%u",
			       (unsigned int)(stack->python_version >> MAJOR_SHIFT & MINOR_MASK),
			       (unsigned int)(stack->python_version & MINOR_MASK));
	fill_frames(stack, block);
	for (uint32_t i = 0; i < stack->threads; i++)
		fill_thread(stack, i, request, block);
	block->stack.threads = stack->threads;
	*ret_stack = &block->stack;
	return 0;
}

void nt_window_stack_free(struct nt_window_stack *stack)
{
	free(stack); /* the first member of its block */
}

void nt_window_stack_fail(uint32_t pid, uint64_t boot_ns, enum nt_stack_reason reason,
			  struct nt_stack *ret_stack)
{
	nt_stack_init(ret_stack);
	ret_stack->boot_ns = boot_ns;
	ret_stack->threads = 1;
	ret_stack->thread[0] = (struct nt_stack_thread){
		.tid = pid,
		.state = '?',
		.is_main = true,
		.python = (uint8_t)reason,
		.native = (uint8_t)reason,
	};
}
