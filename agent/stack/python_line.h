/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The line of an instruction, from the line table of a CPython code object. The bytes are untrusted. */
#ifndef NT_AGENT_STACK_PYTHON_LINE_H
#define NT_AGENT_STACK_PYTHON_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/stack/python_layout.h"

enum {
	NT_PYTHON_LINE_BYTES =
		32 << 10, /* of a table that are read: of some 10,000 lines of code */
};

/*
 * offset: of the instruction, in bytes; -1: before the first one. 0: the table gives no line for it,
 * or is of a kind without lines.
 */
uint32_t nt_python_line(enum nt_python_lines kind, const uint8_t *table, size_t len,
			uint32_t first_line, int64_t offset);

#endif
