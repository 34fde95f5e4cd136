/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file of SQLite that ends the process at a given write, for tests of a store that is killed. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_KILLING_FILE_H
#define NT_TESTS_UNIT_AGGREGATOR_KILLING_FILE_H

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	KILLING_STATUS = 77,
};

struct killing_file {
	sqlite3_file base;
	sqlite3_file *real;
};

static unsigned int killing_writes, killing_at; /* killing_at 0: never */
static sqlite3_vfs *real_vfs;
static sqlite3_vfs killing_vfs;
static sqlite3_io_methods killing_methods;

static void count_write(void)
{
	if (++killing_writes == killing_at)
		_exit(KILLING_STATUS);
}

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct killing_file *)file)->real;
}

static int write_counted(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
	count_write();
	return real_of(file)->pMethods->xWrite(real_of(file), data, len, at);
}

static int truncate_counted(sqlite3_file *file, sqlite3_int64 size)
{
	count_write();
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int close_real(sqlite3_file *file)
{
	sqlite3_file *real = real_of(file);
	int r = real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;

	free(real);
	return r;
}

#define FORWARD(name, parameters, arguments)                                                       \
	static int name##_real parameters                                                          \
	{                                                                                          \
		return real_of(file)->pMethods->name arguments;                                    \
	}

FORWARD(xRead, (sqlite3_file * file, void *data, int len, sqlite3_int64 at),
	(real_of(file), data, len, at))
FORWARD(xSync, (sqlite3_file * file, int flags), (real_of(file), flags))
FORWARD(xFileSize, (sqlite3_file * file, sqlite3_int64 *size), (real_of(file), size))
FORWARD(xLock, (sqlite3_file * file, int level), (real_of(file), level))
FORWARD(xUnlock, (sqlite3_file * file, int level), (real_of(file), level))
FORWARD(xCheckReservedLock, (sqlite3_file * file, int *out), (real_of(file), out))
FORWARD(xFileControl, (sqlite3_file * file, int op, void *data), (real_of(file), op, data))
FORWARD(xSectorSize, (sqlite3_file * file), (real_of(file)))
FORWARD(xDeviceCharacteristics, (sqlite3_file * file), (real_of(file)))
FORWARD(xShmMap, (sqlite3_file * file, int page, int size, int extend, void volatile **out),
	(real_of(file), page, size, extend, out))
FORWARD(xShmLock, (sqlite3_file * file, int offset, int n, int flags),
	(real_of(file), offset, n, flags))
FORWARD(xShmUnmap, (sqlite3_file * file, int remove_it), (real_of(file), remove_it))

static void shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int open_counted(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			int *ret_flags)
{
	struct killing_file *killing = (struct killing_file *)file;
	int r;

	(void)vfs;
	killing->real = calloc(1, (size_t)real_vfs->szOsFile);
	assert_non_null(killing->real);
	r = real_vfs->xOpen(real_vfs, name, killing->real, flags, ret_flags);
	file->pMethods = &killing_methods;
	return r;
}

static inline void killing_install(void)
{
	real_vfs = sqlite3_vfs_find(NULL);
	killing_methods = (sqlite3_io_methods){
		.iVersion = 2,
		.xClose = close_real,
		.xRead = xRead_real,
		.xWrite = write_counted,
		.xTruncate = truncate_counted,
		.xSync = xSync_real,
		.xFileSize = xFileSize_real,
		.xLock = xLock_real,
		.xUnlock = xUnlock_real,
		.xCheckReservedLock = xCheckReservedLock_real,
		.xFileControl = xFileControl_real,
		.xSectorSize = xSectorSize_real,
		.xDeviceCharacteristics = xDeviceCharacteristics_real,
		.xShmMap = xShmMap_real,
		.xShmLock = xShmLock_real,
		.xShmBarrier = shm_barrier,
		.xShmUnmap = xShmUnmap_real,
	};
	killing_vfs = *real_vfs;
	killing_vfs.zName = "killing";
	killing_vfs.szOsFile = sizeof(struct killing_file);
	killing_vfs.xOpen = open_counted;
	assert_int_equal(sqlite3_vfs_register(&killing_vfs, 1), SQLITE_OK);
}

/* Runs the life in a process that ends at its n-th write; 0: at none. Whether it was killed. */
static inline bool killing_run(void (*live)(void), unsigned int write_number)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		killing_writes = 0;
		killing_at = write_number;
		live();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLING_STATUS);
	return WEXITSTATUS(status) == KILLING_STATUS;
}

#endif
