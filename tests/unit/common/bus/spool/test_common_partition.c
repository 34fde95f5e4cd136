/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several writers and readers of one spool, and spools that are replaced. */
#include "tests/unit/common/spool.h"

#include <errno.h>
#include <sys/wait.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
