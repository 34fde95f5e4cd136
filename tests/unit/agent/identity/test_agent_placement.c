/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/identity/placement.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID   "12345678-90ab-cdef-1234-567890abcdef"
#define GPU_A "GPU-aaaaaaaa-0000-0000-0000-000000000000"
#define GPU_B "GPU-bbbbbbbb-0000-0000-0000-000000000000"

#define READ_OWN(cgroup, env, placement) read_own(cgroup, env, sizeof(env) - 1, placement)

static void read_own(const char *cgroup_text, const char *env_text, size_t len,
		     struct nt_placement *ret_placement)
{
	struct nt_cgroup cgroup;
	struct nt_environ env;

	nt_cgroup_parse(cgroup_text, strlen(cgroup_text), &cgroup);
	nt_environ_parse(env_text, len, &env);
	nt_placement_read_own(&cgroup, &env, ret_placement);
}

static void in_a_pod_its_environment_names_it(void **state)
{
	struct nt_placement placement;

	(void)state;
	READ_OWN("0::/kubepods/pod" UID "/" ID, "HOSTNAME=train-0\0", &placement);
	assert_string_equal(placement.pod, "train-0");
	assert_string_equal(placement.pod_uid, UID);
	assert_string_equal(placement.container, ID);
	assert_string_equal(placement.namespace, "");
	READ_OWN("0::/kubepods/pod" UID "/" ID,
		 "HOSTNAME=cut\0POD_NAME=train-0-long\0POD_NAMESPACE=ml\0", &placement);
	assert_string_equal(placement.pod, "train-0-long");
	assert_string_equal(placement.namespace, "ml");
}

static void outside_a_pod_no_environment_makes_one(void **state)
{
	struct nt_placement placement;

	(void)state;
	READ_OWN("0::/system.slice/docker-" ID ".scope",
		 "HOSTNAME=x\0POD_NAME=other\0POD_NAMESPACE=theirs\0", &placement);
	assert_string_equal(placement.pod, "");
	assert_string_equal(placement.namespace, "");
	assert_string_equal(placement.pod_uid, "");
	assert_string_equal(placement.container, ID);
}

static void a_gpu_is_named_where_there_is_no_doubt_which(void **state)
{
	static const struct {
		const char *env;
		size_t len;
		const char *gpu;
	} cases[] = {
#define GPU_OF(env, gpu) {env, sizeof(env) - 1, gpu}
		GPU_OF("", ""),
		GPU_OF("NVIDIA_VISIBLE_DEVICES=" GPU_A "\0", GPU_A),
		/* the only card of the container, whatever its number there */
		GPU_OF("NVIDIA_VISIBLE_DEVICES=" GPU_A "\0CUDA_VISIBLE_DEVICES=0\0", GPU_A),
		GPU_OF("NVIDIA_VISIBLE_DEVICES=all\0", ""),
		GPU_OF("NVIDIA_VISIBLE_DEVICES=void\0LOCAL_RANK=0\0", ""),
		/* which of the two is not known by its name, but by its number */
		GPU_OF("NVIDIA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0", ""),
		GPU_OF("NVIDIA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0LOCAL_RANK=1\0", "cuda:1"),
		GPU_OF("NVIDIA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0LOCAL_RANK=2\0", ""),
		GPU_OF("NVIDIA_VISIBLE_DEVICES=" GPU_A "," GPU_B
		       "\0CUDA_VISIBLE_DEVICES=1\0LOCAL_RANK=0\0",
		       "cuda:1"),
		GPU_OF("CUDA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0LOCAL_RANK=1\0", GPU_B),
		GPU_OF("CUDA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0OMPI_COMM_WORLD_LOCAL_RANK=1\0",
		       GPU_B),
		GPU_OF("CUDA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0SLURM_LOCALID=0\0", GPU_A),
		/* number 0 is one, too, and the launcher nearest to the program knows best */
		GPU_OF("CUDA_VISIBLE_DEVICES=" GPU_A "," GPU_B
		       "\0LOCAL_RANK=0\0OMPI_COMM_WORLD_LOCAL_RANK=1\0",
		       GPU_A),
		GPU_OF("CUDA_VISIBLE_DEVICES=" GPU_A "," GPU_B
		       "\0OMPI_COMM_WORLD_LOCAL_RANK=0\0MPI_LOCALRANKID=1\0",
		       GPU_A),
		GPU_OF("CUDA_VISIBLE_DEVICES=" GPU_A "," GPU_B
		       "\0MPI_LOCALRANKID=0\0SLURM_LOCALID=1\0",
		       GPU_A),
		GPU_OF("CUDA_VISIBLE_DEVICES=4,5,6\0LOCAL_RANK=2\0", "cuda:6"),
		GPU_OF("CUDA_VISIBLE_DEVICES=4,5,6\0LOCAL_RANK=3\0", ""),
		GPU_OF("CUDA_VISIBLE_DEVICES=4,5,6\0", ""),
		GPU_OF("CUDA_VISIBLE_DEVICES=7\0LOCAL_RANK=3\0", "cuda:7"),
		GPU_OF("CUDA_VISIBLE_DEVICES=MIG-1\0", "MIG-1"),
		GPU_OF("CUDA_VISIBLE_DEVICES=-1\0", ""),
		GPU_OF("CUDA_VISIBLE_DEVICES=,,\0LOCAL_RANK=0\0", ""),
		GPU_OF("CUDA_VISIBLE_DEVICES=evil\0LOCAL_RANK=0\0", ""),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_placement placement;

		read_own("0::/", cases[i].env, cases[i].len, &placement);
		assert_string_equal(placement.gpu, cases[i].gpu);
	}
}

