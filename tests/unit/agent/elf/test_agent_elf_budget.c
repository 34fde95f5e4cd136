/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What reading an ELF file costs: bounded by its size whatever its bytes, and by the budget. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/agent/elf_search.h"

static const struct nt_elf_budget no_limit = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

/* ---- relative to the file ----------------------------------------------------------------- */

/* The work of looking for a name and a prefix in the first n of symbol[]. */
static uint64_t work_of(const char *name, const char *prefix)
{
	nt_auto(nt_elf) struct nt_elf *elf = open_with(&no_limit);
	const struct nt_elf_wanted wanted[] = {{name, NT_ELF_WHOLE}, {prefix, NT_ELF_PREFIX}};
	struct nt_elf_found found[2];

	assert_int_equal(nt_elf_find_all(elf, wanted, 2, found), 0);
	assert_int_equal(found[0].result, -ENOENT);
	assert_int_equal(found[1].result, -ENOENT);
	return nt_elf_cost(elf)->work;
}

static void a_run_of_name_bytes_costs_no_more_than_its_symbols(void **state)
{
	nt_autofree char *run = malloc(RUN_BYTES);
	uint64_t at;

	(void)state;
	assert_non_null(run);
	memset(run, 'a', RUN_BYTES);
	for (uint32_t i = 0; i < SYMBOLS; i++)
		symbol[i] = image_function(i, 0x10);
	at = save_dynamic(SYMBOLS, RUN_BYTES);
	write_at(at, run, RUN_BYTES);
	/* A visit and a look at each name; the whole run would be 64 Ki units for each. */
	assert_in_range(work_of("aaaaaaaX", "aaaaaaab"), SYMBOLS, 3 * SYMBOLS);
	/* Scanned for its end up to the cap: 32 units. */
	assert_in_range(work_of("ncclSend", "aaaaaaaa"), SYMBOLS, 40 * SYMBOLS);
}

static void a_name_that_many_symbols_bear_is_compared_once(void **state)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol found;
	uint64_t at;

	(void)state;
	for (uint32_t i = 0; i < SYMBOLS; i++)
		symbol[i] = image_function(1, i % IMAGE_CODE_BYTES);
	at = save_dynamic(SYMBOLS, 64);
	write_at(at + 1, "ncclAllReduce", 13);
	elf = open_with(&no_limit);
	assert_int_equal(find_one(elf, "ncclAllReduce", &found), 0);
	assert_int_equal(found.offset, IMAGE_CODE + (SYMBOLS - 1) % IMAGE_CODE_BYTES);
	/* Two visits of each, and one for what it refers to. */
	assert_in_range(nt_elf_cost(elf)->work, 3 * SYMBOLS, 3 * SYMBOLS + 10);
}

static void a_clone_that_many_symbols_bear_is_one(void **state)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol found[2];
	uint64_t bytes;

	(void)state;
	for (uint32_t i = 0; i < SYMBOLS; i++)
		symbol[i] = image_function(1, 0x10 * (i % 2));
	write_at(save_dynamic(SYMBOLS, 64) + 1, "collect.part.0", 14);
	elf = open_with(NULL);
	assert_int_equal(nt_elf_find_clones(elf, "collect", found, 2), 2);
	bytes = nt_elf_cost(elf)->bytes;
	/* Its code is read once. */
	assert_in_range(bytes, 2 * sizeof(symbol), 2 * sizeof(symbol) + IMAGE_BYTES);
	assert_int_equal(nt_elf_find_clones(elf, "collect", found, 1), -E2BIG);
	assert_int_equal(nt_elf_find_clones(elf, "collect", found, 17), -EINVAL);
}

static void a_large_table_is_searched_in_little_memory(void **state)
{
	static const char *const name[] = {"first", "last", "middle", "at-border", "past-border"};
	static const uint32_t at[] = {1, MOST_TABLE_BYTES - 5, MOST_TABLE_BYTES / 4, WINDOW - 3,
				      WINDOW + 40};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	uint64_t strings;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		symbol[i] = image_function(at[i], 0x10 * i);
	strings = save_dynamic(5, MOST_TABLE_BYTES);
	for (uint32_t i = 0; i < 5; i++)
		write_at(strings + at[i], name[i], strlen(name[i]));
	elf = open_with(NULL);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(find_in(elf, name[i]), 0x10 * i);
	assert_in_range(nt_elf_cost(elf)->memory, WINDOW / 8, NT_ELF_MEMORY_MAX);
	/* Blocks without names are not read. */
	assert_true(nt_elf_cost(elf)->bytes < 5 * 8 * BLOCK);
}

