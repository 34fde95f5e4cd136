/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identity/tenant.h"
#include "common/base/buf.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"

enum {
	PATH_BYTES = 64,
	PROC_TEXT = 64 << 10,
	REAL = 0, /* of real, effective, saved, file system */
	EFFECTIVE = 1,
	NAMESPACES_MAX = 33, /* nested user namespaces: 32 and the initial one */
};

/* N of "/user.slice/user-N.slice", which systemd makes and only root can. */
static bool read_slice(const struct nt_cgroup *cgroup, uint32_t *ret_uid)
{
	static const char user[] = "/user.slice/user-", slice[] = ".slice";
	const char *at = cgroup->path;
	size_t digits;

	while (strncmp(at, "/..", 3) == 0) /* above the root of the agent's own namespace */
		at += 3;
	if (strncmp(at, user, sizeof(user) - 1) != 0)
		return false;
	at += sizeof(user) - 1;
	digits = strspn(at, "0123456789");
	if (strncmp(at + digits, slice, sizeof(slice) - 1) != 0)
		return false;
	if (at[digits + sizeof(slice) - 1] && at[digits + sizeof(slice) - 1] != '/')
		return false;
	return nt_parse_u32(at, digits, 0, UINT32_MAX, ret_uid) == 0;
}

void nt_owner_of(const struct nt_cgroup *cgroup, uint32_t uid, struct nt_owner *ret_owner)
{
	bool is_delegated = nt_tenant_is_delegated(cgroup);
	struct nt_owner owner = {0};

	if (is_delegated)
		(void)read_slice(cgroup, &uid);
	owner.uid = uid;
	if (!is_delegated && cgroup->pod[0])
		(void)snprintf(owner.name, sizeof(owner.name), "pod %s", cgroup->pod);
	else if (!is_delegated && cgroup->container[0])
		(void)snprintf(owner.name, sizeof(owner.name), "container %s", cgroup->container);
	else
		(void)snprintf(owner.name, sizeof(owner.name), "user %u", uid);
	owner.id = nt_hash_text(NT_HASH_SEED, owner.name);
	if (!owner.id)
		owner.id = 1;
	*ret_owner = owner;
}

static int parse_uid(const char *status, size_t len, int which, uint32_t *ret_uid)
{
	static const char label[] = "\nUid:";
	const char *at = memmem(status, len, label, sizeof(label) - 1), *end = status + len;

	if (!at)
		return -EBADMSG;
	at += sizeof(label) - 1;
	for (int i = 0;; i++) {
		const char *word;

		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		word = at;
		while (at < end && *at >= '0' && *at <= '9')
			at++;
		if (at == word)
			return -EBADMSG;
		if (i == which)
			return nt_parse_u32(word, (size_t)(at - word), 0, UINT32_MAX, ret_uid) < 0
				       ? -EBADMSG
				       : 0;
	}
}

int nt_owner_parse_uid(const char *status, size_t len, uint32_t *ret_uid)
{
	return parse_uid(status, len, EFFECTIVE, ret_uid);
}

int nt_owner_parse_real_uid(const char *status, size_t len, uint32_t *ret_uid)
{
	return parse_uid(status, len, REAL, ret_uid);
}

static int read_proc(uint32_t pid, const char *name, struct nt_buf *buf)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return nt_file_read(path, PROC_TEXT, buf);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * The creator of a process's user namespace. Of nested ones, that of the outermost below the
 * agent's own, as inner ones are created under ids from it. -ENODATA: the agent's own namespace.
 */
static int read_maker(uint32_t pid, uint32_t *ret_uid)
{
	char path[PATH_BYTES];
	nt_autoclose int fd = -1;
	struct stat own, here;
	uid_t uid;

	(void)snprintf(path, sizeof(path), "/proc/%u/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &here) < 0 || stat("/proc/self/ns/user", &own) < 0)
		return -errno;
	if (is_same(&here, &own))
		return -ENODATA;
	for (int i = 0; i < NAMESPACES_MAX; i++) {
		nt_autoclose int parent = ioctl(fd, NS_GET_PARENT);

		if (parent < 0 || fstat(parent, &here) < 0)
			return -errno;
		if (is_same(&here, &own)) {
			if (ioctl(fd, NS_GET_OWNER_UID, &uid) < 0)
				return -errno;
			*ret_uid = uid;
			return 0;
		}
		(void)close(fd);
		fd = nt_take_fd(&parent);
	}
	return -ELOOP;
}

/*
 * A user can have many ids by namespaces, all owned by that user. Namespaces created by root serve
 * others: the ids are theirs.
 */
static uint32_t user_of(uint32_t pid, uint32_t uid)
{
	uint32_t maker = 0;

	return read_maker(pid, &maker) == 0 && maker ? maker : uid;
}

int nt_owner_read(uint32_t pid, struct nt_owner *ret_owner)
{
	nt_autobuf struct nt_buf status = {0};
	nt_autobuf struct nt_buf cgroup = {0};
	struct nt_cgroup parsed;
	uint32_t uid;
	int r;

	r = read_proc(pid, "status", &status);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	r = nt_owner_parse_uid((const char *)status.data, status.len, &uid);
	if (r < 0)
		return r;
	r = read_proc(pid, "cgroup", &cgroup);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	nt_cgroup_parse((const char *)cgroup.data, cgroup.len, &parsed);
	if (nt_tenant_is_delegated(&parsed) || (!parsed.pod[0] && !parsed.container[0]))
		uid = user_of(pid, uid);
	nt_owner_of(&parsed, uid, ret_owner);
	return 0;
}
