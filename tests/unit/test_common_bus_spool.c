/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What only the spool can do, and what only a directory of files can suffer. */
#include "common/bus_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/spool/dir.h"
#include "common/spool/frame.h"
#include "tests/unit/scratch.h"

enum {
	PATIENCE_MS = 10000, /* for what must come; nobody waits so long unless a test fails */
	PATH_BYTES = 256,
};

/* ---- helpers --------------------------------------------------------------------------------- */

static int make_scratch(void **state)
{
	char *dir = malloc(SCRATCH_BYTES);

	if (!dir || scratch_make_in_memory(dir) < 0)
		return -1;
	*state = dir;
	return 0;
}

static int remove_scratch(void **state)
{
	scratch_remove(*state);
	free(*state);
	return 0;
}

static struct nt_bus *open_bus(const char *dir, const struct nt_bus_options *options)
{
	char url[PATH_BYTES];
	struct nt_bus *bus = NULL;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(nt_bus_open(url, options, &bus), 0);
	return bus;
}

static struct nt_bus_reader *open_reader(const char *dir, enum nt_topic topic)
{
	char url[PATH_BYTES];
	struct nt_bus_reader *reader = NULL;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(nt_bus_reader_open(url, 1U << topic, &reader), 0);
	return reader;
}

/* A record of `size` bytes that begins with the number; key "k" and a digit of it. */
static int publish(struct nt_bus *bus, enum nt_topic topic, uint64_t number, size_t size)
{
	char value[4096] = {0}, key[2] = {'k', (char)('0' + number % 10)};
	const struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = sizeof(key),
		.value = value,
		.value_len = size,
		.real_ns = number,
	};

	memcpy(value, &number, sizeof(number));
	return nt_bus_publish(bus, &record);
}

static void publish_many(const char *dir, const struct nt_bus_options *options, uint64_t from,
			 uint64_t to, size_t size)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, options);

	for (uint64_t i = from; i < to; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, size), 0);
}

static uint64_t number_of(const struct nt_bus_record *record)
{
	uint64_t number;

	assert_true(record->value_len >= sizeof(number));
	memcpy(&number, record->value, sizeof(number));
	return number;
}

static uint64_t read_number(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;

	/* Most is there already, and then no watches are needed, whose end takes the kernel long. */
	if (nt_bus_reader_next(reader, 0, &record) == 0)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	return number_of(&record);
}

static void assert_nothing_more(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 0);
}

static uint64_t corrupt_frames(const struct nt_bus_reader *reader)
{
	struct nt_bus_stats stats;

	nt_bus_reader_stats(reader, &stats);
	return stats.corrupt_frames;
}

/* DIR/neutracer.<topic>.v1/PARTITION, open. */
static int open_partition(const char *dir, enum nt_topic topic, uint32_t partition)
{
	char path[PATH_BYTES];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s/%u", dir, nt_topic_name(topic), partition);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void segment_path(const char *dir, uint64_t base, char path[PATH_BYTES])
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(base, name);
	(void)snprintf(path, PATH_BYTES, "%s/%s/0/%s", dir, nt_topic_name(NT_TOPIC_WINDOW), name);
}

static void read_segment(const char *dir, struct nt_buf *buf)
{
	char path[PATH_BYTES];

	segment_path(dir, 0, path);
	assert_int_equal(nt_file_read(path, NT_BUF_MAX, buf), 0);
}

/* Makes DIR/<i> a spool whose only segment has these bytes. */
static void make_spool(const char *dir, unsigned int i, const uint8_t *data, size_t size,
		       char ret_spool[PATH_BYTES])
{
	char path[PATH_BYTES];

	(void)snprintf(ret_spool, PATH_BYTES, "%.200s/%u", dir, i);
	segment_path(ret_spool, 0, path);
	assert_int_equal(nt_file_make_parent(path, 0750), 0);
	assert_int_equal(nt_file_create(path, 0640, data, size), 0);
}

struct usage {
	uint64_t bytes;
	unsigned int segments, drafts;
};

static struct usage measure(const char *dir, enum nt_topic topic, uint32_t partition)
{
	nt_autosegments struct nt_spool_segments segments = {0};
	nt_autoclose int fd = open_partition(dir, topic, partition);
	struct usage usage = {0};

	assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	for (size_t i = 0; i < segments.count; i++) {
		char name[NT_SPOOL_NAME_BYTES];
		struct stat st;

		nt_spool_segment_name(segments.base[i], name);
		assert_int_equal(fstatat(fd, name, &st, 0), 0);
		usage.bytes += (uint64_t)st.st_size;
		nt_spool_draft_name(segments.base[i], name);
		usage.drafts += fstatat(fd, name, &st, 0) == 0;
	}
	usage.segments = (unsigned int)segments.count;
	return usage;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

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
		mode_t old = umask(masks[i]);

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

/* ---- partitions ------------------------------------------------------------------------------ */

static uint32_t partition_of_next(struct nt_bus *bus, const char *dir)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = open_reader(dir, NT_TOPIC_WINDOW);
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_seek_end(reader), 0);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, 8), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	return record.partition;
}

static void a_writer_takes_the_lowest_partition_that_is_free(void **state)
{
	struct nt_bus *a = open_bus(*state, NULL), *b = open_bus(*state, NULL);

	assert_int_equal(partition_of_next(a, *state), 0);
	assert_int_equal(partition_of_next(b, *state), 1);
	nt_bus_close(a);
	a = open_bus(*state, NULL);
	assert_int_equal(partition_of_next(a, *state), 0);
	nt_bus_close(a);
	nt_bus_close(b);
}

static void one_writer_too_many_is_refused_and_counted(void **state)
{
	struct nt_bus *bus[NT_SPOOL_MAX_PARTITIONS + 1];
	struct nt_bus_stats stats;

	for (int i = 0; i < NT_SPOOL_MAX_PARTITIONS; i++) {
		bus[i] = open_bus(*state, NULL);
		assert_int_equal(publish(bus[i], NT_TOPIC_WINDOW, 1, 8), 0);
	}
	bus[NT_SPOOL_MAX_PARTITIONS] = open_bus(*state, NULL);
	assert_int_equal(publish(bus[NT_SPOOL_MAX_PARTITIONS], NT_TOPIC_WINDOW, 1, 8), -EUSERS);
	nt_bus_stats(bus[NT_SPOOL_MAX_PARTITIONS], &stats);
	assert_int_equal(stats.dropped_full, 1);
	/* Another one leaves. */
	nt_bus_close(bus[7]);
	assert_int_equal(publish(bus[NT_SPOOL_MAX_PARTITIONS], NT_TOPIC_WINDOW, 1, 8), 0);
	bus[7] = NULL;
	for (int i = 0; i <= NT_SPOOL_MAX_PARTITIONS; i++)
		nt_bus_close(bus[i]);
}

static void partitions_and_topics_that_appear_later_are_read(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *a = open_bus(*state, NULL);
	nt_auto(nt_bus) struct nt_bus *b = open_bus(*state, NULL);
	char url[PATH_BYTES];

	(void)snprintf(url, sizeof(url), "spool:%s", (const char *)*state);
	assert_int_equal(
		nt_bus_reader_open(url, 1 << NT_TOPIC_WINDOW | 1 << NT_TOPIC_NODE, &reader), 0);
	assert_nothing_more(reader);
	assert_int_equal(publish(a, NT_TOPIC_WINDOW, 1, 8), 0);
	assert_int_equal(nt_bus_flush(a), 0);
	assert_int_equal(read_number(reader), 1);
	assert_int_equal(publish(b, NT_TOPIC_WINDOW, 2, 8), 0);
	assert_int_equal(nt_bus_flush(b), 0);
	assert_int_equal(read_number(reader), 2);
	assert_int_equal(publish(b, NT_TOPIC_NODE, 3, 8), 0);
	assert_int_equal(nt_bus_flush(b), 0);
	assert_int_equal(read_number(reader), 3);
	assert_nothing_more(reader);
}

