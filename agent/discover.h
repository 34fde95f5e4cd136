/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which processes of this host map which libraries of interest, and which processes come and go.
 * One scan of /proc at the start, then the kernel tells: perf records of executable mappings,
 * execs, forks and exits, which cost a process nothing between such events. Lost records lead to
 * another scan, and are counted.
 */
#ifndef NT_AGENT_DISCOVER_H
#define NT_AGENT_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/owner.h"
#include "agent/share.h"
#include "common/cleanup.h"
#include "proto/wire.h"

struct nt_discover;

/* A file that holds probed functions, seen mapped in a process. */
struct nt_mapped_file {
	uint32_t pid;
	uint64_t start_boot_ns; /* of the process */
	dev_t dev;
	ino_t ino;
	const char *path; /* as a path of this mount namespace: /proc/PID/root/… or map_files */
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
	void *data;
};

struct nt_discover_stats {
	uint64_t scans, lost_records, processes, files, over_cap, unreadable;
};

/* cgroup: only processes in this directory's subtree; NULL: all. */
NT_MUST_CHECK int nt_discover_new(const char *cgroup, const struct nt_discover_handler *handler,
				  struct nt_discover **ret_discover);
void nt_discover_free(struct nt_discover *discover);
NT_DEFINE_AUTO(nt_discover, nt_discover_free)

/* Readable (epoll) when nt_discover_run() has something to do. */
int nt_discover_fd(const struct nt_discover *discover);
/* Calls the handler for what is new. Call at least every second too. */
NT_MUST_CHECK int nt_discover_run(struct nt_discover *discover);
/* False: records were lost, and the scan that makes up for them is still to come. */
bool nt_discover_is_complete(const struct nt_discover *discover);

/* The process has called: it is among the last to make room for others. */
void nt_discover_called(struct nt_discover *discover, uint32_t pid, uint64_t start_boot_ns);
/*
 * An event came of a process that was not reported: looks at it, and reports it if it maps a file of
 * interest and there is room. Reads files of /proc: the caller has a budget.
 */
void nt_discover_recall(struct nt_discover *discover, uint32_t pid);
/* Who is left out for want of room. */
const struct nt_share *nt_discover_share(const struct nt_discover *discover);

void nt_discover_stats(const struct nt_discover *discover, struct nt_discover_stats *ret_stats);

#endif
