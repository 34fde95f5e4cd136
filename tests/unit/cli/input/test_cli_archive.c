/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Archives are unpacked into files without names, within caps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input/archive.h"
#include "common/base/cleanup.h"
#include "tests/unit/scratch.h"

static char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];
static char why[NT_ARCHIVE_ERROR_BYTES];
static struct archive *writer;

/* What was taken. */
static size_t entries, unpacked;
static char name[1024], text[64];
static struct stat st;

static bool wants(void *data, const char *entry)
{
	(void)data;
	return !strstr(entry, "unwanted");
}

static int take(void *data, const struct nt_archive_entry *entry)
{
	(void)data;
	entries++;
	(void)snprintf(name, sizeof(name), "%s", entry->name);
	if (entry->fd < 0)
		return 0;
	unpacked++;
	memset(text, 0, sizeof(text));
	assert_true(pread(entry->fd, text, sizeof(text) - 1, 0) >= 0);
	assert_int_equal(fstat(entry->fd, &st), 0);
	(void)close(entry->fd);
	return 0;
}

static struct nt_archive_reader reader;

static int set_up(void **state)
{
	(void)state;
	entries = unpacked = 0;
	*why = '\0';
	reader = (struct nt_archive_reader){.wants = wants, .take = take};
	if (scratch_make(dir) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/archive", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void begin(bool zip)
{
	writer = archive_write_new();
	assert_non_null(writer);
	if (zip) {
		assert_int_equal(archive_write_set_format_zip(writer), ARCHIVE_OK);
	} else {
		assert_int_equal(archive_write_set_format_ustar(writer), ARCHIVE_OK);
		assert_int_equal(archive_write_add_filter_gzip(writer), ARCHIVE_OK);
	}
	assert_int_equal(archive_write_open_filename(writer, path), ARCHIVE_OK);
}

static void add(const char *entry_name, unsigned int type, size_t size, char fill)
{
	struct archive_entry *entry = archive_entry_new();
	nt_autofree char *data = malloc(size + 1);

	assert_true(entry && data);
	memset(data, fill, size);
	archive_entry_set_pathname(entry, entry_name);
	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, 0600);
	archive_entry_set_mtime(entry, 1700000000, 0);
	if (type == AE_IFLNK)
		archive_entry_set_symlink(entry, "/etc/passwd");
	archive_entry_set_size(entry, type == AE_IFREG ? (la_int64_t)size : 0);
	assert_int_equal(archive_write_header(writer, entry), ARCHIVE_OK);
	if (type == AE_IFREG && size)
		assert_int_equal(archive_write_data(writer, data, size), size);
	archive_entry_free(entry);
}

static void finish(void)
{
	assert_int_equal(archive_write_free(writer), ARCHIVE_OK);
}

static void entries_become_files_without_names(void **state)
{
	(void)state;
	for (int zip = 0; zip < 2; zip++) {
		entries = unpacked = 0;
		begin(zip);
		add("dir", AE_IFDIR, 0, 0);
		add("dir/link", AE_IFLNK, 0, 0);
		add("dir/unwanted", AE_IFREG, 10, 'y');
		add("dir/rank\033[1m0", AE_IFREG, 10, 'x');
		finish();
		assert_int_equal(nt_archive_read(&reader, path, why), 0);
		assert_int_equal(entries, 2);
		assert_int_equal(unpacked, 1);
		assert_string_equal(name, "dir/rank?[1m0");
		assert_string_equal(text, "xxxxxxxxxx");
		assert_int_equal(st.st_nlink, 0);
		/* A dump says when its job hung by its time. */
		assert_int_equal(st.st_mtime, 1700000000);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(reader.bytes, 20);
}

static void names_lead_nowhere(void **state)
{
	(void)state;
	begin(false);
	add("../../../../tmp/nt-evil", AE_IFREG, 10, 'x');
	add("/tmp/nt-evil", AE_IFREG, 10, 'x');
	finish();
	assert_int_equal(nt_archive_read(&reader, path, why), 0);
	assert_int_equal(unpacked, 2);
	assert_int_equal(access("/tmp/nt-evil", F_OK), -1);
}

static void a_bomb_is_refused(void **state)
{
	(void)state;
	begin(true);
	add("first", AE_IFREG, 10, 'x');
	add("bomb", AE_IFREG, 100 << 20, ' ');
	finish();
	assert_int_equal(nt_archive_read(&reader, path, why), -EBADMSG);
	assert_string_equal(why, "unpacks to more than 256 times its size");
	assert_int_equal(unpacked, 1);
}

static void what_is_unpacked_in_total_is_capped(void **state)
{
	(void)state;
	begin(true);
	add("one", AE_IFREG, 5, 'x');
	add("two", AE_IFREG, 6, 'x');
	finish();
	reader.bytes = NT_ARCHIVE_MAX_BYTES - 10;
	assert_int_equal(nt_archive_read(&reader, path, why), -EBADMSG);
	assert_string_equal(why, "the unpacked files have more than 16 GiB");
	assert_int_equal(unpacked, 1);
}

static void entries_are_capped(void **state)
{
	(void)state;
	begin(false);
	for (int i = 0; i < NT_ARCHIVE_MAX_ENTRIES; i++)
		add("unwanted", AE_IFREG, 0, 0);
	add("one too many", AE_IFREG, 0, 0);
	finish();
	assert_int_equal(nt_archive_read(&reader, path, why), -EBADMSG);
	assert_string_equal(why, "more than 65536 entries");
	assert_int_equal(entries, NT_ARCHIVE_MAX_ENTRIES);
}

static void half_an_archive_gives_what_is_in_it(void **state)
{
	(void)state;
	begin(false);
	add("one", AE_IFREG, 1000, 'x');
	for (int i = 0; i < 20; i++)
		add("more", AE_IFREG, 100000, (char)i);
	finish();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
	assert_int_equal(nt_archive_read(&reader, path, why), -EBADMSG);
	assert_true(*why && unpacked > 0 && unpacked < 21);
}

static void what_is_no_archive_is_refused(void **state)
{
	FILE *file = fopen(path, "w");

	(void)state;
	assert_non_null(file);
	assert_true(fputs("no archive", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(nt_archive_read(&reader, path, why), -EBADMSG);
	assert_true(*why);
	assert_int_equal(nt_archive_read(&reader, "/no/such/file", why), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(entries_become_files_without_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(names_lead_nowhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_bomb_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_unpacked_in_total_is_capped, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(entries_are_capped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(half_an_archive_gives_what_is_in_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_archive_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
