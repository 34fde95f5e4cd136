/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The tenant of a process, as the first part of the key of its job: "ns/NAMESPACE/" as the API server
 * states it, else "user/UID/". Nothing of it comes from the process. A scope ends at its second
 * slash, so that no text behind it can make it another tenant's.
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
	NT_TENANT_NOT_YET, /* the pod is not known, and may be later */
	NT_TENANT_STATED, /* the namespace is the API server's */
};

struct nt_tenant {
	char scope[NT_TENANT_SCOPE]; /* "": not decided */
	bool is_private; /* it holds one pod, container or process alone, for want of a namespace */
};

/* namespace: as the API server states it, not empty. */
void nt_tenant_of_namespace(const char *namespace, struct nt_tenant *ret_tenant);

/* uid: as the initial user namespace shows it. */
void nt_tenant_of_user(uint32_t uid, struct nt_tenant *ret_tenant);

/* The pod, else the container: the fallback where the namespace has not come. */
void nt_tenant_of_cgroup(const struct nt_cgroup *cgroup, struct nt_tenant *ret_tenant);

/* Where not even the user is known. boot: hash of the node's boot id. */
void nt_tenant_of_process(uint64_t boot, uint32_t pid, uint64_t start_ns,
			  struct nt_tenant *ret_tenant);

/*
 * The cgroup was made by a user and not by the host: systemd delegates what is below user.slice, where
 * a user may give a cgroup the name of any pod.
 */
bool nt_tenant_is_delegated(const struct nt_cgroup *cgroup);

#endif
