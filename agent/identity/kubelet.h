/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which devices the kubelet has given to which container: its pod-resources API, a gRPC service on a
 * socket of the node, asked every few seconds on a thread of its own.
 */
#ifndef NT_AGENT_IDENTITY_KUBELET_H
#define NT_AGENT_IDENTITY_KUBELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identity/device.h"
#include "common/base/cleanup.h"

struct nt_kubelet_stats {
	uint64_t asked, failed; /* so far */
	uint64_t devices; /* now */
	uint64_t over_cap; /* devices that found no room, in the last answer */
	uint64_t malformed; /* answers */
	uint64_t is_there; /* 1: the last answer was one */
};

struct nt_kubelet;

/* The socket may appear later. every_ns 0: 10 s. -ENOMEM, -EAGAIN. */
NT_MUST_CHECK int nt_kubelet_new(const char *socket, uint64_t every_ns,
				 struct nt_kubelet **ret_kubelet);
void nt_kubelet_free(struct nt_kubelet *kubelet);
NT_DEFINE_AUTO(nt_kubelet, nt_kubelet_free)

/* How many GPUs that container has; of one alone its id. */
size_t nt_kubelet_gpus(struct nt_kubelet *kubelet, const char *namespace, const char *pod,
		       const char *container, char ret_gpu[NT_DEVICE_ID]);

void nt_kubelet_stats(struct nt_kubelet *kubelet, struct nt_kubelet_stats *ret_stats);

#endif
