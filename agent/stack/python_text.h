/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Strings of a CPython process, as printable ASCII. */
#ifndef NT_AGENT_STACK_PYTHON_TEXT_H
#define NT_AGENT_STACK_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/stack/python_layout.h"
#include "agent/stack/stack_memory.h"
#include "common/base/cleanup.h"

enum {
	NT_PYTHON_TEXT_LENGTH =
		1 << 16, /* characters; a longer string is none of a code object's */
};

/*
 * Reads a str object into `to`, with a NUL; characters that are not printable ASCII become '?'. Of a
 * string that does not fit the beginning is kept or, with keep_end, the end. -EBADMSG: no str
 * object; -EFAULT and -EDQUOT as nt_stack_memory_read().
 */
NT_MUST_CHECK int nt_python_text(struct nt_stack_memory *memory,
				 const struct nt_python_layout *layout, uint64_t address,
				 bool keep_end, char *to, size_t size);

#endif
