/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places that a program was built with for probes: the bytes of the notes, and what a file says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/elf/elf.h"
#include "agent/elf/elf_note.h"
#include "tests/unit/agent/elf_image.h"

enum {
	NOTES_BYTES = 1024,
	AT_SEGMENTS = 0x1400,
	AT_DATA = 0x1600, /* file offset of the writable segment */
	DATA_BYTES = 0x40,
	DATA_BASE = 0x600000,
	MARK = IMAGE_BASE + 0x80, /* address of a nop */
	SEMAPHORE = DATA_BASE + 0x10,
	BASE = 0x500000, /* of .stapsdt.base, as linked */
	MANY = 17, /* more than are looked at */
};

/* ---- bytes -------------------------------------------------------------------------------- */

struct notes {
	uint8_t bytes[NOTES_BYTES];
	size_t len;
};

static void add_bytes(struct notes *notes, const void *data, size_t len)
{
	memcpy(notes->bytes + notes->len, data, len);
	notes->len += len;
}

static void pad(struct notes *notes)
{
	while (notes->len % 4)
		notes->bytes[notes->len++] = 0;
}

/* Returns where its header lies. */
static size_t add(struct notes *notes, const char *provider, const char *name, uint64_t location,
		  uint64_t base, uint64_t semaphore)
{
	const uint64_t address[] = {location, base, semaphore};
	const Elf64_Nhdr header = {
		.n_namesz = 8,
		.n_descsz = (uint32_t)(sizeof(address) + strlen(provider) + strlen(name) + 3),
		.n_type = 3,
	};
	size_t at = notes->len;

	add_bytes(notes, &header, sizeof(header));
	add_bytes(notes, "stapsdt", 8);
	add_bytes(notes, address, sizeof(address));
	add_bytes(notes, provider, strlen(provider) + 1);
	add_bytes(notes, name, strlen(name) + 1);
	add_bytes(notes, "", 1); /* arguments */
	pad(notes);
	return at;
}

static Elf64_Nhdr *header_at(struct notes *notes, size_t at)
{
	return (Elf64_Nhdr *)(void *)(notes->bytes + at);
}

/* In memory of exactly that size, so that a sanitizer sees who reads on. */
static size_t find(const struct notes *notes, size_t len, struct nt_elf_note *ret_note, size_t max)
{
	uint8_t *copy = malloc(len ? len : 1);
	size_t found;

	assert_non_null(copy);
	memcpy(copy, notes->bytes, len);
	found = nt_elf_note_find(copy, len, "python", "gc__start", ret_note, max);
	free(copy);
	return found;
}

static void a_note_of_the_name_is_found_among_others(void **state)
{
	struct notes notes = {0};
	struct nt_elf_note note[2];

	(void)state;
	(void)add(&notes, "libc", "gc__start", 1, 2, 3);
	(void)add(&notes, "python", "gc__done", 4, 5, 6);
	(void)add(&notes, "python", "gc__start", 7, 8, 9);
	(void)add(&notes, "python", "gc__start__x", 10, 11, 12);
	assert_int_equal(find(&notes, notes.len, note, 2), 1);
	assert_int_equal(note[0].location, 7);
	assert_int_equal(note[0].base, 8);
	assert_int_equal(note[0].semaphore, 9);
}

static void those_over_the_room_are_counted_and_not_written(void **state)
{
	struct nt_elf_note note[3] = {[2] = {.location = 42}};
	struct notes notes = {0};

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		(void)add(&notes, "python", "gc__start", i, 0, 0);
	assert_int_equal(find(&notes, notes.len, note, 2), 3);
	assert_int_equal(note[1].location, 1);
	assert_int_equal(note[2].location, 42);
}

