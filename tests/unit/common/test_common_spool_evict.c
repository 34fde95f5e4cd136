/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What goes when a cap is reached, and what is passed over when a time is sought. */
#include "common/system/clock.h"
#include "tests/unit/common/spool.h"

#include <time.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
