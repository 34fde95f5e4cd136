/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

/* This program holds a library itself, as far as names go. */
int MPI_Init_of_this_test(void);

int MPI_Init_of_this_test(void)
{
	return 0;
}

static void flood(struct nt_programs *programs, uid_t uid, ino_t first, ino_t count)
{
	struct stat st = {.st_uid = uid, .st_dev = 9};

	for (ino_t i = 0; i < count; i++) {
		st.st_ino = first + i;
		assert_false(nt_programs_hold(programs, "/no/such/file", &st));
	}
}

static void one_users_programs_do_not_make_those_of_others_forgotten(void **state)
{
	nt_auto(nt_programs) struct nt_programs *programs = nt_programs_new();
	struct stat st;

	(void)state;
	assert_non_null(programs);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	st.st_uid = 7;
	assert_true(nt_programs_hold(programs, "/proc/self/exe", &st));
	flood(programs, 1000, 1, NT_PROGRAMS_MAX - 1);
	assert_int_equal(nt_programs_over_cap(programs), 0);
	flood(programs, 1000, 100000, 2 * NT_PROGRAMS_MAX);
	assert_int_equal(nt_programs_over_cap(programs), 2 * NT_PROGRAMS_MAX);
	/* What is remembered is not read again. */
	assert_true(nt_programs_hold(programs, "/no/such/file", &st));
	flood(programs, 1001, 900000, 1);
	assert_true(nt_programs_hold(programs, "/no/such/file", &st));
}

static void the_oldest_of_the_user_with_the_most_makes_room(void **state)
{
	nt_auto(nt_programs) struct nt_programs *programs = nt_programs_new();
	struct stat st;

	(void)state;
	assert_non_null(programs);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	st.st_uid = 1000;
	assert_true(nt_programs_hold(programs, "/proc/self/exe", &st));
	flood(programs, 1000, 1, NT_PROGRAMS_MAX - 1);
	flood(programs, 7, 900000, 1);
	assert_int_equal(nt_programs_over_cap(programs), 1);
	assert_false(nt_programs_hold(programs, "/no/such/file", &st)); /* it is gone */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_users_programs_do_not_make_those_of_others_forgotten),
		cmocka_unit_test(the_oldest_of_the_user_with_the_most_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