static void notes_of_another_owner_or_type_are_passed_over(void **state)
{
	struct notes notes = {0};
	struct nt_elf_note note;
	size_t first, second, third;

	(void)state;
	first = add(&notes, "python", "gc__start", 1, 0, 0);
	second = add(&notes, "python", "gc__start", 2, 0, 0);
	third = add(&notes, "python", "gc__start", 3, 0, 0);
	(void)add(&notes, "python", "gc__start", 4, 0, 0);
	header_at(&notes, first)->n_type = 4;
	notes.bytes[second + sizeof(Elf64_Nhdr)] = 'S';
	header_at(&notes, third)->n_namesz = 7; /* padded to the same */
	assert_int_equal(find(&notes, notes.len, &note, 1), 1);
	assert_int_equal(note.location, 4);
}

static void notes_cut_anywhere_are_no_note(void **state)
{
	struct notes notes = {0};
	struct nt_elf_note note;

	(void)state;
	(void)add(&notes, "python", "gc__start", 1, 0, 0);
	for (size_t len = 0; len < notes.len; len++)
		assert_int_equal(find(&notes, len, &note, 1), 0);
	assert_int_equal(find(&notes, notes.len, &note, 1), 1);
}

static void a_length_that_lies_ends_the_walk(void **state)
{
	static const uint32_t lies[] = {0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff, 600};
	struct nt_elf_note note;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(lies) / sizeof(lies[0]); i++) {
		struct notes notes = {0};
		size_t at = add(&notes, "python", "gc__start", 1, 0, 0);

		(void)add(&notes, "python", "gc__start", 2, 0, 0);
		*(i % 2 ? &header_at(&notes, at)->n_namesz : &header_at(&notes, at)->n_descsz) =
			lies[i / 2];
		assert_int_equal(find(&notes, notes.len, &note, 1), 0);
	}
}

static void a_description_too_short_for_its_texts_is_no_note(void **state)
{
	(void)state;
	/* None of the addresses; addresses alone; a provider without its end; no name. */
	for (uint32_t len = 0; len < 24 + 7 + 10; len++) {
		struct notes notes = {0};
		struct nt_elf_note note;
		size_t at = add(&notes, "python", "gc__start", 1, 0, 0);

		header_at(&notes, at)->n_descsz = len;
		assert_int_equal(find(&notes, notes.len, &note, 1), 0);
	}
}

/* ---- a file ------------------------------------------------------------------------------- */

static struct image image;

static int begin(void **state)
{
	static const char names[] = "\0.note.stapsdt\0.stapsdt.base";
	Elf64_Phdr segment[2];

	(void)state;
	image_init(&image);
	segment[0] = *image_segment(&image);
	segment[1] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_W,
		.p_offset = AT_DATA,
		.p_vaddr = DATA_BASE,
		.p_filesz = DATA_BYTES,
		.p_memsz = DATA_BYTES,
	};
	memcpy(image.bytes + AT_SEGMENTS, segment, sizeof(segment));
	image_header(&image)->e_phoff = AT_SEGMENTS;
	image_header(&image)->e_phnum = 2;
	image_header(&image)->e_shstrndx = SECTION_STRTAB;
	memcpy(image.bytes + AT_STRTAB, names, sizeof(names));
	image_section(&image, SECTION_SYMTAB)->sh_type = SHT_NULL;
	image_set_section(&image, SECTION_NOTE, SHT_NOTE, AT_NOTE, 0, 0, 0);
	image_section(&image, SECTION_NOTE)->sh_name = 1;
	image_set_section(&image, SECTION_VERSYM, SHT_NULL, AT_VERSYM, 1, 0, 0);
	image_section(&image, SECTION_VERSYM)->sh_name = 15;
	image_code(&image, MARK - IMAGE_BASE, "\x90", 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

static void mark(uint64_t location, uint64_t base, uint64_t semaphore)
{
	struct notes notes = {0};
	size_t before = image_section(&image, SECTION_NOTE)->sh_size;

	(void)add(&notes, "python", "gc__start", location, base, semaphore);
	memcpy(image.bytes + AT_NOTE + before, notes.bytes, notes.len);
	image_section(&image, SECTION_NOTE)->sh_size += notes.len;
}

/* What a search for at most `max` says. */
static int look(struct nt_elf_mark *ret_mark, size_t max)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	int r;

	assert_int_equal(nt_elf_open(image_save(&image), &elf), 0);
	r = nt_elf_find_marks(elf, "python", "gc__start", ret_mark, max);
	image_close(&image);
	return r;
}

