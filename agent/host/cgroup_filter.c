/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/cgroup_filter.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/buf.h"
#include "common/system/file.h"

enum {
	MOUNTINFO_BYTES_MAX = 8 << 20,
	CGROUP_BYTES_MAX = 64 << 10,
	PATH_BYTES = 64,
	FIELDS_MAX = 64,
	CONTROLLER_BYTES = 128,
};

struct nt_cgroup_filter {
	/* An item of the controllers' list in /proc/PID/cgroup; empty for version 2. */
	char controller[CONTROLLER_BYTES];
	char path[PATH_MAX]; /* within the hierarchy; "" for its root */
};

/* Cuts a line into words. Returns their number. */
static size_t cut(char *line, char *word[FIELDS_MAX])
{
	size_t n = 0;
	char *rest = line, *next;

	while (n < FIELDS_MAX && (next = strsep(&rest, " ")))
		word[n++] = next;
	return n;
}

/*
 * The mount option that names its hierarchy: name=systemd, or one of its controllers. Others (rw,
 * xattr) are in no line of /proc/PID/cgroup, so our own is used to choose.
 */
static bool choose_controller(char *options, const char *own, size_t own_len, char *controller)
{
	char *rest = options, *option;

	while ((option = strsep(&rest, ","))) {
		size_t len = strlen(option);
		const char *at = own;

		if (!len || len >= CONTROLLER_BYTES)
			continue;
		while ((at = memmem(at, own_len - (size_t)(at - own), option, len))) {
			char before = at > own ? at[-1] : '\0';
			char after = at + len < own + own_len ? at[len] : '\0';

			if ((before == ':' || before == ',') && (after == ':' || after == ',')) {
				memcpy(controller, option, len + 1);
				return true;
			}
			at++;
		}
	}
	return false;
}

/* The path of directory below the mount point; NULL: outside of it. */
static const char *below(const char *directory, const char *mount_point)
{
	size_t len = strlen(mount_point);

	if (strncmp(directory, mount_point, len) != 0)
		return NULL;
	if (directory[len] != '\0' && directory[len] != '/')
		return NULL;
	return directory + len;
}

/* mountinfo: id parent device root mount-point options [tags…] - type source options */
static bool take_mount(char *line, const char *directory, const char *own, size_t own_len,
		       size_t *longest, struct nt_cgroup_filter *s)
{
	char *word[FIELDS_MAX];
	size_t n = cut(line, word), dash = 6;
	const char *rest;
	char controller[CONTROLLER_BYTES] = "";

	while (dash < n && strcmp(word[dash], "-") != 0)
		dash++;
	if (dash + 3 >= n)
		return false;
	if (strcmp(word[dash + 1], "cgroup2") != 0 && strcmp(word[dash + 1], "cgroup") != 0)
		return false;
	rest = below(directory, word[4]);
	/* Of stacked mounts, the deepest contains the directory. */
	if (!rest || strlen(word[4]) < *longest)
		return false;
	if (strcmp(word[dash + 1], "cgroup") == 0 &&
	    !choose_controller(word[dash + 3], own, own_len, controller))
		return false;
	if (snprintf(s->path, sizeof(s->path), "%s%s", strcmp(word[3], "/") == 0 ? "" : word[3],
		     rest) >= (int)sizeof(s->path))
		return false;
	memcpy(s->controller, controller, sizeof(controller));
	*longest = strlen(word[4]);
	return true;
}

int nt_cgroup_filter_parse(const char *mountinfo, size_t len, const char *own, size_t own_len,
			   const char *directory, struct nt_cgroup_filter **ret_cgroup_filter)
{
	nt_auto(nt_cgroup_filter) struct nt_cgroup_filter *s = calloc(1, sizeof(*s));
	nt_autofree char *text = strndup(mountinfo, len);
	char *rest = text, *line;
	size_t longest = 0;
	bool found = false;

	if (!s || !text)
		return -ENOMEM;
	while ((line = strsep(&rest, "\n")))
		found |= take_mount(line, directory, own, own_len, &longest, s);
	if (!found)
		return -EINVAL;
	len = strlen(s->path);
	while (len > 0 && s->path[len - 1] == '/')
		s->path[--len] = '\0';
	*ret_cgroup_filter = nt_take(s);
	return 0;
}

int nt_cgroup_filter_new(const char *directory, struct nt_cgroup_filter **ret_cgroup_filter)
{
	nt_autobuf struct nt_buf mountinfo = {0};
	nt_autobuf struct nt_buf own = {0};
	nt_autofree char *real = realpath(directory, NULL);
	struct stat st;
	int r;

	if (!real)
		return -errno;
	if (stat(real, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	r = nt_file_read("/proc/self/mountinfo", MOUNTINFO_BYTES_MAX, &mountinfo);
	if (r < 0)
		return r;
	r = nt_file_read("/proc/self/cgroup", CGROUP_BYTES_MAX, &own);
	if (r < 0)
		return r;
	return nt_cgroup_filter_parse((const char *)mountinfo.data, mountinfo.len,
				      (const char *)own.data, own.len, real, ret_cgroup_filter);
}

void nt_cgroup_filter_free(struct nt_cgroup_filter *cgroup_filter)
{
	free(cgroup_filter);
}

/* True if the comma-separated list contains the controller. */
static bool has_controller(const char *list, size_t len, const char *controller)
{
	size_t want = strlen(controller);

	for (;;) {
		const char *comma = memchr(list, ',', len);
		size_t word = comma ? (size_t)(comma - list) : len;

		if (word == want && memcmp(list, controller, want) == 0)
			return true;
		if (!comma)
			return false;
		list += word + 1;
		len -= word + 1;
	}
}

bool nt_cgroup_filter_matches(const struct nt_cgroup_filter *cgroup_filter, const char *cgroup,
			      size_t len)
{
	size_t want = strlen(cgroup_filter->path);

	while (len > 0) {
		const char *newline = memchr(cgroup, '\n', len);
		size_t line = newline ? (size_t)(newline - cgroup) : len;
		const char *list = memchr(cgroup, ':', line);
		const char *path =
			list ? memchr(list + 1, ':', line - (size_t)(list + 1 - cgroup)) : NULL;

		if (path && has_controller(list + 1, (size_t)(path - list - 1),
					   cgroup_filter->controller)) {
			size_t path_len = line - (size_t)(path + 1 - cgroup);

			return path_len >= want &&
			       memcmp(path + 1, cgroup_filter->path, want) == 0 &&
			       (path_len == want || path[1 + want] == '/');
		}
		cgroup += line + (newline ? 1 : 0);
		len -= line + (newline ? 1 : 0);
	}
	return false;
}

bool nt_cgroup_filter_holds(const struct nt_cgroup_filter *cgroup_filter, uint32_t pid)
{
	nt_autobuf struct nt_buf buf = {0};
	char path[PATH_BYTES];

	if (!cgroup_filter)
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	if (nt_file_read(path, CGROUP_BYTES_MAX, &buf) < 0)
		return false;
	return nt_cgroup_filter_matches(cgroup_filter, (const char *)buf.data, buf.len);
}