static void who_sees_no_gpu_of_its_container_has_its_place_among_them(void **state)
{
	static const struct {
		const char *env;
		size_t len;
		int32_t at;
	} cases[] = {
#define AT(env, at) {env, sizeof(env) - 1, at}
		AT("LOCAL_RANK=1\0", 1),
		AT("NVIDIA_VISIBLE_DEVICES=void\0OMPI_COMM_WORLD_LOCAL_RANK=2\0", 2),
		AT("", -1),
		AT("NVIDIA_VISIBLE_DEVICES=" GPU_A "," GPU_B "\0LOCAL_RANK=2\0", -1),
		AT("CUDA_VISIBLE_DEVICES=-1\0LOCAL_RANK=0\0", -1),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_placement placement;

		read_own("0::/", cases[i].env, cases[i].len, &placement);
		assert_int_equal(placement.gpu_at, cases[i].at);
		assert_string_equal(placement.gpu, "");
	}
}

static void of_a_list_that_was_cut_the_last_is_not_used(void **state)
{
	char env[2 * NT_ENVIRON_DEVICES] = "CUDA_VISIBLE_DEVICES=";
	size_t len = strlen(env), start = len;
	struct nt_placement placement;

	(void)state;
	for (int i = 0; i < 20; i++)
		len += (size_t)snprintf(env + len, sizeof(env) - len, "%s" GPU_A, i ? "," : "");
	/* The thirteenth is cut. */
	assert_true(12 * (sizeof(GPU_A) - 1) + 12 < NT_ENVIRON_DEVICES && len > start);
	env[len++] = '\0';
	memcpy(env + len, "LOCAL_RANK=11", 14);
	read_own("0::/", env, len + 14, &placement);
	assert_string_equal(placement.gpu, GPU_A);
	memcpy(env + len, "LOCAL_RANK=12", 14);
	read_own("0::/", env, len + 14, &placement);
	assert_string_equal(placement.gpu, "");
}

static void an_index_is_one_gpu_in_one_container(void **state)
{
	struct nt_placement one = {.gpu = "cuda:0", .container = "a", .pod_uid = {1}}, other = one;

	(void)state;
	assert_true(nt_placement_states_one_gpu(&one, &other));
	memcpy(other.container, "b", 2);
	assert_false(nt_placement_states_one_gpu(&one, &other));
	other = one;
	other.pod_uid[0] = 2;
	assert_false(nt_placement_states_one_gpu(&one, &other));
	other = one;
	memcpy(other.workload.job, "job", 4);
	assert_false(nt_placement_states_one_gpu(&one, &other));
	memcpy(one.gpu, "GPU-12", 7);
	memcpy(other.gpu, "GPU-12", 7);
	assert_true(nt_placement_states_one_gpu(&one, &other));
	other.gpu[5] = '3';
	assert_false(nt_placement_states_one_gpu(&one, &other));
	one.gpu[0] = other.gpu[0] = '\0';
	assert_false(nt_placement_states_one_gpu(&one, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_a_pod_its_environment_names_it),
		cmocka_unit_test(outside_a_pod_no_environment_makes_one),
		cmocka_unit_test(a_gpu_is_named_where_there_is_no_doubt_which),
		cmocka_unit_test(who_sees_no_gpu_of_its_container_has_its_place_among_them),
		cmocka_unit_test(of_a_list_that_was_cut_the_last_is_not_used),
		cmocka_unit_test(an_index_is_one_gpu_in_one_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
