/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/placement.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse_number.h"

enum {
	DEVICES = 64, /* parsed, of those that a process names */
};

/* A list item: "GPU-…", "MIG-…", or a number. */
struct device {
	const char *text;
	size_t len;
};

/* A list that fills its buffer was truncated, and so was its last name. */
static size_t split_devices(const char *list, struct device devices[DEVICES])
{
	bool is_cut = strlen(list) == NT_ENVIRON_DEVICES - 1;
	size_t n = 0;

	while (*list && n < DEVICES) {
		size_t len = strcspn(list, ",");

		if (len)
			devices[n++] = (struct device){list, len};
		list += len + (list[len] == ',');
	}
	if (is_cut && n)
		n--;
	return n;
}

static bool is_uuid(const struct device *device)
{
	return device->len > 4 && device->len < NT_PLACEMENT_GPU &&
	       (memcmp(device->text, "GPU-", 4) == 0 || memcmp(device->text, "MIG-", 4) == 0);
}

static bool is_number(const struct device *device)
{
	uint32_t number;

	return nt_parse_u32(device->text, device->len, 0, 1023, &number) == 0;
}

static void set_gpu(const char *before, const struct device *device, char ret_gpu[NT_PLACEMENT_GPU])
{
	(void)snprintf(ret_gpu, NT_PLACEMENT_GPU, "%s%.*s", before, (int)device->len, device->text);
}

static int32_t local_rank_of(const struct nt_environ *env)
{
	if (env->local_rank >= 0)
		return env->local_rank;
	if (env->ompi_local_rank >= 0)
		return env->ompi_local_rank;
	if (env->mpi_local_rank >= 0)
		return env->mpi_local_rank;
	return env->slurm_localid;
}

/*
 * CUDA_VISIBLE_DEVICES is in CUDA's own order, so the item at the local rank is used, as all
 * launchers do. NVIDIA_VISIBLE_DEVICES only lists the devices: of several, one is identified by its
 * index in the container.
 */
static void read_gpu(const struct nt_environ *env, struct nt_placement *placement)
{
	struct device visible[DEVICES], there[DEVICES];
	size_t visibles = split_devices(env->cuda_devices, visible);
	size_t theres = split_devices(env->nvidia_devices, there);
	int32_t local = local_rank_of(env);
	size_t at = local > 0 ? (size_t)local : 0;

	placement->gpu_at = -1;
	if (theres == 1 && is_uuid(&there[0])) {
		set_gpu("", &there[0], placement->gpu);
	} else if (visibles) {
		if (visibles == 1)
			at = 0;
		else if (local < 0 || at >= visibles)
			return;
		if (is_uuid(&visible[at]))
			set_gpu("", &visible[at], placement->gpu);
		else if (is_number(&visible[at]))
			set_gpu("cuda:", &visible[at], placement->gpu);
	} else if (theres > 1 && local >= 0 && at < theres) {
		(void)snprintf(placement->gpu, NT_PLACEMENT_GPU, "cuda:%zu", at);
	} else if (theres <= 1) {
		placement->gpu_at =
			local; /* "void" and the like: the kubelet may have the number */
	}
}

void nt_placement_read_own(const struct nt_cgroup *cgroup, const struct nt_environ *env,
			   struct nt_placement *ret_placement)
{
	struct nt_placement placement = {.workload.kind = ""};

	if (cgroup->pod[0]) {
		(void)snprintf(placement.pod, sizeof(placement.pod), "%s",
			       env->pod_name[0] ? env->pod_name : env->hostname);
		(void)snprintf(placement.namespace, sizeof(placement.namespace), "%s",
			       env->pod_namespace);
		memcpy(placement.pod_uid, cgroup->pod, sizeof(placement.pod_uid));
	}
	memcpy(placement.container, cgroup->container, sizeof(cgroup->container));
	read_gpu(env, &placement);
	*ret_placement = placement;
}

bool nt_placement_states_one_gpu(const struct nt_placement *placement,
				 const struct nt_placement *other)
{
	const char *gpu = placement->gpu;

	if (!gpu[0] || strcmp(gpu, other->gpu) != 0)
		return false;
	if (strncmp(gpu, "GPU-", 4) == 0 || strncmp(gpu, "MIG-", 4) == 0)
		return true;
	return strcmp(placement->container, other->container) == 0 &&
	       memcmp(placement->pod_uid, other->pod_uid, sizeof(placement->pod_uid)) == 0 &&
	       strcmp(placement->workload.job, other->workload.job) == 0;
}
