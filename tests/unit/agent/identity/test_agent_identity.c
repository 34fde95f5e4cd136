/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PARSE(text, env) nt_environ_parse(text, sizeof(text) - 1, env)

static const struct nt_identity_facts facts = {.boot = 0xabc, .first_id = 0x123, .parent = 0x9};

static void key_is(const struct nt_environ *env, const char *want)
{
	char key[NT_IDENTITY_KEY];

	(void)nt_identity_key(env, &facts, key);
	assert_string_equal(key, want);
}

static void the_key_is_made_of_what_all_ranks_see_alike(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("MASTER_ADDR=gpu-1\0MASTER_PORT=29500\0TORCHELASTIC_RUN_ID=r1\0RANK=3\0"
	      "SLURM_JOB_ID=4\0PMIX_NAMESPACE=7\0",
	      &env);
	key_is(&env, "torch:gpu-1:29500/r1");
	PARSE("SLURM_JOB_ID=4\0SLURM_STEP_ID=0\0PMIX_NAMESPACE=7\0", &env);
	key_is(&env, "slurm:4.0");
	PARSE("PMIX_NAMESPACE=7\0", &env);
	key_is(&env, "mpi:7");
	PARSE("RANK=3\0", &env);
	key_is(&env, "id:0000000000000123");
}

static void without_anything_the_parent_keys_the_job_of_one_node(void **state)
{
	struct nt_identity_facts none = {.boot = 1, .parent = 2};
	char key[NT_IDENTITY_KEY];
	struct nt_environ env;

	(void)state;
	PARSE("", &env);
	assert_int_equal(nt_identity_key(&env, &none, key), NT_IDENTITY_PARENT);
	assert_string_equal(key, "node:0000000000000001:0000000000000002");
}

static void a_loopback_address_counts_with_the_node(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("MASTER_ADDR=127.0.0.1\0MASTER_PORT=29500\0", &env);
	key_is(&env, "torch:127.0.0.1:29500/0000000000000abc");
	PARSE("MASTER_ADDR=localhost\0MASTER_PORT=29500\0TORCHELASTIC_RUN_ID=none\0", &env);
	key_is(&env, "torch:localhost:29500/0000000000000abc");
}

static void an_address_without_a_port_is_no_key(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("MASTER_ADDR=gpu-1\0PMIX_NAMESPACE=7\0", &env);
	key_is(&env, "mpi:7");
}

static void odd_letters_are_replaced_and_long_keys_end_in_a_hash(void **state)
{
	char text[256] = "PMIX_NAMESPACE=";
	char a[NT_IDENTITY_KEY], b[NT_IDENTITY_KEY];
	struct nt_environ env;

	(void)state;
	PARSE("PMIX_NAMESPACE=a b\"c/d\0", &env);
	key_is(&env, "mpi:a-b-c/d");
	memset(text + 15, 'n', 120);
	nt_environ_parse(text, 15 + 120, &env);
	(void)nt_identity_key(&env, &facts, a);
	text[15 + 119] = 'm';
	nt_environ_parse(text, 15 + 120, &env);
	(void)nt_identity_key(&env, &facts, b);
	assert_true(strlen(a) < NT_IDENTITY_KEY);
	assert_string_not_equal(a, b);
}

static void a_users_own_name_names_the_job_but_does_not_key_it(void **state)
{
	const struct nt_workload workload = {.kind = ""};
	const struct nt_cgroup cgroup = {.path = "/"};
	char key[NT_IDENTITY_KEY], name[NT_IDENTITY_NAME];
	struct nt_environ env;

	(void)state;
	PARSE("NT_JOB=llm-70b\0PMIX_NAMESPACE=7\0", &env);
	(void)nt_identity_key(&env, &facts, key);
	nt_identity_name(&env, &workload, &cgroup, "python3", key, name);
	assert_string_equal(key, "mpi:7");
	assert_string_equal(name, "llm-70b");
	PARSE("PMIX_NAMESPACE=7\0", &env);
	nt_identity_name(&env, &workload, &cgroup, "python3", key, name);
	assert_memory_equal(name, "python3-", 8);
	assert_int_equal(strlen(name), 12);
}

