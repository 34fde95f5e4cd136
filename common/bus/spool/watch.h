/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tells a reader that something may have changed under DIR, without asking again and again. Where
 * the kernel gives no watches, it says so, and the reader looks at intervals.
 */
#ifndef NT_COMMON_BUS_SPOOL_WATCH_H
#define NT_COMMON_BUS_SPOOL_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/cleanup.h"

struct nt_spool_watch {
	bool is_open;
	int fd; /* -1: not open, or none to be had */
	bool is_partial; /* something could not be watched */
	int waiting; /* watch of the place where DIR is to appear, or -1 */
};

enum nt_spool_change {
	NT_SPOOL_NOTHING,
	NT_SPOOL_DATA, /* a file has grown */
	NT_SPOOL_NAMES, /* directories or files came or went, or we do not know what */
};

/* Until it is opened, all other calls do nothing. Ending watches takes the kernel many ms. */
void nt_spool_watch_init(struct nt_spool_watch *watch);
void nt_spool_watch_open(struct nt_spool_watch *watch);
void nt_spool_watch_close(struct nt_spool_watch *watch);

/* A directory that is there. Watching it twice is watching it once. */
void nt_spool_watch_dir(struct nt_spool_watch *watch, const char *path);
/* The place where the next missing component of path is to appear. */
void nt_spool_watch_missing(struct nt_spool_watch *watch, const char *path);
/* DIR is there now: its parents are nobody's business. */
void nt_spool_watch_found(struct nt_spool_watch *watch);

/* What has changed since the last call. Does not wait. */
enum nt_spool_change nt_spool_watch_drain(struct nt_spool_watch *watch);

/* Waits up to timeout_ms (-1: for ever) for a change. -EINTR. */
NT_MUST_CHECK int nt_spool_watch_wait(const struct nt_spool_watch *watch, int timeout_ms);

#endif