static void names_at_the_borders_of_what_is_read_at_once_are_whole(void **state)
{
	uint64_t strings;

	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		symbol[i] = image_function(BLOCK - 20 + i, 0x10);
	for (uint32_t i = 0; i < 40; i++) {
		char name[512];

		memset(name, 'n', sizeof(name));
		strings = save_dynamic(40, 2 * BLOCK);
		write_at(strings + BLOCK - 20 + i, name, 511);
		name[511] = '\0';
		assert_int_equal(find(name), 0x10);
		image_close(&image);
	}
}

/* ---- caps --------------------------------------------------------------------------------- */

static void a_name_may_have_511_bytes(void **state)
{
	char name[513] = {0};

	(void)state;
	memset(name, 'n', 511);
	symbol[0] = image_function(1, 0x10);
	for (size_t len = 511; len <= 512; len++) {
		nt_auto(nt_elf) struct nt_elf *elf = NULL;

		name[len - 1] = 'n';
		write_at(save_dynamic(1, 1024) + 1, name, len);
		elf = open_with(NULL);
		assert_int_equal(find_in(elf, name), len == 511 ? 0x10 : -ENOENT);
		assert_int_equal(nt_elf_has_prefix(elf, "nn"), len == 511);
		assert_int_equal(nt_elf_has_prefix(elf, "nnnnnnnnnn"), len == 511);
		image_close(&image);
	}
}

static void wanted_names_are_at_4096_places_at_most(void **state)
{
	(void)state;
	for (uint32_t n = MOST_PLACES; n <= MOST_PLACES + 1; n++) {
		uint64_t at;

		for (uint32_t i = 0; i < n; i++)
			symbol[i] = image_function(2 * i + 1, 0x10);
		at = save_dynamic(n, 2 * n + 1);
		for (uint32_t i = 0; i < n; i++)
			write_at(at + 2 * i + 1, "f", 1);
		assert_int_equal(find("f"), n == MOST_PLACES ? 0x10 : -EOVERFLOW);
		image_close(&image);
	}
}

static void a_build_id_is_in_the_first_16_notes(void **state)
{
	static Elf64_Shdr section[MOST_NOTES + 2];

	(void)state;
	for (size_t at = MOST_NOTES; at <= MOST_NOTES + 1; at++) {
		nt_auto(nt_elf) struct nt_elf *elf = NULL;

		for (size_t i = 1; i < at; i++)
			section[i] = (Elf64_Shdr){.sh_type = SHT_NOTE, .sh_size = 16};
		section[at] = *image_section(&image, SECTION_NOTE);
		image_header(&image)->e_shoff = IMAGE_BYTES;
		image_header(&image)->e_shnum = MOST_NOTES + 2;
		(void)image_save(&image);
		write_at(IMAGE_BYTES, section, sizeof(section));
		elf = open_with(NULL);
		assert_string_equal(nt_elf_build_id(elf), at == MOST_NOTES ? "deadbeef" : "");
		image_close(&image);
	}
}

static void so_many_names_are_looked_for_at_once(void **state)
{
	static struct nt_elf_wanted wanted[NT_ELF_WANTED_MAX + 1];
	static struct nt_elf_found found[NT_ELF_WANTED_MAX + 1];
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	(void)state;
	(void)image_add_dynamic(&image, "cudaMemcpyAsync", 0x10, 1);
	(void)image_save(&image);
	for (size_t i = 0; i <= NT_ELF_WANTED_MAX; i++)
		wanted[i].name = i % 2 ? "cudaMemcpyAsync" : "cudaMemcpy";
	elf = open_with(NULL);
	assert_int_equal(nt_elf_find_all(elf, wanted, NT_ELF_WANTED_MAX, found), 0);
	for (size_t i = 0; i < NT_ELF_WANTED_MAX; i++)
		assert_int_equal(found[i].result, i % 2 ? 0 : -ENOENT);
	assert_int_equal(nt_elf_find_all(elf, wanted, NT_ELF_WANTED_MAX + 1, found), -EINVAL);
	assert_int_equal(nt_elf_find_all(elf, wanted, 0, found), -EINVAL);
}

/* ---- the budget --------------------------------------------------------------------------- */

static const struct nt_elf_wanted both[] = {{"ncclSend", NT_ELF_WHOLE}, {"last", NT_ELF_WHOLE}};

/* What the image of the next test costs. */
static struct nt_elf_cost full_cost(void)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_found found[2];

	(void)image_add_dynamic(&image, "ncclSend", 0x10, 1);
	(void)image_add_static(&image, "last", 0x20);
	(void)image_save(&image);
	elf = open_with(NULL);
	assert_int_equal(nt_elf_find_all(elf, both, 2, found), 0);
	assert_int_equal(found[0].result | found[1].result, 0);
	return *nt_elf_cost(elf);
}

