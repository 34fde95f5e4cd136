/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/identity/cgroup.h"

#define ID       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER    "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID_DASH "12345678-90ab-cdef-1234-567890abcdef"
#define UID_LOW  "12345678_90ab_cdef_1234_567890abcdef"
#define UID_B    "bbbbbbbb-90ab-cdef-1234-567890abcdef"
#define HASH     "a4e5c7aabbccddeeff00112233445566"

struct place {
	const char *text, *container, *pod, *job, *step;
};

static void check(const struct place *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct nt_cgroup cgroup;

		nt_cgroup_parse(cases[i].text, strlen(cases[i].text), &cgroup);
		assert_string_equal(cgroup.container, cases[i].container);
		assert_string_equal(cgroup.pod, cases[i].pod);
		assert_string_equal(cgroup.slurm_job, cases[i].job ? cases[i].job : "");
		assert_string_equal(cgroup.slurm_step, cases[i].step ? cases[i].step : "");
	}
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

static void every_runtime_and_driver_tells_container_and_pod(void **state)
{
	static const struct place cases[] = {
		/* containerd, systemd: burstable, besteffort, guaranteed */
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_LOW
		 ".slice/cri-containerd-" ID ".scope\n",
		 ID, UID_DASH},
		{"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_LOW
		 ".slice/cri-containerd-" ID ".scope\n",
		 ID, UID_DASH},
		{"0::/kubepods.slice/kubepods-pod" UID_LOW ".slice/cri-containerd-" ID ".scope\n",
		 ID, UID_DASH},
		/* the same as containerd writes it without a scope of systemd */
		{"0::/system.slice/containerd.service/kubepods-burstable-pod" UID_LOW
		 ".slice:cri-containerd:" ID "\n",
		 ID, UID_DASH},
		/* cgroupfs, v1 and v2 */
		{"3:pids:/kubepods/burstable/pod" UID_DASH "/" ID "\n", ID, UID_DASH},
		{"0::/kubepods/pod" UID_DASH "/" ID "\n", ID, UID_DASH},
		/* CRI-O */
		{"0::/kubepods.slice/kubepods-pod" UID_LOW ".slice/crio-" ID ".scope\n", ID,
		 UID_DASH},
		{"0::/kubepods-pod" UID_LOW ".slice/crio-" ID ".scope/container\n", ID, UID_DASH},
		{"0::/kubepods-pod" UID_LOW ".slice/crio-conmon-" OTHER ".scope\n", "", UID_DASH},
		/* cri-dockerd */
		{"0::/kubepods.slice/kubepods-pod" UID_LOW ".slice/docker-" ID ".scope\n", ID,
		 UID_DASH},
		/* a slice of the administrator's above the kubelet's */
		{"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
		 "kubelet-kubepods-besteffort-pod" UID_LOW ".slice/cri-containerd-" ID ".scope\n",
		 ID, UID_DASH},
		/* a static pod */
		{"0::/kubepods/burstable/pod" HASH "/" ID "\n", ID, HASH},
		/* no Kubernetes: docker, podman */
		{"0::/system.slice/docker-" ID ".scope\n", ID, ""},
		{"4:memory:/docker/" ID "\n", ID, ""},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", ID, ""},
		{"0::/machine.slice/libpod-conmon-" ID ".scope\n", "", ""},
		{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		 ".scope/container",
		 ID, ""},
	};

	(void)state;
	CHECK(cases);
}

static void in_containers_within_containers_the_clusters_own_count(void **state)
{
	static const struct place cases[] = {
		/* kind: a node that is a container */
		{"0::/docker/" OTHER
		 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_LOW
		 ".slice/cri-containerd-" ID ".scope\n",
		 ID, UID_DASH},
		{"0::/docker/" OTHER "/kubelet/kubepods/pod" UID_DASH "/" ID "\n", ID, UID_DASH},
		/* docker in docker, in a pod and without one */
		{"0::/kubepods/pod" UID_DASH "/" ID "/docker/" OTHER "\n", ID, UID_DASH},
		{"0::/docker/" OTHER "/docker/" ID "\n", ID, ""},
		/* a pod that makes a group with another pod's name */
		{"0::/kubepods/pod" UID_DASH "/" ID "/pod" UID_B "/" OTHER "\n", ID, UID_DASH},
		/* seen out of a cgroup namespace of our own */
		{"0::/../../kubepods-pod" UID_LOW ".slice/cri-containerd-" ID ".scope\n", ID,
		 UID_DASH},
	};

	(void)state;
	CHECK(cases);
}

