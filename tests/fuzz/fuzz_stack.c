/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a process has in its memory in place of CPython's state and of call-frame information. The first
 * byte names what is read. Memory is the rest of the input, from address 0x1000 on, again and again, so
 * that most pointers lead somewhere.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "agent/stack/call_frame.h"
#include "agent/stack/python_line.h"
#include "agent/stack/python_process.h"
#include "agent/stack/python_stack.h"
#include "agent/stack/python_text.h"
#include "agent/stack/thread_wait.h"
#include "agent/stack/window_stack.h"
#include "tests/fuzz/lib/cost.h"

enum {
	BASE = 0x1000,
	ADDRESSES = 1 << 20, /* mapped */
};

static const uint8_t *bytes;
static size_t size_of_bytes;

static int read_input(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	(void)data, (void)pid;
	if (!size_of_bytes || address < BASE || address > ADDRESSES || size > ADDRESSES - address)
		return -EFAULT;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = bytes[(address - BASE + i) % size_of_bytes];
	return 0;
}

static struct nt_stack_memory memory_of(const uint8_t *data, size_t size)
{
	bytes = data;
	size_of_bytes = size;
	return (struct nt_stack_memory){.memory = {.read = read_input}, .pid = 1};
}

static void check_stack(const struct nt_stack *stack)
{
	static struct nt_stack parsed;

	assert(nt_stack_parse((const uint8_t *)stack, nt_stack_bytes(stack), &parsed) == 0);
	assert(memcmp(&parsed, stack, nt_stack_bytes(stack)) == 0);
}

static void read_python(const struct nt_python_layout *layout, const uint8_t *data, size_t size)
{
	static struct nt_python_threads threads;
	static struct nt_stack stack;
	struct nt_stack_memory memory = memory_of(data, size);
	struct nt_python_runtime runtime = {.runtime = BASE, .layout = *layout};
	char text[64];

	nt_stack_init(&stack);
	stack.threads = 1;
	stack.thread[0].state = 'S';
	if (nt_python_threads(&memory, &runtime, &threads) == 0)
		assert(threads.count && threads.count <= NT_PYTHON_THREADS);
	(void)nt_python_frames(&memory, &runtime, BASE, &stack);
	assert(memory.reads <= NT_STACK_READS);
	check_stack(&stack);
	if (nt_python_text(&memory, layout, BASE, size & 1, text, sizeof(text)) == 0)
		assert(strlen(text) < sizeof(text));
}

static void read_known(const uint8_t *data, size_t size)
{
	struct nt_python_layout layout;

	if (size && nt_python_layout_of(0x0308 + data[0] % 5, &layout) == 0)
		read_python(&layout, data + 1, size - 1);
}

static void read_stated(const uint8_t *data, size_t size)
{
	struct nt_python_layout layout;

	if (nt_python_layout_parse(data, size, &layout) == 0)
		read_python(&layout, data, size);
}

static void read_lines(const uint8_t *data, size_t size)
{
	int32_t offset;

	if (size < 6)
		return;
	memcpy(&offset, data + 2, sizeof(offset));
	(void)nt_python_line((enum nt_python_lines)(data[0] % 4), data + 6, size - 6, data[1],
			     offset);
}

static void read_call_frame(const uint8_t *data, size_t size)
{
	struct nt_call_frame_entry entry;
	struct nt_call_frame frame;

	if (size < 2 || data[0] >= size)
		return;
	entry = (struct nt_call_frame_entry){
		.common = data + 1,
		.common_len = data[0],
		.function = data + 1 + data[0],
		.function_len = size - 1 - data[0],
		.function_address = BASE,
	};
	if (nt_call_frame_find(&entry, BASE + 16, &frame) == 0)
		assert(frame.cfa_register <= NT_CALL_FRAME_REGISTERS);
}

static void read_answer(const uint8_t *data, size_t size)
{
	static struct nt_stack stack;
	struct nt_window_stack *window;

	if (nt_stack_parse(data, size, &stack) < 0)
		return;
	check_stack(&stack);
	if (nt_window_stack_new(&stack, 1, &window) < 0)
		return;
	for (size_t i = 0; i < window->threads; i++)
		for (size_t j = 0; j < window->thread[i].frames; j++)
			assert(strlen(window->thread[i].frame[j].function) < NT_STACK_TEXT_BYTES &&
			       strlen(window->thread[i].frame[j].file) < NT_STACK_TEXT_BYTES);
	nt_window_stack_free(window);
}

static void read_text(const uint8_t *data, size_t size)
{
	char name[64];
	uint64_t sp, pc;
	size_t len = size < sizeof(name) - 1 ? size : sizeof(name) - 1;

	(void)nt_thread_wait_parse((const char *)data, size, &sp, &pc);
	if (len)
		memcpy(name, data, len);
	name[len] = '\0';
	assert(nt_python_version_of(name) <= (0x0300 | 99));
}

static int run(const uint8_t *data, size_t size)
{
	static void (*const readers[])(const uint8_t *data, size_t size) = {
		read_known, read_stated, read_lines, read_call_frame, read_answer, read_text,
	};

	if (size)
		readers[data[0] % (sizeof(readers) / sizeof(readers[0]))](data + 1, size - 1);
	return 0;
}

/* A stack takes a bounded number of reads of bounded length, however little memory there is. */
FUZZ_TARGET(run, .peak = {64 << 10, 16}, .total = {256 << 10, 64}, .steps = {2000000, 400},
	    .cpu_ns = {400000000, 1000})
