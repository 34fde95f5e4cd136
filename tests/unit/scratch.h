/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scratch directory for one test, and its removal. */
#ifndef NT_TESTS_UNIT_SCRATCH_H
#define NT_TESTS_UNIT_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SCRATCH_BYTES = 64,
};

static inline int scratch_make(char dir[SCRATCH_BYTES])
{
	(void)snprintf(dir, SCRATCH_BYTES, "/tmp/nt-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

/* In memory if possible: for tests that sync often and do not test the disk. */
static inline int scratch_make_in_memory(char dir[SCRATCH_BYTES])
{
	(void)snprintf(dir, SCRATCH_BYTES, "/dev/shm/nt-test-XXXXXX");
	return mkdtemp(dir) ? 0 : scratch_make(dir);
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
				     struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void scratch_remove(const char *dir)
{
	(void)nftw(dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