/* Writes are seen while they are made: half a frame, or the next one before it is searched for. */
static void a_reader_at_the_tail_of_a_busy_writer_misses_nothing(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = open_reader(*state, NT_TOPIC_WINDOW);
	const uint64_t records = 20000;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		const struct nt_bus_options options = {.segment_bytes = 256 << 10};
		struct nt_bus *bus = open_bus(*state, &options);

		for (uint64_t i = 0; i < records; i++)
			if (publish(bus, NT_TOPIC_WINDOW, i, 8 + i * 31 % 2000) < 0 ||
			    (i % 40 == 0 && nt_bus_flush(bus) < 0))
				_exit(1);
		nt_bus_close(bus);
		_exit(0);
	}
	for (uint64_t i = 0; i < records; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
	assert_int_equal(corrupt_frames(reader), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_time_sought_is_that_of_later_partitions_too(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *a = open_bus(*state, NULL);
	nt_auto(nt_bus) struct nt_bus *b = open_bus(*state, NULL);

	assert_int_equal(publish(a, NT_TOPIC_WINDOW, 90, 8), 0);
	assert_int_equal(publish(a, NT_TOPIC_WINDOW, 100, 8), 0);
	assert_int_equal(nt_bus_flush(a), 0);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek_time(reader, 100), 0);
	assert_int_equal(read_number(reader), 100);
	assert_int_equal(publish(b, NT_TOPIC_WINDOW, 99, 8), 0);
	assert_int_equal(publish(b, NT_TOPIC_WINDOW, 101, 8), 0);
	assert_int_equal(nt_bus_flush(b), 0);
	assert_int_equal(read_number(reader), 101);
	assert_nothing_more(reader);
}

static void the_end_of_an_empty_partition_is_its_beginning(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, NULL);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	/* Published, but not flushed: there is a partition, and no segment in it. */
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, 8), 0);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek_end(reader), 0);
	assert_nothing_more(reader);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(read_number(reader), 1);
}

static void what_waits_in_several_partitions_is_read_by_time(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus *bus[3];

	for (int i = 0; i < 3; i++)
		bus[i] = open_bus(*state, NULL);
	for (uint64_t n = 0; n < 300; n++)
		assert_int_equal(publish(bus[n * n % 3], NT_TOPIC_WINDOW, n, 8), 0);
	for (int i = 0; i < 3; i++)
		nt_bus_close(bus[i]);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	for (uint64_t n = 0; n < 300; n++)
		assert_int_equal(read_number(reader), n);
	assert_nothing_more(reader);
}

static void a_spool_that_is_removed_and_made_anew_is_read_from_its_start(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position = {NT_TOPIC_WINDOW, 0, 10};
	char spool[PATH_BYTES];

	(void)snprintf(spool, sizeof(spool), "%s/spool", (const char *)*state);
	publish_many(spool, NULL, 0, 10, 8);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
	scratch_remove(spool);
	assert_nothing_more(reader);
	publish_many(spool, NULL, 100, 103, 8);
	for (uint64_t i = 100; i < 103; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);

	/* Nor does a position stored for the old one hide what is in the new one. */
	nt_bus_reader_close(nt_take(reader));
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	for (uint64_t i = 100; i < 103; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
}

static void segments_that_are_replaced_by_another_log_are_read_from_their_start(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_autobuf struct nt_buf other = {0};
	char path[PATH_BYTES], spool[PATH_BYTES];

	(void)snprintf(spool, sizeof(spool), "%s/other", dir);
	publish_many(spool, NULL, 100, 105, 8);
	read_segment(spool, &other);

	(void)snprintf(spool, sizeof(spool), "%s/spool", dir);
	publish_many(spool, NULL, 0, 10, 8);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
	segment_path(spool, 0, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_file_create(path, 0640, other.data, other.len), 0);
	for (uint64_t i = 100; i < 105; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
}

static void after_a_new_boot_no_offset_is_given_twice(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position = {NT_TOPIC_WINDOW, 0, 7};
	struct nt_spool_header header;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_bus_record record;
	char path[PATH_BYTES];

	/* Ten records, of which the last five did not reach the disk. */
	publish_many(dir, NULL, 0, 5, 8);
	read_segment(dir, &buf);
	assert_int_equal(nt_spool_header_read(buf.data, buf.len, &header), 0);
	header.boot++;
	nt_spool_header_write(&header, buf.data);
	segment_path(dir, 0, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_file_create(path, 0640, buf.data, buf.len), 0);

	publish_many(dir, NULL, 20, 30, 8);
	publish_many(dir, NULL, 30, 40, 8);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	for (uint64_t i = 20; i < 40; i++) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(number_of(&record), i);
		assert_true(record.offset >= 5 + (1 << 20));
	}
	assert_nothing_more(reader);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
	assert_int_equal(corrupt_frames(reader), 0);
}

/* ---- damage ---------------------------------------------------------------------------------- */

enum {
	DAMAGE_FRAMES = 5,
	DAMAGE_VALUE = 40,
	DAMAGE_FRAME = NT_SPOOL_FRAME_BYTES + 2 + DAMAGE_VALUE,
	DAMAGE_TOTAL = NT_SPOOL_HEADER_BYTES + DAMAGE_FRAMES * DAMAGE_FRAME,
};

/* The bytes of a segment of five frames. */
static void make_segment(const char *dir, struct nt_buf *buf)
{
	char spool[PATH_BYTES];

	(void)snprintf(spool, sizeof(spool), "%s/whole", dir);
	publish_many(spool, NULL, 0, DAMAGE_FRAMES, DAMAGE_VALUE);
	read_segment(spool, buf);
	assert_int_equal(buf->len, DAMAGE_TOTAL);
}

static void a_torn_tail_is_cut_at_the_last_whole_frame_wherever_it_is_torn(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int cut = 0; cut < DAMAGE_FRAME; cut++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		nt_auto(nt_bus) struct nt_bus *bus = NULL;
		struct nt_bus_stats stats;
		char spool[PATH_BYTES];

		make_spool(*state, cut, buf.data, DAMAGE_TOTAL - DAMAGE_FRAME + cut, spool);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		for (uint64_t i = 0; i < DAMAGE_FRAMES - 1; i++)
			assert_int_equal(read_number(reader), i);
		assert_nothing_more(reader);

		bus = open_bus(spool, NULL);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 100, 8), 0);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 101, 200), 0);
		assert_int_equal(nt_bus_flush(bus), 0);
		nt_bus_stats(bus, &stats);
		assert_int_equal(stats.recovered_torn, cut > 0);
		assert_int_equal(read_number(reader), 100);
		assert_int_equal(read_number(reader), 101);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 0);
	}
}

static void a_file_that_ends_in_its_header_is_begun_anew(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int cut = 0; cut <= NT_SPOOL_HEADER_BYTES; cut++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		char spool[PATH_BYTES];

		make_spool(*state, cut, buf.data, cut, spool);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		assert_nothing_more(reader);
		publish_many(spool, NULL, 100, 102, 8);
		assert_int_equal(read_number(reader), 100);
		assert_int_equal(read_number(reader), 101);
		assert_nothing_more(reader);
	}
}

