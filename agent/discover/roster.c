/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/roster.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	FILES_FIRST = 4,
};

void nt_roster_init(struct nt_roster *roster)
{
	*roster = (struct nt_roster){0};
	nt_share_init(&roster->share, NT_ROSTER_PROCESSES);
}

void nt_roster_release(struct nt_roster *roster)
{
	struct nt_roster_process *process, *next;

	HASH_ITER(hh, roster->process, process, next)
	nt_roster_remove(roster, process);
	nt_share_release(&roster->share);
}

struct nt_roster_process *nt_roster_find(const struct nt_roster *roster, uint32_t pid)
{
	struct nt_roster_process *process;

	HASH_FIND(hh, roster->process, &pid, sizeof(pid), process);
	return process;
}

static struct nt_roster_process *process_of(struct nt_share_entry *place)
{
	if (!place)
		return NULL;
	return (struct nt_roster_process *)(void *)((char *)place -
						    offsetof(struct nt_roster_process, place));
}

/* A process is seen several times, when forked and per mapped file: it is counted once. */
static void miss(struct nt_roster *roster, uint32_t pid, const struct nt_owner *owner)
{
	uint32_t *refused = &roster->refused[nt_hash_mix(pid) % NT_ROSTER_PROCESSES];

	if (*refused == pid)
		return;
	*refused = pid;
	nt_share_miss(&roster->share, owner, 1);
}

void nt_roster_recount(struct nt_roster *roster)
{
	memset(roster->refused, 0, sizeof(roster->refused));
	nt_share_forgive(&roster->share);
}

struct nt_roster_process *nt_roster_add(struct nt_roster *roster, uint32_t pid, uint64_t start_ns,
					const struct nt_owner *owner, bool called,
					struct nt_roster_process **ret_evicted)
{
	struct nt_roster_process *process = calloc(1, sizeof(*process));
	struct nt_share_entry *victim;

	*ret_evicted = NULL;
	if (!process)
		return NULL;
	if (nt_share_enter(&roster->share, owner, called, &process->place, &victim) < 0) {
		nt_share_leave(&roster->share, &process->place);
		miss(roster, pid, owner);
		free(process);
		return NULL;
	}
	process->pid = pid;
	process->start_ns = start_ns;
	process->owner = *owner;
	HASH_ADD(hh, roster->process, pid, sizeof(process->pid), process);
	*ret_evicted = process_of(victim);
	if (*ret_evicted)
		miss(roster, (*ret_evicted)->pid, &(*ret_evicted)->owner);
	return process;
}

/* Reserves room for one more. Most processes have few. */
static bool grow(struct nt_roster_process *process)
{
	size_t files = process->files ? 2 * process->files : FILES_FIRST;
	struct nt_roster_file *grown;

	if (process->files &&
	    (process->files < FILES_FIRST || (process->files & (process->files - 1))))
		return true;
	grown = reallocarray(process->file, files, sizeof(*grown));
	if (grown)
		process->file = grown;
	return grown != NULL;
}

struct nt_roster_file *nt_roster_add_file(struct nt_roster_process *process,
					  const struct nt_roster_file *file, const char *name)
{
	struct nt_roster_file *added;
	char *copy;

	if (process->files == NT_ROSTER_FILES || !grow(process))
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
	if (roster->turn == process)
		roster->turn = process->hh.next;
	nt_share_leave(&roster->share, &process->place);
	HASH_DEL(roster->process, process);
	free(process->file);
	free(process);
}

struct nt_roster_process *nt_roster_turn(struct nt_roster *roster)
{
	struct nt_roster_process *process = roster->turn ? roster->turn : roster->process;

	roster->turn = process ? process->hh.next : NULL;
	return process;
}

size_t nt_roster_count(const struct nt_roster *roster)
{
	return HASH_COUNT(roster->process);
}
