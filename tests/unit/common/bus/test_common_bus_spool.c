/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The spool as files: their bytes and modes, and how long they are held. */
#include "tests/unit/common/spool.h"

#include <errno.h>

static void crc32c_is_that_of_the_books(void **state)
{
	(void)state;
	assert_int_equal(nt_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(nt_crc32c(nt_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
	assert_int_equal(nt_crc32c(0, "", 0), 0);
}

static void the_bytes_of_a_segment_are_pinned(void **state)
{
	static const uint8_t want_header[] =
		"NTSG\x15\x8b\xdc\x34\1\0\1\0\x78\x56\x34\x12\x2a\0\0\0\0\0\0\0"
		"\7\0\0\0\0\0\0\0\x15\xcd\x5b\7\0\0\0\0\0\0\0\0\0\0\0\0";
	static const uint8_t want_frame[] = "NTFR\3\xf1\x55\xfc\x78\x56\x34\x12\5\0\0\3"
					    "\x2a\0\0\0\0\0\0\0\xe8\3\0\0\0\0\0\0keyvalue";
	static const uint8_t want_seal[] = "NTSE\xc5\x63\xc8\x38\x78\x56\x34\x12\0\0\0\0"
					   "\x2b\0\0\0\0\0\0\0\xe8\3\0\0\0\0\0\0\1\0\0\0\0\0\0\0";
	const struct nt_spool_header header = {true, 0x12345678, 42, 7, 123456789};
	const struct nt_bus_record record = {
		.key = "key",
		.key_len = 3,
		.value = "value",
		.value_len = 5,
		.real_ns = 1000,
	};
	const struct nt_spool_seal seal = {43, 1000, 1};
	uint8_t out[64];

	(void)state;
	nt_spool_header_write(&header, out);
	assert_memory_equal(out, want_header, NT_SPOOL_HEADER_BYTES);
	assert_int_equal(nt_spool_frame_size(&record), sizeof(want_frame) - 1);
	nt_spool_frame_write(&record, 0x12345678, 42, out);
	assert_memory_equal(out, want_frame, sizeof(want_frame) - 1);
	nt_spool_seal_write(&seal, 0x12345678, out);
	assert_memory_equal(out, want_seal, NT_SPOOL_SEAL_BYTES);
}

static void files_have_their_modes_whatever_the_umask(void **state)
{
	static const mode_t masks[] = {0, 022, 077, 0777};
	const char *dir = *state;

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		char spool[PATH_BYTES], path[PATH_BYTES];
		struct stat st;
		mode_t old;

		if (masks[i] == 0777 && geteuid() != 0)
			continue; /* root alone can open what nobody may read */
		old = umask(masks[i]);
		(void)snprintf(spool, sizeof(spool), "%s/%zu", dir, i);
		publish_many(spool, NULL, 0, 1, 8);
		(void)umask(old);
		assert_int_equal(stat(spool, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0750);
		segment_path(spool, 0, path);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		*strrchr(path, '/') = '\0';
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0750);
		*strrchr(path, '/') = '\0';
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0750);
	}
}

/* For root the group is another one than its own; for others the bit alone is to be seen. */
static void all_that_is_made_has_the_group_of_a_set_group_id_directory(void **state)
{
	static const mode_t masks[] = {0, 027, 077};
	const char *dir = *state;

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		char spool[PATH_BYTES], path[PATH_BYTES];
		struct stat top, st;
		mode_t old = umask(masks[i]);

		(void)snprintf(spool, sizeof(spool), "%s/%zu", dir, i);
		assert_int_equal(mkdir(spool, 0750), 0);
		if (geteuid() == 0)
			assert_int_equal(chown(spool, (uid_t)-1, 65534), 0);
		assert_int_equal(chmod(spool, 02750), 0);
		publish_many(spool, NULL, 0, 1, 8);
		(void)umask(old);
		assert_int_equal(stat(spool, &top), 0);
		segment_path(spool, 0, path);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_gid, top.st_gid);
		for (int level = 0; level < 3; level++) { /* partition, topic, spool */
			*strrchr(path, '/') = '\0';
			assert_int_equal(stat(path, &st), 0);
			assert_int_equal(st.st_mode & 07777, 02750);
			assert_int_equal(st.st_gid, top.st_gid);
		}
	}
}

