/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The roster: the processes that map a file of interest, and those files, as discovery
 * (agent/discover/discover.c) has found them.
 */
#ifndef NT_AGENT_DISCOVER_ROSTER_H
#define NT_AGENT_DISCOVER_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "agent/identity/share.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_ROSTER_PROCESSES = 4096, /* divided among owners */
	NT_ROSTER_FILES = 32, /* of one process */
};

struct nt_roster_file {
	dev_t dev;
	ino_t ino;
	uint64_t start, end; /* of the mapping; 0 for a main program */
	uint64_t seen_ns; /* boot time at which it was seen mapped */
	enum nt_library library;
	bool executable, late;
	bool reported;
	char *name; /* owned; NULL after the report */
};

struct nt_roster_process {
	uint32_t pid;
	uint64_t start_ns;
	struct nt_owner owner;
	struct nt_share_entry place;
	struct nt_roster_file *file; /* owned */
	size_t files;
	UT_hash_handle hh;
};

struct nt_roster {
	struct nt_roster_process *process; /* uthash, owned */
	struct nt_roster_process *turn; /* next of nt_roster_turn(); NULL: the first */
	struct nt_share share;
	uint32_t refused[NT_ROSTER_PROCESSES]; /* pids, hashed: most are counted once */
};

void nt_roster_init(struct nt_roster *roster);

void nt_roster_release(struct nt_roster *roster);

struct nt_roster_process *nt_roster_find(const struct nt_roster *roster, uint32_t pid);

/*
 * Adds a process that is not present. *ret_evicted: another that makes room, which the caller
 * removes. NULL: the owner's share is full, or out of memory.
 */
struct nt_roster_process *nt_roster_add(struct nt_roster *roster, uint32_t pid, uint64_t start_ns,
					const struct nt_owner *owner, bool called,
					struct nt_roster_process **ret_evicted);

/* Adds a copy of file and name. NULL: at the cap, or out of memory. */
struct nt_roster_file *nt_roster_add_file(struct nt_roster_process *process,
					  const struct nt_roster_file *file, const char *name);

/* Restarts the count of processes that are left out. */
void nt_roster_recount(struct nt_roster *roster);

/* Releases the process. */
void nt_roster_remove(struct nt_roster *roster, struct nt_roster_process *process);

/* The next process, round-robin; NULL: there is none. */
struct nt_roster_process *nt_roster_turn(struct nt_roster *roster);

size_t nt_roster_count(const struct nt_roster *roster);

#endif