/* One bit of frame 2 of 5 is flipped: that frame is lost, and no other. */
static void a_flipped_bit_costs_one_frame_and_is_counted(void **state)
{
	const size_t begin = NT_SPOOL_HEADER_BYTES + 2 * DAMAGE_FRAME;
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int at = 0; at < DAMAGE_FRAME; at++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		char spool[PATH_BYTES];

		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		make_spool(*state, at, buf.data, buf.len, spool);
		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		for (uint64_t i = 0; i < DAMAGE_FRAMES; i++)
			if (i != 2)
				assert_int_equal(read_number(reader), i);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 1);

		/* The writer goes on in a new segment, and takes nothing away. */
		publish_many(spool, NULL, 100, 101, 8);
		assert_int_equal(read_number(reader), 100);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 1);
		assert_int_equal(measure(spool, NT_TOPIC_WINDOW, 0).segments, 2);
	}
}

static void a_flipped_bit_in_the_header_costs_no_frame(void **state)
{
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int at = 0; at < NT_SPOOL_HEADER_BYTES; at++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		char spool[PATH_BYTES];

		buf.data[at] ^= (uint8_t)(1 << at % 8);
		make_spool(*state, at, buf.data, buf.len, spool);
		buf.data[at] ^= (uint8_t)(1 << at % 8);
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		for (uint64_t i = 0; i < DAMAGE_FRAMES; i++)
			assert_int_equal(read_number(reader), i);
		assert_int_equal(corrupt_frames(reader), 1);
		publish_many(spool, NULL, 100, 101, 8);
		assert_int_equal(read_number(reader), 100);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 1);
	}
}

static void a_flipped_bit_in_the_last_frame_is_cut_off_by_the_next_writer(void **state)
{
	const size_t begin = NT_SPOOL_HEADER_BYTES + (DAMAGE_FRAMES - 1) * DAMAGE_FRAME;
	nt_autobuf struct nt_buf buf = {0};

	make_segment(*state, &buf);
	for (unsigned int at = 0; at < DAMAGE_FRAME; at++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		struct nt_bus_position position = {NT_TOPIC_WINDOW, 0, DAMAGE_FRAMES};
		char spool[PATH_BYTES];

		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		make_spool(*state, at, buf.data, buf.len, spool);
		buf.data[begin + at] ^= (uint8_t)(1 << at % 8);
		publish_many(spool, NULL, 100, 101, 8);
		/* Whoever had read the frame while it was sound finds the next one all the same. */
		reader = open_reader(spool, NT_TOPIC_WINDOW);
		assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
		assert_int_equal(read_number(reader), 100);
		assert_nothing_more(reader);
		assert_int_equal(corrupt_frames(reader), 0);
	}
}

/* A frame within a value: of another log, as nobody knows ours who does not read it. */
static void bytes_that_look_like_a_frame_inside_a_damaged_one_are_not_taken_for_one(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	const struct nt_bus_record inner = {.value = "forged", .value_len = 6, .real_ns = 3};
	uint8_t value[64] = {0};
	struct nt_bus_record outer = {
		.topic = NT_TOPIC_WINDOW,
		.value = value,
		.value_len = sizeof(value),
		.real_ns = 1,
	};
	nt_autobuf struct nt_buf buf = {0};
	char whole[PATH_BYTES], spool[PATH_BYTES];

	nt_spool_frame_write(&inner, 0x12345678, 1, value);
	(void)snprintf(whole, sizeof(whole), "%s/whole", dir);
	bus = open_bus(whole, NULL);
	assert_int_equal(nt_bus_publish(bus, &outer), 0);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 5, 8), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	read_segment(whole, &buf);
	buf.data[NT_SPOOL_HEADER_BYTES + 20] ^= 1;
	make_spool(dir, 0, buf.data, buf.len, spool);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 5);
	assert_nothing_more(reader);
	assert_int_equal(corrupt_frames(reader), 1);
}

static void a_segment_of_noise_is_passed_over_and_counted(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint8_t noise[5000];
	uint64_t seed = 1;
	char spool[PATH_BYTES];

	for (size_t i = 0; i < sizeof(noise); i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		noise[i] = (uint8_t)(seed >> 56);
	}
	make_spool(dir, 0, noise, sizeof(noise), spool);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_nothing_more(reader);
	publish_many(spool, NULL, 0, 100, 8);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
	assert_in_range(corrupt_frames(reader), 1, 2);
}

/* The damaged frame is larger than what is read at a time. */
static void a_large_damaged_frame_is_searched_to_its_end(void **state)
{
	const char *dir = *state;
	nt_autofree uint8_t *value = calloc(1, NT_BUS_MAX_VALUE);
	const struct nt_bus_record large = {
		.topic = NT_TOPIC_WINDOW,
		.value = value,
		.value_len = NT_BUS_MAX_VALUE,
	};
	char whole[PATH_BYTES], spool[PATH_BYTES];
	nt_autobuf struct nt_buf buf = {0};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	assert_non_null(value);
	/* Full of what looks like the head of a frame. */
	for (size_t i = 0; i + 8 < NT_BUS_MAX_VALUE; i += 1000)
		memcpy(value + i, "NTFRNTSE", 8);
	(void)snprintf(whole, sizeof(whole), "%s/whole", dir);
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(whole, NULL);

		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, 8), 0);
		assert_int_equal(nt_bus_publish(bus, &large), 0);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 2, 8), 0);
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 3, 8), 0);
	}
	read_segment(whole, &buf);
	buf.data[buf.len / 2] ^= 1;
	make_spool(dir, 0, buf.data, buf.len, spool);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 1);
	assert_int_equal(read_number(reader), 2);
	assert_int_equal(read_number(reader), 3);
	assert_nothing_more(reader);
	assert_int_equal(corrupt_frames(reader), 1);
}

static void no_offset_that_a_seal_knows_is_given_again(void **state)
{
	const char *dir = *state;
	const struct nt_spool_header first = {.log = 9, .base = 0}, second = {.log = 9, .base = 5};
	const struct nt_spool_seal seal = {.end = 100};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint8_t bytes[NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES];
	struct nt_bus_record record;
	char path[PATH_BYTES];

	nt_spool_header_write(&first, bytes);
	nt_spool_seal_write(&seal, first.log, bytes + NT_SPOOL_HEADER_BYTES);
	segment_path(dir, 0, path);
	assert_int_equal(nt_file_make_parent(path, 0750), 0);
	assert_int_equal(nt_file_create(path, 0640, bytes, sizeof(bytes)), 0);
	nt_spool_header_write(&second, bytes);
	segment_path(dir, 5, path);
	assert_int_equal(nt_file_create(path, 0640, bytes, NT_SPOOL_HEADER_BYTES), 0);
	publish_many(dir, NULL, 1, 2, 8);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 1);
	assert_int_equal(record.offset, 100);
}

/* Found by fuzz_spool: such a segment led the reader back to the one before, for ever. */
static void a_segment_that_is_damaged_throughout_behind_another_is_passed_over_once(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	static const uint8_t zeros[500];
	nt_autobuf struct nt_buf buf = {0};
	char spool[PATH_BYTES], path[PATH_BYTES];

	make_segment(dir, &buf);
	make_spool(dir, 0, buf.data, NT_SPOOL_HEADER_BYTES + DAMAGE_FRAME, spool);
	segment_path(spool, 5, path);
	assert_int_equal(nt_file_create(path, 0640, zeros, sizeof(zeros)), 0);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 0);
	assert_nothing_more(reader);
	publish_many(spool, NULL, 100, 101, 8);
	assert_int_equal(read_number(reader), 100);
	assert_nothing_more(reader);
}

