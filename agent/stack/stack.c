/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/stack.h"

#include <errno.h>
#include <string.h>

#include "common/base/ascii.h"

enum {
	COMPARED = 64, /* texts */
};

_Static_assert(sizeof(struct nt_stack_frame) == 16, "passed between processes");
_Static_assert(sizeof(struct nt_stack_thread) == 76, "passed between processes");
_Static_assert(offsetof(struct nt_stack, thread) == 48, "passed between processes");

size_t nt_stack_bytes(const struct nt_stack *stack)
{
	return offsetof(struct nt_stack, text) + stack->text_bytes;
}

void nt_stack_init(struct nt_stack *stack)
{
	memset(stack, 0, sizeof(*stack));
	stack->text_bytes = 1;
}

uint32_t nt_stack_text(struct nt_stack *stack, const char *text)
{
	const size_t len = strlen(text);
	uint32_t begin = stack->text_bytes;

	if (!len)
		return 0;
	/* Backwards over the texts: each begins after a NUL. */
	for (uint32_t end = stack->text_bytes, n = 0; end > 1 && n < COMPARED; n++) {
		uint32_t at = end - 1;

		while (at > 1 && stack->text[at - 1])
			at--;
		if (end - 1 - at == len && memcmp(stack->text + at, text, len) == 0)
			return at;
		end = at;
	}
	if (len >= sizeof(stack->text) - begin)
		return 0;
	memcpy(stack->text + begin, text, len + 1);
	stack->text_bytes += (uint32_t)len + 1;
	return begin;
}

const char *nt_stack_text_at(const struct nt_stack *stack, uint32_t offset)
{
	return offset < stack->text_bytes ? stack->text + offset : "";
}

bool nt_stack_add(struct nt_stack *stack, const char *function, const char *file, uint32_t line,
		  bool is_native)
{
	struct nt_stack_frame frame = {.line = line, .is_native = is_native};

	if (stack->frames == NT_STACK_FRAMES_ALL)
		return false;
	frame.function = nt_stack_text(stack, function);
	frame.file = nt_stack_text(stack, file);
	if ((!frame.function && function[0]) || (!frame.file && file[0]))
		return false;
	stack->frame[stack->frames++] = frame;
	stack->thread[stack->threads - 1].frames++;
	return true;
}

/* ---- answers of workers --------------------------------------------------------------------- */

static bool thread_is_sound(struct nt_stack_thread *thread, uint32_t frames)
{
	if (thread->python >= NT_STACK_REASON_END || thread->native >= NT_STACK_REASON_END ||
	    thread->is_main > 1 || thread->holds_gil > 1 || thread->is_torn > 1 ||
	    thread->first > frames || thread->frames > frames - thread->first)
		return false;
	if (thread->state < ' ' || thread->state > '~')
		thread->state = '?';
	thread->name[NT_STACK_NAME - 1] = '\0';
	thread->wait[NT_STACK_WAIT - 1] = '\0';
	nt_ascii_copy_text(thread->name, sizeof(thread->name), thread->name);
	nt_ascii_copy_text(thread->wait, sizeof(thread->wait), thread->wait);
	return true;
}

static void clean_text(struct nt_stack *stack)
{
	stack->text[0] = stack->text[stack->text_bytes - 1] = '\0';
	for (uint32_t i = 0; i < stack->text_bytes; i++)
		if (stack->text[i] && (stack->text[i] < ' ' || stack->text[i] > '~'))
			stack->text[i] = '?';
}

int nt_stack_parse(const uint8_t *body, size_t len, struct nt_stack *ret_stack)
{
	struct nt_stack *stack = ret_stack;

	if (len <= offsetof(struct nt_stack, text) || len > sizeof(*stack))
		return -EBADMSG;
	memcpy(stack, body, len);
	if (stack->text_bytes != len - offsetof(struct nt_stack, text) ||
	    stack->threads > NT_STACK_THREADS || stack->frames > NT_STACK_FRAMES_ALL ||
	    stack->gc_running > 1)
		return -EBADMSG;
	for (uint32_t i = 0; i < stack->threads; i++)
		if (!thread_is_sound(&stack->thread[i], stack->frames))
			return -EBADMSG;
	for (uint32_t i = 0; i < stack->frames; i++)
		if (stack->frame[i].function >= stack->text_bytes ||
		    stack->frame[i].file >= stack->text_bytes || stack->frame[i].is_native > 1)
			return -EBADMSG;
	clean_text(stack);
	return 0;
}

const char *nt_stack_reason_text(enum nt_stack_reason reason)
{
	static const char *const texts[NT_STACK_REASON_END] = {
		[NT_STACK_WHOLE] = "",
		[NT_STACK_NO_PYTHON] = "no CPython interpreter in the process",
		[NT_STACK_UNKNOWN_VERSION] = "version of CPython is not supported",
		[NT_STACK_NO_SYMBOLS] = "interpreter has no symbol _PyRuntime",
		[NT_STACK_NO_STATE] = "interpreter is not initialized",
		[NT_STACK_NO_PYTHON_THREAD] = "thread runs no Python code",
		[NT_STACK_CHANGED] = "stack changed while it was read",
		[NT_STACK_MALFORMED] = "interpreter state is malformed",
		[NT_STACK_BUDGET] = "stack takes too many reads",
		[NT_STACK_REFUSED] = "memory of the process is not accessible",
		[NT_STACK_ON_CPU] = "thread is running",
		[NT_STACK_NO_UNWIND_INFO] = "no call-frame information",
		[NT_STACK_WRONG_MACHINE] = "native frames are read on x86-64 only",
		[NT_STACK_ENDED] = "thread has ended",
		[NT_STACK_STALLED] = "reading the process failed or took too long",
		[NT_STACK_NO_ROOM] = "names of the frames exceed the limit",
	};

	return (unsigned int)reason < NT_STACK_REASON_END ? texts[reason] : "";
}
