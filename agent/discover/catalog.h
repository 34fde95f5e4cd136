/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files that were inspected, and what came of it: looked at once, for as long as a file stays the
 * same. One that was refused is refused at once the next time, too. A file counts for the owner of the
 * process that led to it: where there is no room, the owner with the most makes some.
 */
#ifndef NT_AGENT_DISCOVER_CATALOG_H
#define NT_AGENT_DISCOVER_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "agent/discover/inspection.h"
#include "agent/identity/share.h"
#include "common/base/cleanup.h"

enum {
	NT_CATALOG_FILES = 4096, /* at the cap the oldest of the owner with the most is forgotten */
	/* with symbols, and open: of these the one that was not used longest */
	NT_CATALOG_HELD = 256,
	NT_CATALOG_WAITERS = 4096, /* processes that wait for what comes of one, in shares */
	NT_CATALOG_PIDS = 16384,
	NT_CATALOG_INODES = 16384, /* hashed */
	/* inspections of one inode that changed, in a minute, by one owner */
	NT_CATALOG_CHANGES = 4,
	NT_CATALOG_CHANGING = 1024, /* inodes whose inspections are counted; the oldest go first */
};

#define NT_CATALOG_CHANGES_NS 60000000000ULL /* that minute, and how long it is refused then */
#define NT_CATALOG_RETRY_NS   600000000000ULL /* a file that took too long may be a slow disk's */

enum nt_catalog_state {
	NT_CATALOG_PENDING,
	NT_CATALOG_NOTHING, /* nothing of interest */
	NT_CATALOG_HOLDS,
	NT_CATALOG_REFUSED,
};

enum nt_refusal {
	NT_REFUSED_BUDGET, /* memory, processor time */
	NT_REFUSED_DEADLINE,
	NT_REFUSED_NOT_REGULAR,
	NT_REFUSED_FUSE,
	NT_REFUSED_CHANGES,
	NT_REFUSED_END,
};

/* A changed file is another one, and so is one under another library's name. */
struct nt_catalog_key {
	uint64_t dev, ino, bytes, changed_ns, library;
};

/* A process that has the file. */
struct nt_catalog_waiter {
	uint32_t pid;
	bool is_late, is_called;
	uint64_t start_ns, seen_ns;
	struct nt_owner owner; /* of the process that started then */
	struct nt_share_entry place;
	struct nt_inspection_file file;
	char *name; /* owned */
	struct nt_catalog_waiter *next;
};

struct nt_catalog_owner;

struct nt_catalog_file {
	struct nt_catalog_key key;
	struct nt_catalog_owner *owner;
	enum nt_catalog_state state;
	uint64_t used_ns, retry_ns; /* retry_ns 0: never */
	uint64_t number; /* of the inspection of a mapping that brings its symbols, too; 0: none */
	int fd; /* owned, for reading, of one that holds something; else -1 */
	struct nt_symbols *symbols; /* owned, as is the descriptor */
	struct nt_catalog_waiter *waiter, **waiter_end; /* owned */
	UT_hash_handle hh;
};

/* An inode that was inspected lately, for one owner's processes. */
struct nt_catalog_changing {
	struct {
		uint64_t dev, ino, owner;
	} key;
	uint32_t inspections; /* since then */
	uint64_t since_ns, until_ns; /* until_ns 0: it is not refused */
	UT_hash_handle hh;
};

struct nt_catalog {
	struct nt_catalog_file *file; /* uthash, owned; in the order of their coming */
	struct nt_catalog_owner *owner; /* uthash, owned */
	/* uthash, owned; the one inspected longest ago first */
	struct nt_catalog_changing *changing;
	uint16_t inodes[NT_CATALOG_INODES]; /* entries of both tables, by a hash of their inodes */
	size_t held;
	struct nt_share share; /* of those who wait */
	uint16_t waiting[NT_CATALOG_PIDS]; /* those who wait, by a hash of their pids */
	uint64_t over_cap;
	uint64_t lost; /* so far: those who waited, or wanted to, and for whom there was no room */
};

void nt_catalog_init(struct nt_catalog *catalog);
void nt_catalog_release(struct nt_catalog *catalog);

void nt_catalog_key(const struct nt_inspection_file *file, struct nt_catalog_key *ret_key);
/* NULL: not inspected, or to be inspected again. */
struct nt_catalog_file *nt_catalog_find(struct nt_catalog *catalog,
					const struct nt_catalog_key *key, uint64_t now_ns);
/* One that holds something, by its inode alone. NULL: none. */
const struct nt_catalog_file *nt_catalog_find_inode(const struct nt_catalog *catalog, uint64_t dev,
						    uint64_t ino);
/* Of any device: a file is probably known, or was inspected lately. */
bool nt_catalog_has_inode(const struct nt_catalog *catalog, uint64_t ino);
/*
 * May a file that is not there be inspected for a process of that owner? A file that changes is another
 * one each time. *ret_is_news: it may not, and it might before.
 */
bool nt_catalog_may_inspect(struct nt_catalog *catalog, const struct nt_catalog_key *key,
			    uint64_t owner, uint64_t now_ns, bool *ret_is_news);
/* One that is pending, and whose symbols that inspection brings. NULL: none. */
struct nt_catalog_file *nt_catalog_find_number(const struct nt_catalog *catalog, uint64_t number);
/*
 * A file that is not there yet: pending. owner: an id of struct nt_owner. NULL where memory is short, or
 * where the table is full, and those of the owner with the most are all pending, and that is this one.
 */
struct nt_catalog_file *nt_catalog_add(struct nt_catalog *catalog, const struct nt_catalog_key *key,
				       uint64_t owner);
void nt_catalog_remove(struct nt_catalog *catalog, struct nt_catalog_file *file);

/* waiter->owner: of the process. Where there is no room for it, it is lost, and counted. */
void nt_catalog_wait(struct nt_catalog *catalog, struct nt_catalog_file *file,
		     const struct nt_catalog_waiter *waiter);
/* Does the process wait for a file? Rarely true where it does not. */
bool nt_catalog_is_awaited(const struct nt_catalog *catalog, uint32_t pid);
/* Hands over those who wait, in order: the caller frees each. */
struct nt_catalog_waiter *nt_catalog_take_waiters(struct nt_catalog *catalog,
						  struct nt_catalog_file *file);
void nt_catalog_waiter_free(struct nt_catalog_waiter *waiter);

/* Takes over the descriptor and the symbols. */
void nt_catalog_hold(struct nt_catalog *catalog, struct nt_catalog_file *file, int fd,
		     struct nt_symbols *symbols, uint64_t now_ns);

#endif
