/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/process_table.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	FILES_FIRST = 4,
};

void nt_process_table_init(struct nt_process_table *table)
{
	*table = (struct nt_process_table){0};
	nt_share_init(&table->share, NT_PROCESS_TABLE_PROCESSES);
}

void nt_process_table_release(struct nt_process_table *table)
{
	struct nt_mapping_process *process, *next;

	HASH_ITER(hh, table->process, process, next)
	nt_process_table_remove(table, process);
	nt_share_release(&table->share);
}

struct nt_mapping_process *nt_process_table_find(const struct nt_process_table *table, uint32_t pid)
{
	struct nt_mapping_process *process;

	HASH_FIND(hh, table->process, &pid, sizeof(pid), process);
	return process;
}

static struct nt_mapping_process *process_of(struct nt_share_entry *place)
{
	if (!place)
		return NULL;
	return (struct nt_mapping_process *)(void *)((char *)place -
						     offsetof(struct nt_mapping_process, place));
}

/* A process is seen several times, when forked and per mapped file: it is counted once. */
static void miss(struct nt_process_table *table, uint32_t pid, const struct nt_owner *owner)
{
	uint32_t *refused = &table->refused[nt_hash_mix(pid) % NT_PROCESS_TABLE_PROCESSES];

	if (*refused == pid)
		return;
	*refused = pid;
	nt_share_miss(&table->share, owner, 1);
}

void nt_process_table_recount(struct nt_process_table *table)
{
	memset(table->refused, 0, sizeof(table->refused));
	nt_share_forgive(&table->share);
}

struct nt_mapping_process *nt_process_table_add(struct nt_process_table *table, uint32_t pid,
						uint64_t start_ns, const struct nt_owner *owner,
						bool called,
						struct nt_mapping_process **ret_evicted)
{
	struct nt_mapping_process *process = calloc(1, sizeof(*process));
	struct nt_share_entry *victim;

	*ret_evicted = NULL;
	if (!process)
		return NULL;
	if (nt_share_enter(&table->share, owner, called, &process->place, &victim) < 0) {
		nt_share_leave(&table->share, &process->place);
		miss(table, pid, owner);
		free(process);
		return NULL;
	}
	process->pid = pid;
	process->start_ns = start_ns;
	process->owner = *owner;
	HASH_ADD(hh, table->process, pid, sizeof(process->pid), process);
	*ret_evicted = process_of(victim);
	if (*ret_evicted)
		miss(table, (*ret_evicted)->pid, &(*ret_evicted)->owner);
	return process;
}

/* Reserves room for one more. Most processes have few. */
static bool grow(struct nt_mapping_process *process)
{
	size_t files = process->files ? 2 * process->files : FILES_FIRST;
	struct nt_process_table_file *grown;

	if (process->files &&
	    (process->files < FILES_FIRST || (process->files & (process->files - 1))))
		return true;
	grown = reallocarray(process->file, files, sizeof(*grown));
	if (grown)
		process->file = grown;
	return grown != NULL;
}

struct nt_process_table_file *nt_process_table_add_file(struct nt_mapping_process *process,
							const struct nt_process_table_file *file,
							const char *name)
{
	struct nt_process_table_file *added;
	char *copy;

	if (process->files == NT_PROCESS_TABLE_FILES || !grow(process))
		return NULL;
	copy = strdup(name);
	if (!copy)
		return NULL;
	added = &process->file[process->files++];
	*added = *file;
	added->name = copy;
	return added;
}

void nt_process_table_remove(struct nt_process_table *table, struct nt_mapping_process *process)
{
	for (size_t i = 0; i < process->files; i++)
		free(process->file[i].name);
	if (table->next == process)
		table->next = process->hh.next;
	nt_share_leave(&table->share, &process->place);
	HASH_DEL(table->process, process);
	free(process->file);
	free(process);
}

struct nt_mapping_process *nt_process_table_next(struct nt_process_table *table)
{
	struct nt_mapping_process *process = table->next ? table->next : table->process;

	table->next = process ? process->hh.next : NULL;
	return process;
}

size_t nt_process_table_count(const struct nt_process_table *table)
{
	return HASH_COUNT(table->process);
}
