/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Discovery: which processes of this host map libraries of interest, and when processes start and
 * end. One scan of /proc at the start, then perf records of executable mappings, execs, forks and
 * exits. These cost a process nothing between events. Lost records are counted and cause another
 * scan.
 */
#ifndef NT_AGENT_DISCOVER_DISCOVER_H
#define NT_AGENT_DISCOVER_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/discover/catalog.h"
#include "agent/discover/inspector.h"
#include "agent/discover/quarantine.h"
#include "agent/discover/worker.h"
#include "agent/identity/owner.h"
#include "agent/identity/share.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

struct nt_discover;

/* A file with probed functions that a process maps. */
struct nt_mapped_file {
	uint32_t pid;
	uint64_t start_boot_ns; /* of the process */
	dev_t dev;
	ino_t ino;
	const char *path; /* can be opened until the call returns: /proc/self/fd/N */
	const char *name; /* the path in the process's mount namespace */
	enum nt_library library; /* by name; UNKNOWN: an executable, possibly static */
	bool executable; /* the process's main program */
	bool late; /* found by the first scan: started before the agent */
	const struct nt_owner *owner; /* of the process; NULL: not known */
	uint64_t
		probed_ns; /* boot time since which allocations in it are probed; 0: not yet known */
};

struct nt_discover_handler {
	/* Called once per (process, file). */
	void (*mapped)(void *data, const struct nt_mapped_file *file);
	/*
	 * The process (not just a thread) has ended. Only for processes that were reported mapped.
	 */
	void (*exited)(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t boot_ns);
	/*
	 * A running process was evicted for want of room; only for those reported mapped. It is
	 * reported again when there is room, or when it makes a call (nt_discover_recall()). May be
	 * NULL.
	 */
	void (*evicted)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/*
	 * A file was refused; called once per file. name NULL: not worth a log line. May be NULL.
	 */
	void (*refused)(void *data, uint32_t pid, const char *name, enum nt_refusal why);
	/* An inspection stalled. owner->id 0: not known. held: its owner is quarantined. */
	void (*stalled)(void *data, uint32_t pid, const struct nt_owner *owner, bool held);
	void *data;
};

struct nt_discover_options {
	const char *cgroup; /* only processes in this directory's subtree; NULL: all */
	bool attach_fuse; /* also inspect files on FUSE file systems */
	struct nt_workers *workers; /* borrowed, like quarantine */
	struct nt_quarantine *quarantine;
	struct nt_discover_handler handler;
};

/* An inspected file, borrowed until the next nt_discover_run(). */
struct nt_discover_file {
	int fd; /* for reading */
	const struct nt_symbols *symbols;
};

struct nt_discover_stats {
	uint64_t scans, lost_records, processes, files, over_cap, unreadable;
	uint64_t refused[NT_REFUSED_END]; /* files */
	struct nt_inspector_stats inspector;
};

NT_MUST_CHECK int nt_discover_new(const struct nt_discover_options *options,
				  struct nt_discover **ret_discover);
void nt_discover_free(struct nt_discover *discover);
NT_DEFINE_AUTO(nt_discover, nt_discover_free)

/* An epoll fd, readable when nt_discover_run() has work. */
int nt_discover_fd(const struct nt_discover *discover);
/* Calls the handler for new events, up to the limits of one run. Call at least once a second. */
NT_MUST_CHECK int nt_discover_run(struct nt_discover *discover);
/* False: records are unread, or were lost and the scan that makes up for them has not ended. */
bool nt_discover_is_complete(const struct nt_discover *discover);
/* True if the next nt_discover_run() has work for which the descriptor is not readable. */
bool nt_discover_is_behind(const struct nt_discover *discover);
/* A reported file, by its inode. -ENOENT: it is no longer in the catalog. */
NT_MUST_CHECK int nt_discover_file(const struct nt_discover *discover, dev_t dev, ino_t ino,
				   struct nt_discover_file *ret_file);
/* For other inspections; their results are delivered by nt_discover_run(). */
struct nt_inspector *nt_discover_inspector(struct nt_discover *discover);
/* Marks the process as one that makes calls: such processes are evicted last. */
void nt_discover_called(struct nt_discover *discover, uint32_t pid, uint64_t start_boot_ns);
/*
 * Inspects a process that was not reported but made an event. A later nt_discover_run() reports it
 * if it maps a file of interest and there is room.
 */
void nt_discover_recall(struct nt_discover *discover, uint32_t pid);
/* The shares of processes, and who is left out for want of room. */
const struct nt_share *nt_discover_share(const struct nt_discover *discover);
/*
 * True if an inspection of the process is pending; false positives are rare. If it is false and the
 * process was not reported, events from before the last complete inspection belong to another
 * process.
 */
bool nt_discover_awaits(const struct nt_discover *discover, uint32_t pid);
/* True if no inspection or scan is pending. */
bool nt_discover_is_idle(const struct nt_discover *discover);
/* True while the last scan goes on: processes left out are not counted yet. */
bool nt_discover_is_scanning(const struct nt_discover *discover);
void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats);

#endif
