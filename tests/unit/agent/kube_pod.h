/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Synthetic pods: pod n of job "train" is train-n, and its container c has ids made of both. */
#ifndef NT_TESTS_UNIT_AGENT_KUBE_POD_H
#define NT_TESTS_UNIT_AGENT_KUBE_POD_H

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent/identity/cgroup.h"

static inline void pod_uid(unsigned int pod, char uid[40])
{
	(void)snprintf(uid, 40, "%08x-0000-4000-8000-%012x", pod, pod);
}

static inline void pod_container_id(unsigned int pod, unsigned int container, char id[72])
{
	(void)snprintf(id, 72, "%032x%032x", pod, container);
}

/* container 0: none has started yet. */
static inline json_t *pod_json(unsigned int pod, unsigned int container, const char *phase)
{
	char uid[40], id[72], url[96], name[32], index[16];
	json_t *statuses = json_array(), *json;

	pod_uid(pod, uid);
	pod_container_id(pod, container, id);
	(void)snprintf(url, sizeof(url), "containerd://%s", id);
	(void)snprintf(name, sizeof(name), "train-%u", pod);
	(void)snprintf(index, sizeof(index), "%u", pod);
	if (container)
		json_array_append_new(statuses,
				      json_pack("{s:s,s:s}", "name", "main", "containerID", url));
	json = json_pack("{s:s,s:{s:s,s:s,s:s,s:{s:s,s:s}},s:{s:s,s:o}}", "kind", "Pod", "metadata",
			 "name", name, "namespace", "ml", "uid", uid, "labels",
			 "batch.kubernetes.io/job-name", "train",
			 "batch.kubernetes.io/job-completion-index", index, "status", "phase",
			 phase, "containerStatuses", statuses);
	return json;
}

static inline void pod_cgroup(unsigned int pod, unsigned int container,
			      struct nt_cgroup *ret_cgroup)
{
	char uid[40], id[72], text[160];

	pod_uid(pod, uid);
	pod_container_id(pod, container, id);
	(void)snprintf(text, sizeof(text), "0::/kubepods/burstable/pod%s/%s\n", uid, id);
	nt_cgroup_parse(text, strlen(text), ret_cgroup);
}

#endif
