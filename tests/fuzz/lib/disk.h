/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file system in memory under /disk, for targets that read directories: no system call is made, so
 * that a run takes microseconds. The link wraps the calls (fuzz_disk in tests/make/test.mk); paths
 * elsewhere go to the kernel. It knows what common/spool uses, and aborts where it is full.
 */
#ifndef NT_TESTS_FUZZ_DISK_H
#define NT_TESTS_FUZZ_DISK_H

#include <stddef.h>

#define FUZZ_DISK "/disk"

enum {
	FUZZ_DISK_FILE_BYTES = 256 << 10, /* of one file, at most */
};

/* Empties it. No file may be open. */
void fuzz_disk_clear(void);
/* A file with this content, and the directories in front of it. */
void fuzz_disk_put(const char *path, const void *data, size_t size);

#endif
