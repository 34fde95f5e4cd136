/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPUs of containers, decoded from the kubelet's ListPodResourcesResponse. */
#ifndef NT_AGENT_IDENTITY_DEVICE_H
#define NT_AGENT_IDENTITY_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_DEVICE_ID = 64, /* bytes with the NUL; longer ids are ignored */
	NT_DEVICE_MAX = 1024, /* per node; MIG and replicas split cards */
	NT_DEVICE_COUNTED = 64, /* of one owner; further ones are not counted */
};

struct nt_device {
	uint64_t owner; /* hash of namespace, pod and container */
	char id[NT_DEVICE_ID];
};

struct nt_devices {
	struct nt_device device[NT_DEVICE_MAX];
	size_t count;
	uint64_t over_cap;
};

uint64_t nt_device_owner(const char *namespace, const char *pod, const char *container);

/*
 * Decodes v1.ListPodResourcesResponse, a protobuf message. Only devices of GPU resources are taken
 * ("…/gpu", "…/mig-…"). -EBADMSG; *ret_devices is then empty.
 */
NT_MUST_CHECK int nt_devices_read(const uint8_t *data, size_t len, struct nt_devices *ret_devices);

/* Number of an owner's devices, and the first id. A shared replica "UUID::3" has its card's id. */
size_t nt_devices_find(const struct nt_devices *devices, uint64_t owner, const char **ret_id);

#endif
