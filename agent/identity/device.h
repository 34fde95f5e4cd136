/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPUs and the containers that have them, out of the kubelet's ListPodResourcesResponse. */
#ifndef NT_AGENT_IDENTITY_DEVICE_H
#define NT_AGENT_IDENTITY_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_DEVICE_ID = 64, /* bytes with the NUL; a longer id is none that we know */
	NT_DEVICE_MAX = 1024, /* on one node: MIG and replicas make several of one card */
	NT_DEVICE_COUNTED = 64, /* of one owner; it is told to have no more */
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
 * Reads v1.ListPodResourcesResponse, a protobuf message. Only the devices of resources that are GPUs
 * are taken ("…/gpu", "…/mig-…"). -EBADMSG; *ret_devices is then empty.
 */
NT_MUST_CHECK int nt_devices_read(const uint8_t *data, size_t len, struct nt_devices *ret_devices);

/* How many an owner has, and the first of them. Shared replicas "UUID::3" are their card. */
size_t nt_devices_find(const struct nt_devices *devices, uint64_t owner, const char **ret_id);

#endif
