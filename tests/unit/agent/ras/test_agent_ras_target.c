/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct nt_ras_target target_of(const char *environ, size_t size)
{
	struct nt_ras_target target;

	nt_ras_target_environ(environ, size, &target);
	return target;
}

#define TARGET(text) target_of(text, sizeof(text) - 1)
#define PID_OF(text) nt_ras_target_pid(text, sizeof(text) - 1)

static void without_an_address_the_port_is_the_default(void **state)
{
	(void)state;
	assert_int_equal(TARGET("").port, 28028);
	assert_int_equal(TARGET("PATH=/bin\0XNCCL_RAS_ADDR=localhost:4000\0").port, 28028);
	assert_false(TARGET("PATH=/bin\0").is_off);
}

static void the_address_selects_the_port_alone(void **state)
{
	(void)state;
	assert_int_equal(TARGET("A=b\0NCCL_RAS_ADDR=localhost:4000\0").port, 4000);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=10.1.2.3:4000").port, 4000);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=[::1]:65535\0").port, 65535);
}

static void a_port_of_a_system_service_is_refused(void **state)
{
	(void)state;
	assert_int_equal(TARGET("NCCL_RAS_ADDR=localhost:22\0").port, 0);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=localhost:1023\0").port, 0);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=localhost:1024\0").port, 1024);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=localhost:65536\0").port, 0);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=localhost:\0").port, 0);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=localhost\0").port, 0);
	assert_int_equal(TARGET("NCCL_RAS_ADDR=\0").port, 0);
}

static void a_process_may_turn_it_off(void **state)
{
	(void)state;
	assert_true(TARGET("NCCL_RAS_ENABLE=0\0").is_off);
	assert_false(TARGET("NCCL_RAS_ENABLE=1\0").is_off);
	assert_false(TARGET("NCCL_RAS_ENABLE=\0").is_off);
}

static void the_pid_is_that_of_the_innermost_namespace(void **state)
{
	(void)state;
	assert_int_equal(PID_OF("Name:\tx\nNSpid:\t4711\nNSpgid:\t1\n"), 4711);
	assert_int_equal(PID_OF("Name:\tx\nNSpid:\t4711\t812\t17\nNSpgid:\t1\n"), 17);
	assert_int_equal(PID_OF("Name:\tx\n"), 0);
	assert_int_equal(PID_OF("Name:\tx\nNSpid:\t"), 0);
	assert_int_equal(PID_OF("Name:\tx\nNSpid:\tx\n"), 0);
	assert_int_equal(PID_OF(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_address_the_port_is_the_default),
		cmocka_unit_test(the_address_selects_the_port_alone),
		cmocka_unit_test(a_port_of_a_system_service_is_refused),
		cmocka_unit_test(a_process_may_turn_it_off),
		cmocka_unit_test(the_pid_is_that_of_the_innermost_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
