/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/identity/workload.h"
#include "proto/json.h"

struct pod {
	const char *metadata, *kind, *job, *replica;
};

/* JSON with apostrophes for quotes. */
static json_t *load(const char *text)
{
	char json[1024];
	size_t len = strlen(text);

	assert_true(len < sizeof(json));
	for (size_t i = 0; i <= len; i++)
		json[i] = (char)(text[i] == '\'' ? '"' : text[i]);
	return json_loads(json, 0, NULL);
}

static void check(const struct pod *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		nt_autojson json_t *metadata = NULL;
		struct nt_workload workload;

		metadata = load(cases[i].metadata);
		assert_non_null(metadata);
		nt_workload_read(metadata, &workload);
		assert_string_equal(workload.job, cases[i].job);
		assert_string_equal(workload.replica, cases[i].replica);
		assert_string_equal(workload.kind, cases[i].kind);
	}
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

/* clang-format off */
static void every_controllers_labels_tell_job_and_replica(void **state)
{
	static const struct pod cases[] = {
		{"{'labels':{'batch.kubernetes.io/job-name':'train','job-name':'train',"
		 "'batch.kubernetes.io/job-completion-index':'3'}}",
		 "Job", "train", "3"},
		/* before 1.27, and before indexes were labels */
		{"{'labels':{'job-name':'train'},"
		 "'annotations':{'batch.kubernetes.io/job-completion-index':'3'}}",
		 "Job", "train", "3"},
		{"{'labels':{'jobset.sigs.k8s.io/jobset-name':'llm',"
		 "'jobset.sigs.k8s.io/replicatedjob-name':'workers',"
		 "'jobset.sigs.k8s.io/replicatedjob-replicas':'4','jobset.sigs.k8s.io/job-index':'2',"
		 "'batch.kubernetes.io/job-name':'llm-workers-2',"
		 "'batch.kubernetes.io/job-completion-index':'1'}}",
		 "JobSet", "llm", "workers-2-1"},
		{"{'labels':{'jobset.sigs.k8s.io/jobset-name':'llm',"
		 "'jobset.sigs.k8s.io/replicatedjob-name':'node',"
		 "'jobset.sigs.k8s.io/replicatedjob-replicas':'1','jobset.sigs.k8s.io/job-index':'0',"
		 "'trainer.kubeflow.org/trainjob-ancestor-step':'trainer',"
		 "'batch.kubernetes.io/job-completion-index':'1'}}",
		 "TrainJob", "llm", "node-1"},
		{"{'labels':{'training.kubeflow.org/job-name':'bert',"
		 "'training.kubeflow.org/replica-type':'Worker',"
		 "'training.kubeflow.org/replica-index':'7'}}",
		 "Kubeflow", "bert", "worker-7"},
		/* the MPI operator's second version */
		{"{'labels':{'training.kubeflow.org/job-name':'pi',"
		 "'training.kubeflow.org/job-role':'launcher'}}",
		 "Kubeflow", "pi", "launcher"},
		{"{'labels':{'volcano.sh/job-name':'vj','volcano.sh/task-spec':'worker',"
		 "'volcano.sh/task-index':'2'}}",
		 "Volcano", "vj", "worker-2"},
		{"{'annotations':{'volcano.sh/job-name':'vj','volcano.sh/task-spec':'worker',"
		 "'volcano.sh/task-index':'2'}}",
		 "Volcano", "vj", "worker-2"},
		{"{'labels':{'ray.io/cluster':'rc-x7k2p','ray.io/originated-from-cr-name':'rayjob',"
		 "'ray.io/group':'gpu','ray.io/node-type':'worker'}}",
		 "RayJob", "rayjob", "gpu"},
		{"{'labels':{'ray.io/cluster':'rc','ray.io/node-type':'head'}}",
		 "RayCluster", "rc", "head"},
		{"{'labels':{'leaderworkerset.sigs.k8s.io/name':'vllm',"
		 "'leaderworkerset.sigs.k8s.io/group-index':'1',"
		 "'leaderworkerset.sigs.k8s.io/worker-index':'0'}}",
		 "LeaderWorkerSet", "vllm", "1-0"},
		{"{'labels':{'neutracer.io/job':'mine','batch.kubernetes.io/job-name':'theirs'}}",
		 "", "mine", ""},
		{"{'annotations':{'neutracer.io/job':'mine','neutracer.io/replica':'a'},"
		 "'labels':{'batch.kubernetes.io/job-name':'theirs'}}",
		 "", "mine", "a"},
	};

	(void)state;
	CHECK(cases);
}

static void without_such_labels_the_owner_names_the_job(void **state)
{
	static const struct pod cases[] = {
		{"{'ownerReferences':[{'kind':'Job','name':'train','controller':true}]}",
		 "Job", "train", ""},
		{"{'ownerReferences':[{'kind':'Other','name':'no'},"
		 "{'kind':'Sweep','name':'yes','controller':true}]}",
		 "owner", "yes", ""},
		{"{'ownerReferences':[{'kind':'Sweep','name':'only'}]}", "owner", "only", ""},
		{"{'labels':{'pod-template-hash':'6f7d'},"
		 "'ownerReferences':[{'kind':'ReplicaSet','name':'web-6f7d','controller':true}]}",
		 "ReplicaSet", "web", ""},
		{"{'labels':{'pod-template-hash':'6f7d'},"
		 "'ownerReferences':[{'kind':'ReplicaSet','name':'web-other','controller':true}]}",
		 "ReplicaSet", "web-other", ""},
		{"{'labels':{'apps.kubernetes.io/pod-index':'4'},"
		 "'ownerReferences':[{'kind':'StatefulSet','name':'ps','controller':true}]}",
		 "StatefulSet", "ps", "4"},
		{"{'ownerReferences':[{'kind':'Node','name':'gpu-07','controller':true}]}", "", "", ""},
		{"{}", "", "", ""},
	};

	(void)state;
	CHECK(cases);
}

static void what_is_no_text_is_passed_over(void **state)
{
	static const struct pod cases[] = {
		{"{'labels':{'batch.kubernetes.io/job-name':5,'job-name':'train'}}", "Job", "train", ""},
		{"{'labels':['job-name'],'annotations':7}", "", "", ""},
		{"{'ownerReferences':{'name':'x'}}", "", "", ""},
		{"{'ownerReferences':[7]}", "", "", ""},
		{"{'labels':{'job-name':'a\\u001bb'}}", "Job", "a?b", ""},
	};

	(void)state;
	CHECK(cases);
}
/* clang-format on */

static void long_names_are_cut_at_their_caps(void **state)
{
	nt_autojson json_t *metadata = json_object(), *labels = json_object();
	char text[400];
	struct nt_workload workload;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	json_object_set_new(labels, "volcano.sh/job-name", json_string(text));
	json_object_set_new(labels, "volcano.sh/task-spec", json_string(text));
	json_object_set_new(labels, "volcano.sh/task-index", json_string(text));
	json_object_set(metadata, "labels", labels);
	nt_workload_read(metadata, &workload);
	assert_int_equal(strlen(workload.job), NT_WORKLOAD_NAME - 1);
	assert_int_equal(strlen(workload.replica), NT_WORKLOAD_REPLICA - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_controllers_labels_tell_job_and_replica),
		cmocka_unit_test(without_such_labels_the_owner_names_the_job),
		cmocka_unit_test(what_is_no_text_is_passed_over),
		cmocka_unit_test(long_names_are_cut_at_their_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
