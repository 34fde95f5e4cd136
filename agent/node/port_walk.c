/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/port_walk.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	COUNTER_BYTES = 64, /* one number and a line feed */
};

static void close_dirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

#define auto_closedir __attribute__((cleanup(close_dirp)))

static void walk_device(const char *sys, const char *device, nt_port_fn fn, void *data)
{
	auto_closedir DIR *dir = NULL;
	const struct dirent *entry;
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s/ports", sys, device);

	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			fn(data, device, entry->d_name);
}

void nt_port_walk(const char *sys, nt_port_fn fn, void *data)
{
	auto_closedir DIR *dir = opendir(sys);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			walk_device(sys, entry->d_name, fn, data);
}

int nt_port_counter(const char *sys, const char *device, const char *port, const char *file,
		    uint64_t *ret_value)
{
	nt_autobuf struct nt_buf buf = {0};
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s/ports/%s/%s", sys, device, port, file);
	int r;

	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	r = nt_file_read(path, COUNTER_BYTES, &buf);
	if (r < 0)
		return r;
	while (buf.len && buf.data[buf.len - 1] == '\n')
		buf.len--;
	if (!buf.len || nt_parse_u64((const char *)buf.data, buf.len, 0, UINT64_MAX, ret_value) < 0)
		return -EBADMSG;
	return 0;
}
