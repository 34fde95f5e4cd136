/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Table of this node's pods as reported by the API server. Deleted pods are kept for a while, since
 * their last events arrive later. agent/identity/kube.c provides clock and thread.
 */
#ifndef NT_AGENT_IDENTITY_PODS_H
#define NT_AGENT_IDENTITY_PODS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identity/placement.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"

enum {
	NT_PODS_MAX = 2048, /* running and deleted */
	NT_PODS_CONTAINERS = 32, /* of one pod, earlier ones included */
};

#define NT_PODS_KEEP_NS (5 * NT_MINUTE) /* a deleted pod */

struct nt_pods;

struct nt_pods_stats {
	uint64_t pods, gone; /* now */
	uint64_t over_cap; /* pods rejected at the cap */
	uint64_t containers_over_cap; /* the oldest of a pod were replaced */
	uint64_t forgotten; /* deleted pods evicted before NT_PODS_KEEP_NS */
	uint64_t malformed; /* without a name and a uid */
	uint64_t no_memory;
};

NT_MUST_CHECK int nt_pods_new(struct nt_pods **ret_pods);
void nt_pods_free(struct nt_pods *pods);
NT_DEFINE_AUTO(nt_pods, nt_pods_free)

/* Adds or updates a pod. */
void nt_pods_put(struct nt_pods *pods, const json_t *pod);
/* The pod was deleted at now_ns. */
void nt_pods_remove(struct nt_pods *pods, const json_t *pod, uint64_t now_ns);

/* Enclose a list of all pods, each of which is put: the end marks all others as deleted. */
void nt_pods_list_begin(struct nt_pods *pods);
void nt_pods_list_end(struct nt_pods *pods, uint64_t now_ns);

/* Removes pods deleted more than NT_PODS_KEEP_NS ago. */
void nt_pods_tick(struct nt_pods *pods, uint64_t now_ns);

/*
 * Namespace, pod, container and workload of a cgroup. Unknown fields of *ret_placement stay
 * unchanged. False: no such pod.
 */
bool nt_pods_find(const struct nt_pods *pods, const struct nt_cgroup *cgroup,
		  struct nt_placement *ret_placement);

void nt_pods_stats(const struct nt_pods *pods, struct nt_pods_stats *ret_stats);

#endif
