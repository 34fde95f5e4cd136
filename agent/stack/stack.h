/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stacks of some threads of a process, read from outside while it runs: the Python part through
 * process_vm_readv(2), the native part of threads that are blocked in the kernel. The process is not
 * stopped. Flat: sent between processes as it is.
 */
#ifndef NT_AGENT_STACK_STACK_H
#define NT_AGENT_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_STACK_THREADS = 8, /* the main thread, the holder of the GIL, those that were wanted */
	NT_STACK_FRAMES = 64, /* of one kind and thread; those further out are counted only */
	NT_STACK_FRAMES_ALL = NT_STACK_THREADS * NT_STACK_FRAMES,
	NT_STACK_TEXT_BYTES = 40 << 10, /* of all names, each stored once */
	NT_STACK_NAME = 16, /* of a thread, with its NUL */
	NT_STACK_FUNCTION = 128, /* the beginning of a longer name is kept, */
	NT_STACK_FILE = 160, /* and the end of a longer path */
	NT_STACK_WAIT = 40,
};

/* Why a part is missing or incomplete. */
enum nt_stack_reason {
	NT_STACK_WHOLE,
	NT_STACK_NO_PYTHON, /* the process maps no CPython interpreter */
	NT_STACK_UNKNOWN_VERSION, /* CPython of another version, or on another machine */
	NT_STACK_NO_SYMBOLS, /* the interpreter's file was not readable, or lacks _PyRuntime */
	NT_STACK_NO_STATE, /* no interpreter has begun, or it has ended */
	NT_STACK_NO_PYTHON_THREAD, /* it runs no Python code, or it could not be identified */
	NT_STACK_CHANGED, /* it changed in each attempt: the innermost frames are left out */
	NT_STACK_MALFORMED, /* what was read is not what CPython has there */
	NT_STACK_BUDGET, /* it takes more reads than allowed */
	NT_STACK_REFUSED, /* the process's memory is not accessible */
	NT_STACK_ON_CPU, /* the thread runs: without stopping it its registers are not known */
	NT_STACK_NO_UNWIND_INFO, /* no call-frame information from some frame on */
	NT_STACK_WRONG_MACHINE, /* native frames are read on x86-64 alone */
	NT_STACK_ENDED, /* the thread or process has ended */
	NT_STACK_STALLED, /* reading the process failed or took too long */
	NT_STACK_NO_ROOM, /* the texts exceed NT_STACK_TEXT_BYTES */
	NT_STACK_REASON_END,
};

/* Offsets of texts in `text`; 0 is the empty text. */
struct nt_stack_frame {
	uint32_t function, file;
	uint32_t line; /* 0: not known */
	uint32_t is_native;
};

struct nt_stack_thread {
	uint32_t tid; /* in the agent's pid namespace; 0: not known */
	char name[NT_STACK_NAME];
	char wait
		[NT_STACK_WAIT]; /* the kernel function in which it sleeps; "": none, or not known */
	char state; /* of /proc/PID/task/TID/stat; '?': not known */
	uint8_t is_main, holds_gil;
	uint8_t python, native; /* enum nt_stack_reason */
	uint8_t is_torn; /* it ran while it was read: what is valid by itself is kept */
	uint8_t pad[2];
	uint16_t first, frames; /* in `frame`: native ones, then Python's, each innermost first */
	uint32_t left_out; /* frames beyond the caps */
};

struct nt_stack {
	uint64_t boot_ns; /* when reading began */
	uint64_t read_ns; /* for how long */
	uint32_t reads; /* of the process's memory */
	uint32_t threads, frames, text_bytes;
	uint32_t threads_left_out; /* wanted ones beyond the cap */
	uint32_t python_version; /* 0x030b: 3.11; 0: none */
	uint32_t gc_running; /* a garbage collection of CPython runs */
	uint32_t pad;
	struct nt_stack_thread thread[NT_STACK_THREADS];
	struct nt_stack_frame frame[NT_STACK_FRAMES_ALL];
	char text[NT_STACK_TEXT_BYTES]; /* begins with an empty text */
};

/* Bytes of a stack that are in use, from its begin. */
size_t nt_stack_bytes(const struct nt_stack *stack);

/* Empties it. */
void nt_stack_init(struct nt_stack *stack);

/*
 * The offset of a text, which is added if it is not there yet; 0: no room. Compares with the 64 added
 * before, so that repeated names take no room.
 */
uint32_t nt_stack_text(struct nt_stack *stack, const char *text);
/* A text by its offset. */
const char *nt_stack_text_at(const struct nt_stack *stack, uint32_t offset);

/* Adds a frame to the last thread. False: no room. */
bool nt_stack_add(struct nt_stack *stack, const char *function, const char *file, uint32_t line,
		  bool is_native);

/* Checks a stack from a worker, which may have been compromised. -EBADMSG. */
NT_MUST_CHECK int nt_stack_parse(const uint8_t *body, size_t len, struct nt_stack *ret_stack);

/* One phrase for people; "" for a whole stack. */
const char *nt_stack_reason_text(enum nt_stack_reason reason);

#endif
