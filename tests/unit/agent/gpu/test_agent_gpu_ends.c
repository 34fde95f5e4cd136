/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long the last windows of a process wait for a reading of its GPUs. */
#include "agent/gpu/gpu_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define T (100 * NT_SECOND)

static struct nt_gpu_ends ends;

static int begin(void **state)
{
	(void)state;
	ends = (struct nt_gpu_ends){0};
	return 0;
}

static bool add(uint32_t pid, uint64_t noticed_ns)
{
	const struct nt_gpu_end end = {.pid = pid,
				       .start_boot_ns = 1,
				       .boot_ns = 2,
				       .noticed_ns = noticed_ns,
				       .gone_ns = noticed_ns};

	return nt_gpu_ends_add(&ends, &end);
}

/* The pid of the one that is due; 0: none is. */
static uint32_t due(uint64_t begun_ns, uint64_t now_ns)
{
	const struct nt_gpu_end *end = nt_gpu_ends_due(&ends, begun_ns, now_ns);

	return end ? end->pid : 0;
}

static void a_reading_that_began_after_the_end_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(due(T, T), 0);
	assert_true(add(7, T));
	assert_true(add(8, T + 1));
	assert_int_equal(nt_gpu_ends_find(&ends, 7)->start_boot_ns, 1);
	assert_int_equal(nt_gpu_ends_find(&ends, 7)->boot_ns, 2);
	assert_null(nt_gpu_ends_find(&ends, 9));
	assert_int_equal(due(T - 1, T + 1), 0);
	assert_int_equal(due(T, T + 1), 7);
	nt_gpu_ends_remove(&ends, 7);
	assert_int_equal(due(T, T + 1), 0);
	assert_int_equal(due(T + 1, T + 1), 8);
	nt_gpu_ends_remove(&ends, 8);
	assert_int_equal(ends.count, 0);
}

static bool is_eight(uint32_t pid)
{
	return pid == 8;
}

/* The kernel closes its devices later than it reports its end. */
static void a_reading_before_its_devices_are_closed_is_not_enough(void **state)
{
	(void)state;
	assert_true(add(7, T) && add(8, T));
	ends.end[0].gone_ns = ends.end[1].gone_ns = 0;
	assert_int_equal(due(T + 5, T + 5), 0);
	nt_gpu_ends_look(&ends, is_eight, T + 6);
	assert_int_equal(due(T + 5, T + 6), 0);
	assert_int_equal(due(T + 6, T + 7), 8);
	nt_gpu_ends_look(&ends, is_eight, T + 9);
	assert_int_equal(due(T + 6, T + 9), 8);
	nt_gpu_ends_remove(&ends, 8);
	assert_int_equal(due(T + 9, T + 9), 0);
	assert_int_equal(due(T + 9, T + NT_GPU_ENDS_WAIT_NS), 7);
}

/* The driver hangs: aggregators wait no longer. */
static void without_a_reading_it_is_not_waited_for_longer(void **state)
{
	(void)state;
	assert_true(add(7, T));
	assert_int_equal(due(0, T + NT_GPU_ENDS_WAIT_NS - 1), 0);
	assert_int_equal(due(0, T + NT_GPU_ENDS_WAIT_NS), 7);
	assert_int_equal(due(0, UINT64_MAX), 7);
}

static void one_in_the_middle_can_be_removed(void **state)
{
	(void)state;
	assert_true(add(7, T) && add(8, T) && add(9, T));
	nt_gpu_ends_remove(&ends, 6);
	assert_int_equal(ends.count, 3);
	nt_gpu_ends_remove(&ends, 8);
	assert_null(nt_gpu_ends_find(&ends, 8));
	assert_non_null(nt_gpu_ends_find(&ends, 7));
	assert_non_null(nt_gpu_ends_find(&ends, 9));
}

static void more_than_the_table_holds_do_not_wait(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NT_GPU_ENDS; i++)
		assert_true(add(i + 1, T));
	assert_int_equal(ends.over_cap, 0);
	assert_false(add(NT_GPU_ENDS + 1, T));
	assert_int_equal(ends.over_cap, 1);
	nt_gpu_ends_remove(&ends, 1);
	assert_true(add(NT_GPU_ENDS + 1, T));
}

#define ENDS_TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENDS_TEST(a_reading_that_began_after_the_end_is_waited_for),
		ENDS_TEST(a_reading_before_its_devices_are_closed_is_not_enough),
		ENDS_TEST(without_a_reading_it_is_not_waited_for_longer),
		ENDS_TEST(one_in_the_middle_can_be_removed),
		ENDS_TEST(more_than_the_table_holds_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
