/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/outside_process.h"

#include <stdlib.h>

static struct nt_outside_process *find(const struct nt_outside_processes *outside, uint32_t pid)
{
	struct nt_outside_process *process;

	HASH_FIND(hh, outside->process, &pid, sizeof(pid), process);
	return process;
}

static void remove_one(struct nt_outside_processes *outside, struct nt_outside_process *process)
{
	HASH_DEL(outside->process, process);
	free(process);
}

void nt_outside_processes_release(struct nt_outside_processes *outside)
{
	struct nt_outside_process *process, *next;

	HASH_ITER(hh, outside->process, process, next)
	remove_one(outside, process);
}

bool nt_outside_processes_add(struct nt_outside_processes *outside, uint32_t pid)
{
	struct nt_outside_process *process;

	nt_outside_processes_remove(outside, pid);
	if (HASH_COUNT(outside->process) >= NT_OUTSIDE_PROCESSES)
		return false;
	process = calloc(1, sizeof(*process));
	if (!process)
		return false;
	process->pid = pid;
	HASH_ADD(hh, outside->process, pid, sizeof(process->pid), process);
	return true;
}

bool nt_outside_processes_has(const struct nt_outside_processes *outside, uint32_t pid)
{
	return find(outside, pid) != NULL;
}

void nt_outside_processes_remove(struct nt_outside_processes *outside, uint32_t pid)
{
	struct nt_outside_process *process = find(outside, pid);

	if (process)
		remove_one(outside, process);
}
