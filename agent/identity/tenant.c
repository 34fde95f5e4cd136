/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/tenant.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"

enum {
	NAME_MAX_CHARS = 63, /* of a namespace: a DNS label */
};

static bool is_plain(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++) {
		if (!isalnum((unsigned char)name[len]) && name[len] != '-')
			return false;
	}
	return len && len <= NAME_MAX_CHARS;
}

/* Other text than a DNS label is hashed: no label begins with a colon. */
void nt_tenant_of_namespace(const char *namespace, struct nt_tenant *ret_tenant)
{
	*ret_tenant = (struct nt_tenant){0};
	if (is_plain(namespace))
		(void)snprintf(ret_tenant->scope, sizeof(ret_tenant->scope), "ns/%s/", namespace);
	else
		(void)snprintf(ret_tenant->scope, sizeof(ret_tenant->scope), "ns/:%016llx/",
			       (unsigned long long)nt_hash_text(NT_HASH_SEED, namespace));
}

void nt_tenant_of_user(uint32_t uid, struct nt_tenant *ret_tenant)
{
	*ret_tenant = (struct nt_tenant){0};
	(void)snprintf(ret_tenant->scope, sizeof(ret_tenant->scope), "user/%u/", uid);
}

void nt_tenant_of_cgroup(const struct nt_cgroup *cgroup, struct nt_tenant *ret_tenant)
{
	bool is_pod = cgroup->pod[0];

	*ret_tenant = (struct nt_tenant){.is_private = true};
	(void)snprintf(ret_tenant->scope, sizeof(ret_tenant->scope), "%s/%s/",
		       is_pod ? "pod" : "container", is_pod ? cgroup->pod : cgroup->container);
}

void nt_tenant_of_process(uint64_t boot, uint32_t pid, uint64_t start_ns,
			  struct nt_tenant *ret_tenant)
{
	*ret_tenant = (struct nt_tenant){.is_private = true};
	(void)snprintf(ret_tenant->scope, sizeof(ret_tenant->scope), "process/%016llx.%u.%llu/",
		       (unsigned long long)boot, pid, (unsigned long long)start_ns);
}

bool nt_tenant_is_delegated(const struct nt_cgroup *cgroup)
{
	static const char slice[] = "/user.slice/";
	const char *path = cgroup->path;

	while (strncmp(path, "/..", 3) == 0) /* above the root of the agent's own namespace */
		path += 3;
	return strncmp(path, slice, sizeof(slice) - 1) == 0;
}
