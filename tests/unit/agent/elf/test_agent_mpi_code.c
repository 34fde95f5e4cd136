/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/elf/mpi_code.h"

static void libraries_of_mpi_and_its_transports_hold_its_code(void **state)
{
	static const char *const names[] = {
		"libmpi.so.40.30.4", "libmpich.so.12.2.2", "libmpi-1a2b3c.so.12", "mca_pml_ob1.so",
		"libopen-pal.so.40", "libucp.so.0.0.0",    "libuct_ib.so.0",      "libfabric.so.1",
		"libpsm2.so.2",      "libshm-fi.so",       "libibverbs.so.1",
	};
	static const char *const others[] = {
		"libc.so.6", "python3.11", "libnccl.so.2", "libcuda.so.1", "libopenblas.so.0",
		"lmp",       "",           "xlibmpi.so",   "libgomp.so.1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(nt_mpi_code_is_in(names[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(nt_mpi_code_is_in(others[i]));
}

static void an_address_belongs_to_a_range_from_its_start_to_before_its_end(void **state)
{
	struct nt_mpi_code code = {0};

	(void)state;
	assert_false(nt_mpi_code_has(&code, 0));
	nt_mpi_code_add(&code, 100, 200);
	nt_mpi_code_add(&code, 300, 400);
	assert_false(nt_mpi_code_has(&code, 99));
	assert_true(nt_mpi_code_has(&code, 100));
	assert_true(nt_mpi_code_has(&code, 199));
	assert_false(nt_mpi_code_has(&code, 200));
	assert_true(nt_mpi_code_has(&code, 300));
	assert_false(nt_mpi_code_has(&code, 400));
}

static void mappings_beyond_the_cap_are_counted(void **state)
{
	struct nt_mpi_code code = {0};

	(void)state;
	for (uint64_t i = 0; i < NT_MPI_CODE_RANGES + 3; i++)
		nt_mpi_code_add(&code, 10 * i, 10 * i + 5);
	assert_int_equal(code.count, NT_MPI_CODE_RANGES);
	assert_int_equal(code.over_cap, 3);
	assert_true(nt_mpi_code_is_sound(&code));
	assert_true(nt_mpi_code_has(&code, 10 * (NT_MPI_CODE_RANGES - 1)));
	assert_false(nt_mpi_code_has(&code, 10 * NT_MPI_CODE_RANGES));
}

static void impossible_ranges_are_not_sound(void **state)
{
	struct nt_mpi_code code = {0};

	(void)state;
	assert_true(nt_mpi_code_is_sound(&code));
	nt_mpi_code_add(&code, 100, 200);
	assert_true(nt_mpi_code_is_sound(&code));
	code.range[0].end = 100;
	assert_false(nt_mpi_code_is_sound(&code));
	code.count = NT_MPI_CODE_RANGES + 1;
	assert_false(nt_mpi_code_is_sound(&code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries_of_mpi_and_its_transports_hold_its_code),
		cmocka_unit_test(an_address_belongs_to_a_range_from_its_start_to_before_its_end),
		cmocka_unit_test(mappings_beyond_the_cap_are_counted),
		cmocka_unit_test(impossible_ranges_are_not_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