static void check_bad(void)
{
	struct nt_elf_mark found = {.offset = 42};

	assert_int_equal(look(&found, 1), -EBADMSG);
	assert_int_equal(found.offset, 42);
}

static void a_mark_and_its_semaphore_are_offsets_in_the_file(void **state)
{
	struct nt_elf_mark found;

	(void)state;
	mark(MARK, BASE, SEMAPHORE);
	assert_int_equal(look(&found, 1), 1);
	assert_int_equal(found.offset, IMAGE_CODE + 0x80);
	assert_int_equal(found.semaphore, AT_DATA + 0x10);
}

static void a_mark_without_a_semaphore_has_none(void **state)
{
	struct nt_elf_mark found = {.semaphore = 42};

	(void)state;
	mark(MARK, BASE, 0);
	assert_int_equal(look(&found, 1), 1);
	assert_int_equal(found.semaphore, 0);
}

static void a_file_that_was_moved_since_is_followed(void **state)
{
	struct nt_elf_mark found[2];

	(void)state;
	image_section(&image, SECTION_VERSYM)->sh_type = SHT_PROGBITS;
	image_section(&image, SECTION_VERSYM)->sh_addr = BASE;
	mark(MARK - 0x1000, BASE - 0x1000, SEMAPHORE - 0x1000); /* up */
	mark(MARK + 0x1000, BASE + 0x1000, 0); /* down */
	assert_int_equal(look(found, 2), 2);
	assert_int_equal(found[0].offset, IMAGE_CODE + 0x80);
	assert_int_equal(found[0].semaphore, AT_DATA + 0x10);
	assert_int_equal(found[1].offset, IMAGE_CODE + 0x80);
	assert_int_equal(found[1].semaphore, 0);
	image_section(&image, SECTION_VERSYM)->sh_addr = 0; /* as good as no such section */
	assert_int_equal(look(found, 2), -EBADMSG);
}

/* Both its name and its kind make it the base, and the section of the notes. */
static void a_section_of_another_name_or_kind_is_no_base(void **state)
{
	Elf64_Shdr *other = image_section(&image, SECTION_SYMTAB);
	struct nt_elf_mark found;

	(void)state;
	mark(MARK, BASE, SEMAPHORE);
	other->sh_type = SHT_PROGBITS;
	other->sh_addr = BASE + 0x1000;
	assert_int_equal(look(&found, 1), 1);
	other->sh_name = 1;
	assert_int_equal(look(&found, 1), 1);
	other->sh_type = SHT_STRTAB;
	other->sh_name = 15;
	assert_int_equal(look(&found, 1), 1);
	assert_int_equal(found.offset, IMAGE_CODE + 0x80);
	other->sh_type = SHT_PROGBITS;
	assert_int_equal(look(&found, 1), -EBADMSG);
	/* Notes of that name are taken once. */
	*other = *image_section(&image, SECTION_NOTE);
	other->sh_size = 1;
	assert_int_equal(look(&found, 1), 0);
	*other = (Elf64_Shdr){0};
	*image_section(&image, SECTION_DYNSYM) = *image_section(&image, SECTION_NOTE);
	image_section(&image, SECTION_NOTE)->sh_size = 1;
	assert_int_equal(look(&found, 1), 1);
}

