/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Are two open files one and the same in the page cache? Containers of one image see a library
 * through overlays of their own, each with its device number; the kernel puts a probe into the
 * file beneath, which all of them run. Probing it once per overlay would count every call as often.
 */
#ifndef NT_AGENT_HOST_SAME_FILE_H
#define NT_AGENT_HOST_SAME_FILE_H

#include <stdbool.h>

/*
 * By the page frame of their first page. Where the kernel does not show frames (no SYS_ADMIN), by
 * inode number and size, which overlays keep when all their layers are on one file system.
 */
bool nt_same_file(int fd, int other_fd);

#endif
