/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/python_stack.h"

#include <errno.h>
#include <string.h>

#include "agent/stack/python_line.h"
#include "agent/stack/python_text.h"

enum {
	TAG_MASK = 3, /* of a tagged pointer; a tag of 1 alone is no object */
	OBJECT_TYPE_AT = 8,
	/* Of struct pthread in glibc on x86-64: a pointer to itself, and the thread's id. */
	PTHREAD_SELF_AT = 16,
	PTHREAD_TID_AT = 720,
};

static uint64_t u64_at(const uint8_t *data, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, data + offset, sizeof(value));
	return value;
}

static uint32_t u32_at(const uint8_t *data, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, data + offset, sizeof(value));
	return value;
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Before 3.11 CPython does not keep the thread's id, but glibc does. */
static uint32_t tid_of_pthread(struct nt_stack_memory *memory, uint64_t pthread)
{
#if defined(__x86_64__)
	uint64_t self;
	uint32_t tid;

	if (nt_stack_memory_u64(memory, pthread + PTHREAD_SELF_AT, &self) == 0 && self == pthread &&
	    nt_stack_memory_read(memory, pthread + PTHREAD_TID_AT, &tid, sizeof(tid)) == 0)
		return tid;
#else
	(void)memory;
	(void)pthread;
#endif
	return 0;
}

/* The PyThreadState that holds the interpreter's GIL; 0: none does. */
static uint64_t find_holder(struct nt_stack_memory *memory, const struct nt_python_runtime *runtime,
			    uint64_t interpreter)
{
	const struct nt_python_layout *layout = &runtime->layout;
	uint64_t gil = runtime->runtime, holder;
	uint32_t locked;

	if (layout->lines == NT_PYTHON_LINES_NONE)
		return 0;
	if (layout->gil == NT_PYTHON_GIL_POINTER &&
	    nt_stack_memory_u64(memory, interpreter + layout->gil_at, &gil) < 0)
		return 0;
	if (nt_stack_memory_read(memory, gil + layout->gil_locked, &locked, sizeof(locked)) < 0 ||
	    nt_stack_memory_u64(memory, gil + layout->gil_holder, &holder) < 0)
		return 0;
	return locked == 1 ? holder : 0;
}

static bool is_collecting(struct nt_stack_memory *memory, const struct nt_python_runtime *runtime,
			  uint64_t interpreter)
{
	const struct nt_python_layout *layout = &runtime->layout;
	const uint64_t base = layout->collecting_in_runtime ? runtime->runtime : interpreter;
	uint32_t collecting;

	return nt_stack_memory_read(memory, base + layout->collecting, &collecting,
				    sizeof(collecting)) == 0 &&
	       collecting == 1;
}

static int read_thread(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
		       uint64_t address, uint64_t holder, struct nt_python_thread *ret_thread,
		       uint64_t *ret_next)
{
	uint8_t data[NT_PYTHON_THREAD_BYTES] = {0};
	int r = nt_stack_memory_read(memory, address, data, sizeof(data));

	if (r < 0)
		return r;
	ret_thread->address = address;
	ret_thread->pthread = u64_at(data, layout->thread_id);
	ret_thread->holds_gil = address == holder;
	ret_thread->tid = layout->native_id ? u32_at(data, layout->native_id)
					    : tid_of_pthread(memory, ret_thread->pthread);
	*ret_next = u64_at(data, layout->thread_next);
	return 0;
}

static int read_interpreter(struct nt_stack_memory *memory, const struct nt_python_runtime *runtime,
			    uint64_t interpreter, struct nt_python_threads *threads)
{
	const struct nt_python_layout *layout = &runtime->layout;
	const uint64_t holder = find_holder(memory, runtime, interpreter);
	uint64_t next;
	int r = nt_stack_memory_u64(memory, interpreter + layout->threads, &next);

	threads->gc_running |= is_collecting(memory, runtime, interpreter);
	while (r == 0 && next) {
		struct nt_python_thread *thread = &threads->thread[threads->count];

		if (threads->count == NT_PYTHON_THREADS) {
			threads->is_cut = true;
			return 0;
		}
		r = read_thread(memory, layout, next, holder, thread, &next);
		thread->interpreter = interpreter;
		threads->count += r == 0;
	}
	return r;
}

int nt_python_threads(struct nt_stack_memory *memory, const struct nt_python_runtime *runtime,
		      struct nt_python_threads *ret_threads)
{
	const struct nt_python_layout *layout = &runtime->layout;
	uint64_t interpreter;
	int r;