static void a_file_without_the_section_has_no_marks(void **state)
{
	struct nt_elf_mark found;

	(void)state;
	mark(MARK, BASE, 0);
	image_section(&image, SECTION_NOTE)->sh_name = 0;
	assert_int_equal(look(&found, 1), 0);
	image_section(&image, SECTION_NOTE)->sh_name = 1;
	image_section(&image, SECTION_NOTE)->sh_type = SHT_PROGBITS;
	assert_int_equal(look(&found, 1), 0);
	image_section(&image, SECTION_NOTE)->sh_type = SHT_NOTE;
	image_header(&image)->e_shstrndx = 0;
	assert_int_equal(look(&found, 1), 0);
	image_header(&image)->e_shstrndx = SECTION_STRTAB;
	assert_int_equal(look(&found, 1), 1);
}

/* A breakpoint in the middle of an instruction would change what the program does. */
static void a_mark_that_is_no_nop_is_bad(void **state)
{
	(void)state;
	mark(MARK + 1, BASE, 0);
	check_bad();
}

static void a_nop_is_one_of_the_machine(void **state)
{
	struct nt_elf_mark found;

	(void)state;
	mark(MARK, BASE, 0);
	image_header(&image)->e_machine = EM_AARCH64;
	check_bad();
	image_code(&image, MARK - IMAGE_BASE, "\x1f\x20\x03\xd5", 4);
	assert_int_equal(look(&found, 1), 1);
	image_header(&image)->e_machine = EM_X86_64;
	check_bad();
}

static void a_mark_outside_the_code_is_bad(void **state)
{
	static const uint64_t at[] = {0, IMAGE_BASE - 1, IMAGE_BASE + IMAGE_CODE_BYTES, SEMAPHORE,
				      UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		image_section(&image, SECTION_NOTE)->sh_size = 0;
		mark(at[i], BASE, 0);
		check_bad();
	}
}

/* The kernel writes there. */
static void a_semaphore_outside_the_data_is_bad(void **state)
{
	static const uint64_t at[] = {1, MARK, DATA_BASE - 1, DATA_BASE + DATA_BYTES, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		image_section(&image, SECTION_NOTE)->sh_size = 0;
		mark(MARK, BASE, at[i]);
		check_bad();
	}
}

static void a_semaphore_in_what_is_only_read_is_bad(void **state)
{
	Elf64_Phdr *segment = (Elf64_Phdr *)(void *)(image.bytes + AT_SEGMENTS);

	(void)state;
	segment[1].p_flags = PF_R;
	mark(MARK, BASE, SEMAPHORE);
	check_bad();
}

static void more_marks_than_room_are_none_at_all(void **state)
{
	struct nt_elf_mark found[MANY];

	(void)state;
	for (int i = 0; i < MANY - 1; i++)
		mark(MARK, BASE, 0);
	assert_int_equal(look(found, MANY - 2), -E2BIG);
	assert_int_equal(look(found, MANY - 1), MANY - 1);
	mark(MARK, BASE, 0);
	assert_int_equal(look(found, MANY), -E2BIG);
}

static void notes_are_read_up_to_a_mebibyte(void **state)
{
	enum {
		MIB = 1 << 20,
	};
	struct notes notes = {0};

	(void)state;
	(void)add(&notes, "python", "gc__start", MARK, BASE, 0);
	for (size_t size = MIB; size <= MIB + 4; size += 4) {
		nt_auto(nt_elf) struct nt_elf *elf = NULL;
		struct nt_elf_mark found;
		const char *path;

		image_section(&image, SECTION_NOTE)->sh_offset = IMAGE_BYTES;
		image_section(&image, SECTION_NOTE)->sh_size = size;
		path = image_save(&image);
		assert_int_equal(write(image.fd, notes.bytes, notes.len), (ssize_t)notes.len);
		assert_int_equal(ftruncate(image.fd, IMAGE_BYTES + MIB + 4), 0);
		assert_int_equal(nt_elf_open(path, &elf), 0);
		assert_int_equal(nt_elf_find_marks(elf, "python", "gc__start", &found, 1),
				 size == MIB ? 1 : 0);
		image_close(&image);
	}
}

/* ---- clones ------------------------------------------------------------------------------- */

