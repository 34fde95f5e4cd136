/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/root_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

enum {
	LINK_BYTES = 96,
	TRIES = 3, /* a concurrent rename makes the kernel fail if there is a ".." */
};

/*
 * Cached attributes suffice: file systems in user space or on a network are not queried. Access
 * times are excluded, since they are never current after a read.
 */
static int look(int fd, struct stat *ret_stat)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE | STATX_CTIME, &st) < 0)
		return -errno;
	*ret_stat = (struct stat){
		.st_dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.st_ino = st.stx_ino,
		.st_mode = st.stx_mode,
		.st_size = (off_t)st.stx_size,
		.st_ctim = {.tv_sec = st.stx_ctime.tv_sec, .tv_nsec = st.stx_ctime.tv_nsec},
	};
	return 0;
}

static int take_regular(int *fd, struct stat *ret_stat)
{
	struct stat st;
	int r = look(*fd, &st);

	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return -EBADF;
	*ret_stat = st;
	return nt_take_fd(fd);
}

int nt_root_path_open(uint32_t pid, const char *path, struct stat *ret_stat)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	nt_autoclose int root = -1;
	nt_autoclose int fd = -1;
	char link[LINK_BYTES];

	(void)snprintf(link, sizeof(link), "/proc/%u/root", pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	for (int i = 0; i < TRIES && fd < 0; i++) {
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			return -errno;
	}
	return fd < 0 ? -EAGAIN : take_regular(&fd, ret_stat);
}

int nt_root_path_follow(const char *link, struct stat *ret_stat)
{
	nt_autoclose int fd = open(link, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : take_regular(&fd, ret_stat);
}

int nt_root_path_open_mapping(uint32_t pid, const struct nt_mapping *mapping, struct stat *ret_stat)
{
	nt_autoclose int direct = -1;
	nt_autoclose int walked = -1;
	struct stat direct_st = {0}, walked_st = {0};
	char link[LINK_BYTES];

	(void)snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", pid,
		       (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	direct = nt_root_path_follow(link, &direct_st);
	if (direct >= 0 && direct_st.st_ino == mapping->ino) {
		*ret_stat = direct_st;
		return nt_take_fd(&direct);
	}
	walked = nt_root_path_open(pid, mapping->path, &walked_st);
	if (direct >= 0 && (walked < 0 || walked_st.st_ino != mapping->ino)) {
		*ret_stat = direct_st;
		return nt_take_fd(&direct);
	}
	if (walked < 0)
		return walked;
	*ret_stat = walked_st;
	return nt_take_fd(&walked);
}

int nt_root_path_read(int fd, dev_t dev, ino_t ino)
{
	nt_autoclose int file = -1;
	char link[LINK_BYTES];
	struct stat st;
	int r = look(fd, &st);

	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode) || st.st_dev != dev || st.st_ino != ino)
		return -ESTALE;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	file = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	r = look(file, &st);
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode) || st.st_dev != dev || st.st_ino != ino)
		return -ESTALE;
	return nt_take_fd(&file);
}
