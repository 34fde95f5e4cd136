/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whatever the file or the library that reads it does not give is told, or the rest is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <gelf.h>
#include <sys/stat.h>

#include "agent/elf.h"
#include "tests/unit/elf_image.h"

/* ---- the calls that fail --------------------------------------------------------------------- */

enum call {
	CALL_NONE,
	CALL_VERSION,
	CALL_OPEN,
	CALL_FSTAT,
	CALL_BEGIN,
	CALL_KIND,
	CALL_HEADER,
	CALL_SEGMENTS,
	CALL_SEGMENT,
	CALL_SECTION_HEADER,
	CALL_SECTION,
	CALL_DATA,
	CALL_SYMBOL,
	CALL_SYMBOL_VERSION,
	CALL_PREAD,
};

static enum call failing;
static unsigned int countdown; /* the how manieth of them fails; 0: none */
static ssize_t short_read = -1; /* what pread() gives where it fails; below 0: an error */

static bool fails(enum call call)
{
	if (call != failing || !countdown || --countdown)
		return false;
	errno = EIO;
	return true;
}

/* They stand in front of those of the libraries for all of this program. */
#define STANDS_IN(call, type, failure, name, args, ...)                                            \
	type fault_##name args __asm__(#name);                                                     \
	type fault_##name args                                                                     \
	{                                                                                          \
		static type(*real) args;                                                           \
                                                                                                   \
		if (!real)                                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                                 \
		return fails(call) ? (failure) : real(__VA_ARGS__);                                \
	}

#define ELF            Elf *
#define SECTION        Elf_Scn *
#define DATA           Elf_Data *
#define HEADER         GElf_Ehdr *
#define SEGMENT        GElf_Phdr *
#define SECTION_HEADER GElf_Shdr *
#define SYMBOL         GElf_Sym *
#define VERSION        GElf_Versym *

STANDS_IN(CALL_VERSION, unsigned int, EV_NONE, elf_version, (unsigned int wanted), wanted)
STANDS_IN(CALL_OPEN, int, -1, open, (const char *path, int flags, mode_t mode), path, flags, mode)
STANDS_IN(CALL_FSTAT, int, -1, fstat, (int fd, struct stat *st), fd, st)
STANDS_IN(CALL_BEGIN, ELF, NULL, elf_begin, (int fd, Elf_Cmd command, Elf *archive), fd, command,
	  archive)
STANDS_IN(CALL_KIND, Elf_Kind, ELF_K_AR, elf_kind, (Elf * elf), elf)
STANDS_IN(CALL_HEADER, HEADER, NULL, gelf_getehdr, (Elf * elf, GElf_Ehdr *to), elf, to)
STANDS_IN(CALL_SEGMENTS, int, -1, elf_getphdrnum, (Elf * elf, size_t *to), elf, to)
STANDS_IN(CALL_SEGMENT, SEGMENT, NULL, gelf_getphdr, (Elf * elf, int i, GElf_Phdr *to), elf, i, to)
STANDS_IN(CALL_SECTION_HEADER, SECTION_HEADER, NULL, gelf_getshdr,
	  (Elf_Scn * section, GElf_Shdr *to), section, to)
STANDS_IN(CALL_SECTION, SECTION, NULL, elf_getscn, (Elf * elf, size_t i), elf, i)
STANDS_IN(CALL_DATA, DATA, NULL, elf_getdata, (Elf_Scn * section, Elf_Data *data), section, data)
STANDS_IN(CALL_SYMBOL, SYMBOL, NULL, gelf_getsym, (Elf_Data * data, int i, GElf_Sym *to), data, i,
	  to)
STANDS_IN(CALL_SYMBOL_VERSION, VERSION, NULL, gelf_getversym,
	  (Elf_Data * data, int i, GElf_Versym *to), data, i, to)
STANDS_IN(CALL_PREAD, ssize_t, short_read, pread, (int fd, void *to, size_t n, off_t at), fd, to, n,
	  at)

/* ---- what is told ---------------------------------------------------------------------------- */

static struct image image;

/* Two functions of the dynamic table, and one of the static one; "both" is in either. */
static int begin(void **state)
{
	(void)state;
	image_init(&image);
	(void)image_add_dynamic(&image, "first", 0x10, 2);
	(void)image_add_dynamic(&image, "both", 0x20, 2);
	(void)image_add_static(&image, "both", 0x30);
	(void)image_add_static(&image, "last", 0x40);
	(void)image_save(&image);
	return 0;
}

static int end(void **state)
{
	(void)state;
	failing = CALL_NONE;
	countdown = 0;
	short_read = -1;
	image_close(&image);
	return 0;
}

static int open_with(enum call call, unsigned int nth, struct nt_elf **ret_elf)
{
	int r;

	failing = call;
	countdown = nth;
	r = nt_elf_open(image.path, ret_elf);
	/* The call was there to fail. */
	assert_int_equal(countdown, 0);
	failing = CALL_NONE;
	return r;
}