static void a_file_cut_short_under_a_reader_ends_early_and_goes_on(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	char path[PATH_BYTES];

	publish_many(dir, NULL, 0, 1000, 512);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(read_number(reader), 0);
	segment_path(dir, 0, path);
	assert_int_equal(truncate(path, NT_SPOOL_HEADER_BYTES + 20), 0);
	/* What was read ahead may still come; then the end, and no crash. */
	for (uint64_t i = 1;; i++) {
		struct nt_bus_record record;
		int r = nt_bus_reader_next(reader, 0, &record);

		assert_true(r >= 0);
		if (r == 0)
			break;
		assert_int_equal(number_of(&record), i);
	}
}

static void what_is_no_partition_is_not_listed(void **state)
{
	static const char *const names[] = {"64", "99", "00", "07", "1x", "x", "-1", "1000", ".7"};
	const char *dir = *state;
	nt_autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t mask = 77;

	assert_int_equal(nt_spool_list_partitions(fd, &mask), 0);
	assert_int_equal(mask, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(mkdirat(fd, names[i], 0700), 0);
	assert_int_equal(nt_spool_list_partitions(fd, &mask), 0);
	assert_int_equal(mask, 0);
	assert_int_equal(mkdirat(fd, "0", 0700), 0);
	assert_int_equal(mkdirat(fd, "9", 0700), 0);
	assert_int_equal(mkdirat(fd, "63", 0700), 0);
	assert_int_equal(nt_spool_list_partitions(fd, &mask), 0);
	assert_true(mask == (1ULL | 1ULL << 9 | 1ULL << 63));
}

static void what_is_no_segment_in_the_directory_is_left_alone(void **state)
{
	const char *dir = *state;
	nt_autosegments struct nt_spool_segments segments = {0};
	static const char *const names[] = {"00000000000000000009.seg", "x.seg", "9.seg",
					    "99999999999999999999.seg", "18446744073709551615.seg"};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_autoclose int fd = -1;

	publish_many(dir, NULL, 0, 3, 8);
	fd = open_partition(dir, NT_TOPIC_WINDOW, 0);
	assert_int_equal(mkfifoat(fd, names[0], 0600), 0);
	for (int i = 1; i < 5; i++)
		assert_int_equal(mkdirat(fd, names[i], 0700), 0);
	assert_int_equal(symlinkat("/dev/zero", fd, "00000000000000000002.seg"), 0);
	assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	assert_int_equal(segments.count, 1);
	assert_int_equal(segments.base[0], 0);
	publish_many(dir, NULL, 3, 6, 8);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
}

/* ---- kill -9 and a full disk ----------------------------------------------------------------- */

/* Publishes numbers from `from` on until it is killed, and tells how far it got. */
static void write_until_killed(const char *dir, enum nt_topic topic, uint64_t from, int report)
{
	const struct nt_bus_options options = {.segment_bytes = 16 << 10, .max_bytes = 64 << 20};
	char url[PATH_BYTES];
	struct nt_bus *bus = NULL;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	if (nt_bus_open(url, &options, &bus) < 0)
		_exit(1);
	for (uint64_t i = from;; i++) {
		if (publish(bus, topic, i, 8 + i * 31 % 600) < 0)
			_exit(1);
		if (i % 5 == 0 && (nt_bus_flush(bus) < 0 || write(report, &i, sizeof(i)) < 0))
			_exit(1);
	}
}

/* Kills a writer after some reports. Returns the last number that it reported. */
static uint64_t run_and_kill(const char *dir, enum nt_topic topic, uint64_t from, int reports)
{
	struct timespec instant = {0, (long)(from * 7919 % 400) * 1000};
	uint64_t flushed = 0, got;
	int report[2], status;
	pid_t pid;

	assert_int_equal(pipe(report), 0);
	pid = fork();
	if (pid == 0)
		write_until_killed(dir, topic, from, report[1]);
	assert_true(pid > 0);
	(void)close(report[1]);
	for (int i = 0; i < reports; i++) {
		assert_int_equal(read(report[0], &got, sizeof(got)), sizeof(got));
		flushed = got;
	}
	(void)nanosleep(&instant, NULL); /* not waiting for anything: any instant will do */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(report[0], &got, sizeof(got)) == sizeof(got))
		flushed = got;
	(void)close(report[0]);
	return flushed;
}

static void kill_9_at_any_instant_loses_nothing_that_was_flushed(void **state)
{
	uint64_t next = 1;

	for (int round = 0; round < 40; round++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		uint64_t flushed = run_and_kill(*state, NT_TOPIC_WINDOW, next, 1 + round % 7);
		struct nt_bus_record record;
		uint64_t last = 0;
		int r;

		reader = open_reader(*state, NT_TOPIC_WINDOW);
		while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
			assert_int_equal(number_of(&record), last + 1);
			last++;
			assert_int_equal(record.value_len, 8 + last * 31 % 600);
		}
		assert_int_equal(r, 0);
		assert_true(last >= flushed);
		assert_int_equal(corrupt_frames(reader), 0);
		next = last + 1;
	}
}

static void kill_9_in_a_compaction_loses_no_key(void **state)
{
	uint64_t next = 1;

	for (int round = 0; round < 40; round++) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		uint64_t flushed = run_and_kill(*state, NT_TOPIC_CONTROL, next, 20 + round % 7);
		uint64_t last = 0, next_offset = 0, newest[10] = {0};
		struct nt_bus_record record;
		int r;

		reader = open_reader(*state, NT_TOPIC_CONTROL);
		while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
			assert_true(record.offset >= next_offset);
			next_offset = record.offset + 1;
			last = number_of(&record);
			assert_true(newest[last % 10] < last);
			newest[last % 10] = last;
		}
		assert_int_equal(r, 0);
		assert_true(last >= flushed);
		assert_int_equal(corrupt_frames(reader), 0);
		for (uint64_t i = last > 9 ? last - 9 : 1; i <= last; i++)
			assert_int_equal(newest[i % 10], i);
		next = last + 1;
	}
	assert_true(measure(*state, NT_TOPIC_CONTROL, 0).bytes < 128 << 10);
}

/* Publishes until the disk is full, makes room, goes on. Runs in a process of its own. */
static int fill_the_disk(const char *dir, int (*make_room)(const char *dir))
{
	const struct nt_bus_options options = {.segment_bytes = 32 << 10, .max_bytes = 64 << 20};
	struct nt_bus *bus = open_bus(dir, &options);
	struct nt_bus_reader *reader = open_reader(dir, NT_TOPIC_WINDOW);
	uint64_t number = 0, kept = 0, last = 0;
	struct nt_bus_record record;
	struct nt_bus_stats stats;
	int r = 0, failures = 0;

	while (failures < 20 && number < 100000) {
		number++;
		r = publish(bus, NT_TOPIC_WINDOW, number, 8 + number * 31 % 600);
		if (r == 0 && number % 10 == 0)
			r = nt_bus_flush(bus);
		if (r < 0 && r != -ENOSPC)
			return 2;
		failures += r < 0;
	}
	nt_bus_stats(bus, &stats);
	if (failures < 20 || !stats.dropped_full)
		return 3;
	if (make_room(dir) < 0)
		return 4;
	for (int i = 0; i < 100; i++)
		if (publish(bus, NT_TOPIC_WINDOW, ++number, 100) < 0)
			return 5;
	if (nt_bus_flush(bus) < 0)
		return 6;
	nt_bus_stats(bus, &stats);
	if (stats.published + stats.dropped_full != number)
		return 7;
	while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
		if (number_of(&record) <= last)
			return 8;
		last = number_of(&record);
		kept++;
	}
	if (r < 0 || last != number || kept != stats.published || corrupt_frames(reader))
		return 9;
	nt_bus_reader_close(reader);
	nt_bus_close(bus);
	return 0;
}

