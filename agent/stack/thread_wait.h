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
	bool is_blocked; /* the registers are known: it is in the kernel and does not run */
	bool was_awake; /* a processor had it when they were to be read, whatever the state says */
	uint64_t sp, pc;
	bool has_runs;
	bool is_of_switches; /* see `runs` */
	uint64_t
		runs; /* how often it was given a processor, or left one, before the rest was read */
};

/* -ESRCH: the thread has ended. What is not readable is left empty. */
NT_MUST_CHECK int nt_thread_wait_read(uint32_t pid, uint32_t tid, struct nt_thread_wait *ret_wait);
/* The kernel function in which it sleeps; "": none, or not shown. */
void nt_thread_wait_name(uint32_t pid, uint32_t tid, char ret_name[NT_STACK_WAIT]);

/*
 * True if what was read of the thread since is of one moment: it has not run meanwhile, or it ran all
 * the time. The count of its runs is what the kernel compares too (wait_task_inactive()): the same
 * registers may be those of a later wait.
 */
bool nt_thread_wait_is_steady(uint32_t pid, uint32_t tid, const struct nt_thread_wait *before);

/*
 * Parses /proc/PID/task/TID/schedstat, which takes less than half of the time of `status`. False:
 * nothing is counted, or the text is malformed.
 */
bool nt_thread_wait_parse_runs(const char *text, size_t len, uint64_t *ret_runs);
/* Parses `status`, if the kernel counts nothing there: voluntary and other switches together. */
bool nt_thread_wait_parse_switches(const char *text, uint64_t *ret_switches);

/* Parses /proc/PID/task/TID/syscall. False: the thread runs, or the text is malformed. */
bool nt_thread_wait_parse(const char *text, size_t len, uint64_t *ret_sp, uint64_t *ret_pc);

/*
 * Threads by their ids in the innermost pid namespace of the process. Fills ret_tid[i], in the
 * agent's namespace, for ids[i]; 0: no such thread. Ids of 0 are skipped.
 */
void nt_thread_wait_translate(uint32_t pid, const uint32_t *ids, size_t n, uint32_t *ret_tid);

#endif