static int cost_with(const struct nt_elf_budget *budget)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_found found[2];
	int r = nt_elf_open_fd(image.fd, budget, &elf);

	if (r < 0) {
		assert_null(elf);
		return r;
	}
	r = nt_elf_find_all(elf, both, 2, found);
	assert_true(nt_elf_cost(elf)->bytes <= budget->bytes);
	assert_true(nt_elf_cost(elf)->work <= budget->work);
	assert_true(nt_elf_cost(elf)->memory <= budget->memory);
	/* Never half of an answer: all of it, none, or that a table was left out. */
	if (r >= 0 && !nt_elf_passed_over(elf))
		assert_int_equal(found[0].result | found[1].result, 0);
	return r;
}

static void a_file_may_cost_its_budget_and_no_more(void **state)
{
	const struct nt_elf_cost cost = full_cost();

	(void)state;
	for (uint64_t bytes = 0; bytes < cost.bytes; bytes += 7)
		(void)cost_with(&(struct nt_elf_budget){bytes, 1 << 20, 1 << 20});
	assert_int_equal(cost_with(&(struct nt_elf_budget){100, 1 << 20, 1 << 20}), -EOVERFLOW);
	assert_int_equal(cost_with(&(struct nt_elf_budget){1 << 20, 1 << 20, cost.memory}), 0);
	assert_int_equal(cost_with(&(struct nt_elf_budget){1 << 20, 1 << 20, cost.memory - 1}),
			 -EOVERFLOW);
	assert_int_equal(cost_with(&(struct nt_elf_budget){1 << 20, 1 << 20, 0}), -EOVERFLOW);
}

/* Of the default, as well: each search of a symbol's name costs at least a visit. */
static void what_is_left_of_a_budget_is_for_the_next_search(void **state)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol found = {.offset = 42};
	unsigned int searches = 0;
	int r;

	(void)state;
	for (uint32_t i = 0; i < SYMBOLS; i++)
		symbol[i] = image_function(i, 0x10);
	(void)save_dynamic(SYMBOLS, SYMBOLS);
	elf = open_with(NULL);
	do {
		r = find_one(elf, "ncclSend", &found);
		searches++;
	} while (r == -ENOENT);
	assert_int_equal(r, -EOVERFLOW);
	assert_int_equal(found.offset, 42);
	assert_in_range(searches, NT_ELF_WORK_MAX / SYMBOLS / 4, NT_ELF_WORK_MAX / SYMBOLS);
	assert_int_equal(nt_elf_has_prefix(elf, "nccl"), -EOVERFLOW);
	assert_int_equal(nt_elf_find_clones(elf, "nccl", &found, 1), -EOVERFLOW);
	/* Without the cost of a table there is nothing to be refused. */
	assert_string_equal(nt_elf_build_id(elf), "deadbeef");
}

static void names_that_begin_as_many_wanted_ones_end_the_search(void **state)
{
	enum {
		ALIKE = 400,
	};
	static struct nt_elf_wanted wanted[ALIKE];
	static struct nt_elf_found found[ALIKE];
	static char name[ALIKE][16];
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	uint64_t at;

	(void)state;
	for (uint32_t i = 0; i < ALIKE; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "cudaMemc%u", i);
		wanted[i].name = name[i];
	}
	for (uint32_t i = 0; i < SYMBOLS; i++)
		symbol[i] = image_function(i * 10, 0x10);
	at = save_dynamic(SYMBOLS, SYMBOLS * 10);
	for (uint32_t i = 0; i < SYMBOLS; i++)
		write_at(at + (uint64_t)i * 10, "cudaMemcX", 9);
	elf = open_with(NULL);
	assert_int_equal(nt_elf_find_all(elf, wanted, ALIKE, found), -EOVERFLOW);
	assert_true(nt_elf_cost(elf)->work <= NT_ELF_WORK_MAX);
}

static void a_symbol_table_beyond_the_budget_is_passed_over(void **state)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_budget budget = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	uint64_t at;

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	for (uint32_t i = 0; i < SYMBOLS; i++)
		symbol[i] = image_function(1, 0x10);
	at = save_tables(SECTION_SYMTAB, SECTION_STRTAB, SYMBOLS, 64);
	write_at(at + 1, "f", 1);
	assert_int_equal(find("f"), 0x10);
	/* Symbols are visited twice, and their names looked at. */
	for (uint64_t times = 3; times <= 5; times += 2) {
		budget.work = times * SYMBOLS;
		elf = open_with(&budget);
		assert_int_equal(nt_elf_passed_over(elf), times == 3);
		assert_int_equal(find_in(elf, "f"), times == 3 ? -ENOENT : 0x10);
		assert_int_equal(find_in(elf, "ncclSend"), 0x20);
		nt_elf_close(nt_take(elf));
	}
	budget.work = UINT64_MAX;
	budget.bytes = sizeof(symbol) + IMAGE_BYTES;
	elf = open_with(&budget);
	assert_true(nt_elf_passed_over(elf));
	assert_int_equal(find_in(elf, "f"), -ENOENT);
	assert_int_equal(find_in(elf, "ncclSend"), 0x20);
}

