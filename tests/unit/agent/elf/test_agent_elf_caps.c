/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much of an ELF file is looked at: to the last one, and not one more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/elf/elf.h"
#include "tests/unit/agent/elf_image.h"

enum {
	SEGMENTS = 70,
	AT_SEGMENTS = IMAGE_CODE + 0x40,
	MOST_SEGMENTS = 64,
	MOST_TABLE_BYTES = 64 << 20,
};

static struct image image;

static int begin(void **state)
{
	(void)state;
	image_init(&image);
	(void)image_add_dynamic(&image, "f", 0x10, 2);
	return 0;
}

static int end(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

static int find(const char *path)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol symbol = {.offset = 0};
	int r;

	assert_int_equal(nt_elf_open(path, &elf), 0);
	r = find_one(elf, "f", &symbol);
	assert_int_equal(symbol.offset, r == 0 ? IMAGE_CODE + 0x10 : 0);
	return r;
}

/* The code of the function is that of the segment with this index; `odd` is one without code. */
static int find_in_segment(size_t index, size_t odd)
{
	Elf64_Phdr segment = *image_segment(&image);
	int r;

	segment.p_filesz = segment.p_memsz = 0x20;
	image_header(&image)->e_phoff = AT_SEGMENTS;
	image_header(&image)->e_phnum = SEGMENTS;
	for (size_t i = 0; i < SEGMENTS; i++) {
		segment.p_vaddr = IMAGE_BASE + (i == index ? 0 : (i + 1) * 0x10000);
		segment.p_flags = i == odd ? PF_R : PF_R | PF_X;
		memcpy(image.bytes + AT_SEGMENTS + i * sizeof(segment), &segment, sizeof(segment));
	}
	r = find(image_save(&image));
	image_close(&image);
	return r;
}

static void segments_of_code_are_looked_at_up_to_a_cap(void **state)
{
	(void)state;
	assert_int_equal(find_in_segment(0, SEGMENTS), 0);
	assert_int_equal(find_in_segment(MOST_SEGMENTS - 1, SEGMENTS), 0);
	assert_int_equal(find_in_segment(MOST_SEGMENTS, SEGMENTS), -EBADMSG);
	/* What holds no code does not count. */
	assert_int_equal(find_in_segment(MOST_SEGMENTS, 3), 0);
	assert_int_equal(find_in_segment(MOST_SEGMENTS + 1, 3), -EBADMSG);
}

static void a_table_may_have_64_mib(void **state)
{
	static const struct {
		uint64_t size;
		int found;
	} table[] = {{MOST_TABLE_BYTES, 0}, {MOST_TABLE_BYTES + 1, -ENOENT}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *path;

		image_section(&image, SECTION_DYNSTR)->sh_size = table[i].size;
		path = image_save(&image);
		assert_int_equal(ftruncate(image.fd, MOST_TABLE_BYTES + IMAGE_BYTES), 0);
		assert_int_equal(find(path), table[i].found);
		image_close(&image);
	}
}

static void only_the_first_table_of_a_kind_counts(void **state)
{
	(void)state;
	(void)image_add_static(&image, "f", 0x10);
	/* A second table of dynamic symbols, in which the function is somewhere else. */
	image_set_section(&image, SECTION_SYMTAB, SHT_DYNSYM, AT_SYMTAB, 48, SECTION_STRTAB, 24);
	((Elf64_Sym *)(void *)(image.bytes + AT_SYMTAB))[1].st_value += 8;
	assert_int_equal(find(image_save(&image)), 0);
}

#define IMAGE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IMAGE_TEST(segments_of_code_are_looked_at_up_to_a_cap),
		IMAGE_TEST(a_table_may_have_64_mib),
		IMAGE_TEST(only_the_first_table_of_a_kind_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
