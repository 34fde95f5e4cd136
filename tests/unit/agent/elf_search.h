/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An ELF file built by a test, and lookups of its symbols. */
#ifndef NT_TESTS_UNIT_AGENT_ELF_SEARCH_H
#define NT_TESTS_UNIT_AGENT_ELF_SEARCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/elf/elf.h"
#include "tests/unit/agent/elf_image.h"

enum {
	BLOCK = 65536, /* of a string table, as read */
	WINDOW = 32 << 20, /* of a string table, as searched */
	MOST_TABLE_BYTES = 64 << 20,
	MOST_PLACES = 4096, /* of wanted names in a string table */
	MOST_NOTES = 16, /* sections searched for a build-id */
	SYMBOLS = 20000,
	RUN_BYTES = 1 << 20,
};

static struct image image;
static Elf64_Sym symbol[SYMBOLS];

static inline int begin(void **state)
{
	(void)state;
	image_init(&image);
	memset(symbol, 0, sizeof(symbol));
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

static inline void write_at(uint64_t at, const void *data, size_t len)
{
	assert_int_equal(pwrite(image.fd, data, len, (off_t)at), len);
}

/*
 * Makes `section` the first n of symbol[], behind the image, and `strings` a zeroed string table of
 * so many bytes behind these. Returns its offset.
 */
static inline uint64_t save_tables(int section, int strings, size_t n, uint64_t string_bytes)
{
	uint64_t at = IMAGE_BYTES + n * sizeof(*symbol);

	image_section(&image, section)->sh_offset = IMAGE_BYTES;
	image_section(&image, section)->sh_size = n * sizeof(*symbol);
	image_section(&image, strings)->sh_offset = at;
	image_section(&image, strings)->sh_size = string_bytes;
	(void)image_save(&image);
	assert_true(image.fd >= 0);
	assert_int_equal(ftruncate(image.fd, (off_t)(at + string_bytes)), 0);
	write_at(IMAGE_BYTES, symbol, n * sizeof(*symbol));
	return at;
}

static inline uint64_t save_dynamic(size_t n, uint64_t string_bytes)
{
	image_section(&image, SECTION_VERSYM)->sh_type = SHT_NULL;
	return save_tables(SECTION_DYNSYM, SECTION_DYNSTR, n, string_bytes);
}

static inline struct nt_elf *open_with(const struct nt_elf_budget *budget)
{
	struct nt_elf *elf = NULL;

	assert_int_equal(nt_elf_open_fd(image.fd, budget, &elf), 0);
	return elf;
}

/* Its offset in the code, or the error. */
static inline int64_t find_in(struct nt_elf *elf, const char *name)
{
	struct nt_elf_symbol found = {.offset = 0};
	int r = find_one(elf, name, &found);

	return r < 0 ? r : (int64_t)found.offset - IMAGE_CODE;
}

static inline int64_t find(const char *name)
{
	nt_auto(nt_elf) struct nt_elf *elf = open_with(NULL);

	return find_in(elf, name);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
