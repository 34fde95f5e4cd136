/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/kfd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum {
	NODE = 32, /* bytes of the name of a node's file */
};

static bool can_be_read(int nodes, const char *node)
{
	char path[NODE + sizeof("/gpu_id")], digit;
	nt_autoclose int fd = -1;

	(void)snprintf(path, sizeof(path), "%.*s/gpu_id", NODE - 1, node);
	fd = openat(nodes, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &digit, 1) == 1;
}

bool nt_kfd_hides_gpus(const char *nodes)
{
	DIR *directory = opendir(nodes);
	const struct dirent *entry;
	bool hides = false;

	while (directory && !hides && (entry = readdir(directory)))
		hides = *entry->d_name != '.' && !can_be_read(dirfd(directory), entry->d_name);
	if (directory)
		(void)closedir(directory);
	return hides;
}