	ret_threads->count = 0;
	ret_threads->gc_running = ret_threads->is_cut = false;
	r = nt_stack_memory_u64(memory, runtime->runtime + layout->interpreters, &interpreter);
	if (r < 0)
		return r;
	if (!interpreter)
		return -ENODATA;
	for (int i = 0; i < NT_PYTHON_INTERPRETERS && interpreter; i++) {
		r = read_interpreter(memory, runtime, interpreter, ret_threads);
		/* A list that changes meanwhile may lead nowhere: what was found before is kept. */
		if (r == 0)
			r = nt_stack_memory_u64(memory, interpreter + layout->interpreter_next,
						&interpreter);
		if (r < 0)
			break;
	}
	ret_threads->is_cut |= r < 0;
	if (ret_threads->count)
		return 0;
	return r < 0 ? r : -ENODATA;
}

/* ---- the walk ------------------------------------------------------------------------------- */

struct walked_frame {
	uint64_t address;
	uint64_t back, code; /* code: of a shim 0 */
	int64_t instruction; /* 3.8 to 3.10: offset in bytes; later: address */
};

struct walk {
	struct walked_frame frame[NT_STACK_FRAMES];
	size_t frames;
	uint32_t left_out;
	int result; /* 0: the outermost frame was reached */
};

static uint64_t code_of(const struct nt_python_layout *layout, const uint8_t *data)
{
	const uint64_t code = u64_at(data, layout->code);

	if (layout->owner && data[layout->owner] >= layout->owner_shim)
		return 0;
	if (!layout->code_is_tagged)
		return code;
	return (code & TAG_MASK) == 1 && !(code & ~(uint64_t)TAG_MASK) ? 0
								       : code & ~(uint64_t)TAG_MASK;
}

static int read_frame(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
		      uint64_t address, struct walked_frame *ret_frame)
{
	uint8_t data[NT_PYTHON_FRAME_BYTES] = {0};
	/* The last member that is used: the last frame may lie at the end of mapped memory. */
	const size_t word = layout->instruction + sizeof(uint64_t);
	const size_t bytes = layout->owner >= word ? layout->owner + 1 : word;
	int r = nt_stack_memory_read(memory, address, data, bytes);

	if (r < 0)
		return r;
	ret_frame->address = address;
	ret_frame->back = u64_at(data, layout->back);
	ret_frame->code = code_of(layout, data);
	ret_frame->instruction =
		layout->lasti_bytes
			? (int64_t)(int32_t)u32_at(data, layout->instruction) * layout->lasti_bytes
			: (int64_t)u64_at(data, layout->instruction);
	return 0;
}

static int first_frame(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
		       uint64_t thread, uint64_t *ret_address)
{
	uint64_t base = thread;

	if (layout->cframe) {
		int r = nt_stack_memory_u64(memory, thread + layout->cframe, &base);

		if (r < 0)
			return r;
		if (!base) {
			*ret_address = 0;
			return 0;
		}
	}
	return nt_stack_memory_u64(memory, base + layout->frame, ret_address);
}

static void walk_frames(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
			uint64_t address, struct walk *walk)
{
	walk->frames = 0;
	walk->left_out = 0;
	walk->result = 0;
	for (int i = 0; i < NT_PYTHON_DEPTH && address; i++) {
		struct walked_frame frame;

		walk->result = read_frame(memory, layout, address, &frame);
		if (walk->result < 0)
			return;
		address = frame.back;
		if (walk->frames < NT_STACK_FRAMES)
			walk->frame[walk->frames++] = frame;
		else
			walk->left_out += frame.code != 0;
	}
	/* Deeper than that, or a circle. */
	if (address)
		walk->left_out++;
}

/*
 * The number of innermost frames that are not the same any more, read from the outermost on. Those
 * outside of them were there all the time.
 */
static size_t count_changed(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
			    const struct walk *walk)
{
	for (size_t i = walk->frames; i-- > 0;) {
		struct walked_frame now;

		if (read_frame(memory, layout, walk->frame[i].address, &now) < 0 ||
		    now.back != walk->frame[i].back || now.code != walk->frame[i].code)
			return i + 1;
	}
	return 0;
}

static enum nt_stack_reason reason_of(int error)
{
	if (error == -EDQUOT)
		return NT_STACK_BUDGET;
	if (error == -EPERM)
		return NT_STACK_REFUSED;
	return error == -ESRCH ? NT_STACK_ENDED : NT_STACK_MALFORMED;
}

