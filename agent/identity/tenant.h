/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The tenant of a process, as the first part of its job's key: "ns/NAMESPACE/" as the API server
 * states it, else "user/UID/". The process supplies none of it. A scope ends at its second slash,
 * so that no text behind it can select another tenant.
 */
#ifndef NT_AGENT_IDENTITY_TENANT_H
#define NT_AGENT_IDENTITY_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/cgroup.h"

enum {
	NT_TENANT_SCOPE = 80, /* bytes with the NUL; "container/" and 64 digits are the longest */
};

/* What the API server states of the pod of a process. */
enum nt_tenant_stated {
	NT_TENANT_NEVER, /* the process is in no pod, or there is no API server */
	NT_TENANT_NOT_YET, /* the pod is not known yet */
	NT_TENANT_STATED, /* the namespace is the API server's */
};

struct nt_tenant {
	char scope[NT_TENANT_SCOPE]; /* "": not decided */
	bool is_private; /* covers one pod, container or process, as no namespace is known */
};

/* namespace: as the API server states it, not empty. */
void nt_tenant_of_namespace(const char *namespace, struct nt_tenant *ret_tenant);

/* uid: as the initial user namespace shows it. */
void nt_tenant_of_user(uint32_t uid, struct nt_tenant *ret_tenant);

/* The pod, else the container: the fallback while the namespace is unknown. */
void nt_tenant_of_cgroup(const struct nt_cgroup *cgroup, struct nt_tenant *ret_tenant);

/* Fallback if the user is unknown too. boot: hash of the node's boot id. */
void nt_tenant_of_process(uint64_t boot, uint32_t pid, uint64_t start_ns,
			  struct nt_tenant *ret_tenant);

/*
 * True if a user made the cgroup: systemd delegates the subtrees of user.slice, where a user may
 * give a cgroup the name of any pod.
 */
bool nt_tenant_is_delegated(const struct nt_cgroup *cgroup);

#endif