static void so_is_one_of_more_than_64_mib(void **state)
{
	(void)state;
	symbol[0] = image_function(1, 0x10);
	for (uint64_t more = 0; more <= 1; more++) {
		nt_auto(nt_elf) struct nt_elf *elf = NULL;

		write_at(save_dynamic(1, MOST_TABLE_BYTES + more) + 1, "f", 1);
		elf = open_with(NULL);
		assert_int_equal(nt_elf_passed_over(elf), more);
		assert_int_equal(find_in(elf, "f"), more ? -ENOENT : 0x10);
		image_close(&image);
	}
}

/* ---- many names at once ------------------------------------------------------------------- */

static void names_that_begin_or_end_alike_are_told_apart(void **state)
{
	static const char *const name[] = {"MPI_Put", "MPI_Puts", "MPI_Put2wait", "MPI_Put2wai",
					   "f",       "ff",       "cudaMemcpy",   "cudaMemcpyPeer"};
	enum {
		NAMES = sizeof(name) / sizeof(name[0]),
	};
	struct nt_elf_wanted wanted[NAMES + 2];
	struct nt_elf_found found[NAMES + 2];
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		(void)image_add_dynamic(&image, name[i], 0x10 * i, 1);
		wanted[i] = (struct nt_elf_wanted){.name = name[i]};
	}
	/* One name is the end of another in the table. */
	image_add_dynamic(&image, "pncclSend", 0xa0, 1)->st_name += 1;
	wanted[NAMES] = (struct nt_elf_wanted){.name = "ncclSend"};
	wanted[NAMES + 1] = (struct nt_elf_wanted){.name = "pncclSend"};
	(void)image_save(&image);
	elf = open_with(NULL);
	assert_int_equal(nt_elf_find_all(elf, wanted, NAMES + 2, found), 0);
	for (size_t i = 0; i < NAMES; i++) {
		assert_int_equal(found[i].result, 0);
		assert_int_equal(found[i].symbol.offset, IMAGE_CODE + 0x10 * i);
	}
	assert_int_equal(found[NAMES].symbol.offset, IMAGE_CODE + 0xa0);
	assert_int_equal(found[NAMES + 1].result, -ENOENT);
}

static void each_has_its_own_result(void **state)
{
	static const struct nt_elf_wanted wanted[] = {
		{"outside", NT_ELF_WHOLE}, {"ncclSend", NT_ELF_WHOLE},   {"absent", NT_ELF_WHOLE},
		{"nccl", NT_ELF_PREFIX},   {"ncclSend_", NT_ELF_PREFIX}, {"out", NT_ELF_PREFIX},
	};
	static const int result[] = {-EBADMSG, 0, -ENOENT, 0, -ENOENT, 0};
	struct nt_elf_found found[6];
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	image_add_static(&image, "outside", 0)->st_value = 1;
	(void)image_save(&image);
	elf = open_with(NULL);
	assert_int_equal(nt_elf_find_all(elf, wanted, 6, found), 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(found[i].result, result[i]);
	assert_int_equal(found[1].symbol.offset, IMAGE_CODE + 0x20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_run_of_name_bytes_costs_no_more_than_its_symbols),
		WITH(a_name_that_many_symbols_bear_is_compared_once),
		WITH(a_clone_that_many_symbols_bear_is_one),
		WITH(a_large_table_is_searched_in_little_memory),
		WITH(names_at_the_borders_of_what_is_read_at_once_are_whole),
		WITH(a_name_may_have_511_bytes),
		WITH(wanted_names_are_at_4096_places_at_most),
		WITH(a_build_id_is_in_the_first_16_notes),
		WITH(so_many_names_are_looked_for_at_once),
		WITH(a_file_may_cost_its_budget_and_no_more),
		WITH(what_is_left_of_a_budget_is_for_the_next_search),
		WITH(names_that_begin_as_many_wanted_ones_end_the_search),
		WITH(a_symbol_table_beyond_the_budget_is_passed_over),
		WITH(so_is_one_of_more_than_64_mib),
		WITH(names_that_begin_or_end_alike_are_told_apart),
		WITH(each_has_its_own_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
