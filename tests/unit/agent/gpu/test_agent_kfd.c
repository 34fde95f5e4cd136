/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/kfd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/scratch.h"

static char nodes[SCRATCH_BYTES];

static void make_node(const char *name, const char *number)
{
	char text[SCRATCH_BYTES + 16];
	FILE *file;

	(void)snprintf(text, sizeof(text), "%s/%s", nodes, name);
	assert_int_equal(mkdir(text, 0700), 0);
	(void)snprintf(text, sizeof(text), "%s/%s/gpu_id", nodes, name);
	if (!number) {
		/* Can be opened, and not be read: as the kernel's. */
		assert_int_equal(mkdir(text, 0700), 0);
		return;
	}
	file = fopen(text, "we");
	assert_non_null(file);
	assert_true(fputs(number, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void a_gpu_whose_number_cannot_be_read_is_hidden(void **state)
{
	(void)state;
	assert_false(nt_kfd_hides_gpus("/nonexistent/nodes"));
	assert_false(nt_kfd_hides_gpus(nodes));
	make_node("0", "0\n"); /* the processor */
	make_node("1", "51140\n");
	assert_false(nt_kfd_hides_gpus(nodes));
	make_node("2", NULL);
	assert_true(nt_kfd_hides_gpus(nodes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_whose_number_cannot_be_read_is_hidden),
	};
	int failed;

	if (scratch_make(nodes) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove(nodes);
	return failed;
}
