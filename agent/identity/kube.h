/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pods of this node, kept up to date by a list and a watch of the API server on a thread of their
 * own. Nobody waits for it: while the server is away, what was known last is what is known.
 */
#ifndef NT_AGENT_IDENTITY_KUBE_H
#define NT_AGENT_IDENTITY_KUBE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/pods.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

enum {
	NT_KUBE_POD_BYTES = 2 << 20, /* of a pod as JSON; etcd takes 1.5 MiB */
};

struct nt_kube_pods_options {
	const struct nt_kube_options *kube;
	const char *node;
	/* 0: 500 ms, 30 s, 5 min. */
	uint64_t retry_min_ns, retry_max_ns; /* between attempts, doubling, less a random part */
	uint64_t watch_ns; /* of one watch: the server checks the token anew for the next */
};

/* Why the server's word is not to be had; under 32, for nt_fault_notice_look(). */
enum nt_kube_fault_notice {
	NT_KUBE_WELL,
	NT_KUBE_AWAY, /* no answer, or none that is whole */
	NT_KUBE_UNTRUSTED, /* no trusted connection, or no token */
	NT_KUBE_DENIED, /* 401, 403 */
	NT_KUBE_REFUSED, /* any other answer, a busy server's too */
	NT_KUBE_MALFORMED, /* an answer that makes no sense */
	NT_KUBE_FAULT_NOTICE_END,
};

struct nt_kube_pods_stats {
	struct nt_pods_stats pods;
	uint64_t lists, watches, events; /* so far: begun, begun, taken */
	uint64_t gone; /* times at which the server no longer knew where we were (410) */
	uint64_t failed[NT_KUBE_FAULT_NOTICE_END];
	uint64_t too_large; /* pods over NT_KUBE_POD_BYTES */
	uint64_t malformed; /* pods and changes that are no JSON that we read */
	uint64_t is_synced; /* 1: a list has come, and the last attempt did not fail */
};

struct nt_kube_pods;

/* -ENOENT: there is no API server here. The options are copied. */
NT_MUST_CHECK int nt_kube_pods_new(const struct nt_kube_pods_options *options,
				   struct nt_kube_pods **ret_pods);
void nt_kube_pods_free(struct nt_kube_pods *pods);
NT_DEFINE_AUTO(nt_kube_pods, nt_kube_pods_free)

/* See nt_pods_find(). */
bool nt_kube_pods_find(struct nt_kube_pods *pods, const struct nt_cgroup *cgroup,
		       struct nt_placement *ret_home);

/* Every second or so: forgets the pods that are gone. Monotonic time. */
void nt_kube_pods_tick(struct nt_kube_pods *pods, uint64_t now_ns);

/* How things are, and in words what is wrong. */
enum nt_kube_fault_notice nt_kube_pods_fault_notice(struct nt_kube_pods *pods,
						    char text[NT_KUBE_REASON]);

const char *nt_kube_pods_server(const struct nt_kube_pods *pods);

void nt_kube_pods_stats(struct nt_kube_pods *pods, struct nt_kube_pods_stats *ret_stats);

#endif
