/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/hardware.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/node/node_tree.h"
#include "tests/unit/scratch.h"

static bool has(const struct nt_hardware *hardware, const char *name)
{
	return nt_hardware_has(hardware, name, strlen(name));
}

static void devices_with_hardware_are_listed_once_a_minute(void **state)
{
	static struct nt_hardware hardware;
	char dir[SCRATCH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	tree_put(dir, "sda/device", "");
	tree_put(dir, "cciss!c0d0/device", "");
	tree_put(dir, "loop0/size", "");
	nt_hardware_refresh(&hardware, dir);
	assert_int_equal(hardware.names, 2);
	assert_true(has(&hardware, "sda"));
	assert_true(has(&hardware, "cciss/c0d0"));
	assert_false(has(&hardware, "loop0"));
	assert_false(has(&hardware, "sd"));
	tree_put(dir, "sdb/device", "");
	for (int i = 1; i < NT_HARDWARE_READINGS; i++) {
		nt_hardware_refresh(&hardware, dir);
		assert_false(has(&hardware, "sdb"));
	}
	nt_hardware_refresh(&hardware, dir);
	assert_true(has(&hardware, "sdb"));
	assert_int_equal(hardware.names, 3);
	scratch_remove(dir);
}

static void names_over_a_cap_are_left_out_and_counted(void **state)
{
	static struct nt_hardware hardware;
	char dir[SCRATCH_BYTES], name[TREE_PATH_BYTES];

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	for (int i = 0; i < NT_HARDWARE_NAMES + 2; i++) {
		(void)snprintf(name, sizeof(name), "d%d/device", i);
		tree_put(dir, name, "");
	}
	tree_put(dir, "a-name-of-thirty-two-characters-/device", "");
	nt_hardware_refresh(&hardware, dir);
	assert_int_equal(hardware.names, NT_HARDWARE_NAMES);
	assert_int_equal(hardware.over_cap, 3);
	scratch_remove(dir);
}

static void a_node_without_the_directory_has_none(void **state)
{
	static struct nt_hardware hardware;

	(void)state;
	nt_hardware_refresh(&hardware, "/no/such/directory");
	assert_int_equal(hardware.names, 0);
	assert_false(has(&hardware, "sda"));
	assert_false(has(&hardware, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_with_hardware_are_listed_once_a_minute),
		cmocka_unit_test(names_over_a_cap_are_left_out_and_counted),
		cmocka_unit_test(a_node_without_the_directory_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
