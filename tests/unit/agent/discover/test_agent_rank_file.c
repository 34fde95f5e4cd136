/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/discover/rank_file.h"
#include "agent/probes/probe.h"

static void interpreters_are_known_by_their_names(void **state)
{
	static const char *const yes[] = {"libpython3.11.so.1.0", "libpython3.so",
					  "libpython3.6m.so.1.0", "libpython3.13t.so",
					  "libpython2.7.so.1.0"};
	static const char *const no[] = {
		"libpython",       "libpython.so",    "libpython_x.so",    "libtorch_python.so",
		"libpython3.11.a", "libpython3.so-1", "libpython3.11.sox", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!nt_rank_file_is_interpreter(yes[i]))
			fail_msg("'%s' is one", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (nt_rank_file_is_interpreter(no[i]))
			fail_msg("'%s' is none", no[i]);
}

struct found {
	int files, result;
	struct stat st;
};

static int take(void *data, int fd, const struct stat *st)
{
	struct found *found = data;

	found->files++;
	assert_int_equal(fstat(fd, &found->st), 0);
	assert_int_equal(found->st.st_ino, st->st_ino);
	assert_true(fcntl(fd, F_GETFL) & O_PATH);
	return found->result;
}

static void a_process_without_a_library_is_asked_for_its_program(void **state)
{
	struct found found = {.result = 5};
	struct stat st;

	(void)state;
	assert_int_equal(nt_rank_file_find((uint32_t)getpid(), NT_LIBRARY_PYTHON, take, &found), 5);
	assert_int_equal(found.files, 1);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_int_equal(found.st.st_ino, st.st_ino);
	found.result = -ENOENT;
	assert_int_equal(nt_rank_file_find((uint32_t)getpid(), NT_LIBRARY_PYTHON, take, &found),
			 -ENOENT);
}

static void a_process_that_is_gone_has_none(void **state)
{
	struct found found = {0};

	(void)state;
	assert_int_equal(nt_rank_file_find(INT32_MAX, NT_LIBRARY_PYTHON, take, &found), -ESRCH);
	assert_int_equal(found.files, 0);
}

static void a_program_is_no_gpu_library(void **state)
{
	struct found found = {.result = 5};

	(void)state;
	assert_int_equal(nt_rank_file_find((uint32_t)getpid(), NT_LIBRARY_GPU, take, &found),
			 -ENOENT);
	assert_int_equal(found.files, 0);
	assert_true(nt_rank_file_is_gpu_library("libneutracer-cupti.so"));
	assert_false(nt_rank_file_is_gpu_library("libcupti.so.12"));
	assert_int_equal(
		nt_rank_file_find((uint32_t)getpid(), NT_LIBRARY_NCCL_PROFILER, take, &found),
		-ENOENT);
	assert_int_equal(found.files, 0);
	assert_true(nt_rank_file_is_nccl_profiler("libnccl-profiler-neutracer.so"));
	assert_false(nt_rank_file_is_nccl_profiler("libnccl-profiler-inspector.so"));
	assert_false(nt_rank_file_is_nccl_profiler("libneutracer-cupti.so"));
}

static void a_program_without_cuda_queries_no_events(void **state)
{
	struct found found = {.result = 5};

	(void)state;
	assert_int_equal(nt_rank_file_find((uint32_t)getpid(), NT_LIBRARY_EVENT, take, &found),
			 -ENOENT);
	assert_int_equal(found.files, 0);
	assert_true(nt_rank_file_is_runtime("libcudart.so.13"));
	assert_true(nt_rank_file_is_runtime("libcudart-0123abcd.so.12"));
	assert_false(nt_rank_file_is_runtime("libcuda.so.1"));
	assert_true(nt_rank_file_is_driver("libcuda.so.1"));
	assert_false(nt_rank_file_is_driver("libcudart.so.13"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreters_are_known_by_their_names),
		cmocka_unit_test(a_process_without_a_library_is_asked_for_its_program),
		cmocka_unit_test(a_process_that_is_gone_has_none),
		cmocka_unit_test(a_program_is_no_gpu_library),
		cmocka_unit_test(a_program_without_cuda_queries_no_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
