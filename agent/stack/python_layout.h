/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where CPython 3.8 to 3.14 keeps what a stack is read from: offsets in its structs. From 3.13 on
 * the process states them itself, at the start of _PyRuntime (struct _Py_DebugOffsets); those are
 * untrusted. The offsets of earlier versions are of 64-bit x86 builds.
 */
#ifndef NT_AGENT_STACK_PYTHON_LAYOUT_H
#define NT_AGENT_STACK_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_PYTHON_OFFSETS_BYTES = 768, /* of _PyRuntime: what is read of its start */
	/* Bounds of offsets. A struct is read in one piece. */
	NT_PYTHON_FAR_MAX = 1 << 20, /* in the states of the runtime and of an interpreter */
	NT_PYTHON_THREAD_BYTES = 256,
	NT_PYTHON_FRAME_BYTES = 128,
	NT_PYTHON_CODE_BYTES = 256,
	NT_PYTHON_UNICODE_BYTES = 96, /* of a string, before its characters */
};

enum nt_python_lines {
	NT_PYTHON_LINES_NONE, /* free-threaded: the bytecode differs by thread */
	NT_PYTHON_LINES_LNOTAB, /* 3.8, 3.9 */
	NT_PYTHON_LINES_RANGES, /* 3.10 */
	NT_PYTHON_LINES_LOCATIONS, /* 3.11 and later */
};

enum nt_python_gil {
	NT_PYTHON_GIL_RUNTIME, /* in the state of the runtime */
	NT_PYTHON_GIL_POINTER, /* the interpreter points to it */
};

/* Offsets in bytes. 0 in `qualname`, `native_id`, `owner`, `cframe`: there is none. */
struct nt_python_layout {
	uint16_t version; /* 0x030b: 3.11 */
	enum nt_python_lines lines;
	/* The runtime and an interpreter. */
	uint32_t interpreters, interpreter_next, threads;
	uint32_t collecting;
	bool collecting_in_runtime;
	enum nt_python_gil gil;
	uint32_t gil_at, gil_holder, gil_locked; /* gil_at: of the pointer, or 0 */
	/* A thread; with cframe its frame is at *(cframe) + frame. */
	uint32_t thread_next, thread_id, native_id, cframe, frame;
	/* A frame. instruction: an index of lasti_bytes bytes each, or 0: a pointer. */
	uint32_t back, code, instruction, owner;
	uint32_t lasti_bytes;
	bool code_is_tagged; /* by its lowest two bits */
	uint8_t owner_shim; /* such a frame, or one of a larger number, is of no Python function */
	/* A code object. */
	uint32_t first_line, filename, name, qualname, line_table, bytecode;
	/* Bytes and strings. */
	uint32_t bytes_size, bytes_data;
	uint32_t text_length, text_state, text_ascii, text_other;
};

/* The layout of a version such as 0x030b. -ENOTSUP: not known, for this machine. */
NT_MUST_CHECK int nt_python_layout_of(uint16_t version, struct nt_python_layout *ret_layout);

/*
 * The layout that the start of _PyRuntime states. -ENOENT: it states none, as before 3.13;
 * -ENOTSUP: it is of another version than 3.13 and 3.14; -EBADMSG: an offset is out of bounds.
 */
NT_MUST_CHECK int nt_python_layout_parse(const uint8_t *data, size_t len,
					 struct nt_python_layout *ret_layout);

#endif