static void what_is_needed_to_read_the_file_at_all_is_an_error(void **state)
{
	static const struct {
		enum call call;
		int error;
	} needed[] = {
		{CALL_VERSION, -ENOTSUP},  {CALL_OPEN, -EIO},        {CALL_FSTAT, -EIO},
		{CALL_BEGIN, -EBADMSG},    {CALL_KIND, -EBADMSG},    {CALL_HEADER, -EBADMSG},
		{CALL_SEGMENTS, -EBADMSG}, {CALL_SEGMENT, -EBADMSG},
	};
	struct nt_elf *elf = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		assert_int_equal(open_with(needed[i].call, 1, &elf), needed[i].error);
		assert_null(elf);
	}
	assert_int_equal(open_with(CALL_NONE, 0, &elf), 0);
	nt_elf_close(elf);
}

/* Where each function is found; 0: it is not. */
static void assert_found(struct nt_elf *elf, uint64_t first, uint64_t both, uint64_t last)
{
	static const char *const name[] = {"first", "both", "last"};
	const uint64_t at[] = {first, both, last};

	for (size_t i = 0; i < 3; i++) {
		struct nt_elf_symbol symbol = {.offset = 42};

		assert_int_equal(nt_elf_find(elf, name[i], &symbol), at[i] ? 0 : -ENOENT);
		assert_int_equal(symbol.offset, at[i] ? IMAGE_CODE + at[i] : 42);
	}
	nt_elf_close(elf);
}

static void the_rest_of_the_tables_is_used(void **state)
{
	static const struct {
		enum call call;
		unsigned int nth;
		uint64_t first, both, last;
	} lacks[] = {
		{CALL_NONE, 0, 0x10, 0x20, 0x40},
		/* Sections are looked at in their order: .dynsym, .dynstr, versions, .symtab … */
		{CALL_SECTION_HEADER, SECTION_DYNSYM, 0, 0x30, 0x40},
		{CALL_SECTION_HEADER, SECTION_DYNSTR, 0x10, 0x20, 0x40},
		{CALL_SECTION_HEADER, SECTION_VERSYM, 0x10, 0x20, 0x40},
		{CALL_SECTION_HEADER, SECTION_SYMTAB, 0x10, 0x20, 0},
		/* … and then the texts of each table. */
		{CALL_SECTION_HEADER, SECTIONS, 0, 0x30, 0x40},
		{CALL_SECTION_HEADER, SECTIONS + 1, 0x10, 0x20, 0},
		{CALL_SECTION, 1, 0, 0x30, 0x40},
		{CALL_SECTION, 2, 0x10, 0x20, 0},
		/* Versions, build-id, and each table before its texts. */
		{CALL_DATA, 1, 0x10, 0x20, 0x40},
		{CALL_DATA, 2, 0x10, 0x20, 0x40},
		{CALL_DATA, 3, 0, 0x30, 0x40},
		{CALL_DATA, 4, 0, 0x30, 0x40},
		{CALL_DATA, 5, 0x10, 0x20, 0},
		{CALL_DATA, 6, 0x10, 0x20, 0},
		/* A table ends where it cannot be read: nothing, "first", "both". */
		{CALL_SYMBOL, 2, 0, 0x30, 0x40},
		{CALL_SYMBOL, 3, 0x10, 0x30, 0x40},
		{CALL_SYMBOL, 5, 0x10, 0x20, 0},
		{CALL_SYMBOL_VERSION, 1, 0x10, 0x20, 0x40},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		struct nt_elf *elf = NULL;

		assert_int_equal(open_with(lacks[i].call, lacks[i].nth, &elf), 0);
		assert_found(elf, lacks[i].first, lacks[i].both, lacks[i].last);
	}
}

static void code_that_cannot_be_read_is_an_error(void **state)
{
	static const struct {
		ssize_t got;
		int error;
	} reads[] = {{-1, -EIO}, {0, -EBADMSG}};
	struct nt_elf_symbol symbol = {.offset = 42};
	struct nt_elf *elf = NULL;

	(void)state;
	assert_int_equal(open_with(CALL_NONE, 0, &elf), 0);
	for (size_t i = 0; i < 2; i++) {
		failing = CALL_PREAD;
		countdown = 1;
		short_read = reads[i].got;
		assert_int_equal(nt_elf_find(elf, "first", &symbol), reads[i].error);
		assert_int_equal(countdown, 0);
		assert_int_equal(symbol.offset, 42);
	}
	assert_int_equal(nt_elf_find(elf, "first", &symbol), 0);
	assert_int_equal(symbol.offset, IMAGE_CODE + 0x10);
	nt_elf_close(elf);
}

static void what_is_not_there_is_told_by_its_error(void **state)
{
	struct nt_elf *elf = NULL;

	(void)state;
	assert_int_equal(nt_elf_open("/no/such/file", &elf), -ENOENT);
	assert_int_equal(nt_elf_open("/dev/null", &elf), -EBADMSG);
	assert_int_equal(nt_elf_open("/", &elf), -EBADMSG);
	assert_null(elf);
	nt_elf_close(elf);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(what_is_needed_to_read_the_file_at_all_is_an_error),
		WITH(the_rest_of_the_tables_is_used),
		WITH(code_that_cannot_be_read_is_an_error),
		WITH(what_is_not_there_is_told_by_its_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
