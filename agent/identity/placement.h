/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a process runs, by the names that people know: pod, namespace, container, job, GPU. What is
 * not known is "".
 */
#ifndef NT_AGENT_IDENTITY_PLACEMENT_H
#define NT_AGENT_IDENTITY_PLACEMENT_H

#include "agent/identity/cgroup.h"
#include "agent/identity/environ.h"
#include "agent/identity/workload.h"

enum {
	NT_PLACEMENT_NAMESPACE = 64, /* bytes with the NUL, as of all */
	NT_PLACEMENT_POD = 254,
	NT_PLACEMENT_CONTAINER = 65, /* a name, or an id where there is none */
	NT_PLACEMENT_GPU = 64, /* as NT_DEVICE_ID */
};

struct nt_placement {
	char namespace[NT_PLACEMENT_NAMESPACE], pod[NT_PLACEMENT_POD],
		container[NT_PLACEMENT_CONTAINER];
	char pod_uid[NT_CGROUP_POD];
	struct nt_workload workload;
	char gpu[NT_PLACEMENT_GPU];
	int32_t gpu_at; /* which of its container's, where it alone says nothing of them; or -1 */
};

/*
 * What the process itself tells: the pod by its environment, which may be made up, and therefore
 * only where its cgroup is a pod's; the container by its id; the GPU where it can see but one, or as
 * the local rank of those that it names.
 */
void nt_placement_tell(const struct nt_cgroup *cgroup, const struct nt_environ *env,
		       struct nt_placement *ret_home);

#endif