static int remove_filler(const char *dir)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/filler", dir);
	return unlink(path);
}

static int raise_limit(const char *dir)
{
	struct rlimit limit;

	(void)dir;
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return -1;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &limit);
}

static void assert_child_is_content(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_full_disk_costs_what_did_not_fit_and_no_more(void **state)
{
	const char *dir = *state;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("skip: root: needs a small file system of its own\n");
		skip();
	}
	pid = fork();
	if (pid == 0) {
		static char filler[64 << 10];
		char path[PATH_BYTES];

		(void)snprintf(path, sizeof(path), "%s/filler", dir);
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", dir, "tmpfs", 0, "size=256k") < 0 ||
		    nt_file_create(path, 0600, filler, sizeof(filler)) < 0)
			_exit(1);
		_exit(fill_the_disk(dir, remove_filler));
	}
	assert_child_is_content(pid);
}

/* No file may grow over 20 KiB, which is less than a segment. */
static void a_file_size_limit_is_a_full_disk(void **state)
{
	const char *dir = *state;
	pid_t pid = fork();

	if (pid == 0) {
		struct sigaction ignore = {.sa_handler = SIG_IGN};
		struct rlimit limit;

		if (sigaction(SIGXFSZ, &ignore, NULL) < 0 || getrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(1);
		limit.rlim_cur = 20 << 10;
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(1);
		_exit(fill_the_disk(dir, raise_limit));
	}
	assert_child_is_content(pid);
}

/* ---- what goes away -------------------------------------------------------------------------- */

static const struct nt_bus_options small = {.max_bytes = 64 << 10, .segment_bytes = 8 << 10};

static void the_size_cap_holds_and_what_it_costs_is_counted(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &small);
	struct nt_bus_record record;
	struct nt_bus_stats stats;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 100), 0);
		if (i % 100 == 0) {
			assert_int_equal(nt_bus_flush(bus), 0);
			assert_true(measure(*state, NT_TOPIC_WINDOW, 0).bytes <= 64 << 10);
		}
	}
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	while (nt_bus_reader_next(reader, 0, &record) == 1)
		kept++;
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.published, 5000);
	assert_int_equal(stats.evicted_records + kept, 5000);
	assert_true(kept * 134 > 40 << 10);
	/* From the oldest on nothing was missed: nobody had asked for more. */
	assert_int_equal(nt_bus_reader_missed(reader), 0);
}

static void a_reader_whose_place_was_evicted_goes_on_at_the_oldest_and_counts(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &small);
	nt_auto(nt_bus_reader) struct nt_bus_reader *slow = open_reader(*state, NT_TOPIC_WINDOW);
	nt_auto(nt_bus_reader) struct nt_bus_reader *late = open_reader(*state, NT_TOPIC_WINDOW);
	struct nt_bus_position position = {NT_TOPIC_WINDOW, 0, 10};
	struct nt_bus_record record;
	uint64_t last, read = 1;

	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 0, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(read_number(slow), 0);
	for (uint64_t i = 1; i < 5000; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);

	last = 0;
	while (nt_bus_reader_next(slow, 0, &record) == 1) {
		assert_true(number_of(&record) > last);
		last = number_of(&record);
		read++;
	}
	assert_int_equal(last, 4999);
	assert_true(nt_bus_reader_missed(slow) > 0);
	assert_int_equal(nt_bus_reader_missed(slow) + read, 5000);
	assert_int_equal(corrupt_frames(slow), 0);

	assert_int_equal(nt_bus_reader_seek(late, &position), 0);
	assert_int_equal(nt_bus_reader_next(late, 0, &record), 1);
	assert_int_equal(nt_bus_reader_missed(late), number_of(&record) - 10);
}

static void the_bytes_of_writers_that_are_gone_count_and_go(void **state)
{
	struct nt_bus *gone[3];
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	uint64_t bytes = 0;

	for (int i = 0; i < 3; i++) {
		gone[i] = open_bus(*state, &small);
		for (uint64_t j = 0; j < 50; j++)
			assert_int_equal(publish(gone[i], NT_TOPIC_WINDOW, j, 100), 0);
	}
	/* The last to come writes on, in partition 3, when the others have gone. */
	bus = open_bus(*state, &small);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 0, 100), 0);
	for (int i = 0; i < 3; i++)
		nt_bus_close(gone[i]);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	for (uint32_t i = 0; i < 4; i++)
		bytes += measure(*state, NT_TOPIC_WINDOW, i).bytes;
	assert_true(bytes <= 64 << 10);
	assert_true(measure(*state, NT_TOPIC_WINDOW, 0).bytes <=
		    NT_SPOOL_HEADER_BYTES + NT_SPOOL_SEAL_BYTES);
	/* Offsets go on where they were, though not a record is left. */
	{
		nt_auto(nt_bus) struct nt_bus *again = open_bus(*state, &small);
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
			open_reader(*state, NT_TOPIC_WINDOW);
		struct nt_bus_position position = {NT_TOPIC_WINDOW, 0, 50};

		assert_int_equal(nt_bus_reader_seek_end(reader), 0);
		assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
		assert_int_equal(publish(again, NT_TOPIC_WINDOW, 7777, 8), 0);
		assert_int_equal(nt_bus_flush(again), 0);
		assert_int_equal(read_number(reader), 7777);
		assert_int_equal(nt_bus_reader_missed(reader), 0);
	}
}

static void without_a_segment_size_the_size_cap_holds_too(void **state)
{
	const struct nt_bus_options options = {.max_bytes = 64 << 10};
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &options);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_true(measure(*state, NT_TOPIC_WINDOW, 0).bytes <= 64 << 10);
	assert_true(measure(*state, NT_TOPIC_WINDOW, 0).bytes > 32 << 10);
	/* A quarter goes at once, and what is left is the newest. */
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	assert_in_range(read_number(reader), 5000 - (64 << 10) / 134, 5000 - (32 << 10) / 134);
}

static void records_of_a_segment_without_a_seal_are_counted_when_it_goes(void **state)
{
	const char *dir = *state;
	nt_autobuf struct nt_buf buf = {0};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_stats stats;
	char path[PATH_BYTES], spool[PATH_BYTES];
	uint64_t kept = 0;
	struct nt_bus_record record;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	/* A damaged frame in the middle makes the next writer begin a segment of its own. */
	(void)snprintf(spool, sizeof(spool), "%s/whole", dir);
	publish_many(spool, &small, 0, 50, 100);
	read_segment(spool, &buf);
	buf.data[buf.len / 2] ^= 1;
	segment_path(spool, 0, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_file_create(path, 0640, buf.data, buf.len), 0);
	bus = open_bus(spool, &small);
	for (uint64_t i = 50; i < 5000; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_true(measure(spool, NT_TOPIC_WINDOW, 0).bytes <= 64 << 10);
	reader = open_reader(spool, NT_TOPIC_WINDOW);
	while (nt_bus_reader_next(reader, 0, &record) == 1)
		kept++;
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.evicted_records + kept, 5000);
	assert_true(stats.evicted_records > 50);
	assert_int_equal(corrupt_frames(reader), 0);
}

