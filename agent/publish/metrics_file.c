/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buf.h"

enum {
	PATH_BYTES = 4096,
	FILE_MODE = 0644,
};

static int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int nt_metrics_file_write(const struct nt_metrics *metrics, const char *path)
{
	nt_autobuf struct nt_buf buf = {0};
	nt_autoclose int fd = -1;
	char temporary[PATH_BYTES];
	int r;

	r = nt_metrics_write(metrics, NT_METRICS_PROMETHEUS, &buf);
	if (r < 0)
		return r;
	if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	r = write_all(fd, buf.data, buf.len);
	if (r < 0)
		return r;
	return rename(temporary, path) < 0 ? -errno : 0;
}
