/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/stack_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stack/native_stack.h"
#include "agent/stack/python_process.h"
#include "agent/stack/python_stack.h"
#include "agent/stack/thread_wait.h"
#include "common/system/clock.h"

/* Of a worker, which has one thread. */
struct nt_stack_reader {
	struct nt_stack_memory memory;
	struct nt_python_runtime runtime;
	struct nt_python_threads threads;
	uint32_t tid[NT_PYTHON_THREADS]; /* of `threads`, in the agent's pid namespace */
	uint32_t id[NT_PYTHON_THREADS];
	enum nt_stack_reason python;
	struct nt_native_process native;
	bool is_found; /* the runtime */
};

static enum nt_stack_reason state_reason(int error)
{
	switch (error) {
	case -ENODATA:
		return NT_STACK_NO_STATE;
	case -EDQUOT:
		return NT_STACK_BUDGET;
	case -EPERM:
		return NT_STACK_REFUSED;
	case -ESRCH:
		return NT_STACK_ENDED;
	default:
		return NT_STACK_MALFORMED;
	}
}

static void read_threads(struct nt_stack_reader *reading, struct nt_stack *stack)
{
	struct nt_python_threads *threads = &reading->threads;
	int r;

	if (!reading->is_found)
		reading->python = nt_python_find(&reading->memory, &reading->runtime);
	reading->is_found = reading->python == NT_STACK_WHOLE;
	if (!reading->is_found)
		return;
	stack->python_version = reading->runtime.layout.version;
	r = nt_python_threads(&reading->memory, &reading->runtime, threads);
	if (r < 0) {
		reading->python = state_reason(r);
		reading->is_found = false;
		return;
	}
	stack->gc_running = threads->gc_running;
	for (size_t i = 0; i < threads->count; i++)
		reading->id[i] = threads->thread[i].tid;
	nt_thread_wait_translate(reading->memory.pid, reading->id, threads->count, reading->tid);
}

/* NULL: the thread has no state in CPython, or it is not identified. */
static const struct nt_python_thread *python_of(const struct nt_stack_reader *reading, uint32_t tid)
{
	for (size_t i = 0; i < reading->threads.count; i++)
		if (reading->tid[i] == tid && tid)
			return &reading->threads.thread[i];
	return NULL;
}

static bool has_thread(const struct nt_stack *stack, uint32_t tid)
{
	for (uint32_t i = 0; i < stack->threads; i++)
		if (stack->thread[i].tid == tid)
			return true;
	return false;
}

static uint8_t python_part(struct nt_stack_reader *reading, const struct nt_python_thread *python,
			   struct nt_stack *stack)
{
	if (reading->python != NT_STACK_WHOLE)
		return reading->python;
	if (!python)
		return NT_STACK_NO_PYTHON_THREAD;
	return nt_python_frames(&reading->memory, &reading->runtime, python->address, stack);
}

/* tid 0: the holder of the GIL, which is not identified. */
static void add_thread(struct nt_stack_reader *reading, uint32_t tid,
		       const struct nt_python_thread *python, struct nt_stack *stack)
{
	const uint32_t pid = reading->memory.pid;
	struct nt_thread_wait wait = {.state = '?'};
	struct nt_stack_thread *thread;
	int r;

	if (has_thread(stack, tid))
		return;
	if (stack->threads == NT_STACK_THREADS) {
		stack->threads_left_out++;
		return;
	}
	thread = &stack->thread[stack->threads++];
	*thread = (struct nt_stack_thread){
		.tid = tid,
		.is_main = tid == pid,
		.holds_gil = python && python->holds_gil,
		.first = (uint16_t)stack->frames,
	};
	r = tid ? nt_thread_wait_read(pid, tid, &wait) : 0;
	thread->state = wait.state;
	memcpy(thread->name, wait.name, sizeof(thread->name));
	memcpy(thread->wait, wait.wait, sizeof(thread->wait));
	if (r < 0) {
		thread->python = thread->native = NT_STACK_ENDED;
		return;
	}
	thread->native = (uint8_t)nt_native_frames(&reading->native, &wait, python != NULL, stack);
	thread->python = python_part(reading, python, stack);
}

static void add_holders(struct nt_stack_reader *reading, struct nt_stack *stack)
{
	for (size_t i = 0; i < reading->threads.count; i++)
		if (reading->threads.thread[i].holds_gil)
			add_thread(reading, reading->tid[i], &reading->threads.thread[i], stack);
}

void nt_stack_reader_read(struct nt_stack_reader *reader, const uint32_t *tid, size_t n,
			  struct nt_stack *ret_stack)
{
	const uint64_t begin_ns = nt_clock_mono_ns();
	const uint32_t pid = reader->memory.pid;

	nt_stack_init(ret_stack);
	ret_stack->boot_ns = nt_clock_boot_ns();
	reader->memory.reads = reader->native.memory.reads = 0;
	reader->threads.count = 0;
	read_threads(reader, ret_stack);
	add_thread(reader, pid, python_of(reader, pid), ret_stack);
	add_holders(reader, ret_stack);
	for (size_t i = 0; i < n; i++)
		if (tid[i])
			add_thread(reader, tid[i], python_of(reader, tid[i]), ret_stack);
	ret_stack->reads = reader->memory.reads + reader->native.memory.reads;
	ret_stack->read_ns = nt_clock_mono_ns() - begin_ns;
}

static void begin_reader(struct nt_stack_reader *reader, uint32_t pid)
{
	memset(reader, 0, sizeof(*reader));
	reader->memory = (struct nt_stack_memory){.memory = nt_memory_live(), .pid = pid};
	reader->native.memory = reader->memory;
}

int nt_stack_reader_new(uint32_t pid, struct nt_stack_reader **ret_reader)
{
	struct nt_stack_reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	begin_reader(reader, pid);
	reader->native.keeps_names = true;
	*ret_reader = reader;
	return 0;
}

void nt_stack_reader_free(struct nt_stack_reader *reader)
{
	if (!reader)
		return;
	nt_native_process_release(&reader->native);
	free(reader);
}

void nt_stack_read(uint32_t pid, const uint32_t *tid, size_t n, struct nt_stack *ret_stack)
{
	static struct nt_stack_reader reader;

	begin_reader(&reader, pid);
	nt_stack_reader_read(&reader, tid, n, ret_stack);
	nt_native_process_release(&reader.native);
}
