/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ELF files whose tables contradict each other or reach beyond the file. */
#include <errno.h>

#include "tests/unit/agent/elf_search.h"

static void tables_over_each_other_are_only_tables(void **state)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	/* The names are the symbols, the versions are, and so is the static table. */
	for (int i = SECTION_VERSYM; i <= SECTION_STRTAB; i++) {
		image_section(&image, i)->sh_offset = AT_DYNSYM;
		image_section(&image, i)->sh_size = IMAGE_SYMBOLS * 24;
	}
	(void)image_save(&image);
	elf = open_with(NULL);
	assert_int_equal(find_in(elf, "ncclSend"), 0x20);
	assert_int_equal(find_in(elf, "ncclRecv"), -ENOENT);
	image_close(&image);
	image_section(&image, SECTION_DYNSTR)->sh_offset = AT_DYNSYM;
	(void)image_save(&image);
	assert_int_equal(find("ncclSend"), -ENOENT);
}

static void sizes_that_wrap_are_beyond_the_file(void **state)
{
	static const struct {
		uint64_t offset, size;
	} lie[] = {
		{AT_DYNSYM, UINT64_MAX},  {AT_DYNSYM, UINT64_MAX - AT_DYNSYM + 1},
		{UINT64_MAX, 2},          {UINT64_MAX - 47, 48},
		{INT64_MAX, 48},          {1ULL << 63, 1ULL << 63},
		{IMAGE_BYTES, 1},         {IMAGE_BYTES - 47, 48},
		{AT_DYNSYM, IMAGE_BYTES}, {AT_DYNSYM, 0},
		{AT_DYNSYM, 23},
	};

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	for (int section = SECTION_DYNSYM; section <= SECTION_NOTE; section++)
		for (size_t i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
			Elf64_Shdr true_header = *image_section(&image, section);
			/* What is no names and no symbols is not needed. */
			bool needed = section <= SECTION_DYNSTR;

			image_section(&image, section)->sh_offset = lie[i].offset;
			image_section(&image, section)->sh_size = lie[i].size;
			(void)image_save(&image);
			assert_int_equal(find("ncclSend"), needed ? -ENOENT : 0x20);
			image_close(&image);
			*image_section(&image, section) = true_header;
		}
}

/* Look-ups do not use it. */
static void a_hash_table_that_lies_is_not_read(void **state)
{
	static const struct {
		uint32_t buckets, first, words, shift;
		uint64_t bloom;
		uint32_t bucket, chain[32];
	} hash = {.buckets = 1, .first = 1, .words = 1, .bucket = 1, .chain = {2, 2, 2, 2}};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	memcpy(image.bytes + AT_STRTAB, &hash, sizeof(hash));
	image_set_section(&image, SECTION_STRTAB, SHT_GNU_HASH, AT_STRTAB, sizeof(hash),
			  SECTION_DYNSYM, 0);
	(void)image_save(&image);
	elf = open_with(NULL);
	assert_int_equal(find_in(elf, "ncclSend"), 0x20);
	assert_int_equal(find_in(elf, "ncclRecv"), -ENOENT);
}

static void a_name_ends_within_the_file(void **state)
{
	static const char name[] = "ncclSend";
	uint64_t at;

	(void)state;
	for (size_t len = sizeof(name) - 1; len <= sizeof(name); len++) {
		nt_auto(nt_elf) struct nt_elf *elf = NULL;

		symbol[0] = image_function(1, 0x10);
		at = save_dynamic(1, 1 + len);
		write_at(at + 1, name, len);
		elf = open_with(NULL);
		assert_int_equal(find_in(elf, name), len == sizeof(name) ? 0x10 : -ENOENT);
		assert_int_equal(nt_elf_has_prefix(elf, "nccl"), len == sizeof(name));
		assert_int_equal(nt_elf_has_prefix(elf, name), len == sizeof(name));
		image_close(&image);
	}
}

static void the_number_of_sections_may_be_in_the_first(void **state)
{
	struct nt_elf *elf = NULL;

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	image_header(&image)->e_shnum = 0;
	(void)image_save(&image);
	assert_int_equal(find("ncclSend"), -ENOENT);
	image_close(&image);
	image_section(&image, SECTION_NULL)->sh_size = SECTIONS;
	(void)image_save(&image);
	assert_int_equal(find("ncclSend"), 0x20);
	image_close(&image);
	image_section(&image, SECTION_NULL)->sh_size = UINT64_MAX;
	(void)image_save(&image);
	assert_int_equal(nt_elf_open_fd(image.fd, NULL, &elf), -EBADMSG);
	image_close(&image);
	image_header(&image)->e_shentsize = 63;
	(void)image_save(&image);
	assert_int_equal(nt_elf_open_fd(image.fd, NULL, &elf), -EBADMSG);
	image_close(&image);
	image_header(&image)->e_shentsize = 64;
	image_header(&image)->e_phentsize = 32;
	(void)image_save(&image);
	assert_int_equal(nt_elf_open_fd(image.fd, NULL, &elf), -EBADMSG);
	assert_null(elf);
}

static void a_file_without_sections_has_no_symbols(void **state)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;

	(void)state;
	(void)image_add_dynamic(&image, "ncclSend", 0x20, 1);
	image_header(&image)->e_shoff = 0;
	(void)image_save(&image);
	elf = open_with(NULL);
	assert_int_equal(find_in(elf, "ncclSend"), -ENOENT);
	assert_int_equal(nt_elf_has_prefix(elf, ""), 0);
	assert_false(nt_elf_passed_over(elf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(tables_over_each_other_are_only_tables),
		WITH(sizes_that_wrap_are_beyond_the_file),
		WITH(a_hash_table_that_lies_is_not_read),
		WITH(a_name_ends_within_the_file),
		WITH(the_number_of_sections_may_be_in_the_first),
		WITH(a_file_without_sections_has_no_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
