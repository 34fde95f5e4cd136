/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opening what another process names. Its root, its mounts and every link on the way are under its
 * control, so a path is resolved within its root alone, and what it leads to is looked at before it is
 * opened: opening a device or a FIFO has effects of its own. All of it may block: for workers.
 */
#ifndef NT_AGENT_HOST_ROOT_PATH_H
#define NT_AGENT_HOST_ROOT_PATH_H

#include <stdint.h>
#include <sys/stat.h>

#include "agent/host/proc.h"
#include "common/base/cleanup.h"

/*
 * The regular file at an absolute path of the process, as an O_PATH descriptor that the caller closes.
 * -EBADF: it is no regular file.
 */
NT_MUST_CHECK int nt_root_path_open(uint32_t pid, const char *path, struct stat *ret_stat);

/* The same for a link of /proc that leads to a file, not to a path: exe, map_files. */
NT_MUST_CHECK int nt_root_path_follow(const char *link, struct stat *ret_stat);

/*
 * The file of a mapping: by the mapping itself, which walks no path (but takes CAP_CHECKPOINT_RESTORE or
 * CAP_SYS_ADMIN), else by its name. Overlays show an inode number in some places and the one beneath it
 * in others: where neither has the number of the mapping, either is better than none.
 */
NT_MUST_CHECK int nt_root_path_open_mapping(uint32_t pid, const struct nt_mapping *mapping,
					    struct stat *ret_stat);

/*
 * Opens for reading what an O_PATH descriptor stands for. -ESTALE: it is not the regular file (dev, ino).
 */
NT_MUST_CHECK int nt_root_path_read(int fd, dev_t dev, ino_t ino);

#endif
