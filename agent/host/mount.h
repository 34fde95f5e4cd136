/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file system type of an open file, from the kernel's mount table. */
#ifndef NT_AGENT_HOST_MOUNT_H
#define NT_AGENT_HOST_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"

enum {
	NT_MOUNT_TYPE = 32, /* bytes with the NUL; longer ones are cut */
};

/* The type for our descriptor fd, by the mount table of pid. -ENOENT: not in that table. */
NT_MUST_CHECK int nt_mount_type_of(uint32_t pid, int fd, char ret_type[NT_MOUNT_TYPE]);

/*
 * True if the file is on a FUSE file system. Found from the mounts, since the file system might not
 * answer. One with a block device is none.
 */
bool nt_mount_is_fuse(uint32_t pid, int fd, const struct stat *st);

/* Parses a line of /proc/PID/mountinfo. False: another mount, or malformed. */
bool nt_mount_parse(const char *line, size_t len, uint64_t id, char ret_type[NT_MOUNT_TYPE]);

#endif
