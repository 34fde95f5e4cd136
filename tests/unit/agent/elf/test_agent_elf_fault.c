/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System calls that fail, and a file that changes, while an ELF file is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/elf/elf.h"
#include "tests/unit/agent/elf_image.h"

static struct image image;

/* ---- the calls that fail --------------------------------------------------------------------- */

enum call {
	CALL_NONE,
	CALL_OPEN,
	CALL_FSTAT,
	CALL_PREAD,
};

enum how {
	HOW_ERROR, /* EIO */
	HOW_INTERRUPTED, /* EINTR, once */
	HOW_HALF, /* half of the bytes */
	HOW_SHRUNK, /* the file has no bytes any more */
};

static enum call failing;
static enum how how;
static unsigned int countdown; /* the number of the call that fails; 0: none */

static bool fails(enum call call)
{
	if (call != failing || !countdown || --countdown)
		return false;
	errno = how == HOW_INTERRUPTED ? EINTR : EIO;
	return true;
}

/* They stand in front of those of the C library for all of this program. */
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

static ssize_t read_badly(ssize_t (*real)(int, void *, size_t, off_t), int fd, void *to, size_t n,
			  off_t at)
{
	if (how == HOW_SHRUNK)
		assert_int_equal(ftruncate(image.fd, 0), 0);
	if (how == HOW_HALF)
		n = (n + 1) / 2;
	return how == HOW_SHRUNK || how == HOW_HALF ? real(fd, to, n, at) : -1;
}

STANDS_IN(CALL_OPEN, int, -1, open, (const char *path, int flags, mode_t mode), path, flags, mode)
STANDS_IN(CALL_FSTAT, int, -1, fstat, (int fd, struct stat *st), fd, st)
STANDS_IN(CALL_PREAD, ssize_t, read_badly(real, fd, to, n, at), pread,
	  (int fd, void *to, size_t n, off_t at), fd, to, n, at)

/* ---- what is reported ------------------------------------------------------------------------ */

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
	how = HOW_ERROR;
	image_close(&image);
	return 0;
}

/* Opens the file and looks for all three. */
static int find_three(struct nt_elf_found ret_found[3])
{
	static const struct nt_elf_wanted wanted[] = {
		{.name = "first"}, {.name = "both"}, {.name = "last"}};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	int r = nt_elf_open(image.path, &elf);

	if (r < 0) {
		assert_null(elf);
		return r;
	}
	return nt_elf_find_all(elf, wanted, 3, ret_found);
}

static void assert_three(const struct nt_elf_found found[3])
{
	static const uint64_t at[] = {0x10, 0x20, 0x40};

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(found[i].result, 0);
		assert_int_equal(found[i].symbol.offset, IMAGE_CODE + at[i]);
	}
}

/* Lets each read in turn end like this. Returns how many there were. */
static unsigned int let_reads_end(enum how ending, int error)
{
	for (unsigned int nth = 1;; nth++) {
		struct nt_elf_found found[3];
		int r;

		image_close(&image);
		(void)image_save(&image);
		failing = CALL_PREAD;
		how = ending;
		countdown = nth;
		r = find_three(found);
		failing = CALL_NONE;
		if (countdown) {
			assert_int_equal(r, 0);
			return nth - 1;
		}
		assert_int_equal(r, error);
		if (r == 0)
			assert_three(found);
	}
}

static void a_file_that_cannot_be_opened_is_an_error(void **state)
{
	static const enum call calls[] = {CALL_OPEN, CALL_FSTAT};
	struct nt_elf *elf = NULL;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		failing = calls[i];
		countdown = 1;
		assert_int_equal(nt_elf_open(image.path, &elf), -EIO);
		assert_int_equal(countdown, 0);
		assert_null(elf);
	}
}

static void a_read_that_fails_is_an_error_wherever_it_is(void **state)
{
	(void)state;
	/* Headers, tables and the first instruction of each function. */
	assert_true(let_reads_end(HOW_ERROR, -EIO) >= 12);
}

static void a_read_that_is_interrupted_is_repeated(void **state)
{
	(void)state;
	assert_true(let_reads_end(HOW_INTERRUPTED, 0) >= 12);
}

static void a_read_that_gives_less_is_continued(void **state)
{
	(void)state;
	assert_true(let_reads_end(HOW_HALF, 0) >= 12);
}

/* But for the code of a function, which is then not in the file. */
static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
	(void)state;
	for (unsigned int nth = 1;; nth++) {
		struct nt_elf_found found[3];
		int r;

		image_close(&image);
		(void)image_save(&image);
		failing = CALL_PREAD;
		how = HOW_SHRUNK;
		countdown = nth;
		r = find_three(found);
		failing = CALL_NONE;
		if (countdown)
			break;
		if (r == 0)
			assert_int_equal(found[2].result, -EBADMSG);
		else
			assert_int_equal(r, -EBADMSG);
	}
}

static void code_that_cannot_be_read_is_an_error(void **state)
{
	struct nt_elf_symbol symbol = {.offset = 42};
	struct nt_elf *elf = NULL;
	const struct {
		enum how how;
		int error;
	} reads[] = {{HOW_ERROR, -EIO}, {HOW_SHRUNK, -EBADMSG}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		unsigned int nth = 0;
		int r;

		image_close(&image);
		(void)image_save(&image);
		assert_int_equal(nt_elf_open(image.path, &elf), 0);
		/* The last read is that of the code. */
		failing = CALL_PREAD;
		how = HOW_HALF;
		countdown = UINT16_MAX;
		assert_int_equal(find_one(elf, "first", &symbol), 0);
		nth = UINT16_MAX - countdown;
		symbol.offset = 42;
		how = reads[i].how;
		countdown = nth;
		r = find_one(elf, "first", &symbol);
		assert_int_equal(countdown, 0);
		failing = CALL_NONE;
		assert_int_equal(r, reads[i].error);
		assert_int_equal(symbol.offset, 42);
		nt_elf_close(elf);
	}
}

static void what_is_not_there_has_its_error(void **state)
{
	struct nt_elf *elf = NULL;

	(void)state;
	assert_int_equal(nt_elf_open("/no/such/file", &elf), -ENOENT);
	assert_int_equal(nt_elf_open("/dev/null", &elf), -EBADMSG);
	assert_int_equal(nt_elf_open("/", &elf), -EBADMSG);
	assert_int_equal(nt_elf_open_fd(-1, NULL, &elf), -EBADF);
	assert_null(elf);
	nt_elf_close(elf);
}

static void an_open_file_stays_open(void **state)
{
	struct nt_elf_symbol symbol;
	struct nt_elf *elf = NULL;

	(void)state;
	assert_int_equal(nt_elf_open_fd(image.fd, NULL, &elf), 0);
	assert_int_equal(find_one(elf, "last", &symbol), 0);
	assert_int_equal(symbol.offset, IMAGE_CODE + 0x40);
	nt_elf_close(elf);
	assert_true(fcntl(image.fd, F_GETFD) >= 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(a_file_that_cannot_be_opened_is_an_error),
		WITH(a_read_that_fails_is_an_error_wherever_it_is),
		WITH(a_read_that_is_interrupted_is_repeated),
		WITH(a_read_that_gives_less_is_continued),
		WITH(a_file_that_shrinks_while_it_is_read_is_an_error),
		WITH(code_that_cannot_be_read_is_an_error),
		WITH(what_is_not_there_has_its_error),
		WITH(an_open_file_stays_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
