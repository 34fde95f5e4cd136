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

enum {
	ATTEMPTS = 2, /* of one thread, which runs meanwhile */
};

#define KEPT_NS NT_SECOND /* what is read of the process less often than each time */

/* Of a worker, which has one thread. */
struct nt_stack_reader {
	struct nt_stack_memory memory;
	struct nt_python_runtime runtime;
	struct nt_python_threads threads;
	uint32_t tid[NT_PYTHON_THREADS]; /* of `threads`, in the agent's pid namespace */
	uint32_t id[NT_PYTHON_THREADS];
	size_t ids; /* those of which `tid` is known */
	uint64_t kept_ns; /* monotonic, since when */
	enum nt_stack_reason python;
	struct nt_native_process native;
	bool is_found; /* the runtime */
	bool is_brief; /* without lines, and the kernel functions in which threads sleep */
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

/* Takes a file of each thread of the process: not each time, as long as they are the same. */
static void translate_threads(struct nt_stack_reader *reading)
{
	const struct nt_python_threads *threads = &reading->threads;
	const uint64_t now_ns = nt_clock_mono_ns();
	bool is_known = threads->count == reading->ids && now_ns - reading->kept_ns < KEPT_NS;

	for (size_t i = 0; i < threads->count; i++) {
		is_known = is_known && reading->id[i] == threads->thread[i].tid;
		reading->id[i] = threads->thread[i].tid;
	}
	if (is_known)
		return;
	nt_thread_wait_translate(reading->memory.pid, reading->id, threads->count, reading->tid);
	reading->ids = threads->count;
	reading->kept_ns = now_ns;
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
	reading->runtime.without_lines = reading->is_brief;
	stack->python_version = reading->runtime.layout.version;
	r = nt_python_threads(&reading->memory, &reading->runtime, threads);
	if (r < 0) {
		reading->python = state_reason(r);
		reading->is_found = false;
		return;
	}
	stack->gc_running = threads->gc_running;
	translate_threads(reading);
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
	enum nt_stack_reason reason;

	if (reading->python != NT_STACK_WHOLE)
		return reading->python;
	if (!python)
		return NT_STACK_NO_PYTHON_THREAD;
	reason = nt_python_frames(&reading->memory, &reading->runtime, python->address, stack);
	/* Frames further out were not reached. */
	stack->thread[stack->threads - 1].left_out += reason == NT_STACK_MALFORMED ||
						      reason == NT_STACK_BUDGET ||
						      reason == NT_STACK_NO_ROOM;
	return reason;
}

/* Reads the frames of the last thread. False: it has ended. */
static bool read_frames(struct nt_stack_reader *reading, const struct nt_python_thread *python,
			struct nt_stack *stack, struct nt_thread_wait *wait)
{
	struct nt_stack_thread *thread = &stack->thread[stack->threads - 1];

	if (thread->tid && nt_thread_wait_read(reading->memory.pid, thread->tid, wait) < 0) {
		thread->python = thread->native = NT_STACK_ENDED;
		return false;
	}
	thread->state = wait->state;
	memcpy(thread->name, wait->name, sizeof(thread->name));
	thread->native = (uint8_t)nt_native_frames(&reading->native, wait, python != NULL, stack);
	thread->python = python_part(reading, python, stack);
	return true;
}

static bool has_run(const struct nt_stack_reader *reading, const struct nt_stack_thread *thread,
		    const struct nt_thread_wait *wait)
{
	if (thread->python == NT_STACK_CHANGED)
		return true;
	return thread->tid && !nt_thread_wait_is_steady(reading->memory.pid, thread->tid, wait);
}

static void forget_frames(struct nt_stack *stack)
{
	struct nt_stack_thread *thread = &stack->thread[stack->threads - 1];

	stack->frames = thread->first;
	thread->frames = 0;
	thread->left_out = 0;
}

/* Python's frames are compared by themselves; the native ones are of another time, or of none. */
static void keep_python(struct nt_stack_reader *reading, const struct nt_python_thread *python,
			struct nt_stack *stack)
{
	struct nt_stack_thread *thread = &stack->thread[stack->threads - 1];

	thread->is_torn = true;
	if (thread->native == NT_STACK_ON_CPU)
		return;
	forget_frames(stack);
	thread->native = NT_STACK_CHANGED;
	thread->python = python_part(reading, python, stack);
}

/* tid 0: the holder of the GIL, which is not identified. */
static void add_thread(struct nt_stack_reader *reading, uint32_t tid,
		       const struct nt_python_thread *python, struct nt_stack *stack)
{
	struct nt_stack_thread *thread;

	if (has_thread(stack, tid))
		return;
	if (stack->threads == NT_STACK_THREADS) {
		stack->threads_left_out++;
		return;
	}
	thread = &stack->thread[stack->threads++];
	*thread = (struct nt_stack_thread){
		.tid = tid,
		.state = '?',
		.is_main = tid == reading->memory.pid,
		.holds_gil = python && python->holds_gil,
		.first = (uint16_t)stack->frames,
	};
	if (tid && !reading->is_brief)
		nt_thread_wait_name(reading->memory.pid, tid, thread->wait);
	for (int i = 0; i < ATTEMPTS && !thread->is_torn; i++) {
		struct nt_thread_wait wait = {.state = '?'};

		forget_frames(stack);
		if (!read_frames(reading, python, stack, &wait) || !has_run(reading, thread, &wait))
			return;
		/* Python's frames were walked several times already. */
		thread->is_torn = thread->python == NT_STACK_CHANGED;
	}
	keep_python(reading, python, stack);
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
	nt_native_process_refresh(&reader->native, begin_ns);
	add_thread(reader, pid, python_of(reader, pid), ret_stack);
	add_holders(reader, ret_stack);
	for (size_t i = 0; i < n; i++)
		if (tid[i])
			add_thread(reader, tid[i], python_of(reader, tid[i]), ret_stack);
	ret_stack->reads = reader->memory.reads + reader->native.memory.reads;
	ret_stack->read_ns = nt_clock_mono_ns() - begin_ns;
}

static void begin_reader(struct nt_stack_reader *reader, uint32_t pid, bool takes_fuse,
			 const struct nt_memory *memory)
{
	memset(reader, 0, sizeof(*reader));
	reader->memory =
		(struct nt_stack_memory){.memory = *memory, .pid = pid, .takes_fuse = takes_fuse};
	reader->native.memory = reader->memory;
}

int nt_stack_reader_new(uint32_t pid, bool takes_fuse, const struct nt_memory *memory,
			struct nt_stack_reader **ret_reader)
{
	struct nt_stack_reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	begin_reader(reader, pid, takes_fuse, memory);
	reader->native.keeps_places = true;
	reader->is_brief = true;
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

void nt_stack_read(uint32_t pid, bool takes_fuse, const uint32_t *tid, size_t n,
		   struct nt_stack *ret_stack)
{
	static struct nt_stack_reader reader;
	const struct nt_memory memory = nt_memory_live();

	begin_reader(&reader, pid, takes_fuse, &memory);
	nt_stack_reader_read(&reader, tid, n, ret_stack);
	nt_native_process_release(&reader.native);
}
