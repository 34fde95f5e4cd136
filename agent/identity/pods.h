/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pods of this node, as the API server tells of them, and for a while those that are gone: what
 * they did last arrives after them. No clock, no thread: both are agent/identity/kube.c's.
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
	NT_PODS_MAX = 2048, /* the living and the gone */
	NT_PODS_CONTAINERS = 32, /* of one pod, with those that it ran before */
};

#define NT_PODS_KEEP_NS (5 * NT_MINUTE) /* a pod that is gone */

struct nt_pods;

struct nt_pods_stats {
	uint64_t pods, gone; /* now */
	uint64_t over_cap; /* pods that found no room */
	uint64_t containers_over_cap; /* the oldest of a pod made room */
	uint64_t forgotten; /* pods that were gone, and made room before their time */
	uint64_t malformed; /* without a name and a uid */
	uint64_t no_memory;
};

NT_MUST_CHECK int nt_pods_new(struct nt_pods **ret_pods);
void nt_pods_free(struct nt_pods *pods);
NT_DEFINE_AUTO(nt_pods, nt_pods_free)

/* A pod is there, or has changed. */
void nt_pods_put(struct nt_pods *pods, const json_t *pod);
/* It is gone at that time. */
void nt_pods_remove(struct nt_pods *pods, const json_t *pod, uint64_t now_ns);

/* Around a list of all pods, each of which is put: at its end the others are gone. */
void nt_pods_list_begin(struct nt_pods *pods);
void nt_pods_list_end(struct nt_pods *pods, uint64_t now_ns);

/* Forgets what is gone for long enough. */
void nt_pods_tick(struct nt_pods *pods, uint64_t now_ns);

/*
 * Who runs in that cgroup: namespace, pod, container and workload. What is not known leaves
 * *ret_home alone. False: no such pod.
 */
bool nt_pods_find(const struct nt_pods *pods, const struct nt_cgroup *cgroup,
		  struct nt_placement *ret_home);

void nt_pods_stats(const struct nt_pods *pods, struct nt_pods_stats *ret_stats);

#endif
