/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	CHUNK_BYTES = 4096,
};

int nt_file_read(const char *path, size_t max, struct nt_buf *buf)
{
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t start = buf->len;
	ssize_t n = 0;
	int r;

	if (fd < 0)
		return -errno;
	for (;;) {
		r = nt_buf_reserve(buf, CHUNK_BYTES);
		if (r < 0)
			break;
		n = read(fd, buf->data + buf->len, CHUNK_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : 0;
		if (n <= 0)
			break;
		buf->len += (size_t)n;
		if (buf->len - start > max) {
			r = -EFBIG;
			break;
		}
	}
	if (r < 0)
		buf->len = start;
	return r;
}

int nt_file_make_parent(const char *path, mode_t mode)
{
	char dir[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(dir))
		return -ENAMETOOLONG;
	for (size_t i = 1; i < len; i++) {
		if (path[i] != '/' || path[i - 1] == '/')
			continue;
		memcpy(dir, path, i);
		dir[i] = '\0';
		if (mkdir(dir, mode) && errno != EEXIST) {
			struct stat st;

			/* On a read-only file system, mkdir() may report another error first. */
			if (stat(dir, &st))
				return -errno;
		}
	}
	return 0;
}

static int write_all(int fd, const char *content, size_t len)
{
	while (len) {
		ssize_t n = write(fd, content, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		content += n;
		len -= (size_t)n;
	}
	return 0;
}

int nt_file_create(const char *path, mode_t mode, const void *content, size_t len)
{
	char temporary[PATH_MAX];
	nt_autoclose int fd = -1;
	int n, r;

	n = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;

	r = fchmod(fd, mode) ? -errno : write_all(fd, content, len);
	if (r == 0 && fsync(fd))
		r = -errno;
	/* link() and not rename(): an existing file is never replaced. */
	if (r == 0 && link(temporary, path))
		r = -errno;
	(void)unlink(temporary);
	return r;
}