static void no_symbolic_link_is_followed_below_the_directory(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, NULL);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus_reader) struct nt_bus_reader *early = NULL;
	char elsewhere[PATH_BYTES], topic[PATH_BYTES], url[PATH_BYTES];
	struct nt_bus_record record;

	(void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", dir);
	(void)snprintf(topic, sizeof(topic), "%s/%s", dir, nt_topic_name(NT_TOPIC_WINDOW));
	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(nt_bus_reader_open(url, 1 << NT_TOPIC_WINDOW, &early), 0);
	assert_int_equal(mkdir(elsewhere, 0750), 0);
	assert_int_equal(symlink(elsewhere, topic), 0);
	assert_true(nt_bus_reader_next(early, 0, &record) < 0);
	assert_true(nt_bus_reader_next(early, 1000, &record) < 0);
	assert_true(publish(bus, NT_TOPIC_WINDOW, 1, 8) < 0);
	assert_int_equal(rmdir(elsewhere), 0);
	assert_true(nt_bus_reader_open(url, 1 << NT_TOPIC_WINDOW, &reader) < 0);
}

static void a_directory_that_cannot_be_is_said_so(void **state)
{
	const char *dir = *state;
	char path[PATH_BYTES], url[PATH_BYTES];
	struct nt_bus *bus = NULL;

	(void)snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(nt_file_create(path, 0600, "x", 1), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/file", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), -ENOTDIR);
	(void)snprintf(url, sizeof(url), "spool:%s/file/below", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), -ENOTDIR);
	assert_int_equal(nt_bus_open("spool:", NULL, &bus), -EINVAL);
	assert_null(bus);
}

static void offsets_near_their_end_are_not_gone_on_with(void **state)
{
	const char *dir = *state;
	const struct nt_spool_header header = {.log = 1, .base = NT_SPOOL_MAX_OFFSET - 5};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_stats stats;
	uint8_t bytes[NT_SPOOL_HEADER_BYTES];
	char path[PATH_BYTES];

	nt_spool_header_write(&header, bytes);
	segment_path(dir, header.base, path);
	assert_int_equal(nt_file_make_parent(path, 0750), 0);
	assert_int_equal(nt_file_create(path, 0640, bytes, sizeof(bytes)), 0);
	bus = open_bus(dir, NULL);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, 8), -EOVERFLOW);
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.dropped_full, 1);
}

static unsigned int count_open_files(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 1 << 15; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void nothing_stays_open(void **state)
{
	unsigned int before = count_open_files();

	publish_many(*state, &small, 0, 1000, 100);
	publish_many(*state, &small, 1000, 1010, 100);
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &small);
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
			open_reader(*state, NT_TOPIC_WINDOW);

		while (read_number(reader) < 1009)
			;
		assert_int_equal(nt_bus_reader_seek_time(reader, 900), 0);
		assert_int_equal(read_number(reader), 900);
		assert_int_equal(nt_bus_reader_seek_end(reader), 0);
		assert_true(nt_bus_reader_fd(reader) >= 0);
		for (uint64_t i = 0; i < 1000; i++)
			assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
	}
	assert_int_equal(count_open_files(), before);
}

static void many_small_flushes_are_many_writes_and_one_flush_is_one(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, NULL);
	char path[PATH_BYTES];
	struct stat st;

	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 8), 0);
	segment_path(*state, 0, path);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, NT_SPOOL_HEADER_BYTES + 100 * (NT_SPOOL_FRAME_BYTES + 10));
}

static void a_bus_that_syncs_works_as_one_that_does_not(void **state)
{
	const struct nt_bus_options options = {
		.sync = true,
		.segment_bytes = 4 << 10,
		.max_bytes = 1 << 20,
	};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_many(*state, &options, 0, 200, 100);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(read_number(reader), i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_is_that_of_the_books),
		cmocka_unit_test(the_bytes_of_a_segment_are_pinned),
		SPOOL_TEST(files_have_their_modes_whatever_the_umask),
		SPOOL_TEST(all_that_is_made_has_the_group_of_a_set_group_id_directory),
		SPOOL_TEST(no_symbolic_link_is_followed_below_the_directory),
		SPOOL_TEST(a_directory_that_cannot_be_is_said_so),
		SPOOL_TEST(offsets_near_their_end_are_not_gone_on_with),
		SPOOL_TEST(nothing_stays_open),
		SPOOL_TEST(many_small_flushes_are_many_writes_and_one_flush_is_one),
		SPOOL_TEST(a_bus_that_syncs_works_as_one_that_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
