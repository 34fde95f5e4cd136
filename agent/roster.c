/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/roster.h"

#include <string.h>

void nt_roster_release(struct nt_roster *roster)
{
	struct nt_roster_process *process, *next;

	HASH_ITER(hh, roster->process, process, next)
	nt_roster_remove(roster, process);
}

struct nt_roster_process *nt_roster_find(const struct nt_roster *roster, uint32_t pid)
{
	struct nt_roster_process *process;

	HASH_FIND(hh, roster->process, &pid, sizeof(pid), process);
	return process;
}

struct nt_roster_process *nt_roster_add(struct nt_roster *roster, uint32_t pid, uint64_t start_ns)
{
	struct nt_roster_process *process;

	if (HASH_COUNT(roster->process) >= NT_ROSTER_PROCESSES)
		return NULL;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->start_ns = start_ns;
	HASH_ADD(hh, roster->process, pid, sizeof(process->pid), process);
	return process;
}

struct nt_roster_file *nt_roster_add_file(struct nt_roster_process *process,
					  const struct nt_roster_file *file, const char *name)
{
	struct nt_roster_file *added;
	char *copy;

	if (process->files == NT_ROSTER_FILES)
		return NULL;
	copy = strdup(name);
	if (!copy)
		return NULL;
	added = &process->file[process->files++];
	*added = *file;
	added->name = copy;
	return added;
}

void nt_roster_remove(struct nt_roster *roster, struct nt_roster_process *process)
{
	for (size_t i = 0; i < process->files; i++)
		free(process->file[i].name);
	HASH_DEL(roster->process, process);
	free(process);
}

struct nt_roster_process *nt_roster_next(const struct nt_roster *roster,
					 const struct nt_roster_process *process)
{
	return process ? process->hh.next : roster->process;
}

size_t nt_roster_count(const struct nt_roster *roster)
{
	return HASH_COUNT(roster->process);
}
