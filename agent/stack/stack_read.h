/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the stacks of a process. It may block on what the process controls: for workers only. */
#ifndef NT_AGENT_STACK_STACK_READ_H
#define NT_AGENT_STACK_STACK_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/host/memory.h"
#include "agent/stack/stack.h"
#include "common/base/cleanup.h"

/*
 * Keeps the interpreter, the files, names and frames of functions of the process between reads, which is what
 * takes most of the time of one. A worker has at most one. memory: nt_memory_live(). takes_fuse: names are
 * read from files on FUSE, too, whose server might not answer. -ENOMEM.
 */
struct nt_stack_reader;
NT_MUST_CHECK int nt_stack_reader_new(uint32_t pid, bool takes_fuse, const struct nt_memory *memory,
				      struct nt_stack_reader **ret_reader);
void nt_stack_reader_free(struct nt_stack_reader *reader);
NT_DEFINE_AUTO(nt_stack_reader, nt_stack_reader_free)
/* As nt_stack_read(), without lines, and the kernel functions in which threads sleep. */
void nt_stack_reader_read(struct nt_stack_reader *reader, const uint32_t *tid, size_t n,
			  struct nt_stack *ret_stack);

/*
 * tid: threads that are wanted besides the main thread and the holder of the GIL. Always fills it. A
 * thread that has run while it was read is read once more, and then it is torn.
 */
void nt_stack_read(uint32_t pid, bool takes_fuse, const uint32_t *tid, size_t n,
		   struct nt_stack *ret_stack);

#endif
