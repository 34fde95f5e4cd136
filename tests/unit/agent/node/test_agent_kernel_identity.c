/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/node/kernel_identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "tests/unit/agent/node/node_tree.h"
#include "tests/unit/scratch.h"

static void read_from(const char *text, struct nt_kernel_identity *ret_identity)
{
	char dir[SCRATCH_BYTES], path[TREE_PATH_BYTES];

	assert_int_equal(scratch_make(dir), 0);
	tree_put(dir, "boot_id", text);
	(void)snprintf(path, sizeof(path), "%s/boot_id", dir);
	nt_kernel_identity_read(path, ret_identity);
	scratch_remove(dir);
}

static void the_boot_id_is_the_first_line_in_visible_characters(void **state)
{
	struct nt_kernel_identity identity;

	(void)state;
	read_from("6b1f9c3a-1b0e-4f9e-9d0a-7c5d3c2b1a00\n", &identity);
	assert_string_equal(identity.boot_id, "6b1f9c3a-1b0e-4f9e-9d0a-7c5d3c2b1a00");
	read_from("a\x1b[0mb\nc", &identity);
	assert_string_equal(identity.boot_id, "a?[0mb");
	read_from("0123456789012345678901234567890123456789012345", &identity);
	assert_string_equal(identity.boot_id, "012345678901234567890123456789012345678");
	read_from("", &identity);
	assert_string_equal(identity.boot_id, "");
	/* Over the limit of the file. */
	read_from("0123456789012345678901234567890123456789012345678901234567890123456789",
		  &identity);
	assert_string_equal(identity.boot_id, "");
}

static void the_kernel_is_its_release(void **state)
{
	struct nt_kernel_identity identity;
	struct utsname name;

	(void)state;
	assert_int_equal(uname(&name), 0);
	nt_kernel_identity_read("/no/such/file", &identity);
	assert_string_equal(identity.kernel, name.release);
	assert_string_equal(identity.boot_id, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_boot_id_is_the_first_line_in_visible_characters),
		cmocka_unit_test(the_kernel_is_its_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
