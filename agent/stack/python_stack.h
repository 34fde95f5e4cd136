/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The threads of a CPython process and their frames, read from its memory while it runs. Nothing
 * there is trusted: lists are bounded, and a code object must be of the type PyCode_Type. A stack may
 * change while it is read. Its frames are therefore read a second time and compared; if they differ,
 * the walk is repeated.
 */
#ifndef NT_AGENT_STACK_PYTHON_STACK_H
#define NT_AGENT_STACK_PYTHON_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/stack/python_layout.h"
#include "agent/stack/stack.h"
#include "agent/stack/stack_memory.h"
#include "common/base/cleanup.h"

enum {
	NT_PYTHON_INTERPRETERS = 16,
	NT_PYTHON_THREADS = 1024, /* of all interpreters */
	NT_PYTHON_DEPTH = 1024, /* frames that are walked; beyond NT_STACK_FRAMES counted only */
	NT_PYTHON_ATTEMPTS = 3,
};

/* Addresses in the process. */
struct nt_python_runtime {
	uint64_t runtime; /* _PyRuntime */
	uint64_t code_type; /* PyCode_Type; 0: not known */
	struct nt_python_layout layout;
	bool without_lines; /* of frames, each of which takes reads: set by the reader */
};

struct nt_python_thread {
	uint64_t address; /* of its PyThreadState */
	uint64_t interpreter;
	uint64_t pthread;
	uint32_t tid; /* in its own pid namespace; 0: not known */
	bool holds_gil;
};

struct nt_python_threads {
	struct nt_python_thread thread[NT_PYTHON_THREADS];
	size_t count;
	bool gc_running;
	bool is_cut; /* by a cap or a bad pointer */
};

/* -ENODATA: no interpreter has begun, or has a thread; else as nt_stack_memory_read(). */
NT_MUST_CHECK int nt_python_threads(struct nt_stack_memory *memory,
				    const struct nt_python_runtime *runtime,
				    struct nt_python_threads *ret_threads);

/* Adds the frames of a thread to the last one of the stack. Returns how complete they are. */
enum nt_stack_reason nt_python_frames(struct nt_stack_memory *memory,
				      const struct nt_python_runtime *runtime, uint64_t thread,
				      struct nt_stack *stack);

#endif
