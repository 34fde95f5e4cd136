/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the stacks of a process. It may block on what the process controls: for workers only. */
#ifndef NT_AGENT_STACK_STACK_READ_H
#define NT_AGENT_STACK_STACK_READ_H

#include <stddef.h>
#include <stdint.h>

#include "agent/stack/stack.h"

/* tid: threads that are wanted besides the main thread and the holder of the GIL. Always fills it. */
void nt_stack_read(uint32_t pid, const uint32_t *tid, size_t n, struct nt_stack *ret_stack);

#endif
