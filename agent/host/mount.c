/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "common/base/parse_number.h"

enum {
	PATH_BYTES = 64,
	LINES_MAX = 100000, /* the limit of mounts in a namespace */
	FUSE_MAGIC = 0x65735546,
};

bool nt_mount_parse(const char *line, size_t len, uint64_t id, char ret_type[NT_MOUNT_TYPE])
{
	const char *space = memchr(line, ' ', len), *dash, *end;
	uint64_t found;
	size_t type_len;

	if (!space || nt_parse_u64(line, (size_t)(space - line), 0, UINT64_MAX, &found) < 0 ||
	    found != id)
		return false;
	/* A space within a path is written as \040. */
	dash = memmem(space, len - (size_t)(space - line), " - ", 3);
	if (!dash)
		return false;
	dash += 3;
	end = memchr(dash, ' ', len - (size_t)(dash - line));
	if (!end || end == dash || memchr(dash, '\0', (size_t)(end - dash)))
		return false;
	type_len = (size_t)(end - dash);
	if (type_len >= NT_MOUNT_TYPE)
		type_len = NT_MOUNT_TYPE - 1;
	memcpy(ret_type, dash, type_len);
	ret_type[type_len] = '\0';
	return true;
}

int nt_mount_type_of(uint32_t pid, int fd, char ret_type[NT_MOUNT_TYPE])
{
	nt_autofree char *line = NULL;
	char path[PATH_BYTES];
	struct statx st;
	size_t cap = 0;
	int r = -ENOENT;
	ssize_t len;
	FILE *file;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_MNT_ID))
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	for (int i = 0; i < LINES_MAX && r < 0 && (len = getline(&line, &cap, file)) > 0; i++)
		if (nt_mount_parse(line, (size_t)len, st.stx_mnt_id, ret_type))
			r = 0;
	(void)fclose(file);
	return r;
}

bool nt_mount_is_fuse(uint32_t pid, int fd, const struct stat *st)
{
	char type[NT_MOUNT_TYPE];
	struct statfs fs;

	if (major(st->st_dev))
		return false;
	if (nt_mount_type_of(pid, fd, type) == 0)
		return strcmp(type, "fuse") == 0 || strncmp(type, "fuse.", 5) == 0;
	return fstatfs(fd, &fs) == 0 && fs.f_type == FUSE_MAGIC;
}
