/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where processes run: what they tell themselves, and what the API server and the kubelet know. Each
 * of the two may be missing or away; then the others' word stands. Asking never waits.
 */
#ifndef NT_AGENT_IDENTITY_PLACEMENT_LOOKUP_H
#define NT_AGENT_IDENTITY_PLACEMENT_LOOKUP_H

#include <stdint.h>

#include "agent/identity/kube.h"
#include "agent/identity/kubelet.h"
#include "agent/identity/placement.h"
#include "agent/identity/tenant.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

struct nt_placement_lookup_options {
	const struct nt_kube_options *kube;
	const char *node;
	const char *kubelet; /* socket; NULL, "": none */
};

struct nt_placement_lookup_stats {
	struct nt_kube_pods_stats kube; /* zeros without an API server */
	struct nt_kubelet_stats kubelet; /* zeros without a socket */
};

struct nt_placement_lookup;

NT_MUST_CHECK int nt_placement_lookup_new(const struct nt_placement_lookup_options *options,
					  struct nt_placement_lookup **ret_placement_lookup);
void nt_placement_lookup_free(struct nt_placement_lookup *placement_lookup);
NT_DEFINE_AUTO(nt_placement_lookup, nt_placement_lookup_free)

/*
 * What is not known leaves *home alone, which nt_placement_tell() has filled. Says whose word the namespace
 * in it is.
 */
enum nt_tenant_stated nt_placement_lookup_find(struct nt_placement_lookup *placement_lookup,
					       const struct nt_cgroup *cgroup,
					       struct nt_placement *home);

/* Once a second: says what has begun to go wrong, and what is well again. Monotonic time. */
void nt_placement_lookup_tick(struct nt_placement_lookup *placement_lookup, uint64_t now_ns);

void nt_placement_lookup_stats(struct nt_placement_lookup *placement_lookup,
			       struct nt_placement_lookup_stats *ret_stats);

#endif
