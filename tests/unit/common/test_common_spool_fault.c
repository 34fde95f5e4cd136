/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A spool on a disk that fails, written and read. What failed is reported or did no harm; nothing is
 * lost that was not counted, and it works again after.
 */
#include "tests/unit/common/spool_disk.h"

static void a_writer_counts_what_a_failing_disk_cost_and_says_so(void **state)
{
	SWEEP(n, *state)
	{
		struct nt_bus *bus = NULL;
		struct nt_bus_stats stats;
		char url[PATH_BYTES + sizeof("spool:")];
		unsigned int told = 0, refused = 0;
		int r;

		(void)snprintf(url, sizeof(url), "spool:%s", where);
		fail_nth(n);
		r = nt_bus_open(url, &synced, &bus);
		if (r < 0) {
			assert_int_equal(r, -EIO);
			assert_null(bus);
			told++;
			assert_int_equal(nt_bus_open(url, &synced, &bus), 0);
		}
		for (uint64_t i = 0; i < RECORDS; i++) {
			r = publish(bus, NT_TOPIC_WINDOW, i, RECORD_BYTES);
			assert_true(r == 0 || r == -EIO);
			refused += r < 0;
			if (i % 7 == 6) {
				r = nt_bus_flush(bus);
				assert_true(r == 0 || r == -EIO);
				told += r < 0;
			}
		}
		told += nt_bus_flush(bus) < 0;
		(void)has_failed();
		nt_bus_stats(bus, &stats);
		assert_int_equal(stats.published + stats.dropped_full, RECORDS);
		assert_true(!stats.dropped_full || told + refused);
		assert_true(stats.dropped_full >= refused);
		nt_bus_close(bus);
		assert_int_equal(read_all(where, NT_TOPIC_WINDOW).records, stats.published);
		/* One failure costs no more than what waited with it. */
		assert_true(stats.dropped_full <= 8);
		/* What makes or keeps a file never fails in silence; a seal alone may be missing. */
		if (failed == CALL_MKDIR || failed == CALL_RENAME || failed == CALL_FCHMOD ||
		    failed == CALL_LOCK)
			assert_true(told + refused);
	}
}

/* What no segment came of, in partition 0. */
static unsigned int drafts_left(enum nt_topic topic)
{
	int fd = open_partition(where, topic, 0);
	const struct dirent *entry;
	unsigned int drafts = 0;
	DIR *dir = fdopendir(fd);

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		drafts += strstr(entry->d_name, ".tmp") != NULL;
	(void)closedir(dir);
	return drafts;
}

static void what_was_promised_to_be_on_the_disk_is_or_the_flush_fails(void **state)
{
	unsigned int syncs = 0;

	SWEEP(n, *state)
	{
		nt_auto(nt_bus) struct nt_bus *bus = open_bus(where, &synced);
		int r;

		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, 1, RECORD_BYTES), 0);
		fail_nth(n);
		r = nt_bus_flush(bus);
		assert_int_equal(r, has_failed() && failed != CALL_END ? -EIO : 0);
		syncs += failed == CALL_SYNC;
		if (failed != CALL_UNLINK)
			assert_int_equal(drafts_left(NT_TOPIC_WINDOW), 0);
	}
	/* The directory's and the file's. */
	assert_int_equal(syncs, 2);
}

static void write_much(const char *dir)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(dir, &synced);

	for (uint64_t i = 1; i <= RECORDS; i++) {
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, RECORD_BYTES), 0);
		assert_int_equal(publish(bus, NT_TOPIC_CONTROL, i, RECORD_BYTES), 0);
	}
}

/* All that is left, however often it has to be asked. */
static unsigned int insist(struct nt_bus_reader *reader, struct count *count)
{
	struct nt_bus_record record;
	unsigned int told = 0;
	int r;

	while ((r = nt_bus_reader_next(reader, 0, &record)) != 0) {
		if (r == 1)
			note(count, &record);
		else
			assert_int_equal(r, -EIO);
		told += r < 0;
		assert_true(told < 3);
	}
	return told;
}

