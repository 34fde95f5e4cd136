/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pods of this node, kept current by a list and a watch on the API server, on a thread of their
 * own. Callers never block on the server: while it is unreachable, the last state is used.
 */
#ifndef NT_AGENT_IDENTITY_KUBE_H
#define NT_AGENT_IDENTITY_KUBE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/identity/pods.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

enum {
	NT_KUBE_POD_BYTES = 2 << 20, /* of a pod as JSON; etcd's limit is 1.5 MiB */
};

struct nt_kube_pods_options {
	const struct nt_kube_options *kube;
	const char *node;
	/* 0: 500 ms, 30 s, 5 min. */
	uint64_t retry_min_ns, retry_max_ns; /* backoff between attempts: doubling, with jitter */
	uint64_t watch_ns; /* of one watch; the server checks the token again for the next */
};

/* State of the connection; below 32, for nt_fault_notice_look(). */
enum nt_kube_failure {
	NT_KUBE_WELL,
	NT_KUBE_AWAY, /* no response, or an incomplete one */
	NT_KUBE_UNTRUSTED, /* no trusted connection, or no token */
	NT_KUBE_DENIED, /* 401, 403 */
	NT_KUBE_REFUSED, /* any other status, overload included */
	NT_KUBE_MALFORMED, /* an invalid response */
	NT_KUBE_FAILURE_END,
};

struct nt_kube_pods_stats {
	struct nt_pods_stats pods;
	uint64_t lists, watches, events; /* totals: started, started, processed */
	uint64_t gone; /* watches expired on the server (410) */
	uint64_t failed[NT_KUBE_FAILURE_END];
	uint64_t too_large; /* pods over NT_KUBE_POD_BYTES */
	uint64_t malformed; /* pods and changes that could not be parsed */
	uint64_t is_synced; /* 1: a list was received, and the last attempt succeeded */
};

struct nt_kube_pods;

/* -ENOENT: no API server is configured. The options are copied. */
NT_MUST_CHECK int nt_kube_pods_new(const struct nt_kube_pods_options *options,
				   struct nt_kube_pods **ret_pods);
void nt_kube_pods_free(struct nt_kube_pods *pods);
NT_DEFINE_AUTO(nt_kube_pods, nt_kube_pods_free)

/* See nt_pods_find(). */
bool nt_kube_pods_find(struct nt_kube_pods *pods, const struct nt_cgroup *cgroup,
		       struct nt_placement *ret_placement);

/* Call about once a second: removes expired pods. Monotonic time. */
void nt_kube_pods_tick(struct nt_kube_pods *pods, uint64_t now_ns);

/* The current state, and a text that describes the error. */
enum nt_kube_failure nt_kube_pods_failure(struct nt_kube_pods *pods, char text[NT_KUBE_REASON]);

const char *nt_kube_pods_server(const struct nt_kube_pods *pods);

void nt_kube_pods_stats(struct nt_kube_pods *pods, struct nt_kube_pods_stats *ret_stats);

#endif
