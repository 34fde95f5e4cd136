/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which kind of file system an open file is on, by the kernel's list of mounts. */
#ifndef NT_AGENT_HOST_MOUNT_H
#define NT_AGENT_HOST_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_MOUNT_TYPE = 32, /* bytes with the NUL; longer ones are cut */
};

/* Of our descriptor fd, whose mount the process sees. -ENOENT: it is not in its list. */
NT_MUST_CHECK int nt_mount_type_of(uint32_t pid, int fd, char ret_type[NT_MOUNT_TYPE]);

/* In a line of /proc/PID/mountinfo. False: it is of another mount, or malformed. */
bool nt_mount_parse(const char *line, size_t len, uint64_t id, char ret_type[NT_MOUNT_TYPE]);

#endif
