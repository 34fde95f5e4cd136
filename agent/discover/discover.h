/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which processes of this host map which libraries of interest, and which processes come and go.
 * One scan of /proc at the start, then the kernel tells: perf records of executable mappings,
 * execs, forks and exits, which cost a process nothing between such events. Lost records lead to
 * another scan, and are counted.
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

/* A file that holds probed functions, seen mapped in a process. */
struct nt_mapped_file {
	uint32_t pid;
	uint64_t start_boot_ns; /* of the process */
	dev_t dev;
	ino_t ino;
	const char *path; /* by which it can be opened until the call returns: /proc/self/fd/N */
	const char *name; /* the path as the process sees it */
	enum nt_library library; /* by name; UNKNOWN: an executable that may hold one statically */
	bool executable; /* the process's main program */
	bool late; /* found by the first scan: the process ran before the agent */
	const struct nt_owner *owner; /* of the process; NULL: not known */
};

struct nt_discover_handler {
	/* Called once per (process, file). */
	void (*mapped)(void *data, const struct nt_mapped_file *file);
	/* The process (not a mere thread) has ended. Only for processes that were reported mapped. */
	void (*exited)(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t boot_ns);
	/*
	 * The process goes on, but there is no room for it any more; also only for those reported. It
	 * is reported anew when there is, or when it calls (nt_discover_recall()). NULL: nobody is to know.
	 */
	void (*evicted)(void *data, uint32_t pid, uint64_t start_boot_ns);
	/* A file is not looked at; once each. name NULL: not worth a line. The hook may be NULL. */
	void (*refused)(void *data, uint32_t pid, const char *name, enum nt_refusal why);
	/* An inspection has stalled. owner->id 0: not known. held: and its owner is quarantined. */
	void (*stalled)(void *data, uint32_t pid, const struct nt_owner *owner, bool held);
	void *data;
};

struct nt_discover_options {
	const char *cgroup; /* only processes in this directory's subtree; NULL: all */
	bool attach_fuse; /* files of user-space file systems, too */
	struct nt_workers *workers; /* borrowed, as is the next */
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

/* Readable (epoll) when nt_discover_run() has something to do. */
int nt_discover_fd(const struct nt_discover *discover);
/* Calls the handler for what is new, as much as one run may take. Call at least every second too. */
NT_MUST_CHECK int nt_discover_run(struct nt_discover *discover);
/*
 * False: records were lost, and the scan that makes up for them is still to come, or goes on; or there
 * are records that no run has taken yet.
 */
bool nt_discover_is_complete(const struct nt_discover *discover);
/* The next nt_discover_run() has something to do at once, for which the descriptor is not readable. */
bool nt_discover_is_behind(const struct nt_discover *discover);
/* What was reported by its inode. -ENOENT: it is not known any more. */
NT_MUST_CHECK int nt_discover_file(const struct nt_discover *discover, dev_t dev, ino_t ino,
				   struct nt_discover_file *ret_file);
/* For what else is to be inspected; its answers come by nt_discover_run(). */
struct nt_inspector *nt_discover_inspector(struct nt_discover *discover);
/* The process has called: it is among the last to make room for others. */
void nt_discover_called(struct nt_discover *discover, uint32_t pid, uint64_t start_boot_ns);
/*
 * An event came of a process that was not reported: has it looked at. It is reported by a later
 * nt_discover_run() if it maps a file of interest and there is room.
 */
void nt_discover_recall(struct nt_discover *discover, uint32_t pid);
/* Who is left out for want of room. */
const struct nt_share *nt_discover_share(const struct nt_discover *discover);
/*
 * Is something of the process still to be looked at? Of one that was not reported, and of which nothing
 * is, an event from before the last complete look is a stranger's. Rarely true where nothing is.
 */
bool nt_discover_awaits(const struct nt_discover *discover, uint32_t pid);
/* Nothing at all is to be looked at. */
bool nt_discover_is_idle(const struct nt_discover *discover);
/* The last scan goes on: those who are left out are not counted yet. */
bool nt_discover_is_scanning(const struct nt_discover *discover);
void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats);

#endif
