/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/pods.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory, an entry is not added, which is reported. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "common/base/ascii.h"
#include "proto/json.h"

enum {
	HASH_DIGITS = 32,
};

struct container {
	char id[NT_CGROUP_CONTAINER], name[NT_PLACEMENT_CONTAINER];
};

struct pod {
	char key[NT_CGROUP_POD]; /* uid in its cgroup: a static pod's is its hash */
	char uid[NT_CGROUP_POD], namespace[NT_PLACEMENT_NAMESPACE], name[NT_PLACEMENT_POD];
	struct nt_workload workload;
	struct container *container; /* owned, newest last */
	size_t containers;
	uint64_t list; /* its last container */
	uint64_t gone_ns; /* since when; 0: it exists */
	bool has_ended; /* it exists, but has ended */
	bool is_lost; /* it could not be added */
	UT_hash_handle hh;
};

struct nt_pods {
	struct pod *pod; /* uthash by key, in order of insertion; owned */
	uint64_t list; /* number of the current or last list */
	uint64_t gone;
	struct nt_pods_stats stats;
};

int nt_pods_new(struct nt_pods **ret_pods)
{
	struct nt_pods *pods = calloc(1, sizeof(*pods));

	if (!pods)
		return -ENOMEM;
	*ret_pods = pods;
	return 0;
}

static void forget(struct nt_pods *pods, struct pod *pod)
{
	pods->gone -= pod->gone_ns != 0;
	HASH_DEL(pods->pod, pod);
	free(pod->container);
	free(pod);
}

void nt_pods_free(struct nt_pods *pods)
{
	struct pod *pod, *next;

	if (!pods)
		return;
	HASH_ITER(hh, pods->pod, pod, next)
	forget(pods, pod);
	free(pods);
}

/* ---- one pod -------------------------------------------------------------------------------- */

/*
 * The uid of a static pod in its cgroup, or "". Anyone who may create a pod can set this
 * annotation, so a value that looks like another pod's uid is ignored.
 */
static const char *hash_of(const json_t *metadata)
{
	const char *hash = nt_json_get_text(json_object_get(metadata, "annotations"),
					    "kubernetes.io/config.hash", "");

	return strspn(hash, "0123456789abcdef") == HASH_DIGITS && !hash[HASH_DIGITS] ? hash : "";
}

static bool key_of(const json_t *pod, char ret_key[NT_CGROUP_POD])
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *uid = nt_json_get_text(metadata, "uid", "");
	const char *hash = hash_of(metadata);

	nt_ascii_copy_text(ret_key, NT_CGROUP_POD, *hash ? hash : uid);
	return *uid && *nt_json_get_text(metadata, "name", "");
}

static struct pod *find(const struct nt_pods *pods, const char *key)
{
	struct pod *pod = NULL;

	HASH_FIND_STR(pods->pod, key, pod);
	return pod;
}

static bool is_needed_less(const struct pod *pod, const struct pod *least)
{
	if (!least)
		return pod->gone_ns || pod->has_ended;
	return pod->gone_ns && (!least->gone_ns || pod->gone_ns < least->gone_ns);
}

/* The longest deleted pod, else one that has ended; NULL: all are needed. */
static struct pod *least_needed(const struct nt_pods *pods)
{
	struct pod *least = NULL;

	for (struct pod *pod = pods->pod; pod; pod = pod->hh.next) {
		if (is_needed_less(pod, least))
			least = pod;
	}
	return least;
}

static struct pod *add(struct nt_pods *pods, const char *key)
{
	struct pod *pod;

	if (HASH_COUNT(pods->pod) >= NT_PODS_MAX) {
		pod = least_needed(pods);
		if (!pod) {
			pods->stats.over_cap++;
			return NULL;
		}
		pods->stats.forgotten++;
		forget(pods, pod);
	}
	pod = calloc(1, sizeof(*pod));
	if (!pod) {
		pods->stats.no_memory++;
		return NULL;
	}
	memcpy(pod->key, key, sizeof(pod->key));
	HASH_ADD_STR(pods->pod, key, pod);
	if (pod->is_lost) {
		pods->stats.no_memory++;
		free(pod);
		return NULL;
	}
	return pod;
}

/* "containerd://<id>". A restarted container has a new id; late events carry the old. */
static void put_container(struct nt_pods *pods, struct pod *pod, const char *url, const char *name)
{
	const char *id = strstr(url, "://");
	struct container *grown;

	if (!id || strlen(id + 3) != NT_CGROUP_CONTAINER - 1 || !*name)
		return;
	id += 3;
	for (size_t i = 0; i < pod->containers; i++) {
		if (strcmp(pod->container[i].id, id) == 0)
			return;
	}
	if (pod->containers == NT_PODS_CONTAINERS) {
		pods->stats.containers_over_cap++;
		memmove(pod->container, pod->container + 1,
			(NT_PODS_CONTAINERS - 1) * sizeof(*pod->container));
		pod->containers--;
	}
	grown = reallocarray(pod->container, pod->containers + 1, sizeof(*grown));
	if (!grown) {
		pods->stats.no_memory++;
		return;
	}
	pod->container = grown;
	memcpy(grown[pod->containers].id, id, NT_CGROUP_CONTAINER);
	nt_ascii_copy_text(grown[pod->containers].name, NT_PLACEMENT_CONTAINER, name);
	pod->containers++;
}

