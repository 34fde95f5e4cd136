/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a process runs, by the names that people know: pod, namespace, container, job, GPU. What is
 * not known is "".
 */
#ifndef NT_AGENT_PLACE_H
#define NT_AGENT_PLACE_H

#include "agent/cgroup.h"
#include "agent/environ.h"
#include "agent/workload.h"

enum {
	NT_PLACE_NAMESPACE = 64, /* bytes with the NUL, as of all */
	NT_PLACE_POD = 254,
	NT_PLACE_CONTAINER = 65, /* a name, or an id where there is none */
	NT_PLACE_GPU = 64,
};

struct nt_place {
	char namespace[NT_PLACE_NAMESPACE], pod[NT_PLACE_POD], container[NT_PLACE_CONTAINER];
	char pod_uid[NT_CGROUP_POD];
	struct nt_workload workload;
	char gpu[NT_PLACE_GPU];
};

/*
 * What the process itself tells: the pod by its environment, which may be made up, and therefore
 * only where its cgroup is a pod's; the container by its id; the GPU where it can see but one, or as
 * the local rank of those that it names.
 */
void nt_place_tell(const struct nt_cgroup *cgroup, const struct nt_environ *env,
		   struct nt_place *ret_place);

#endif
