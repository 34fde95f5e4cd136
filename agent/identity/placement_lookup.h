/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Placement lookup: combines the data of processes, of the API server and of the kubelet. Either
 * server may be absent or unreachable; the other sources are then used. Lookups never block.
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
 * Unknown fields leave *placement unchanged, which nt_placement_read_own() has filled. Returns
 * whether the API server stated its namespace.
 */
enum nt_tenant_stated nt_placement_lookup_find(struct nt_placement_lookup *placement_lookup,
					       const struct nt_cgroup *cgroup,
					       struct nt_placement *placement);

/* Call once a second: logs new faults and recoveries. Monotonic time. */
void nt_placement_lookup_tick(struct nt_placement_lookup *placement_lookup, uint64_t now_ns);

void nt_placement_lookup_stats(struct nt_placement_lookup *placement_lookup,
			       struct nt_placement_lookup_stats *ret_stats);

#endif