/* The time at which a segment was made stands in its header. */
static void set_made(const char *dir, uint64_t made_real_ns)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_spool_header header;
	char path[PATH_BYTES];

	read_segment(dir, &buf);
	assert_int_equal(nt_spool_header_read(buf.data, buf.len, &header), 0);
	header.made_real_ns = made_real_ns;
	nt_spool_header_write(&header, buf.data);
	segment_path(dir, 0, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nt_file_create(path, 0640, buf.data, buf.len), 0);
}

static void a_segment_is_closed_when_it_is_an_eighth_of_the_age_cap_old(void **state)
{
	const struct nt_bus_options options = {.max_age_ns = 8 * NT_HOUR};
	char young[PATH_BYTES], old[PATH_BYTES];
	uint64_t now_ns = nt_clock_real_ns();

	(void)snprintf(young, sizeof(young), "%s/young", (const char *)*state);
	publish_many(young, &options, now_ns, now_ns + 1, 8);
	set_made(young, now_ns - 50 * NT_MINUTE);
	publish_many(young, &options, now_ns, now_ns + 1, 8);
	assert_int_equal(measure(young, NT_TOPIC_WINDOW, 0).segments, 1);
	publish_many(young, NULL, now_ns, now_ns + 1, 8);
	assert_int_equal(measure(young, NT_TOPIC_WINDOW, 0).segments, 1);

	(void)snprintf(old, sizeof(old), "%s/old", (const char *)*state);
	publish_many(old, &options, now_ns, now_ns + 1, 8);
	set_made(old, now_ns - 70 * NT_MINUTE);
	publish_many(old, NULL, now_ns, now_ns + 1, 8);
	assert_int_equal(measure(old, NT_TOPIC_WINDOW, 0).segments, 1);
	publish_many(old, &options, now_ns, now_ns + 1, 8);
	assert_int_equal(measure(old, NT_TOPIC_WINDOW, 0).segments, 2);
}

static void what_a_writer_that_is_gone_left_goes_when_it_is_old(void **state)
{
	const struct nt_bus_options options = {.max_age_ns = NT_HOUR};
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct nt_bus *a = open_bus(*state, &options), *b = open_bus(*state, &options);
	char name[NT_SPOOL_NAME_BYTES];
	nt_autoclose int fd = -1;
	struct nt_bus_stats stats;

	assert_int_equal(publish(a, NT_TOPIC_WINDOW, nt_clock_real_ns(), 100), 0);
	assert_int_equal(publish(b, NT_TOPIC_WINDOW, 1000, 100), 0);
	nt_bus_close(a);
	nt_bus_close(b);

	/* Partition 1 is nobody's now, but not old. */
	a = open_bus(*state, &options);
	assert_int_equal(publish(a, NT_TOPIC_WINDOW, nt_clock_real_ns(), 100), 0);
	nt_bus_close(a);
	assert_true(measure(*state, NT_TOPIC_WINDOW, 1).bytes > 100);

	fd = open_partition(*state, NT_TOPIC_WINDOW, 1);
	nt_spool_segment_name(0, name);
	assert_int_equal(utimensat(fd, name, times, 0), 0);
	a = open_bus(*state, &options);
	assert_int_equal(publish(a, NT_TOPIC_WINDOW, nt_clock_real_ns(), 100), 0);
	nt_bus_stats(a, &stats);
	assert_int_equal(stats.evicted_records, 1);
	nt_bus_close(a);
	assert_int_equal(measure(*state, NT_TOPIC_WINDOW, 1).bytes, NT_SPOOL_HEADER_BYTES);
	assert_true(measure(*state, NT_TOPIC_WINDOW, 0).bytes > 300);
}

static void what_is_older_than_the_age_cap_goes(void **state)
{
	const struct nt_bus_options options = {
		.max_age_ns = NT_HOUR,
		.segment_bytes = 4 << 10,
		.max_bytes = 1 << 20,
	};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &options);
	uint64_t now_ns = nt_clock_real_ns();
	struct nt_bus_record record;
	struct nt_bus_stats stats;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, now_ns - 2 * NT_HOUR + i, 100), 0);
	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, now_ns + i, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	while (nt_bus_reader_next(reader, 0, &record) == 1)
		kept++;
	assert_in_range(kept, 500, 500 + (4 << 10) / 134);
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.evicted_records + kept, 1000);
}

static void seeking_a_time_passes_over_closed_segments(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	const struct nt_bus_options options = {.segment_bytes = 4 << 10};
	uint64_t seed = 9;

	/* Times are not quite in order. */
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &options);

		for (uint64_t i = 0; i < 2000; i++)
			assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1000 + (i ^ 3), 100), 0);
	}
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	for (int i = 0; i < 200; i++) {
		uint64_t time, first = 0;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		time = 1000 + (seed >> 33) % 2000;
		while (1000 + (first ^ 3) < time)
			first++;
		assert_int_equal(nt_bus_reader_seek_time(reader, time), 0);
		assert_int_equal(read_number(reader), 1000 + (first ^ 3));
	}
	/* Behind the first one, all come, also those of an earlier time. */
	assert_int_equal(nt_bus_reader_seek_time(reader, 2003), 0);
	for (uint64_t i = 1000; i < 2000; i++)
		assert_int_equal(read_number(reader), 1000 + (i ^ 3));
	assert_int_equal(nt_bus_reader_missed(reader), 0);
}

/* Flips a bit of the segment at `base`, `back` bytes before its end. */
static void damage_segment(const char *dir, uint64_t base, size_t back)
{
	char path[PATH_BYTES];
	nt_autoclose int fd = -1;
	struct stat st;
	uint8_t byte;

	segment_path(dir, base, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &byte, 1, st.st_size - (off_t)back), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, st.st_size - (off_t)back), 1);
}

static void a_segment_that_is_too_old_is_not_even_read(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_many(*state, &small, 0, 200, 100);
	damage_segment(*state, 0, 500);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek_time(reader, 150), 0);
	assert_int_equal(read_number(reader), 150);
	assert_int_equal(corrupt_frames(reader), 0);
	assert_int_equal(nt_bus_reader_seek_time(reader, 10), 0);
	while (read_number(reader) < 199)
		;
	assert_int_equal(corrupt_frames(reader), 1);
}

static void a_damaged_last_frame_does_not_hide_the_seal_behind_it(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint64_t seen = 0;

	publish_many(*state, &small, 0, 200, 100);
	damage_segment(*state, 0, NT_SPOOL_SEAL_BYTES + 10);
	reader = open_reader(*state, NT_TOPIC_WINDOW);
	while (read_number(reader) < 199)
		seen++;
	assert_int_equal(seen, 198);
	assert_nothing_more(reader);
	assert_int_equal(corrupt_frames(reader), 1);
}

/* ---- compaction ------------------------------------------------------------------------------ */

/* Records of topic control in order; asserts that offsets rise. Returns how many. */
static unsigned int fold(struct nt_bus_reader *reader, uint64_t newest[10])
{
	struct nt_bus_record record;
	uint64_t next_offset = 0;
	unsigned int n = 0;
	int r;

	while ((r = nt_bus_reader_next(reader, 0, &record)) == 1) {
		assert_true(record.offset >= next_offset);
		next_offset = record.offset + 1;
		newest[((const char *)record.key)[1] - '0'] =
			record.value_len ? number_of(&record) : 0;
		n++;
	}
	assert_int_equal(r, 0);
	return n;
}

