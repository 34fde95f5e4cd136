/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fault injection for a spool's disk: in successive runs the first, the second, and each further
 * file system call fails once.
 */
#ifndef NT_TESTS_UNIT_COMMON_SPOOL_DISK_H
#define NT_TESTS_UNIT_COMMON_SPOOL_DISK_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/file.h>

#include "common/system/clock.h"
#include "tests/unit/common/spool.h"

/* ---- the calls that fail --------------------------------------------------------------------- */

enum call {
	CALL_OPEN,
	CALL_FSTAT,
	CALL_FSTATAT,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_FTRUNCATE,
	CALL_SYNC,
	CALL_RENAME,
	CALL_UNLINK,
	CALL_MKDIR,
	CALL_FCHMOD,
	CALL_LIST,
	CALL_READ_DIR,
	CALL_LOCK,
	CALL_END,
};

static size_t countdown; /* 0: nothing fails */
static enum call failed; /* CALL_END: none yet */

static inline void fail_nth(size_t n)
{
	countdown = n;
	failed = CALL_END;
}

static inline bool fails(enum call call)
{
	if (!countdown || --countdown)
		return false;
	failed = call;
	errno = EIO;
	return true;
}

/* Whether the n-th call existed and failed. From here on all calls succeed. */
static inline bool has_failed(void)
{
	countdown = 0;
	return failed != CALL_END;
}

/* They replace those of the C library in this program. */
#define STANDS_IN(call, type, name, args, ...)                                                     \
	type fault_##name args __asm__(#name);                                                     \
	type fault_##name args                                                                     \
	{                                                                                          \
		static type(*real) args;                                                           \
                                                                                                   \
		if (!real)                                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                                 \
		return fails(call) ? FAILURE(type) : real(__VA_ARGS__);                            \
	}

#define FAILURE(type)   _Generic((type)0, DIR * : NULL, struct dirent * : NULL, default : -1)
#define DIRECTORY       DIR *
#define DIRECTORY_ENTRY struct dirent *

STANDS_IN(CALL_OPEN, int, open, (const char *path, int flags, mode_t mode), path, flags, mode)
STANDS_IN(CALL_OPEN, int, openat, (int dir, const char *path, int flags, mode_t mode), dir, path,
	  flags, mode)
STANDS_IN(CALL_FSTAT, int, fstat, (int fd, struct stat *st), fd, st)
STANDS_IN(CALL_FSTATAT, int, fstatat, (int dir, const char *path, struct stat *st, int flags), dir,
	  path, st, flags)
STANDS_IN(CALL_PREAD, ssize_t, pread, (int fd, void *to, size_t n, off_t at), fd, to, n, at)
STANDS_IN(CALL_PWRITE, ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), fd, from, n,
	  at)
STANDS_IN(CALL_FTRUNCATE, int, ftruncate, (int fd, off_t size), fd, size)
STANDS_IN(CALL_SYNC, int, fsync, (int fd), fd)
STANDS_IN(CALL_SYNC, int, fdatasync, (int fd), fd)
STANDS_IN(CALL_RENAME, int, renameat, (int a, const char *from, int b, const char *to), a, from, b,
	  to)
STANDS_IN(CALL_RENAME, int, renameat2,
	  (int a, const char *from, int b, const char *to, unsigned int flags), a, from, b, to,
	  flags)
STANDS_IN(CALL_UNLINK, int, unlinkat, (int dir, const char *path, int flags), dir, path, flags)
STANDS_IN(CALL_MKDIR, int, mkdir, (const char *path, mode_t mode), path, mode)
STANDS_IN(CALL_MKDIR, int, mkdirat, (int dir, const char *path, mode_t mode), dir, path, mode)
STANDS_IN(CALL_FCHMOD, int, fchmod, (int fd, mode_t mode), fd, mode)
STANDS_IN(CALL_LIST, DIRECTORY, fdopendir, (int fd), fd)
STANDS_IN(CALL_READ_DIR, DIRECTORY_ENTRY, readdir, (DIR * dir), dir)
STANDS_IN(CALL_LOCK, int, flock, (int fd, int how), fd, how)

static unsigned int closed_twice;

int fault_close(int fd) __asm__("close");
int fault_close(int fd)
{
	static int (*real)(int fd);
	int r;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "close");
	r = real(fd);
	/* The descriptor may have been reused by then. */
	closed_twice += r < 0 && errno == EBADF;
	return r;
}

/* ---- the runs -------------------------------------------------------------------------------- */

enum {
	RECORDS = 60,
	RECORD_BYTES = 250,
	ENOUGH = 2000, /* calls; a sweep that does not end earlier is broken */
};

static const struct nt_bus_options synced = {.segment_bytes = 4 << 10, .sync = true};

/* A sweep ends with the first n for which no call failed. */
#define SWEEP(n, dir)                                                                              \
	for (size_t n = 1, in_sweep = 1; in_sweep && place(dir, n);                                \
	     in_sweep = failed != CALL_END, n++)

static char where[PATH_BYTES];

/* A fresh directory for the n-th run, named in `where`. */
static inline bool place(const char *dir, size_t n)
{
	assert_true(n < ENOUGH);
	assert_int_equal(closed_twice, 0);
	if (n > 1)
		scratch_remove(where);
	(void)snprintf(where, sizeof(where), "%.200s/%zu", dir, n);
	fail_nth(0);
	return true;
}

struct count {
	uint64_t records, sum, newest[10];
};

static inline void note(struct count *count, const struct nt_bus_record *record)
{
	const uint64_t number = number_of(record);

	count->records++;
	count->sum += number;
	count->newest[number % 10] = number;
}

/* Reads all records without faults. Offsets must rise. */
static inline struct count read_all(const char *dir, enum nt_topic topic)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = open_reader(dir, topic);
	struct nt_bus_record record;
	struct count count = {0};
	uint64_t next = 0;

	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		assert_true(record.offset >= next);
		next = record.offset + 1;
		note(&count, &record);
	}
	assert_int_equal(corrupt_frames(reader), 0);
	return count;
}

#endif