static int clones(const char *name, struct nt_elf_symbol *ret_symbol, size_t max)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	int r;

	image_section(&image, SECTION_SYMTAB)->sh_type = SHT_SYMTAB;
	assert_int_equal(nt_elf_open(image_save(&image), &elf), 0);
	r = nt_elf_find_clones(elf, name, ret_symbol, max);
	image_close(&image);
	return r;
}

static void what_the_compiler_made_of_a_function_is_found(void **state)
{
	struct nt_elf_symbol found[4];

	(void)state;
	image_init(&image);
	(void)image_add_static(&image, "collect", 0x20);
	(void)image_add_static(&image, "collect.constprop.0", 0x40);
	(void)image_add_static(&image, "collect.cold", 0x60);
	(void)image_add_static(&image, "collect.constprop.0.cold", 0x68);
	(void)image_add_static(&image, "collector", 0x80);
	(void)image_add_static(&image, "collect.lto_priv.0", 0x40); /* another name */
	assert_int_equal(clones("collect", found, 4), 2);
	assert_int_equal(found[0].offset, IMAGE_CODE + 0x20);
	assert_int_equal(found[1].offset, IMAGE_CODE + 0x40);
	assert_int_equal(clones("collect", found, 1), -E2BIG);
	assert_int_equal(clones("gc_collect_main", found, 4), 0);
}

static void clones_behind_others_and_behind_second_names_are_found(void **state)
{
	struct nt_elf_symbol found[4];

	(void)state;
	image_init(&image);
	(void)image_add_static(&image, "other", 0x10);
	(void)image_add_static(&image, "collect", 0x20);
	(void)image_add_static(&image, "collect.lto_priv.0", 0x20); /* a second name */
	(void)image_add_static(&image, "collect.cold", 0x30);
	(void)image_add_static(&image, "collect.part.0", 0x40);
	(void)image_add_static(&image, "collect.part.1", 0x40);
	(void)image_add_static(&image, "collect.isra.0", 0x50);
	assert_int_equal(clones("collect", found, 4), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(found[i].offset, IMAGE_CODE + (i ? 0x30 + 0x10 * i : 0x20));
	/* As many as there is room for, and not one more. */
	assert_int_equal(clones("collect", found, 3), 3);
	assert_int_equal(clones("collect", found, 2), -E2BIG);
	assert_int_equal(clones("collect", found, 0), -E2BIG);
}

static void a_clone_outside_the_code_is_an_error(void **state)
{
	struct nt_elf_symbol found[4];

	(void)state;
	image_init(&image);
	(void)image_add_static(&image, "collect.isra.0", IMAGE_CODE_BYTES);
	assert_int_equal(clones("collect", found, 4), -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_note_of_the_name_is_found_among_others),
		cmocka_unit_test(those_over_the_room_are_counted_and_not_written),
		cmocka_unit_test(notes_of_another_owner_or_type_are_passed_over),
		cmocka_unit_test(notes_cut_anywhere_are_no_note),
		cmocka_unit_test(a_length_that_lies_ends_the_walk),
		cmocka_unit_test(a_description_too_short_for_its_texts_is_no_note),
		TEST(a_mark_and_its_semaphore_are_offsets_in_the_file),
		TEST(a_mark_without_a_semaphore_has_none),
		TEST(a_file_that_was_moved_since_is_followed),
		TEST(a_section_of_another_name_or_kind_is_no_base),
		TEST(a_file_without_the_section_has_no_marks),
		TEST(a_mark_that_is_no_nop_is_bad),
		TEST(a_nop_is_one_of_the_machine),
		TEST(a_mark_outside_the_code_is_bad),
		TEST(a_semaphore_outside_the_data_is_bad),
		TEST(a_semaphore_in_what_is_only_read_is_bad),
		TEST(more_marks_than_room_are_none_at_all),
		TEST(notes_are_read_up_to_a_mebibyte),
		TEST(what_the_compiler_made_of_a_function_is_found),
		TEST(clones_behind_others_and_behind_second_names_are_found),
		TEST(a_clone_outside_the_code_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
