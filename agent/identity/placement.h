/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The placement of a process, by display names: pod, namespace, container, job, GPU. Unknown ones
 * are "".
 */
#ifndef NT_AGENT_IDENTITY_PLACEMENT_H
#define NT_AGENT_IDENTITY_PLACEMENT_H

#include <stdbool.h>

#include "agent/identity/cgroup.h"
#include "agent/identity/environ.h"
#include "agent/identity/workload.h"

enum {
	NT_PLACEMENT_NAMESPACE = 64, /* bytes with the NUL, as of all */
	NT_PLACEMENT_POD = 254,
	NT_PLACEMENT_CONTAINER = 65, /* name, else id */
	NT_PLACEMENT_GPU = 64, /* as NT_DEVICE_ID */
};

struct nt_placement {
	char namespace[NT_PLACEMENT_NAMESPACE], pod[NT_PLACEMENT_POD],
		container[NT_PLACEMENT_CONTAINER];
	char pod_uid[NT_CGROUP_POD];
	struct nt_workload workload;
	char gpu[NT_PLACEMENT_GPU];
	int32_t gpu_at; /* index among its container's GPUs, if only that is known; or -1 */
};

/*
 * Fills in what the process itself states. The pod comes from its environment, which can be forged,
 * and is used only in a pod's cgroup. The container is given by id. The GPU is the only visible
 * one, or the local rank's of those listed.
 */
void nt_placement_read_own(const struct nt_cgroup *cgroup, const struct nt_environ *env,
			   struct nt_placement *ret_placement);

/*
 * True if both state the same GPU, and that text means one card: a UUID, or an index in one container,
 * pod and job. A process may state any.
 */
bool nt_placement_states_one_gpu(const struct nt_placement *placement,
				 const struct nt_placement *other);

#endif
