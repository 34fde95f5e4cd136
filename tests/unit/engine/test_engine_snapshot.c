/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/snapshot.h"

static void a_job_is_named_with_or_without_the_part_of_its_key(void **state)
{
	const struct nt_snapshot_job job = {
		.name = "lmp-eadf", .key = "10.0.0.1:29500", .id = "00000000000000a1"};
	const struct nt_snapshot_job chosen = {.name = "llm-70b", .key = "k", .id = "b2"};
	const struct nt_snapshot_job date = {.name = "run-2026x", .key = "k", .id = "b3"};

	(void)state;
	assert_true(nt_snapshot_job_matches(&job, "lmp-eadf"));
	assert_true(nt_snapshot_job_matches(&job, "lmp"));
	assert_true(nt_snapshot_job_matches(&job, "10.0.0.1:29500"));
	assert_true(nt_snapshot_job_matches(&job, "00000000000000a1"));
	assert_false(nt_snapshot_job_matches(&job, "lm"));
	assert_false(nt_snapshot_job_matches(&job, "lmp-"));
	assert_false(nt_snapshot_job_matches(&job, ""));
	assert_false(nt_snapshot_job_matches(&job, "lmp-eadf-eadf"));
	assert_false(nt_snapshot_job_matches(&chosen, "llm"));
	assert_false(nt_snapshot_job_matches(&date, "run"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_named_with_or_without_the_part_of_its_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
