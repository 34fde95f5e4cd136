/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>

enum {
	EVENTS_BYTES = 16 << 10,
	WATCH_MASK = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_DELETE_SELF |
		     IN_MOVE_SELF | IN_ONLYDIR,
	NAMES_MASK = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW |
		     IN_IGNORED,
};

void nt_spool_watch_init(struct nt_spool_watch *watch)
{
	*watch = (struct nt_spool_watch){.fd = -1, .waiting = -1};
}

void nt_spool_watch_open(struct nt_spool_watch *watch)
{
	if (watch->is_open)
		return;
	watch->is_open = true;
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	watch->is_partial = watch->fd < 0;
}

void nt_spool_watch_close(struct nt_spool_watch *watch)
{
	nt_closep(&watch->fd);
	watch->fd = -1;
}

void nt_spool_watch_dir(struct nt_spool_watch *watch, const char *path)
{
	if (watch->fd < 0)
		return;
	if (inotify_add_watch(watch->fd, path, WATCH_MASK) < 0 && errno != ENOENT)
		watch->is_partial = true;
}

void nt_spool_watch_found(struct nt_spool_watch *watch)
{
	if (watch->waiting >= 0)
		(void)inotify_rm_watch(watch->fd, watch->waiting);
	watch->waiting = -1;
}

/* Cuts the last component off. False if there is none. */
static bool cut_to_parent(char *path)
{
	char *slash = strrchr(path, '/');

	while (slash && slash > path && slash[1] == '\0') {
		*slash = '\0';
		slash = strrchr(path, '/');
	}
	if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
		return false;
	if (!slash)
		memcpy(path, ".", 2);
	else if (slash == path)
		path[1] = '\0';
	else
		*slash = '\0';
	return true;
}

/* A watch of the nearest existing parent, or -1. */
static int watch_parent(const struct nt_spool_watch *watch, const char *path)
{
	char parent[PATH_MAX];
	size_t len = strlen(path);
	int wd;

	if (len >= sizeof(parent))
		return -1;
	memcpy(parent, path, len + 1);
	do {
		if (!cut_to_parent(parent))
			return -1;
		wd = inotify_add_watch(watch->fd, parent, WATCH_MASK & ~IN_MODIFY);
	} while (wd < 0 && errno == ENOENT);
	return wd;
}

void nt_spool_watch_missing(struct nt_spool_watch *watch, const char *path)
{
	int wd = watch->waiting;

	if (watch->fd < 0)
		return;
	/* A nearer parent may appear before the watch is set: repeat until it is the same. */
	do {
		if (wd != watch->waiting)
			nt_spool_watch_found(watch);
		watch->waiting = wd;
		wd = watch_parent(watch, path);
	} while (wd >= 0 && wd != watch->waiting);
	if (wd < 0)
		watch->is_partial = true;
}

enum nt_spool_change nt_spool_watch_drain(struct nt_spool_watch *watch)
{
	enum nt_spool_change change = NT_SPOOL_NOTHING;
	alignas(struct inotify_event) char bytes[EVENTS_BYTES];

	for (;;) {
		ssize_t n = watch->fd < 0 ? -1 : read(watch->fd, bytes, sizeof(bytes));

		if (n < 0 && watch->fd >= 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return change;
		for (char *at = bytes; at < bytes + n;) {
			struct inotify_event event;

			memcpy(&event, at, sizeof(event));
			at += sizeof(event) + event.len;
			/* A removed segment is irrelevant; a removed directory must be released. */
			if (event.mask & NAMES_MASK ||
			    (event.mask & IN_DELETE && event.mask & IN_ISDIR))
				change = NT_SPOOL_NAMES;
			else if (change == NT_SPOOL_NOTHING)
				change = NT_SPOOL_DATA;
		}
	}
}

int nt_spool_watch_wait(const struct nt_spool_watch *watch, int timeout_ms)
{
	struct pollfd pollfd = {.fd = watch->fd, .events = POLLIN};

	return poll(&pollfd, 1, timeout_ms) < 0 ? -errno : 0;
}
