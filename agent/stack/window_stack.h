/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks of a process (agent/stack/stack.h) as the windows of its rank send them. */
#ifndef NT_AGENT_STACK_WINDOW_STACK_H
#define NT_AGENT_STACK_WINDOW_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "agent/stack/stack.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

/* Owns all that it points to. */
struct nt_window_stack {
	struct nt_wire_stack thread[NT_STACK_THREADS];
	size_t threads;
};

/* Copies the stack. request: the one that it answers. -ENOMEM. */
NT_MUST_CHECK int nt_window_stack_new(const struct nt_stack *stack, uint64_t request,
				      struct nt_window_stack **ret_stack);
void nt_window_stack_free(struct nt_window_stack *stack);
NT_DEFINE_AUTO(nt_window_stack, nt_window_stack_free)

/* A stack of no frames: of the main thread, with the reason. */
void nt_window_stack_fail(uint32_t pid, uint64_t boot_ns, enum nt_stack_reason reason,
			  struct nt_stack *ret_stack);

#endif
