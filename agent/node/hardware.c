/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/hardware.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void close_directory(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

#define auto_close_directory __attribute__((cleanup(close_directory)))

static bool has_device(DIR *directory, const char *name)
{
	char path[NAME_MAX + sizeof("/device")];
	int len = snprintf(path, sizeof(path), "%s/device", name);

	return len > 0 && (size_t)len < sizeof(path) &&
	       faccessat(dirfd(directory), path, F_OK, 0) == 0;
}

static void take_name(struct nt_hardware *hardware, const char *name)
{
	const size_t len = strlen(name);
	char *to;

	if (hardware->names == NT_HARDWARE_NAMES || len >= NT_HARDWARE_NAME) {
		hardware->over_cap++;
		return;
	}
	to = hardware->name[hardware->names++];
	memcpy(to, name, len + 1);
	/* linux: include/linux/kobject.h: sysfs shows the slash of "cciss/c0d0" as this. */
	for (char *mark = strchr(to, '!'); mark; mark = strchr(mark, '!'))
		*mark = '/';
}

void nt_hardware_refresh(struct nt_hardware *hardware, const char *directory)
{
	auto_close_directory DIR *dir = NULL;
	const struct dirent *entry;
	uint32_t entries = 0;

	if (hardware->readings) {
		hardware->readings--;
		return;
	}
	hardware->readings = NT_HARDWARE_READINGS - 1;
	hardware->names = 0;
	dir = opendir(directory);
	while (dir && entries++ < NT_HARDWARE_ENTRIES && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && has_device(dir, entry->d_name))
			take_name(hardware, entry->d_name);
}

bool nt_hardware_has(const struct nt_hardware *hardware, const char *name, size_t len)
{
	for (size_t i = 0; i < hardware->names; i++)
		if (strlen(hardware->name[i]) == len && memcmp(hardware->name[i], name, len) == 0)
			return true;
	return false;
}