static void put_containers(struct nt_pods *pods, struct pod *pod, const json_t *status)
{
	static const char *const lists[] = {"initContainerStatuses", "containerStatuses",
					    "ephemeralContainerStatuses"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const json_t *list = json_object_get(status, lists[i]);

		/* More would only replace each other. */
		for (size_t c = 0; c < json_array_size(list) && c < NT_PODS_CONTAINERS; c++) {
			const json_t *container = json_array_get(list, c);

			put_container(pods, pod, nt_json_get_text(container, "containerID", ""),
				      nt_json_get_text(container, "name", ""));
		}
	}
}

static bool has_ended(const json_t *status)
{
	const char *phase = nt_json_get_text(status, "phase", "");

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

void nt_pods_put(struct nt_pods *pods, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *status = json_object_get(pod, "status");
	char key[NT_CGROUP_POD];
	struct pod *known;

	if (!key_of(pod, key)) {
		pods->stats.malformed++;
		return;
	}
	known = find(pods, key);
	known = known ? known : add(pods, key);
	if (!known)
		return;
	pods->gone -= known->gone_ns != 0;
	known->gone_ns = 0;
	known->list = pods->list;
	known->has_ended = has_ended(status);
	nt_ascii_copy_text(known->uid, sizeof(known->uid), nt_json_get_text(metadata, "uid", ""));
	nt_ascii_copy_text(known->name, sizeof(known->name),
			   nt_json_get_text(metadata, "name", ""));
	nt_ascii_copy_text(known->namespace, sizeof(known->namespace),
			   nt_json_get_text(metadata, "namespace", ""));
	nt_workload_read(metadata, &known->workload);
	put_containers(pods, known, status);
}

/* ---- removal -------------------------------------------------------------------------------- */

static void set_gone(struct nt_pods *pods, struct pod *pod, uint64_t now_ns)
{
	if (pod->gone_ns)
		return;
	pod->gone_ns = now_ns ? now_ns : 1;
	pods->gone++;
}

void nt_pods_remove(struct nt_pods *pods, const json_t *pod, uint64_t now_ns)
{
	char key[NT_CGROUP_POD];
	struct pod *known;

	if (!key_of(pod, key)) {
		pods->stats.malformed++;
		return;
	}
	known = find(pods, key);
	if (!known)
		return;
	put_containers(pods, known, json_object_get(pod, "status")); /* its last */
	set_gone(pods, known, now_ns);
}

void nt_pods_list_begin(struct nt_pods *pods)
{
	pods->list++;
}

void nt_pods_list_end(struct nt_pods *pods, uint64_t now_ns)
{
	for (struct pod *pod = pods->pod; pod; pod = pod->hh.next) {
		if (pod->list != pods->list)
			set_gone(pods, pod, now_ns);
	}
}

void nt_pods_tick(struct nt_pods *pods, uint64_t now_ns)
{
	struct pod *pod, *next;

	if (!pods->gone)
		return;
	HASH_ITER(hh, pods->pod, pod, next)
	{
		if (pod->gone_ns && now_ns > pod->gone_ns &&
		    now_ns - pod->gone_ns >= NT_PODS_KEEP_NS)
			forget(pods, pod);
	}
}

/* ---- queries -------------------------------------------------------------------------------- */

static const struct container *container_of(const struct pod *pod, const char *id)
{
	for (size_t i = pod->containers; i > 0; i--) {
		if (strcmp(pod->container[i - 1].id, id) == 0)
			return &pod->container[i - 1];
	}
	return NULL;
}

bool nt_pods_find(const struct nt_pods *pods, const struct nt_cgroup *cgroup,
		  struct nt_placement *ret_placement)
{
	const struct container *container = NULL;
	const struct pod *pod = NULL;

	if (cgroup->pod[0])
		pod = find(pods, cgroup->pod);
	if (pod)
		container = container_of(pod, cgroup->container);
	/* For runtimes that name no pod in cgroups. */
	for (const struct pod *p = pods->pod; p && !cgroup->pod[0] && !container; p = p->hh.next) {
		container = cgroup->container[0] ? container_of(p, cgroup->container) : NULL;
		pod = container ? p : NULL;
	}
	if (!pod)
		return false;
	memcpy(ret_placement->namespace, pod->namespace, sizeof(pod->namespace));
	memcpy(ret_placement->pod, pod->name, sizeof(pod->name));
	memcpy(ret_placement->pod_uid, pod->uid, sizeof(pod->uid));
	if (container)
		memcpy(ret_placement->container, container->name, sizeof(container->name));
	ret_placement->workload = pod->workload;
	return true;
}

void nt_pods_stats(const struct nt_pods *pods, struct nt_pods_stats *ret_stats)
{
	*ret_stats = pods->stats;
	ret_stats->gone = pods->gone;
	ret_stats->pods = HASH_COUNT(pods->pod) - pods->gone;
}
