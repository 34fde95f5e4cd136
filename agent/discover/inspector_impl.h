/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the inspector; for agent/discover/inspector*.c alone. */
#ifndef NT_AGENT_DISCOVER_INSPECTOR_IMPL_H
#define NT_AGENT_DISCOVER_INSPECTOR_IMPL_H

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>
#include <utlist.h>

#include "agent/discover/inspector.h"
#include "agent/identity/share.h"

enum {
	NT_INSPECTOR_PIDS = 16384, /* hashed */
};

struct nt_inspector_entry {
	struct nt_inspector_task task;
	uint64_t queued_ns;
	struct nt_inspector_line *line;
	struct nt_share_entry place;
	int fd;
	char *path;
	struct nt_inspector_entry *next;
	struct nt_inspector_entry *about_prev,
		*about_next; /* list of tasks that inspect processes with the same hash */
	bool is_about;
};

/* The tasks of one owner, oldest first. */
struct nt_inspector_line {
	uint64_t id; /* 0: of owners not known */
	struct nt_inspector_entry *first, **end;
	struct nt_inspector_line *prev, *next; /* in round-robin order */
	bool is_lost;
	UT_hash_handle hh;
};

struct nt_inspector_slot {
	struct nt_worker *worker; /* NULL: to be started */
	struct nt_inspector_entry *task; /* NULL: idle */
	uint64_t idle_ns; /* boot time since when it is idle */
};

struct nt_inspector {
	struct nt_workers *workers;
	struct nt_quarantine *quarantine;
	struct nt_inspector_hooks hooks;
	struct nt_inspector_slot slot[NT_INSPECTOR_WORKERS];
	struct nt_inspector_line *lines; /* uthash, owned; none is empty */
	struct nt_inspector_line *turn; /* served next */
	struct nt_share share; /* of the queued tasks */
	uint16_t pending[NT_INSPECTOR_PIDS]; /* counts of tasks, by pid hash */
	/* queued tasks that inspect a process, by the same hash */
	struct nt_inspector_entry *about[NT_INSPECTOR_PIDS];
	size_t queued, running;
	uint64_t number;
	int epoll;
	struct nt_inspector_stats stats;
	uint8_t message[NT_WORKER_BYTES];
};

/* agent/discover/inspector_queue.c: a queued entry that covers the task. NULL: none. */
struct nt_inspector_entry *nt_inspector_find_equal(struct nt_inspector *inspector,
						   const struct nt_inspector_task *task,
						   const char *path);
/* True if NT_INSPECTOR_MAPPINGS mappings of the process are queued. */
bool nt_inspector_has_many_mappings(struct nt_inspector *inspector, uint32_t pid);
/* -ENOSPC: its owner's share is full. The queue owns the entry until it is taken out. */
NT_MUST_CHECK int nt_inspector_queue(struct nt_inspector *inspector,
				     struct nt_inspector_entry *entry);
/* Takes out the entry that `at` points to. Other owners are served before the next of its owner. */
struct nt_inspector_entry *nt_inspector_take_out(struct nt_inspector *inspector,
						 struct nt_inspector_entry **at);

#endif