static void compaction_leaves_little_more_than_one_record_a_key(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &small);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint64_t newest[10] = {0};
	struct nt_bus_stats stats;

	for (uint64_t i = 1; i <= 20000; i++)
		assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(*state, NT_TOPIC_CONTROL);
	assert_true(fold(reader, newest) < 2 * (8 << 10) / 134 + 20);
	for (uint64_t i = 19991; i <= 20000; i++)
		assert_int_equal(newest[i % 10], i);
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
	assert_true(measure(*state, NT_TOPIC_CONTROL, 0).segments <= 3);
	assert_int_equal(measure(*state, NT_TOPIC_CONTROL, 0).drafts, 0);
}

static void more_keys_than_fit_a_segment_are_all_kept(void **state)
{
	const struct nt_bus_options options = {.segment_bytes = 4 << 10, .max_bytes = 4 << 20};
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &options);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	static uint64_t newest[1000];
	struct nt_bus_record record;

	for (uint64_t i = 0; i < 20000; i++) {
		uint32_t key = (uint32_t)(i * i % 997);

		record = (struct nt_bus_record){
			.topic = NT_TOPIC_STATE,
			.key = &key,
			.key_len = sizeof(key),
			.value = &i,
			.value_len = sizeof(i),
		};
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	}
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(*state, NT_TOPIC_STATE);
	memset(newest, 0, sizeof(newest));
	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		uint32_t key;

		memcpy(&key, record.key, sizeof(key));
		newest[key] = number_of(&record);
	}
	for (uint64_t i = 19999; i > 19999 - 900; i--)
		assert_true(newest[i * i % 997] >= i);
	assert_int_equal(measure(*state, NT_TOPIC_STATE, 0).drafts, 0);
	/* 499 keys (squares modulo a prime) of 44 bytes, and what has not been compacted yet. */
	assert_true(measure(*state, NT_TOPIC_STATE, 0).bytes < 4 * 499 * 44);
}

static void much_that_stays_is_compacted_too(void **state)
{
	const struct nt_bus_options options = {.segment_bytes = 1 << 20, .max_bytes = 16 << 20};
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &options);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	static uint64_t newest[200];
	char value[4000];
	struct nt_bus_record record;

	for (uint64_t i = 0; i < 3000; i++) {
		uint8_t key = (uint8_t)(i % 200);

		memset(value, (int)i, sizeof(value));
		memcpy(value, &i, sizeof(i));
		record = (struct nt_bus_record){
			.topic = NT_TOPIC_STATE,
			.key = &key,
			.key_len = 1,
			.value = value,
			.value_len = sizeof(value),
		};
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	}
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(*state, NT_TOPIC_STATE);
	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		uint64_t number = number_of(&record);

		newest[*(const uint8_t *)record.key] = number;
		assert_int_equal(record.value_len, sizeof(value));
		for (size_t i = sizeof(number); i < sizeof(value); i++)
			assert_int_equal(((const uint8_t *)record.value)[i], (uint8_t)number);
	}
	for (uint64_t i = 2800; i < 3000; i++)
		assert_int_equal(newest[i % 200], i);
	assert_int_equal(corrupt_frames(reader), 0);
	assert_int_equal(measure(*state, NT_TOPIC_STATE, 0).drafts, 0);
	assert_true(measure(*state, NT_TOPIC_STATE, 0).bytes < 4 << 20);
}

static void delete_key(struct nt_bus *bus, const char *key, uint64_t real_ns)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_CONTROL,
		.key = key,
		.key_len = strlen(key),
		.real_ns = real_ns,
	};

	assert_int_equal(nt_bus_publish(bus, &record), 0);
}

static void a_deletion_goes_too_but_not_before_an_hour(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(*state, &small);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	bool has_old = false, has_young = false;
	struct nt_bus_record record;

	assert_int_equal(publish(bus, NT_TOPIC_CONTROL, 1, 100), 0);
	assert_int_equal(publish(bus, NT_TOPIC_CONTROL, 2, 100), 0);
	delete_key(bus, "k1", nt_clock_real_ns() - 2 * NT_HOUR);
	delete_key(bus, "k2", nt_clock_real_ns() - NT_MINUTE);
	for (uint64_t i = 1; i <= 500; i++)
		assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i * 10, 100), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(*state, NT_TOPIC_CONTROL);
	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		has_old |= memcmp(record.key, "k1", 2) == 0;
		has_young |= memcmp(record.key, "k2", 2) == 0;
		if (memcmp(record.key, "k2", 2) == 0)
			assert_int_equal(record.value_len, 0);
	}
	assert_false(has_old);
	assert_true(has_young);
}

static void readers_survive_compaction_wherever_they_are(void **state)
{
	for (unsigned int stop = 0; stop < 300; stop += 7) {
		char spool[PATH_BYTES];
		nt_auto(nt_bus) struct nt_bus *bus = NULL;
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		uint64_t newest[10] = {0};
		struct nt_bus_record record;

		(void)snprintf(spool, sizeof(spool), "%.200s/%u", (const char *)*state, stop);
		bus = open_bus(spool, &small);
		reader = open_reader(spool, NT_TOPIC_CONTROL);
		for (uint64_t i = 1; i <= 300; i++) {
			assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
			if (i % 16 == 0)
				assert_int_equal(nt_bus_flush(bus), 0);
		}
		assert_int_equal(nt_bus_flush(bus), 0);
		for (unsigned int i = 0; i < stop; i++)
			if (nt_bus_reader_next(reader, 0, &record) == 1)
				newest[number_of(&record) % 10] = number_of(&record);
		for (uint64_t i = 301; i <= 1000; i++)
			assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
		assert_int_equal(nt_bus_flush(bus), 0);
		(void)fold(reader, newest);
		for (uint64_t i = 991; i <= 1000; i++)
			assert_int_equal(newest[i % 10], i);
		assert_int_equal(corrupt_frames(reader), 0);
		assert_int_equal(nt_bus_reader_missed(reader), 0);
	}
}

/*
 * Between putting the new file in place and removing the last old one, records are there twice.
 * The state is made by putting old segments back behind a compaction.
 */
