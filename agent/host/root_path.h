/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opens files by paths of another process, which controls its root, its mounts and every link. A
 * path is therefore resolved within that root only. The file type is checked before opening, since
 * opening a device or a FIFO has side effects. All functions may block: for workers only.
 */
#ifndef NT_AGENT_HOST_ROOT_PATH_H
#define NT_AGENT_HOST_ROOT_PATH_H

#include <stdint.h>
#include <sys/stat.h>

#include "agent/host/proc.h"
#include "common/base/cleanup.h"

/*
 * Opens the regular file at an absolute path of the process as an O_PATH descriptor, which the
 * caller closes. -EBADF: not a regular file.
 */
NT_MUST_CHECK int nt_root_path_open(uint32_t pid, const char *path, struct stat *ret_stat);

/* The same for a magic link of /proc: exe, map_files. */
NT_MUST_CHECK int nt_root_path_follow(const char *link, struct stat *ret_stat);

/*
 * Opens the file of a mapping: by map_files, which walks no path (but needs CAP_CHECKPOINT_RESTORE
 * or CAP_SYS_ADMIN), else by name. Overlays can show an inode number or that of the layer below. If
 * neither file has the mapping's number, either is accepted.
 */
NT_MUST_CHECK int nt_root_path_open_mapping(uint32_t pid, const struct nt_mapping *mapping,
					    struct stat *ret_stat);

/* Reopens an O_PATH descriptor for reading. -ESTALE: not the regular file (dev, ino). */
NT_MUST_CHECK int nt_root_path_read(int fd, dev_t dev, ino_t ino);

#endif
