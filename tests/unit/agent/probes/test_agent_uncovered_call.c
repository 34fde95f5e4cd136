/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/probes/symbols.h"
#include "agent/probes/uncovered_call.h"
#include "tests/unit/agent/elf_image.h"

static void read_calls(struct image *image, enum nt_library library, struct nt_symbols *ret_symbols)
{
	memset(ret_symbols, 0xa5, sizeof(*ret_symbols));
	(void)image_save(image);
	assert_int_equal(nt_symbols_read(image->fd, NULL, library, ret_symbols), 0);
}

static void calls_of_a_newer_library_are_counted_and_the_first_is_named(void **state)
{
	struct nt_symbols symbols;
	struct image image;

	(void)state;
	image_init(&image);
	(void)image_add_dynamic(&image, "MPI_Allreduce", 0x20, 1);
	(void)image_add_dynamic(&image, "MPI_Allreduce_x", 0x30, 1);
	(void)image_add_dynamic(&image, "MPI_Type_size_x", 0x38, 1);
	(void)image_add_dynamic(&image, "MPI_Ineighbor_bcast", 0x40, 1);
	read_calls(&image, NT_LIBRARY_MPI, &symbols);
	assert_int_equal(symbols.uncovered.count, 2);
	assert_string_equal(symbols.uncovered.first, "MPI_Allreduce_x");
	assert_true(nt_uncovered_calls_are_sound(&symbols.uncovered));
	image_close(&image);
}

static void other_libraries_have_none(void **state)
{
	struct nt_symbols symbols;
	struct image image;

	(void)state;
	image_init(&image);
	(void)image_add_dynamic(&image, "ncclAllReduce", 0x20, 1);
	(void)image_add_dynamic(&image, "MPI_Allreduce_x", 0x30, 1);
	read_calls(&image, NT_LIBRARY_NCCL, &symbols);
	assert_int_equal(symbols.uncovered.count, 0);
	image_close(&image);
}

static void calls_with_a_row_and_local_functions_are_not_meant(void **state)
{
	static const char *const known[] = {
		"MPI_Allgatherv_c",
		"MPI_Iallreduce",
		"MPI_Sendrecv_replace",
		"MPI_Waitsome",
		"MPI_Alloc_mem",
		"MPI_Reduce_local",
		"MPI_Allreduce_init_c",
		"MPI_Info_set",
		"MPI_Imrecv",
		"MPI_Get_count",
		"ncclAllReduce",
		"ncclCommSplit",
		"ncclAllGather",
		"PMPI_Allreduce_x",
		"MPI_",
		"nccl",
	};
	static const char *const unknown[] = {
		"MPI_Allreduce_x", "MPI_Ibarrier_x", "MPI_Neighbor_bcast",
		"MPI_Sendx",       "ncclAllReduceX", "ncclSendRecv",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_false(nt_uncovered_call(known[i]));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_true(nt_uncovered_call(unknown[i]));
}

/* What a compromised worker may answer. */
static void impossible_values_are_refused(void **state)
{
	struct nt_uncovered_calls calls = {0};

	(void)state;
	assert_true(nt_uncovered_calls_are_sound(&calls));
	calls.count = 1;
	assert_false(nt_uncovered_calls_are_sound(&calls));
	memcpy(calls.first, "MPI_X", 6);
	assert_true(nt_uncovered_calls_are_sound(&calls));
	calls.count = 0;
	assert_false(nt_uncovered_calls_are_sound(&calls));
	calls.count = 1;
	calls.first[1] = '\n';
	assert_false(nt_uncovered_calls_are_sound(&calls));
	memset(calls.first, 'x', sizeof(calls.first));
	assert_false(nt_uncovered_calls_are_sound(&calls));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_a_newer_library_are_counted_and_the_first_is_named),
		cmocka_unit_test(other_libraries_have_none),
		cmocka_unit_test(calls_with_a_row_and_local_functions_are_not_meant),
		cmocka_unit_test(impossible_values_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
