/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/workload.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/ascii.h"
#include "proto/json.h"

#define JOBSET    "jobset.sigs.k8s.io/"
#define TRAINING  "training.kubeflow.org/"
#define TRAINER   "trainer.kubeflow.org/"
#define BATCH     "batch.kubernetes.io/"
#define LWS       "leaderworkerset.sigs.k8s.io/"
#define NEUTRACER "neutracer.io/"

enum {
	KEYS = 2, /* alternative names of one thing */
	OWNERS = 16, /* looked at */
};

/* Labels, or else annotations. */
struct family {
	const char *kind;
	const char *marker; /* required; NULL: the job's name suffices */
	const char *job[KEYS];
	const char *role[KEYS]; /* role: "worker" */
	const char *copies, *copy; /* number of copies, and the index of this one */
	const char *index[KEYS]; /* within the role */
};

/*
 * User-created kinds come first: a TrainJob creates a JobSet, which creates Jobs, and Volcano may
 * run any of them.
 */
static const struct family families[] = {
	{"", NULL, {NEUTRACER "job"}, {NEUTRACER "replica"}},
	{"TrainJob",
	 TRAINER "trainjob-ancestor-step",
	 {JOBSET "jobset-name"},
	 {JOBSET "replicatedjob-name"},
	 JOBSET "replicatedjob-replicas",
	 JOBSET "job-index",
	 {BATCH "job-completion-index"}},
	{"JobSet",
	 NULL,
	 {JOBSET "jobset-name"},
	 {JOBSET "replicatedjob-name"},
	 JOBSET "replicatedjob-replicas",
	 JOBSET "job-index",
	 {BATCH "job-completion-index"}},
	{"Kubeflow",
	 NULL,
	 {TRAINING "job-name"},
	 {TRAINING "replica-type", TRAINING "job-role"},
	 NULL,
	 NULL,
	 {TRAINING "replica-index"}},
	{"RayJob", NULL, {"ray.io/originated-from-cr-name"}, {"ray.io/group", "ray.io/node-type"}},
	{"RayCluster", NULL, {"ray.io/cluster"}, {"ray.io/group", "ray.io/node-type"}},
	{"LeaderWorkerSet",
	 NULL,
	 {LWS "name"},
	 {LWS "group-index"},
	 NULL,
	 NULL,
	 {LWS "worker-index"}},
	{"Volcano",
	 NULL,
	 {"volcano.sh/job-name"},
	 {"volcano.sh/task-spec"},
	 NULL,
	 NULL,
	 {"volcano.sh/task-index"}},
	{"Job",
	 NULL,
	 {BATCH "job-name", "job-name"},
	 {NULL},
	 NULL,
	 NULL,
	 {BATCH "job-completion-index"}},
};

static const char *value_of(const json_t *metadata, const char *key)
{
	const char *value;

	if (!key)
		return "";
	value = nt_json_get_text(json_object_get(metadata, "labels"), key, "");
	return *value ? value : nt_json_get_text(json_object_get(metadata, "annotations"), key, "");
}

static const char *first_value(const json_t *metadata, const char *const keys[KEYS])
{
	const char *value = "";

	for (size_t i = 0; i < KEYS && !*value; i++)
		value = value_of(metadata, keys[i]);
	return value;
}

/* Lower case, as in pod names: some releases write "Worker". */
static void add_part(char replica[NT_WORKLOAD_REPLICA], const char *part)
{
	size_t len = strlen(replica);

	if (!*part || len >= NT_WORKLOAD_REPLICA - 2)
		return;
	if (len)
		replica[len++] = '-';
	nt_ascii_copy_text(replica + len, NT_WORKLOAD_REPLICA - len, part);
	for (; replica[len]; len++)
		if (replica[len] >= 'A' && replica[len] <= 'Z')
			replica[len] = (char)(replica[len] - 'A' + 'a');
}

static bool read_family(const json_t *metadata, const struct family *family,
			struct nt_workload *workload)
{
	const char *job = first_value(metadata, family->job), *copies;

	if (!*job || (family->marker && !*value_of(metadata, family->marker)))
		return false;
	workload->kind = family->kind;
	nt_ascii_copy_text(workload->job, sizeof(workload->job), job);
	add_part(workload->replica, first_value(metadata, family->role));
	copies = value_of(metadata, family->copies);
	if (*copies && strcmp(copies, "1") != 0)
		add_part(workload->replica, value_of(metadata, family->copy));
	add_part(workload->replica, first_value(metadata, family->index));
	return true;
}

static const json_t *owner_of(const json_t *metadata)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences");
	const json_t *first = json_array_get(owners, 0);

	for (size_t i = 0; i < OWNERS && i < json_array_size(owners); i++) {
		const json_t *owner = json_array_get(owners, i);

		if (json_is_true(json_object_get(owner, "controller")))
			return owner;
	}
	return first;
}

/* A ReplicaSet belongs to a Deployment, whose name lacks the hash of the template. */
static void drop_hash(const json_t *metadata, char job[NT_WORKLOAD_NAME])
{
	const char *hash = value_of(metadata, "pod-template-hash");
	size_t len = strlen(job), hash_len = strlen(hash);

	if (hash_len && len > hash_len + 1 && job[len - hash_len - 1] == '-' &&
	    strcmp(job + len - hash_len, hash) == 0)
		job[len - hash_len - 1] = '\0';
}

static void read_owner(const json_t *metadata, struct nt_workload *workload)
{
	static const char *const kinds[] = {"Job",        "ReplicaSet", "StatefulSet", "DaemonSet",
					    "PyTorchJob", "MPIJob",     "RayCluster",  "Workflow"};
	const json_t *owner = owner_of(metadata);
	const char *kind = nt_json_get_text(owner, "kind", "");
	const char *name = nt_json_get_text(owner, "name", "");

	/* The mirror of a static pod is owned by its node. */
	if (!*name || strcmp(kind, "Node") == 0)
		return;
	workload->kind = "owner";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i]) == 0)
			workload->kind = kinds[i];
	}
	nt_ascii_copy_text(workload->job, sizeof(workload->job), name);
	if (strcmp(kind, "ReplicaSet") == 0)
		drop_hash(metadata, workload->job);
	if (strcmp(kind, "StatefulSet") == 0)
		add_part(workload->replica, value_of(metadata, "apps.kubernetes.io/pod-index"));
}

void nt_workload_read(const json_t *metadata, struct nt_workload *ret_workload)
{
	*ret_workload = (struct nt_workload){.kind = ""};
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (read_family(metadata, &families[i], ret_workload))
			return;
	}
	read_owner(metadata, ret_workload);
}
