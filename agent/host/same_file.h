/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tests whether two open files share the page cache. Containers of one image see a library through
 * separate overlays, each with its own device number. The kernel puts a probe into the underlying
 * file, which all execute: a probe per overlay would count calls repeatedly.
 */
#ifndef NT_AGENT_HOST_SAME_FILE_H
#define NT_AGENT_HOST_SAME_FILE_H

#include <stdbool.h>

/*
 * Compares the page frames of their first pages. If frames are hidden (no SYS_ADMIN), compares
 * inode number and size, which overlays keep if all their layers are on one file system.
 */
bool nt_same_file(int fd, int other_fd);

#endif
