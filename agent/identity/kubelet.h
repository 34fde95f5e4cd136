/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Device assignments of the kubelet: a client of its pod-resources API, a gRPC service on a socket
 * of the node. A thread of its own polls it every few seconds.
 */
#ifndef NT_AGENT_IDENTITY_KUBELET_H
#define NT_AGENT_IDENTITY_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identity/device.h"
#include "common/base/cleanup.h"

struct nt_kubelet_stats {
	uint64_t requests, failed; /* totals */
	uint64_t devices; /* now */
	uint64_t over_cap; /* devices over NT_DEVICE_MAX in the last response */
	uint64_t malformed; /* responses */
	uint64_t is_there; /* 1: the last request succeeded */
};

struct nt_kubelet;

/* The socket need not exist yet. every_ns 0: 10 s. -ENOMEM, -EAGAIN. */
NT_MUST_CHECK int nt_kubelet_new(const char *socket, uint64_t every_ns,
				 struct nt_kubelet **ret_kubelet);
void nt_kubelet_free(struct nt_kubelet *kubelet);
NT_DEFINE_AUTO(nt_kubelet, nt_kubelet_free)

/* The container's number of GPUs; if it is one, also its id. */
size_t nt_kubelet_gpus(struct nt_kubelet *kubelet, const char *namespace, const char *pod,
		       const char *container, char ret_gpu[NT_DEVICE_ID]);

void nt_kubelet_stats(struct nt_kubelet *kubelet, struct nt_kubelet_stats *ret_stats);

#endif
