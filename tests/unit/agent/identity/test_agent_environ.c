/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/environ.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A literal's bytes, with the NULs inside, without the one behind. */
#define PARSE(text, env) nt_environ_parse(text, sizeof(text) - 1, env)

static void known_variables_are_found_among_others(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("PATH=/bin\0RANK=3\0WORLD_SIZE=8\0LOCAL_RANK=1\0MASTER_ADDR=10.0.0.1\0"
	      "MASTER_PORT=29500\0TORCHELASTIC_RUN_ID=abc\0TORCHELASTIC_RESTART_COUNT=2\0"
	      "OMPI_COMM_WORLD_RANK=5\0PMIX_NAMESPACE=77\0SLURM_JOB_ID=12\0NT_JOB=llm\0",
	      &env);
	assert_int_equal(env.rank, 3);
	assert_int_equal(env.world_size, 8);
	assert_int_equal(env.local_rank, 1);
	assert_string_equal(env.master_addr, "10.0.0.1");
	assert_string_equal(env.master_port, "29500");
	assert_string_equal(env.run_id, "abc");
	assert_int_equal(env.restart_count, 2);
	assert_int_equal(env.ompi_rank, 5);
	assert_string_equal(env.pmix_namespace, "77");
	assert_string_equal(env.slurm_job_id, "12");
	assert_string_equal(env.job, "llm");
}

static void what_is_missing_is_absent(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("", &env);
	assert_int_equal(env.rank, NT_ENVIRON_ABSENT);
	assert_int_equal(env.slurm_procid, NT_ENVIRON_ABSENT);
	assert_string_equal(env.master_addr, "");
}

static void what_is_no_number_is_absent(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("RANK=3x\0WORLD_SIZE=-1\0LOCAL_RANK=99999999999\0PMI_RANK=\0", &env);
	assert_int_equal(env.rank, NT_ENVIRON_ABSENT);
	assert_int_equal(env.world_size, NT_ENVIRON_ABSENT);
	assert_int_equal(env.local_rank, NT_ENVIRON_ABSENT);
	assert_int_equal(env.pmi_rank, NT_ENVIRON_ABSENT);
}

static void a_name_must_match_as_a_whole(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("XRANK=1\0RANKX=2\0RANK\0=5\0rank=3\0", &env);
	assert_int_equal(env.rank, NT_ENVIRON_ABSENT);
}

static void the_last_string_needs_no_nul(void **state)
{
	struct nt_environ env;

	(void)state;
	PARSE("A=b\0RANK=4", &env);
	assert_int_equal(env.rank, 4);
}

static void long_text_is_cut_and_odd_bytes_are_replaced(void **state)
{
	char data[4096];
	struct nt_environ env;

	(void)state;
	memset(data, 'x', sizeof(data));
	memcpy(data, "MASTER_ADDR=a\nb\xff", 16);
	nt_environ_parse(data, sizeof(data), &env);
	assert_int_equal(strlen(env.master_addr), NT_ENVIRON_TEXT - 1);
	assert_memory_equal(env.master_addr, "a?b?xxx", 7);
}

static void our_own_can_be_read_and_a_missing_process_cannot(void **state)
{
	struct nt_environ env;

	(void)state;
	assert_int_equal(nt_environ_read((uint32_t)getpid(), &env), 0);
	assert_int_equal(nt_environ_read(0x7fffffff, &env), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_variables_are_found_among_others),
		cmocka_unit_test(what_is_missing_is_absent),
		cmocka_unit_test(what_is_no_number_is_absent),
		cmocka_unit_test(a_name_must_match_as_a_whole),
		cmocka_unit_test(the_last_string_needs_no_nul),
		cmocka_unit_test(long_text_is_cut_and_odd_bytes_are_replaced),
		cmocka_unit_test(our_own_can_be_read_and_a_missing_process_cannot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
