/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The owner of a process, to which its slots in tables are charged: the pod, else the container,
 * else the user id. All are stated by the kernel, none by the process. Root in two containers is
 * two owners; a user outside containers is one, for any number of processes.
 *
 * Below user.slice users make the cgroups and can name them like any pod or container, so all there
 * belongs to the slice's user. Elsewhere outside pods and containers, namespaces of a user, with
 * ids of /etc/subuid, belong to that user too.
 */
#ifndef NT_AGENT_IDENTITY_OWNER_H
#define NT_AGENT_IDENTITY_OWNER_H

#include <stdint.h>

#include "agent/identity/cgroup.h"
#include "common/base/cleanup.h"

enum {
	NT_OWNER_NAME = 80, /* bytes with the NUL */
};

struct nt_owner {
	uint64_t id; /* hash; never 0 */
	uint32_t uid;
	char name[NT_OWNER_NAME]; /* for display: "pod UID", "container ID", "user 1000" */
};

/* uid: used if the cgroup names no owner. */
void nt_owner_of(const struct nt_cgroup *cgroup, uint32_t uid, struct nt_owner *ret_owner);

/* The effective user id in the text of /proc/PID/status. -EBADMSG if there is none. */
NT_MUST_CHECK int nt_owner_parse_uid(const char *status, size_t len, uint32_t *ret_uid);

/*
 * The real user id: the user that started the process. Set-uid programs do not change it, so that
 * running one does not take another user's share.
 */
NT_MUST_CHECK int nt_owner_parse_real_uid(const char *status, size_t len, uint32_t *ret_uid);

/* Of a running process, from /proc/PID/cgroup, status and ns/user; none blocks on the process. */
NT_MUST_CHECK int nt_owner_read(uint32_t pid, struct nt_owner *ret_owner);

#endif
