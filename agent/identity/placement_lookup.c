/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/placement_lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"
#include "common/system/fault_notice.h"
#include "common/system/log.h"

#define FIRST_NS (10 * NT_SECOND) /* timeout of the first response */

struct nt_placement_lookup {
	struct nt_kube_pods *kube; /* NULL: no API server */
	struct nt_kubelet *kubelet; /* NULL: no socket configured */
	struct nt_fault_notice fault_notice;
	uint64_t start_ns;
	bool is_fault_logged; /* the end of the fault is to be logged */
};

static int open_kube(struct nt_placement_lookup *placement_lookup,
		     const struct nt_placement_lookup_options *options)
{
	int r = nt_kube_pods_new(
		&(struct nt_kube_pods_options){.kube = options->kube, .node = options->node},
		&placement_lookup->kube);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return nt_err(r, "watch the pods of node '%s'", options->node);
	nt_info("watching the pods of node '%s' at '%s'", options->node,
		nt_kube_pods_server(placement_lookup->kube));
	return 0;
}

int nt_placement_lookup_new(const struct nt_placement_lookup_options *options,
			    struct nt_placement_lookup **ret_placement_lookup)
{
	nt_auto(nt_placement_lookup) struct nt_placement_lookup *placement_lookup =
		calloc(1, sizeof(*placement_lookup));
	int r;

	if (!placement_lookup)
		return nt_err(-ENOMEM, "start");
	placement_lookup->start_ns = nt_clock_mono_ns();
	r = open_kube(placement_lookup, options);
	if (r < 0)
		return r;
	if (options->kubelet && *options->kubelet) {
		r = nt_kubelet_new(options->kubelet, 0, &placement_lookup->kubelet);
		if (r < 0)
			return nt_err(r, "query the kubelet at '%s'", options->kubelet);
	}
	*ret_placement_lookup = nt_take(placement_lookup);
	return 0;
}

void nt_placement_lookup_free(struct nt_placement_lookup *placement_lookup)
{
	if (!placement_lookup)
		return;
	nt_kube_pods_free(placement_lookup->kube);
	nt_kubelet_free(placement_lookup->kubelet);
	free(placement_lookup);
}

enum nt_tenant_stated nt_placement_lookup_find(struct nt_placement_lookup *placement_lookup,
					       const struct nt_cgroup *cgroup,
					       struct nt_placement *placement)
{
	enum nt_tenant_stated stated = NT_TENANT_NEVER;
	char gpu[NT_DEVICE_ID] = "";
	size_t gpus;

	if (!cgroup->pod[0] && !cgroup->container[0])
		return stated;
	if (placement_lookup->kube)
		stated = nt_kube_pods_find(placement_lookup->kube, cgroup, placement)
				 ? NT_TENANT_STATED
				 : NT_TENANT_NOT_YET;
	if (!placement_lookup->kubelet || !placement->pod[0])
		return stated;
	gpus = nt_kubelet_gpus(placement_lookup->kubelet, placement->namespace, placement->pod,
			       placement->container, gpu);
	if (gpus == 1)
		memcpy(placement->gpu, gpu, sizeof(gpu));
	else if (placement->gpu_at >= 0 && (size_t)placement->gpu_at < gpus)
		(void)snprintf(placement->gpu, sizeof(placement->gpu), "cuda:%d",
			       placement->gpu_at);
	return stated;
}

void nt_placement_lookup_tick(struct nt_placement_lookup *placement_lookup, uint64_t now_ns)
{
	static const char *const words[] = {
		[NT_KUBE_WELL] = "well",
		[NT_KUBE_AWAY] = "does not answer",
		[NT_KUBE_UNTRUSTED] = "cannot be reached securely",
		[NT_KUBE_DENIED] = "denies access to pods",
		[NT_KUBE_REFUSED] = "rejects the request",
		[NT_KUBE_MALFORMED] = "sent an invalid response",
	};
	char text[NT_KUBE_REASON];
	enum nt_kube_failure fault_notice;
	enum nt_fault_notice_news news;

	if (!placement_lookup->kube)
		return;
	nt_kube_pods_tick(placement_lookup->kube, now_ns);
	fault_notice = nt_kube_pods_failure(placement_lookup->kube, text);
	if (fault_notice == NT_KUBE_AWAY && now_ns - placement_lookup->start_ns < FIRST_NS)
		return;
	news = nt_fault_notice_look(&placement_lookup->fault_notice, fault_notice, now_ns);
	if (news == NT_FAULT_NOTICE_BEGINS) {
		placement_lookup->is_fault_logged = true;
		(void)nt_warn(0,
			      "the API server '%s' %s: %s: the last known names of pods are "
			      "used",
			      nt_kube_pods_server(placement_lookup->kube), words[fault_notice],
			      text);
	} else if (news == NT_FAULT_NOTICE_ENDS && placement_lookup->is_fault_logged) {
		placement_lookup->is_fault_logged = false;
		nt_info("the API server '%s' recovered",
			nt_kube_pods_server(placement_lookup->kube));
	}
}

void nt_placement_lookup_stats(struct nt_placement_lookup *placement_lookup,
			       struct nt_placement_lookup_stats *ret_stats)
{
	*ret_stats = (struct nt_placement_lookup_stats){0};
	if (placement_lookup->kube)
		nt_kube_pods_stats(placement_lookup->kube, &ret_stats->kube);
	if (placement_lookup->kubelet)
		nt_kubelet_stats(placement_lookup->kubelet, &ret_stats->kubelet);
}
