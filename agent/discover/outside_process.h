/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes outside the watched cgroup. Only their pids are kept: they may be moved into it. */
#ifndef NT_AGENT_DISCOVER_OUTSIDE_PROCESS_H
#define NT_AGENT_DISCOVER_OUTSIDE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

enum {
	NT_OUTSIDE_PROCESSES = 4096,
};

struct nt_outside_process {
	uint32_t pid;
	UT_hash_handle hh;
};

struct nt_outside_processes {
	struct nt_outside_process *process; /* uthash, owned; least recently checked first */
};

void nt_outside_processes_release(struct nt_outside_processes *outside);
/* False: at the cap, or out of memory. A process that is present moves to the end. */
bool nt_outside_processes_add(struct nt_outside_processes *outside, uint32_t pid);
bool nt_outside_processes_has(const struct nt_outside_processes *outside, uint32_t pid);
void nt_outside_processes_remove(struct nt_outside_processes *outside, uint32_t pid);

#endif
