/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/num.h"

enum {
	PATH_BYTES = 64,
	PROC_TEXT = 64 << 10,
	REAL = 0, /* of real, effective, saved, file system */
	EFFECTIVE = 1,
};

void nt_owner_of(const struct nt_cgroup *cgroup, uint32_t uid, struct nt_owner *ret_owner)
{
	struct nt_owner owner = {.uid = uid};

	if (cgroup->pod[0])
		(void)snprintf(owner.name, sizeof(owner.name), "pod %s", cgroup->pod);
	else if (cgroup->container[0])
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
			return nt_num_u32(word, (size_t)(at - word), 0, UINT32_MAX, ret_uid) < 0
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
	nt_owner_of(&parsed, uid, ret_owner);
	return 0;
}
