/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Change notification for DIR, by inotify, so that readers need not poll. If the kernel provides no
 * watches, it reports so, and the reader polls at intervals.
 */
#ifndef NT_COMMON_BUS_SPOOL_WATCH_H
#define NT_COMMON_BUS_SPOOL_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/cleanup.h"

struct nt_spool_watch {
	bool is_open;
	int fd; /* -1: not open, or not available */
	bool is_partial; /* a directory could not be watched */
	int waiting; /* watch of the parent in which DIR is to appear, or -1 */
};

enum nt_spool_change {
	NT_SPOOL_NOTHING,
	NT_SPOOL_DATA, /* a file has grown */
	NT_SPOOL_NAMES, /* directories or files were created or removed, or the change is unknown */
};

/* Until it is opened, all other calls do nothing. Closing watches takes the kernel many ms. */
void nt_spool_watch_init(struct nt_spool_watch *watch);
void nt_spool_watch_open(struct nt_spool_watch *watch);
void nt_spool_watch_close(struct nt_spool_watch *watch);

/* Watches an existing directory; idempotent. */
void nt_spool_watch_dir(struct nt_spool_watch *watch, const char *path);
/* Watches the place where the next missing component of path is to appear. */
void nt_spool_watch_missing(struct nt_spool_watch *watch, const char *path);
/* DIR exists: stops watching its parents. */
void nt_spool_watch_found(struct nt_spool_watch *watch);

/* The changes since the last call. Does not block. */
enum nt_spool_change nt_spool_watch_drain(struct nt_spool_watch *watch);

/* Waits up to timeout_ms (-1: no limit) for a change. -EINTR. */
NT_MUST_CHECK int nt_spool_watch_wait(const struct nt_spool_watch *watch, int timeout_ms);

#endif