static void a_compaction_that_stopped_half_way_shows_every_record_once(void **state)
{
	const char *dir = *state;
	const struct nt_bus_options options = {.segment_bytes = 4 << 10};
	nt_autosegments struct nt_spool_segments before = {0}, after = {0};
	struct nt_buf content[16] = {{0}};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint64_t newest[10] = {0};
	nt_autoclose int fd = -1;
	char path[PATH_BYTES], name[NT_SPOOL_NAME_BYTES];

	/* Not so many that a compaction has joined segments yet: the first roll makes one. */
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, &options);

		for (uint64_t i = 1; i <= 55; i++)
			assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
	}
	fd = open_partition(dir, NT_TOPIC_CONTROL, 0);
	assert_int_equal(nt_spool_list_segments(fd, &before), 0);
	assert_int_equal(before.count, 2);
	for (size_t i = 0; i < before.count; i++) {
		nt_spool_segment_name(before.base[i], name);
		(void)snprintf(path, sizeof(path), "%s/%s/0/%s", dir,
			       nt_topic_name(NT_TOPIC_CONTROL), name);
		assert_int_equal(nt_file_read(path, NT_BUF_MAX, &content[i]), 0);
	}
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, &options);

		for (uint64_t i = 56; i <= 65; i++)
			assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
	}
	assert_int_equal(nt_spool_list_segments(fd, &after), 0);
	assert_int_equal(after.count, 2);
	assert_int_equal(after.base[0], before.base[0]);
	assert_true(after.base[1] > before.base[1]);
	assert_int_equal(nt_file_create(path, 0640, content[1].data, content[1].len), 0);
	/* And the draft of another, that was never finished. */
	nt_spool_draft_name(before.base[0], name);
	(void)snprintf(path, sizeof(path), "%s/%s/0/%s", dir, nt_topic_name(NT_TOPIC_CONTROL),
		       name);
	assert_int_equal(nt_file_create(path, 0640, content[0].data, content[0].len / 2), 0);

	reader = open_reader(dir, NT_TOPIC_CONTROL);
	(void)fold(reader, newest);
	for (uint64_t i = 56; i <= 65; i++)
		assert_int_equal(newest[i % 10], i);
	assert_int_equal(corrupt_frames(reader), 0);
	assert_int_equal(measure(dir, NT_TOPIC_CONTROL, 0).drafts, 1);

	/* The next writer cleans up. */
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, &options);

		for (uint64_t i = 66; i <= 1000; i++)
			assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, 100), 0);
	}
	(void)fold(reader, newest);
	for (uint64_t i = 991; i <= 1000; i++)
		assert_int_equal(newest[i % 10], i);
	assert_int_equal(measure(dir, NT_TOPIC_CONTROL, 0).drafts, 0);
	assert_true(measure(dir, NT_TOPIC_CONTROL, 0).segments <= 3);
	for (size_t i = 0; i < before.count; i++)
		nt_buf_release(&content[i]);
}

static void
the_end_of_a_partition_stays_the_end_when_its_last_records_are_compacted_away(void **state)
{
	const char *dir = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position = {NT_TOPIC_CONTROL, 0, 0};
	char name[NT_SPOOL_NAME_BYTES];
	struct nt_bus_record record;
	nt_autoclose int fd = -1;

	/* Old deletions at the end of a segment, which is then closed and compacted. */
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, &small);

		assert_int_equal(publish(bus, NT_TOPIC_CONTROL, 1, 100), 0);
		for (uint64_t i = 0; i < 200; i++)
			delete_key(bus, "k2", i);
		/* Too large for the rest of the segment. */
		assert_int_equal(publish(bus, NT_TOPIC_CONTROL, 3, 4000), 0);
	}
	reader = open_reader(dir, NT_TOPIC_CONTROL);
	while (nt_bus_reader_next(reader, 0, &record) == 1)
		position.offset = record.offset;
	assert_int_equal(position.offset, 201);
	/* The segment behind, as if the writer had been killed before it was made. */
	fd = open_partition(dir, NT_TOPIC_CONTROL, 0);
	nt_spool_segment_name(position.offset, name);
	assert_int_equal(unlinkat(fd, name, 0), 0);
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	assert_nothing_more(reader);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
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

#define SPOOL_TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_is_that_of_the_books),
		cmocka_unit_test(the_bytes_of_a_segment_are_pinned),
		SPOOL_TEST(files_have_their_modes_whatever_the_umask),
		SPOOL_TEST(no_symbolic_link_is_followed_below_the_directory),
		SPOOL_TEST(a_directory_that_cannot_be_is_said_so),
		SPOOL_TEST(a_writer_takes_the_lowest_partition_that_is_free),
		SPOOL_TEST(one_writer_too_many_is_refused_and_counted),
		SPOOL_TEST(partitions_and_topics_that_appear_later_are_read),
		SPOOL_TEST(a_reader_at_the_tail_of_a_busy_writer_misses_nothing),
		SPOOL_TEST(a_time_sought_is_that_of_later_partitions_too),
		SPOOL_TEST(the_end_of_an_empty_partition_is_its_beginning),
		SPOOL_TEST(what_waits_in_several_partitions_is_read_by_time),
		SPOOL_TEST(a_spool_that_is_removed_and_made_anew_is_read_from_its_start),
		SPOOL_TEST(segments_that_are_replaced_by_another_log_are_read_from_their_start),
		SPOOL_TEST(after_a_new_boot_no_offset_is_given_twice),
		SPOOL_TEST(a_torn_tail_is_cut_at_the_last_whole_frame_wherever_it_is_torn),
		SPOOL_TEST(a_file_that_ends_in_its_header_is_begun_anew),
		SPOOL_TEST(a_flipped_bit_costs_one_frame_and_is_counted),
		SPOOL_TEST(a_flipped_bit_in_the_header_costs_no_frame),
		SPOOL_TEST(a_flipped_bit_in_the_last_frame_is_cut_off_by_the_next_writer),
		SPOOL_TEST(bytes_that_look_like_a_frame_inside_a_damaged_one_are_not_taken_for_one),
		SPOOL_TEST(a_large_damaged_frame_is_searched_to_its_end),
		SPOOL_TEST(no_offset_that_a_seal_knows_is_given_again),
		SPOOL_TEST(a_segment_of_noise_is_passed_over_and_counted),
		SPOOL_TEST(a_segment_that_is_damaged_throughout_behind_another_is_passed_over_once),
		SPOOL_TEST(a_file_cut_short_under_a_reader_ends_early_and_goes_on),
		SPOOL_TEST(what_is_no_partition_is_not_listed),
		SPOOL_TEST(what_is_no_segment_in_the_directory_is_left_alone),
		SPOOL_TEST(kill_9_at_any_instant_loses_nothing_that_was_flushed),
		SPOOL_TEST(kill_9_in_a_compaction_loses_no_key),
		SPOOL_TEST(a_full_disk_costs_what_did_not_fit_and_no_more),
		SPOOL_TEST(a_file_size_limit_is_a_full_disk),
		SPOOL_TEST(the_size_cap_holds_and_what_it_costs_is_counted),
		SPOOL_TEST(a_reader_whose_place_was_evicted_goes_on_at_the_oldest_and_counts),
		SPOOL_TEST(the_bytes_of_writers_that_are_gone_count_and_go),
		SPOOL_TEST(without_a_segment_size_the_size_cap_holds_too),
		SPOOL_TEST(records_of_a_segment_without_a_seal_are_counted_when_it_goes),
		SPOOL_TEST(a_segment_is_closed_when_it_is_an_eighth_of_the_age_cap_old),
		SPOOL_TEST(what_a_writer_that_is_gone_left_goes_when_it_is_old),
		SPOOL_TEST(what_is_older_than_the_age_cap_goes),
		SPOOL_TEST(seeking_a_time_passes_over_closed_segments),
		SPOOL_TEST(a_segment_that_is_too_old_is_not_even_read),
		SPOOL_TEST(a_damaged_last_frame_does_not_hide_the_seal_behind_it),
		SPOOL_TEST(compaction_leaves_little_more_than_one_record_a_key),
		SPOOL_TEST(more_keys_than_fit_a_segment_are_all_kept),
		SPOOL_TEST(much_that_stays_is_compacted_too),
		SPOOL_TEST(a_deletion_goes_too_but_not_before_an_hour),
		SPOOL_TEST(readers_survive_compaction_wherever_they_are),
		SPOOL_TEST(a_compaction_that_stopped_half_way_shows_every_record_once),
		SPOOL_TEST(
			the_end_of_a_partition_stays_the_end_when_its_last_records_are_compacted_away),
		SPOOL_TEST(offsets_near_their_end_are_not_gone_on_with),
		SPOOL_TEST(nothing_stays_open),
		SPOOL_TEST(many_small_flushes_are_many_writes_and_one_flush_is_one),
		SPOOL_TEST(a_bus_that_syncs_works_as_one_that_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