static void a_job_is_named_by_its_user_its_pods_its_scheduler_its_cgroup_in_this_order(void **state)
{
	static const struct {
		const char *env, *workload, *slurm_job, *name;
		size_t len;
	} cases[] = {
		{"NT_JOB=mine\0SLURM_JOB_NAME=batch\0", "train", "42", "mine", 33},
		{"SLURM_JOB_NAME=batch\0", "train", "42", "train", 21},
		{"SLURM_JOB_NAME=batch\0", "", "42", "batch", 21},
		{"", "", "42", "slurm-42", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_workload workload = {.kind = ""};
		struct nt_cgroup cgroup = {.path = "/"};
		char name[NT_IDENTITY_NAME];
		struct nt_environ env;

		nt_environ_parse(cases[i].env, cases[i].len, &env);
		(void)snprintf(workload.job, sizeof(workload.job), "%s", cases[i].workload);
		(void)snprintf(cgroup.slurm_job, sizeof(cgroup.slurm_job), "%s",
			       cases[i].slurm_job);
		nt_identity_name(&env, &workload, &cgroup, "python3", "key", name);
		assert_string_equal(name, cases[i].name);
	}
}

static void rank_is(const char *text, size_t len, int64_t rank, uint32_t size)
{
	struct nt_identity_rank id;
	struct nt_environ env;

	nt_environ_parse(text, len, &env);
	id = nt_identity_rank(&env);
	assert_int_equal(id.known, rank >= 0);
	if (rank >= 0)
		assert_int_equal(id.rank, rank);
	assert_int_equal(id.size, size);
}

#define RANK_IS(text, rank, size) rank_is(text, sizeof(text) - 1, rank, size)

static void rank_counts_only_beside_local_rank(void **state)
{
	(void)state;
	RANK_IS("RANK=3\0WORLD_SIZE=8\0LOCAL_RANK=3\0", 3, 8);
	RANK_IS("RANK=1\0WORLD_SIZE=2\0", -1, 0);
	RANK_IS("RANK=1\0LOCAL_RANK=1\0", -1, 0);
}

static void every_launcher_has_its_own_variables(void **state)
{
	(void)state;
	RANK_IS("OMPI_COMM_WORLD_RANK=2\0OMPI_COMM_WORLD_SIZE=4\0PMIX_RANK=9\0", 2, 4);
	RANK_IS("PMI_RANK=1\0PMI_SIZE=2\0MPI_LOCALRANKID=1\0", 1, 2);
	RANK_IS("PMIX_RANK=5\0", 5, 0);
	RANK_IS("SLURM_PROCID=6\0SLURM_NTASKS=16\0", 6, 16);
	RANK_IS("", -1, 0);
}

static void a_rank_outside_its_job_is_no_rank(void **state)
{
	(void)state;
	RANK_IS("RANK=8\0WORLD_SIZE=8\0LOCAL_RANK=0\0", -1, 0);
	RANK_IS("OMPI_COMM_WORLD_RANK=4\0OMPI_COMM_WORLD_SIZE=4\0", -1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_key_is_made_of_what_all_ranks_see_alike),
		cmocka_unit_test(without_anything_the_parent_keys_the_job_of_one_node),
		cmocka_unit_test(a_loopback_address_counts_with_the_node),
		cmocka_unit_test(an_address_without_a_port_is_no_key),
		cmocka_unit_test(odd_letters_are_replaced_and_long_keys_end_in_a_hash),
		cmocka_unit_test(a_users_own_name_names_the_job_but_does_not_key_it),
		cmocka_unit_test(
			a_job_is_named_by_its_user_its_pods_its_scheduler_its_cgroup_in_this_order),
		cmocka_unit_test(rank_counts_only_beside_local_rank),
		cmocka_unit_test(every_launcher_has_its_own_variables),
		cmocka_unit_test(a_rank_outside_its_job_is_no_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
