/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The native frames of a thread that is blocked in the kernel: its registers are known then without
 * stopping it, at least the stack pointer and the program counter. The frames follow from call-frame
 * information, which is read from the process's memory, as it is mapped there; names are those of the
 * symbols of the mapped files. On x86-64 alone. Opens files by paths of the process: for workers only.
 */
#ifndef NT_AGENT_STACK_NATIVE_STACK_H
#define NT_AGENT_STACK_NATIVE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/stack/stack.h"
#include "agent/stack/stack_memory.h"
#include "agent/stack/thread_wait.h"

enum {
	NT_NATIVE_MODULES = 32, /* files of one process that are opened */
	NT_NATIVE_FRAMES = 40, /* of one thread */
	NT_NATIVE_PLACES = 1024, /* addresses kept between stacks; one more replaces another */
	NT_NATIVE_EMPTY_PAGES = 16, /* the same of pages without a file */
};

#define NT_NATIVE_EMPTY_NS 1000000000ULL /* then they may be mapped from a file */

/* The files that frames lie in. Zeroed: none yet. */
struct nt_native_module;
struct nt_native_place;
struct nt_native_process {
	struct nt_stack_memory memory; /* with a budget of its own */
	struct nt_native_module *module; /* owned; NT_NATIVE_MODULES */
	uint32_t modules;
	bool keeps_places; /* names of functions and their frames, from one stack to the next */
	struct nt_native_place *place; /* owned; NULL: none */
	uint64_t empty_page
		[NT_NATIVE_EMPTY_PAGES]; /* numbers of pages of code without a file; 0: none */
	uint32_t empty_pages; /* so far */
	uint64_t emptied_ns; /* monotonic: since when they are kept */
};

void nt_native_process_release(struct nt_native_process *process);
/* Before each stack; now_ns: monotonic. */
void nt_native_process_refresh(struct nt_native_process *process, uint64_t now_ns);

/*
 * Adds the native frames to the last thread of the stack, up to the innermost one of CPython's
 * interpreter if with_python: Python's frames follow there. Returns how complete they are.
 */
enum nt_stack_reason nt_native_frames(struct nt_native_process *process,
				      const struct nt_thread_wait *wait, bool with_python,
				      struct nt_stack *stack);

#endif
