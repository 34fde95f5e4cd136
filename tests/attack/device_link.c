/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process in a mount namespace of its own maps a probed library whose path there has become a
 * link to something else: a character device, a pipe. Whoever opens that path opens the device.
 * Prints "mapped", then "opened" each time that the target is opened; at last it opens that path by
 * itself, and prints "watched" if that is seen.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/attack.h"

enum {
	COPY_BYTES = 16 << 20,
	LOOK_MS = 100,
};

static void hide_behind_link(const char *dir, const char *target, uid_t user)
{
	int from = attack_open_library(NULL, "libnccl.so.2"), to;
	char *path = attack_library(dir, "libnccl.so.2");

	(void)attack_must(unshare(CLONE_NEWNS), "have a mount namespace");
	(void)attack_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "keep mounts apart");
	(void)attack_must(mount("none", dir, "tmpfs", 0, "mode=755"), "mount");
	to = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	(void)attack_must(to, path);
	(void)attack_must(sendfile(to, from, NULL, COPY_BYTES), "copy the library");
	(void)close(to);
	to = open(path, O_RDONLY | O_CLOEXEC);
	(void)attack_must(to, path);
	/* Over it: the mapping has the path of the library, and the path leads to the link. */
	(void)attack_must(mount("none", dir, "tmpfs", 0, "mode=755"), "mount over it");
	(void)attack_must(symlink(target, path), "link");
	attack_become(user);
	attack_map_code(to);
	attack_say("mapped");
	for (;;)
		(void)pause();
}

static bool is_opened(int watch, int wait_ms)
{
	char event[sizeof(struct inotify_event) + 256];
	struct pollfd ready = {.fd = watch, .events = POLLIN};

	return poll(&ready, 1, wait_ms) > 0 && read(watch, event, sizeof(event)) > 0;
}

/* By the path alone, without a look at where its links lead. */
static void open_carelessly(pid_t process, const char *dir)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%d/root%s/libnccl.so.2", process, dir);
	(void)close(attack_must(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), path));
}

int main(int argc, char **argv)
{
	double seconds = 5, user = ATTACK_NOBODY;
	const char *target = "/dev/null", *dir = NULL;
	const struct attack_option options[] = {
		{"dir", "an empty directory to mount over", NULL, &dir},
		{"target", "what the path leads to (/dev/null)", NULL, &target},
		{"seconds", "how long (5)", &seconds, NULL},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	int left, watch;
	pid_t process;

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	if (!dir)
		return 2;
	attack_take_signals();
	watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	(void)attack_must(inotify_add_watch(watch, target, IN_OPEN), target);
	process = attack_must(fork(), "fork");
	if (process == 0)
		hide_behind_link(dir, target, (uid_t)user);
	for (left = (int)(seconds * 1000); left > 0 && !attack_wait(0); left -= LOOK_MS)
		if (is_opened(watch, LOOK_MS))
			attack_say("opened");
	open_carelessly(process, dir);
	if (is_opened(watch, LOOK_MS))
		attack_say("watched");
	return 0;
}
