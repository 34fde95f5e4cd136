/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/probes/symbols.h"
#include "tests/unit/agent/elf_image.h"

static struct image image;
static struct nt_symbols symbols;

static int begin(void **state)
{
	(void)state;
	image_init(&image);
	memset(&symbols, 0xa5, sizeof(symbols));
	return 0;
}

static int end(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

static void read_image(enum nt_library library)
{
	image_close(&image);
	(void)image_save(&image);
	assert_int_equal(nt_symbols_read(image.fd, NULL, library, &symbols), 0);
}

static bool is_named(uint16_t row, const char *name)
{
	return strcmp(nt_probe_row(row)->symbol, name) == 0;
}

static void every_row_of_a_function_is_listed_in_order(void **state)
{
	size_t expected = 0;

	(void)state;
	(void)image_add_dynamic(&image, "ncclAllReduce", 0x20, 1);
	(void)image_add_dynamic(&image, "not_probed", 0x30, 1);
	(void)image_add_static(&image, "MPI_Barrier", 0x40);
	read_image(NT_LIBRARY_UNKNOWN);
	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		bool nccl = is_named(row, "ncclAllReduce"), mpi = is_named(row, "MPI_Barrier");
		const struct nt_elf_symbol *symbol = nt_symbols_find(&symbols, row);

		assert_int_equal(symbol != NULL, nccl || mpi);
		if (!symbol)
			continue;
		assert_int_equal(symbols.row[expected].row, row);
		assert_ptr_equal(&symbols.row[expected++].symbol, symbol);
		assert_int_equal(symbol->offset, IMAGE_CODE + (nccl ? 0x20 : 0x40));
	}
	/* NCCL and RCCL share the name. */
	assert_int_equal(expected, 3);
	assert_int_equal(symbols.count, expected);
	assert_false(symbols.passed_over);
}

static void rows_are_those_of_the_library(void **state)
{
	(void)state;
	(void)image_add_dynamic(&image, "ncclAllReduce", 0x20, 1);
	(void)image_add_dynamic(&image, "MPI_Barrier", 0x40, 1);
	read_image(NT_LIBRARY_MPI);
	assert_int_equal(symbols.count, 1);
	assert_true(is_named(symbols.row[0].row, "MPI_Barrier"));
	read_image(NT_LIBRARY_CUDA);
	assert_int_equal(symbols.count, 0);
	assert_null(nt_symbols_find(&symbols, 0));
}

/* They are attached to one process at a time, and found with their marks. */
static void rows_of_ranks_are_left_out(void **state)
{
	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		if (nt_probe_is_of_rank(nt_probe_row(row)))
			(void)image_add_static(&image, nt_probe_row(row)->symbol, 0x20);
	assert_true(image.symtabs > 1);
	read_image(NT_LIBRARY_UNKNOWN);
	assert_int_equal(symbols.count, 0);
	read_image((enum nt_library)NT_LIBRARY_PYTHON);
	assert_int_equal(symbols.count, 0);
}

static void a_function_outside_the_code_is_not_listed(void **state)
{
	(void)state;
	image_add_dynamic(&image, "ncclAllReduce", 0x20, 1)->st_value = 1;
	(void)image_add_dynamic(&image, "MPI_Barrier", 0x40, 1);
	read_image(NT_LIBRARY_UNKNOWN);
	assert_int_equal(symbols.count, 1);
	assert_true(is_named(symbols.row[0].row, "MPI_Barrier"));
}

static void a_program_holds_a_library_by_its_prefixes(void **state)
{
	static const struct {
		const char *name;
		bool holds;
	} program[] = {
		{"ncclCommInitRank", true}, {"cudaLaunchKernelExC", true},
		{"MPI_Init", true},         {"_ZN4gloo9allreduceERNS_16AllreduceOptionsE", true},
		{"PMPI_Init", false},       {"ncclCom", false},
		{"MPI_Barrier", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(program) / sizeof(program[0]); i++) {
		image_init(&image);
		(void)image_add_static(&image, program[i].name, 0x10);
		/* Whatever rows are asked for. */
		read_image(NT_LIBRARY_CUDA);
		assert_int_equal(symbols.holds, program[i].holds);
		image_add_dynamic(&image, "ncclCommInitRank", 0x20, 1)->st_shndx = SHN_UNDEF;
		read_image(NT_LIBRARY_UNKNOWN);
		assert_int_equal(symbols.holds, program[i].holds);
		image_close(&image);
	}
}

static void a_file_beyond_the_budget_is_refused(void **state)
{
	const struct nt_elf_budget little[] = {
		{0, 1 << 20, 1 << 20},
		{64, 1 << 20, 1 << 20},
		{1 << 20, 1 << 20, 64},
		{1 << 20, 1 << 20, 1 << 16},
	};

	(void)state;
	(void)image_add_dynamic(&image, "ncclAllReduce", 0x20, 1);
	(void)image_save(&image);
	for (size_t i = 0; i < sizeof(little) / sizeof(little[0]); i++) {
		symbols.count = 42;
		assert_int_equal(
			nt_symbols_read(image.fd, &little[i], NT_LIBRARY_UNKNOWN, &symbols),
			-EOVERFLOW);
		assert_int_equal(symbols.count, 42);
	}
}

static void a_table_that_is_passed_over_is_reported(void **state)
{
	/* Enough for the headers and one table. */
	const struct nt_elf_budget budget = {2048, 1 << 20, 1 << 20};

	(void)state;
	(void)image_add_dynamic(&image, "ncclAllReduce", 0x20, 1);
	(void)image_add_static(&image, "MPI_Barrier", 0x20);
	(void)image_save(&image);
	assert_int_equal(nt_symbols_read(image.fd, &budget, NT_LIBRARY_UNKNOWN, &symbols), 0);
	assert_true(symbols.passed_over);
	assert_int_equal(symbols.count, 2);
	assert_true(is_named(symbols.row[0].row, "ncclAllReduce"));
}

static void what_is_no_elf_file_is_an_error(void **state)
{
	(void)state;
	symbols.count = 42;
	image.bytes[0] = '#';
	(void)image_save(&image);
	assert_int_equal(nt_symbols_read(image.fd, NULL, NT_LIBRARY_UNKNOWN, &symbols), -EBADMSG);
	assert_int_equal(nt_symbols_read(-1, NULL, NT_LIBRARY_UNKNOWN, &symbols), -EBADF);
	assert_int_equal(symbols.count, 42);
}

static void the_whole_table_fits(void **state)
{
	size_t rows = 0;

	(void)state;
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		rows += !nt_probe_is_of_rank(nt_probe_row(row));
	assert_in_range(rows, 1, NT_SYMBOLS_MAX);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(every_row_of_a_function_is_listed_in_order),
		WITH(rows_are_those_of_the_library),
		WITH(rows_of_ranks_are_left_out),
		WITH(a_function_outside_the_code_is_not_listed),
		WITH(a_program_holds_a_library_by_its_prefixes),
		WITH(a_file_beyond_the_budget_is_refused),
		WITH(a_table_that_is_passed_over_is_reported),
		WITH(what_is_no_elf_file_is_an_error),
		WITH(the_whole_table_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
