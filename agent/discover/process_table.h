/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process table: the processes that map a file of interest, and those files, as discovery
 * (agent/discover/discover.c) has found them.
 */
#ifndef NT_AGENT_DISCOVER_PROCESS_TABLE_H
#define NT_AGENT_DISCOVER_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "agent/identity/share.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_PROCESS_TABLE_PROCESSES = 4096, /* divided among owners */
	NT_PROCESS_TABLE_FILES = 32, /* of one process */
};

struct nt_process_table_file {
	dev_t dev;
	ino_t ino;
	uint64_t start, end; /* of the mapping; 0 for a main program */
	uint64_t seen_ns; /* boot time at which it was seen mapped */
	enum nt_library library;
	bool executable, late;
	bool reported;
	char *name; /* owned; NULL after the report */
};

struct nt_mapping_process {
	uint32_t pid;
	uint64_t start_ns;
	struct nt_owner owner;
	struct nt_share_entry place;
	struct nt_process_table_file *file; /* owned */
	size_t files;
	UT_hash_handle hh;
};

struct nt_process_table {
	struct nt_mapping_process *process; /* uthash, owned */
	struct nt_mapping_process *next; /* next of nt_process_table_next(); NULL: the first */
	struct nt_share share;
	uint32_t refused[NT_PROCESS_TABLE_PROCESSES]; /* pids, hashed: most are counted once */
};

void nt_process_table_init(struct nt_process_table *table);

void nt_process_table_release(struct nt_process_table *table);

struct nt_mapping_process *nt_process_table_find(const struct nt_process_table *table,
						 uint32_t pid);

/*
 * Adds a process that is not present. *ret_evicted: another that makes room, which the caller
 * removes. NULL: the owner's share is full, or out of memory.
 */
struct nt_mapping_process *nt_process_table_add(struct nt_process_table *table, uint32_t pid,
						uint64_t start_ns, const struct nt_owner *owner,
						bool called,
						struct nt_mapping_process **ret_evicted);

/* Adds a copy of file and name. NULL: at the cap, or out of memory. */
struct nt_process_table_file *nt_process_table_add_file(struct nt_mapping_process *process,
							const struct nt_process_table_file *file,
							const char *name);

/* Restarts the count of processes that are left out. */
void nt_process_table_recount(struct nt_process_table *table);

/* Releases the process. */
void nt_process_table_remove(struct nt_process_table *table, struct nt_mapping_process *process);

/* The next process, round-robin; NULL: there is none. */
struct nt_mapping_process *nt_process_table_next(struct nt_process_table *table);

size_t nt_process_table_count(const struct nt_process_table *table);

#endif
