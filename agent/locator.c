/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/locator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/trouble.h"

#define FIRST_NS (10 * NT_SECOND) /* a first answer may take so long */

struct nt_locator {
	struct nt_kube_pods *kube; /* NULL: there is no API server */
	struct nt_kubelet *kubelet; /* NULL: its socket is not wanted */
	struct nt_trouble trouble;
	uint64_t start_ns;
	bool has_told; /* a line is to follow when it is over */
};

static int open_kube(struct nt_locator *locator, const struct nt_locator_options *options)
{
	int r = nt_kube_pods_new(
		&(struct nt_kube_pods_options){.kube = options->kube, .node = options->node},
		&locator->kube);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return nt_err(r, "watch the pods of node '%s'", options->node);
	nt_info("pods of node '%s' are named by '%s'", options->node,
		nt_kube_pods_server(locator->kube));
	return 0;
}

int nt_locator_new(const struct nt_locator_options *options, struct nt_locator **ret_locator)
{
	nt_auto(nt_locator) struct nt_locator *locator = calloc(1, sizeof(*locator));
	int r;

	if (!locator)
		return nt_err(-ENOMEM, "start");
	locator->start_ns = nt_clock_mono_ns();
	r = open_kube(locator, options);
	if (r < 0)
		return r;
	if (options->kubelet && *options->kubelet) {
		r = nt_kubelet_new(options->kubelet, 0, &locator->kubelet);
		if (r < 0)
			return nt_err(r, "ask the kubelet at '%s'", options->kubelet);
	}
	*ret_locator = nt_take(locator);
	return 0;
}

void nt_locator_free(struct nt_locator *locator)
{
	if (!locator)
		return;
	nt_kube_pods_free(locator->kube);
	nt_kubelet_free(locator->kubelet);
	free(locator);
}

enum nt_tenant_stated nt_locator_find(struct nt_locator *locator, const struct nt_cgroup *cgroup,
				      struct nt_home *home)
{
	enum nt_tenant_stated stated = NT_TENANT_NEVER;
	char gpu[NT_DEVICE_ID] = "";
	size_t gpus;

	if (!cgroup->pod[0] && !cgroup->container[0])
		return stated;
	if (locator->kube)
		stated = nt_kube_pods_find(locator->kube, cgroup, home) ? NT_TENANT_STATED
									: NT_TENANT_NOT_YET;
	if (!locator->kubelet || !home->pod[0])
		return stated;
	gpus = nt_kubelet_gpus(locator->kubelet, home->namespace, home->pod, home->container, gpu);
	if (gpus == 1)
		memcpy(home->gpu, gpu, sizeof(gpu));
	else if (home->gpu_at >= 0 && (size_t)home->gpu_at < gpus)
		(void)snprintf(home->gpu, sizeof(home->gpu), "cuda:%d", home->gpu_at);
	return stated;
}

void nt_locator_tick(struct nt_locator *locator, uint64_t now_ns)
{
	static const char *const words[] = {
		[NT_KUBE_WELL] = "well",
		[NT_KUBE_AWAY] = "does not answer",
		[NT_KUBE_UNTRUSTED] = "cannot be asked",
		[NT_KUBE_DENIED] = "does not let us see pods",
		[NT_KUBE_REFUSED] = "refuses",
		[NT_KUBE_MALFORMED] = "makes no sense",
	};
	char text[NT_KUBE_REASON];
	enum nt_kube_trouble trouble;
	enum nt_trouble_news news;

	if (!locator->kube)
		return;
	nt_kube_pods_tick(locator->kube, now_ns);
	trouble = nt_kube_pods_trouble(locator->kube, text);
	if (trouble == NT_KUBE_AWAY && now_ns - locator->start_ns < FIRST_NS)
		return;
	news = nt_trouble_look(&locator->trouble, trouble, now_ns);
	if (news == NT_TROUBLE_BEGINS) {
		locator->has_told = true;
		(void)nt_warn(0, "the API server '%s' %s: %s: pods keep the names last known",
			      nt_kube_pods_server(locator->kube), words[trouble], text);
	} else if (news == NT_TROUBLE_ENDS && locator->has_told) {
		locator->has_told = false;
		nt_info("the API server '%s' is well again", nt_kube_pods_server(locator->kube));
	}
}

void nt_locator_stats(struct nt_locator *locator, struct nt_locator_stats *ret_stats)
{
	*ret_stats = (struct nt_locator_stats){0};
	if (locator->kube)
		nt_kube_pods_stats(locator->kube, &ret_stats->kube);
	if (locator->kubelet)
		nt_kubelet_stats(locator->kubelet, &ret_stats->kubelet);
}