static void slurms_job_and_step_are_read_on_both_versions(void **state)
{
	static const struct place cases[] = {
		{"5:memory:/slurm/uid_1000/job_42/step_0/task_3\n", "", "", "42", "0"},
		{"0::/system.slice/gpu07_slurmstepd.scope/job_42/step_extern/user/task_0\n", "", "",
		 "42", "extern"},
		{"0::/system.slice/slurmstepd.scope/job_7/step_batch/slurm\n", "", "", "7",
		 "batch"},
		{"0::/system.slice/slurmstepd.scope/job_7\n", "", "", "7"},
		/* not Slurm's, or no number */
		{"0::/ci.slice/job_42/step_1\n", "", ""},
		{"0::/slurm/job_/step_1\n", "", ""},
		{"0::/slurm/job_4-2/step_1\n", "", ""},
		{"0::/slurm/job_123456789012345678901234/step_1\n", "", ""},
	};

	(void)state;
	CHECK(cases);
}

static void of_several_hierarchies_the_one_that_tells_most_counts(void **state)
{
	static const struct place cases[] = {
		{"12:memory:/kubepods/pod" UID_DASH "/" ID "\n1:name=systemd:/\n0::/\n", ID,
		 UID_DASH},
		{"2:cpuset:/\n1:pids:/kubepods/pod" UID_DASH "\n0::/kubepods/pod" UID_DASH "/" ID
		 "\n",
		 ID, UID_DASH},
		{"1:cpu:/docker/" OTHER "\n0::/kubepods/pod" UID_DASH "/" ID "\n", ID, UID_DASH},
	};

	(void)state;
	CHECK(cases);
}

static void what_only_resembles_an_id_is_none(void **state)
{
	static const struct place cases[] = {
		{"0::/" ID "0\n", "", ""}, /* one digit too many */
		{"0::/x" ID "\n", "", ""},
		{"0::/docker-" ID "z.scope\n", "", ""},
		{"0::/docker-0123456789abcdef.scope\n", "", ""},
		{"0::/pod12345678-90ab\n", "", ""},
		{"0::/tripod" UID_DASH "\n", "", ""},
		{"0::/pod" UID_DASH "0\n", "", ""},
		{"0::/pod" HASH "0\n", "", ""},
		{"/kubepods/pod" UID_DASH "/" ID "\n", "", ""}, /* no line of the kernel */
		{"0::/\n", "", ""},
		{"\n\n", "", ""},
		{"", "", ""},
	};

	(void)state;
	CHECK(cases);
}

static void the_path_is_the_telling_ones_and_cut_at_its_cap(void **state)
{
	char text[600] = "0::/";
	struct nt_cgroup cgroup;

	(void)state;
	nt_cgroup_parse("1:cpu:/a\n0::/b:c\n", 17, &cgroup);
	assert_string_equal(cgroup.path, "/b:c");
	nt_cgroup_parse("1:cpu:/a\n0::/\n", 14, &cgroup);
	assert_string_equal(cgroup.path, "/a");
	nt_cgroup_parse("1:cpu:/docker/" ID "\n0::/init\n", 89, &cgroup);
	assert_string_equal(cgroup.path, "/docker/" ID);
	nt_cgroup_parse("0::/a\x1b\n", 7, &cgroup);
	assert_string_equal(cgroup.path, "/a?");
	memset(text + 4, 'x', 595);
	nt_cgroup_parse(text, 599, &cgroup);
	assert_int_equal(strlen(cgroup.path), NT_CGROUP_PATH - 1);
}

/* Of each text every beginning, in exactly as much memory: sanitizers see who reads on. */
static void nothing_is_read_past_the_end(void **state)
{
	static const char *const texts[] = {
		"0::/kubepods/pod" UID_DASH "/" ID "\n",
		"0::/system.slice/slurmstepd.scope/job_7/step_0\n",
		"12:cpu:/docker/" ID "\n",
	};
	struct nt_cgroup cgroup;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (size_t len = 0; len <= strlen(texts[i]); len++) {
			char *text = malloc(len ? len : 1);

			assert_non_null(text);
			memcpy(text, texts[i], len);
			nt_cgroup_parse(text, len, &cgroup);
			free(text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_runtime_and_driver_tells_container_and_pod),
		cmocka_unit_test(in_containers_within_containers_the_clusters_own_count),
		cmocka_unit_test(slurms_job_and_step_are_read_on_both_versions),
		cmocka_unit_test(of_several_hierarchies_the_one_that_tells_most_counts),
		cmocka_unit_test(what_only_resembles_an_id_is_none),
		cmocka_unit_test(the_path_is_the_telling_ones_and_cut_at_its_cap),
		cmocka_unit_test(nothing_is_read_past_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
