/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The catalog of inspected files and their results. A file is inspected once while it is unchanged;
 * a refusal is stored too. A file counts against the owner of the process that led to it. At the
 * cap an entry of the owner with the most is evicted.
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
	NT_CATALOG_FILES = 4096, /* at the cap the largest owner's oldest is evicted */
	/* kept open with their symbols; at the cap the largest owner's LRU file is closed */
	NT_CATALOG_HELD = 256,
	NT_CATALOG_WAITERS = 4096, /* processes waiting for a result, divided among owners */
	NT_CATALOG_PIDS = 16384,
	NT_CATALOG_INODES = 16384, /* hashed */
	/* inspections of one changing inode, per minute and owner */
	NT_CATALOG_CHANGES = 4,
	NT_CATALOG_CHANGING = 1024, /* inodes with a count; the oldest are evicted first */
};

#define NT_CATALOG_CHANGES_NS 60000000000ULL /* the minute, and for how long more are refused */
#define NT_CATALOG_RETRY_NS   600000000000ULL /* after a timeout, which may be due to a slow disk */

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

/* A changed file has another key, and so has one under another library's name. */
struct nt_catalog_key {
	uint64_t dev, ino, bytes, changed_ns, library;
};

/* A process that waits for the result of a file. */
struct nt_catalog_waiter {
	uint32_t pid;
	bool is_late, is_called;
	uint64_t start_ns, seen_ns;
	struct nt_owner owner; /* of the process started at start_ns */
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
	uint64_t number; /* of the mapping inspection that also returns its symbols; 0: none */
	int fd; /* owned, for reading, if the state is HOLDS; else -1 */
	struct nt_symbols *symbols; /* owned, as is the descriptor */
	struct nt_catalog_waiter *waiter, **waiter_end; /* owned */
	UT_hash_handle hh;
};

/* A recently inspected inode, per owner. */
struct nt_catalog_changing {
	struct {
		uint64_t dev, ino, owner;
	} key;
	uint32_t inspections; /* since then */
	uint64_t since_ns, until_ns; /* until_ns 0: it is not refused */
	UT_hash_handle hh;
};

struct nt_catalog {
	struct nt_catalog_file *file; /* uthash, owned; in order of insertion */
	struct nt_catalog_owner *owner; /* uthash, owned */
	/* uthash, owned; least recently inspected first */
	struct nt_catalog_changing *changing;
	uint16_t inodes[NT_CATALOG_INODES]; /* counts of entries of both tables, by inode hash */
	size_t held;
	struct nt_share share; /* of the waiters */
	uint16_t waiting[NT_CATALOG_PIDS]; /* counts of waiters, by pid hash */
	uint64_t over_cap;
	uint64_t lost; /* so far: waiters dropped or refused for want of room */
};

void nt_catalog_init(struct nt_catalog *catalog);
void nt_catalog_release(struct nt_catalog *catalog);

void nt_catalog_key(const struct nt_inspection_file *file, struct nt_catalog_key *ret_key);
/* NULL: not inspected, or due for another inspection. */
struct nt_catalog_file *nt_catalog_find(struct nt_catalog *catalog,
					const struct nt_catalog_key *key, uint64_t now_ns);
/* A file with state HOLDS, by its inode alone. NULL: none. */
const struct nt_catalog_file *nt_catalog_find_inode(const struct nt_catalog *catalog, uint64_t dev,
						    uint64_t ino);
/* True if a file with this inode, on any device, is probably known or was inspected recently. */
bool nt_catalog_has_inode(const struct nt_catalog *catalog, uint64_t ino);
/*
 * True if a file that is not in the catalog may be inspected for a process of that owner. Files
 * that change too often are refused. *ret_is_news: this is the first refusal.
 */
bool nt_catalog_may_inspect(struct nt_catalog *catalog, const struct nt_catalog_key *key,
			    uint64_t owner, uint64_t now_ns, bool *ret_is_news);
/* The pending file whose symbols that inspection returns. NULL: none. */
struct nt_catalog_file *nt_catalog_find_number(const struct nt_catalog *catalog, uint64_t number);
/*
 * Adds a file as pending. owner: an id of struct nt_owner. NULL: out of memory, or the table is
 * full and this owner has the most entries, all of them pending.
 */
struct nt_catalog_file *nt_catalog_add(struct nt_catalog *catalog, const struct nt_catalog_key *key,
				       uint64_t owner);
void nt_catalog_remove(struct nt_catalog *catalog, struct nt_catalog_file *file);

/*
 * Adds a copy of the waiter; waiter->owner is set. Without room the waiter is dropped and counted
 * in `lost`.
 */
void nt_catalog_wait(struct nt_catalog *catalog, struct nt_catalog_file *file,
		     const struct nt_catalog_waiter *waiter);
/* True if the process waits for a file; false positives are rare. */
bool nt_catalog_is_awaited(const struct nt_catalog *catalog, uint32_t pid);
/* Takes all waiters, in order; the caller frees each. */
struct nt_catalog_waiter *nt_catalog_take_waiters(struct nt_catalog *catalog,
						  struct nt_catalog_file *file);
void nt_catalog_waiter_free(struct nt_catalog_waiter *waiter);

/* Takes over the descriptor and the symbols. */
void nt_catalog_hold(struct nt_catalog *catalog, struct nt_catalog_file *file, int fd,
		     struct nt_symbols *symbols, uint64_t now_ns);

#endif
