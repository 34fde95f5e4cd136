/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel states of a thread: its name and state, where it sleeps, and its registers then. */
#ifndef NT_AGENT_STACK_THREAD_WAIT_H
#define NT_AGENT_STACK_THREAD_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/stack/stack.h"
#include "common/base/cleanup.h"

struct nt_thread_wait {
	char name[NT_STACK_NAME];
	char state; /* of /proc/PID/task/TID/stat; '?': not known */
	char wait[NT_STACK_WAIT]; /* kernel function; "": none, or not shown */
	bool is_blocked; /* the registers are known: it is in the kernel and does not run */
	uint64_t sp, pc;
};

/* -ESRCH: the thread has ended. What is not readable is left empty. */
NT_MUST_CHECK int nt_thread_wait_read(uint32_t pid, uint32_t tid, struct nt_thread_wait *ret_wait);

/* Parses /proc/PID/task/TID/syscall. False: the thread runs, or the text is malformed. */
bool nt_thread_wait_parse(const char *text, size_t len, uint64_t *ret_sp, uint64_t *ret_pc);

/*
 * Threads by their ids in the innermost pid namespace of the process. Fills ret_tid[i], in the
 * agent's namespace, for ids[i]; 0: no such thread. Ids of 0 are skipped.
 */
void nt_thread_wait_translate(uint32_t pid, const uint32_t *ids, size_t n, uint32_t *ret_tid);

#endif
