/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/spool/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/bus/spool/frame.h"

enum {
	DIR_MODE = 0750,
	FILE_MODE = 0640,
	OPEN_DIR = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	SEGMENT_DIGITS = 20,
};

static const char segment_suffix[] = ".seg";
static const char draft_suffix[] = ".tmp";

static inline void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}
#define nt_autodir __attribute__((cleanup(close_dir)))

void nt_spool_segments_release(struct nt_spool_segments *segments)
{
	free(segments->base);
	*segments = (struct nt_spool_segments){0};
}

/*
 * A directory with the set-group-ID bit must keep it. A service manager may forbid setting that
 * bit; if it was inherited from the parent, there is nothing to set.
 */
static int set_dir_mode(int fd)
{
	struct stat st;
	mode_t mode;

	if (fstat(fd, &st) < 0)
		return -errno;
	mode = DIR_MODE | (st.st_mode & S_ISGID);
	if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

int nt_spool_open_root(const char *path, int *ret_fd)
{
	int fd = open(path, OPEN_DIR);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int nt_spool_make_root(const char *path, int *ret_fd)
{
	char prefix[PATH_MAX];
	size_t len = strlen(path);

	if (!len)
		return -EINVAL;
	if (len >= sizeof(prefix))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(prefix, path, i);
		prefix[i] = '\0';
		if (mkdir(prefix, DIR_MODE) == 0) {
			nt_autoclose int fd = open(prefix, OPEN_DIR);
			int r = fd < 0 ? -errno : set_dir_mode(fd);

			if (r < 0)
				return r;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	return nt_spool_open_root(path, ret_fd);
}

int nt_spool_open_dir(int parent, const char *name, int *ret_fd)
{
	int fd = openat(parent, name, OPEN_DIR | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int nt_spool_make_dir(int parent, const char *name, int *ret_fd)
{
	char draft[64];
	int r = nt_spool_open_dir(parent, name, ret_fd);

	if (r != -ENOENT)
		return r;
	(void)snprintf(draft, sizeof(draft), ".%d-%p.tmp", (int)getpid(), (void *)ret_fd);
	if (mkdirat(parent, draft, DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	{
		nt_autoclose int fd = -1;

		r = nt_spool_open_dir(parent, draft, &fd);
		if (r == 0)
			r = set_dir_mode(fd);
	}
	if (r == 0 && renameat2(parent, draft, parent, name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(parent, draft, AT_REMOVEDIR);
	if (r < 0 && r != -EEXIST)
		return r;
	return nt_spool_open_dir(parent, name, ret_fd);
}

void nt_spool_partition_name(uint32_t partition, char name[NT_SPOOL_NAME_BYTES])
{
	(void)snprintf(name, NT_SPOOL_NAME_BYTES, "%u", partition);
}

void nt_spool_segment_name(uint64_t base, char name[NT_SPOOL_NAME_BYTES])
{
	(void)snprintf(name, NT_SPOOL_NAME_BYTES, "%0*llu%s", SEGMENT_DIGITS,
		       (unsigned long long)base, segment_suffix);
}

void nt_spool_draft_name(uint64_t base, char name[NT_SPOOL_NAME_BYTES])
{
	(void)snprintf(name, NT_SPOOL_NAME_BYTES, "%0*llu%s", SEGMENT_DIGITS,
		       (unsigned long long)base, draft_suffix);
}

/* `digits` decimal digits and nothing else. */
static bool parse_digits(const char *text, size_t digits, uint64_t *ret_n)
{
	uint64_t n = 0;

	for (size_t i = 0; i < digits; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, (uint64_t)10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
			return false;
	}
	*ret_n = n;
	return digits > 0;
}

static bool parse_file_name(const char *name, const char *suffix, uint64_t *ret_base)
{
	return strlen(name) == SEGMENT_DIGITS + strlen(suffix) &&
	       strcmp(name + SEGMENT_DIGITS, suffix) == 0 &&
	       parse_digits(name, SEGMENT_DIGITS, ret_base) && *ret_base <= NT_SPOOL_MAX_OFFSET;
}

static int open_listing(int dirfd, DIR **ret_dir)
{
	nt_autoclose int fd = openat(dirfd, ".", OPEN_DIR);
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)nt_take_fd(&fd);
	*ret_dir = dir;
	return 0;
}

int nt_spool_list_partitions(int topic, uint64_t *ret_mask)
{
	nt_autodir DIR *dir = NULL;
	const struct dirent *entry;
	uint64_t mask = 0, n;
	int r = open_listing(topic, &dir);

	if (r < 0 || !dir)
		return r;
	for (errno = 0; (entry = readdir(dir));) {
		size_t len = strlen(entry->d_name);

		if (len <= 2 && parse_digits(entry->d_name, len, &n) &&
		    n < NT_SPOOL_MAX_PARTITIONS && (len == 1 || entry->d_name[0] != '0'))
			mask |= 1ULL << n;
	}
	if (errno)
		return -errno;
	*ret_mask = mask;
	return 0;
}

static int compare_bases(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int nt_spool_list_segments(int partition, struct nt_spool_segments *ret_segments)
{
	nt_autosegments struct nt_spool_segments segments = {0};
	nt_autodir DIR *dir = NULL;
	const struct dirent *entry;
	size_t cap = 0;
	uint64_t base;
	int r = open_listing(partition, &dir);

	if (r < 0 || !dir)
		return r;
	for (errno = 0; (entry = readdir(dir));) {
		if (!parse_file_name(entry->d_name, segment_suffix, &base) ||
		    (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) ||
		    segments.count == NT_SPOOL_MAX_SEGMENTS)
			continue;
		if (segments.count == cap) {
			size_t more = cap ? cap * 2 : 16;
			uint64_t *bases = reallocarray(segments.base, more, sizeof(*bases));

			if (!bases)
				return -ENOMEM;
			segments.base = bases;
			cap = more;
		}
		segments.base[segments.count++] = base;
	}
	if (errno)
		return -errno;
	if (segments.count)
		qsort(segments.base, segments.count, sizeof(base), compare_bases);
	nt_spool_segments_release(ret_segments);
	*ret_segments = segments;
	segments.base = NULL;
	return 0;
}

int nt_spool_remove_drafts(int partition)
{
	nt_autodir DIR *dir = NULL;
	const struct dirent *entry;
	uint64_t base;
	int r = open_listing(partition, &dir);

	if (r < 0 || !dir)
		return r;
	while ((entry = readdir(dir)))
		if (parse_file_name(entry->d_name, draft_suffix, &base))
			(void)unlinkat(partition, entry->d_name, 0);
	return 0;
}

int nt_spool_open_segment(int partition, uint64_t base, int *ret_fd)
{
	char name[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;
	struct stat st;

	nt_spool_segment_name(base, name);
	/* Non-blocking: a FIFO or device under this name must not block. */
	fd = openat(partition, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	*ret_fd = nt_take_fd(&fd);
	return 0;
}

int nt_spool_make_draft(int partition, uint64_t base, int *ret_fd)
{
	char name[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;

	nt_spool_draft_name(base, name);
	if (unlinkat(partition, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(partition, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, FILE_MODE) < 0) {
		int r = -errno;

		(void)unlinkat(partition, name, 0);
		return r;
	}
	*ret_fd = nt_take_fd(&fd);
	return 0;
}

int nt_spool_publish_draft(int partition, uint64_t base)
{
	char draft[NT_SPOOL_NAME_BYTES], name[NT_SPOOL_NAME_BYTES];

	nt_spool_draft_name(base, draft);
	nt_spool_segment_name(base, name);
	return renameat(partition, draft, partition, name) < 0 ? -errno : 0;
}