static void a_reader_says_that_it_could_not_read_and_then_reads_all(void **state)
{
	char spool[PATH_BYTES], url[PATH_BYTES + sizeof("spool:")];

	(void)snprintf(spool, sizeof(spool), "%.200s/spool", (const char *)*state);
	(void)snprintf(url, sizeof(url), "spool:%s", spool);
	write_much(spool);
	SWEEP(n, *state)
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		struct count count = {0};
		unsigned int told = 0;
		int r;

		fail_nth(n);
		r = nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader);
		if (r < 0) {
			assert_int_equal(r, -EIO);
			assert_null(reader);
			told++;
			assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader),
					 0);
		}
		told += insist(reader, &count);
		assert_int_equal(count.records, RECORDS);
		assert_int_equal(count.sum, RECORDS * (RECORDS + 1) / 2);
		assert_int_equal(nt_bus_reader_missed(reader), 0);
		assert_int_equal(corrupt_frames(reader), 0);
		/* Whether a segment has been replaced is asked once more, should it matter. */
		if (has_failed() && failed != CALL_FSTATAT)
			assert_int_equal(told, 1);
	}
}

/* A watch reports a change once. */
static void a_watching_reader_that_could_not_look_looks_again(void **state)
{
	SWEEP(n, *state)
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		nt_auto(nt_bus) struct nt_bus *first = open_bus(where, &synced), *second = NULL;
		struct count count = {0};
		unsigned int told;

		assert_int_equal(publish(first, NT_TOPIC_WINDOW, 1, RECORD_BYTES), 0);
		assert_int_equal(nt_bus_flush(first), 0);
		reader = open_reader(where, NT_TOPIC_WINDOW);
		assert_true(nt_bus_reader_fd(reader) >= 0);
		assert_int_equal(insist(reader, &count), 0);
		/* A partition more. */
		second = open_bus(where, &synced);
		assert_int_equal(publish(second, NT_TOPIC_WINDOW, 2, RECORD_BYTES), 0);
		assert_int_equal(nt_bus_flush(second), 0);
		fail_nth(n);
		told = insist(reader, &count);
		(void)has_failed();
		assert_int_equal(count.records, 2);
		if (failed == CALL_LIST || failed == CALL_READ_DIR || failed == CALL_OPEN)
			assert_int_equal(told, 1);
	}
}

static void a_reader_that_could_not_go_to_a_place_goes_there_the_next_time(void **state)
{
	char spool[PATH_BYTES];

	(void)snprintf(spool, sizeof(spool), "%.200s/spool", (const char *)*state);
	write_much(spool);
	SWEEP(n, *state)
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
			open_reader(spool, NT_TOPIC_WINDOW);
		struct count count = {0};
		unsigned int told = 0;

		fail_nth(n);
		for (int r = -1; r < 0; told += r < 0)
			r = nt_bus_reader_seek_time(reader, 40);
		told += insist(reader, &count);
		assert_int_equal(count.records, RECORDS - 39);
		assert_int_equal(nt_bus_reader_missed(reader), 0);
		for (int r = -1; r < 0; told += r < 0)
			r = nt_bus_reader_seek_end(reader);
		count = (struct count){0};
		told += insist(reader, &count);
		assert_int_equal(count.records, 0);
		assert_true(told < 3);
		if (has_failed() && (failed == CALL_LIST || failed == CALL_READ_DIR))
			assert_int_equal(told, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(a_writer_counts_what_a_failing_disk_cost_and_says_so),
		SPOOL_TEST(what_was_promised_to_be_on_the_disk_is_or_the_flush_fails),
		SPOOL_TEST(a_reader_says_that_it_could_not_read_and_then_reads_all),
		SPOOL_TEST(a_watching_reader_that_could_not_look_looks_again),
		SPOOL_TEST(a_reader_that_could_not_go_to_a_place_goes_there_the_next_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
