/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The owner of a process: whose share of a table it takes. The pod, else the container, else the user
 * id, as the kernel states them; nothing of it is the process's own word. Root in two containers is
 * two owners, and a user outside of containers is one, however many processes it starts.
 *
 * Below user.slice cgroups are made by a user, who may give them the name of any pod or container: all
 * there is the user's whose slice it is. Elsewhere outside of pods and containers, what a user runs in
 * namespaces of its own, under ids of /etc/subuid, is that user's too.
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
	char name[NT_OWNER_NAME]; /* for people: "pod UID", "container ID", "user 1000" */
};

/* uid: counts where the cgroup names no owner. */
void nt_owner_of(const struct nt_cgroup *cgroup, uint32_t uid, struct nt_owner *ret_owner);

/* The effective user id in the text of /proc/PID/status. -EBADMSG where it has none. */
NT_MUST_CHECK int nt_owner_parse_uid(const char *status, size_t len, uint32_t *ret_uid);

/*
 * The real user id: who started the process. A set-uid program does not change it, so that nobody
 * takes another user's place by running one.
 */
NT_MUST_CHECK int nt_owner_parse_real_uid(const char *status, size_t len, uint32_t *ret_uid);

/* Of a living process, from /proc/PID/cgroup, status and ns/user, which block on nothing of the process. */
NT_MUST_CHECK int nt_owner_read(uint32_t pid, struct nt_owner *ret_owner);

#endif
