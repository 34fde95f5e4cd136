/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where processes run: what they tell themselves, and what the API server and the kubelet know. Each
 * of the two may be missing or away; then the others' word stands. Asking never waits.
 */
#ifndef NT_AGENT_LOCATOR_H
#define NT_AGENT_LOCATOR_H

#include <stdint.h>

#include "agent/home.h"
#include "agent/kube.h"
#include "agent/kubelet.h"
#include "agent/tenant.h"
#include "common/cleanup.h"
#include "common/kube.h"

struct nt_locator_options {
	const struct nt_kube_options *kube;
	const char *node;
	const char *kubelet; /* socket; NULL, "": none */
};

struct nt_locator_stats {
	struct nt_kube_pods_stats kube; /* zeros without an API server */
	struct nt_kubelet_stats kubelet; /* zeros without a socket */
};

struct nt_locator;

NT_MUST_CHECK int nt_locator_new(const struct nt_locator_options *options,
				 struct nt_locator **ret_locator);
void nt_locator_free(struct nt_locator *locator);
NT_DEFINE_AUTO(nt_locator, nt_locator_free)

/*
 * What is not known leaves *home alone, which nt_home_tell() has filled. Says whose word the namespace
 * in it is.
 */
enum nt_tenant_stated nt_locator_find(struct nt_locator *locator, const struct nt_cgroup *cgroup,
				      struct nt_home *home);

/* Once a second: says what has begun to go wrong, and what is well again. Monotonic time. */
void nt_locator_tick(struct nt_locator *locator, uint64_t now_ns);

void nt_locator_stats(struct nt_locator *locator, struct nt_locator_stats *ret_stats);

#endif