/* Walks until nothing changes meanwhile. *ret_changed: innermost frames that are not valid. */
static enum nt_stack_reason walk_whole(struct nt_stack_memory *memory,
				       const struct nt_python_layout *layout, uint64_t thread,
				       struct walk *walk, size_t *ret_changed)
{
	for (int i = 0; i < NT_PYTHON_ATTEMPTS; i++) {
		uint64_t first, now;
		int r = first_frame(memory, layout, thread, &first);

		if (r < 0)
			return reason_of(r);
		walk_frames(memory, layout, first, walk);
		*ret_changed = count_changed(memory, layout, walk);
		r = first_frame(memory, layout, thread, &now);
		if (r < 0)
			return reason_of(r);
		if (walk->result == 0 && !*ret_changed && now == first)
			return NT_STACK_WHOLE;
		/* Frames are reused: one that was the first and is not any more may be another. */
		if (now != first && !*ret_changed && walk->frames)
			*ret_changed = 1;
	}
	if (walk->result < 0)
		*ret_changed = walk->frames;
	return walk->result == -EDQUOT ? NT_STACK_BUDGET : NT_STACK_CHANGED;
}

/* ---- names and lines ------------------------------------------------------------------------ */

struct code_names {
	uint64_t code;
	char function[NT_STACK_FUNCTION], file[NT_STACK_FILE];
	uint64_t line_table, bytecode;
	uint32_t first_line;
};

static int read_code(struct nt_stack_memory *memory, const struct nt_python_runtime *runtime,
		     uint64_t code, struct code_names *ret_names)
{
	const struct nt_python_layout *layout = &runtime->layout;
	uint8_t data[NT_PYTHON_CODE_BYTES] = {0};
	/* The code follows the members that are used. */
	const size_t bytes = layout->bytecode ? layout->bytecode : layout->line_table + 8;
	int r = nt_stack_memory_read(memory, code, data, bytes);

	if (r < 0)
		return r;
	if (runtime->code_type && u64_at(data, OBJECT_TYPE_AT) != runtime->code_type)
		return -EBADMSG;
	ret_names->code = code;
	ret_names->first_line = u32_at(data, layout->first_line);
	ret_names->line_table = u64_at(data, layout->line_table);
	ret_names->bytecode = layout->bytecode ? code + layout->bytecode : 0;
	r = nt_python_text(memory, layout,
			   u64_at(data, layout->qualname ? layout->qualname : layout->name), false,
			   ret_names->function, sizeof(ret_names->function));
	if (r < 0)
		return r;
	return nt_python_text(memory, layout, u64_at(data, layout->filename), true, ret_names->file,
			      sizeof(ret_names->file));
}

static uint32_t find_line(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
			  const struct code_names *names, int64_t instruction)
{
	static uint8_t table[NT_PYTHON_LINE_BYTES]; /* of a worker, which has one thread */
	const int64_t offset =
		names->bytecode ? (int64_t)((uint64_t)instruction - names->bytecode) : instruction;
	uint8_t head[NT_PYTHON_UNICODE_BYTES] = {0};
	uint64_t size;

	if (layout->lines == NT_PYTHON_LINES_NONE ||
	    nt_stack_memory_read(memory, names->line_table, head, layout->bytes_data) < 0)
		return 0;
	size = u64_at(head, layout->bytes_size);
	if (size > sizeof(table))
		size = sizeof(table);
	if (size &&
	    nt_stack_memory_read(memory, names->line_table + layout->bytes_data, table, size) < 0)
		return 0;
	return nt_python_line(layout->lines, table, size, names->first_line, offset);
}

enum nt_stack_reason nt_python_frames(struct nt_stack_memory *memory,
				      const struct nt_python_runtime *runtime, uint64_t thread,
				      struct nt_stack *stack)
{
	const struct nt_python_layout *layout = &runtime->layout;
	struct code_names names = {0};
	enum nt_stack_reason reason;
	size_t changed = 0;
	struct walk walk;

	reason = walk_whole(memory, layout, thread, &walk, &changed);
	if (reason != NT_STACK_WHOLE && reason != NT_STACK_CHANGED)
		return reason;
	for (size_t i = changed; i < walk.frames; i++) {
		uint32_t line = 0;
		int r = 0;

		if (!walk.frame[i].code)
			continue;
		if (walk.frame[i].code != names.code)
			r = read_code(memory, runtime, walk.frame[i].code, &names);
		if (r < 0) {
			names.code = 0;
			return r == -EDQUOT ? NT_STACK_BUDGET : NT_STACK_MALFORMED;
		}
		if (!runtime->without_lines)
			line = find_line(memory, layout, &names, walk.frame[i].instruction);
		if (!nt_stack_add(stack, names.function, names.file, line, false))
			return NT_STACK_NO_ROOM;
	}
	stack->thread[stack->threads - 1].left_out += walk.left_out;
	if (reason == NT_STACK_WHOLE && !walk.frames)
		return NT_STACK_NO_PYTHON_THREAD;
	return reason;
}
