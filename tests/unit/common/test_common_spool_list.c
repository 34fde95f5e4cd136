/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of what a reader found damaged: in every partition, and as far as there is room. */
#include <errno.h>

#include "tests/unit/common/spool.h"

enum {
	PARTITIONS = 3,
	RECORDS = 60,
	RECORD_BYTES = 250,
	FRAME_BYTES = NT_SPOOL_FRAME_BYTES + 2 + RECORD_BYTES,
	TORN = 7,
	ALL = 3 * PARTITIONS,
	ROOM = ALL + 2,
};

static const struct nt_bus_options segments_of_4k = {.segment_bytes = 4 << 10};

static void path_of(const char *dir, uint32_t partition, uint64_t base, char path[PATH_BYTES])
{
	char name[NT_SPOOL_NAME_BYTES];

	nt_spool_segment_name(base, name);
	(void)snprintf(path, PATH_BYTES, "%.180s/%s/%u/%s", dir, nt_topic_name(NT_TOPIC_WINDOW),
		       partition, name);
}

/* One bit of the second frame. */
static void damage(const char *dir, uint32_t partition, uint64_t base)
{
	const off_t at = NT_SPOOL_HEADER_BYTES + FRAME_BYTES + 100;
	nt_autoclose int fd = -1;
	char path[PATH_BYTES];
	uint8_t byte;

	path_of(dir, partition, base, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void tear(const char *dir, uint32_t partition, uint64_t base)
{
	static const uint8_t torn[TORN] = {1, 2, 3, 4, 5, 6, 7};
	nt_autoclose int fd = -1;
	char path[PATH_BYTES];

	path_of(dir, partition, base, path);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, torn, sizeof(torn)), sizeof(torn));
}

/* Where the segments of a partition begin; they are not many. */
static size_t bases_of(const char *dir, uint32_t partition, uint64_t bases[32])
{
	nt_autosegments struct nt_spool_segments segments = {0};
	nt_autoclose int fd = open_partition(dir, NT_TOPIC_WINDOW, partition);

	assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	assert_in_range(segments.count, 4, 32);
	memcpy(bases, segments.base, segments.count * sizeof(*bases));
	return segments.count;
}

/* In each partition the first two segments are damaged, and the last is torn. */
static void make(const char *dir)
{
	struct nt_bus *bus[PARTITIONS];

	for (uint32_t i = 0; i < PARTITIONS; i++) {
		bus[i] = open_bus(dir, &segments_of_4k);
		for (uint64_t j = 0; j < RECORDS; j++)
			assert_int_equal(publish(bus[i], NT_TOPIC_WINDOW, j, RECORD_BYTES), 0);
	}
	/* They stay in their partitions until all have one. */
	for (uint32_t i = 0; i < PARTITIONS; i++)
		nt_bus_close(bus[i]);
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		uint64_t bases[32];
		const size_t n = bases_of(dir, i, bases);

		damage(dir, i, bases[0]);
		damage(dir, i, bases[1]);
		tear(dir, i, bases[n - 1]);
	}
}

static size_t read_all(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;
	size_t n = 0;

	while (nt_bus_reader_next(reader, 0, &record) == 1)
		n++;
	return n;
}

static void assert_row(const struct nt_bus_damage *row, const char *dir, uint32_t partition,
		       uint64_t base, uint64_t places, uint64_t tail_bytes)
{
	char path[PATH_BYTES];

	path_of(dir, partition, base, path);
	assert_string_equal(row->segment, path + strlen(dir) + 1);
	assert_int_equal(row->places, places);
	assert_int_equal(row->bytes, places * FRAME_BYTES);
	assert_int_equal(row->tail_bytes, tail_bytes);
}

/* Of each partition from `first` on: two damaged segments and a torn one. */
static void assert_listed(struct nt_bus_reader *reader, const char *dir, uint32_t first)
{
	const size_t all = 3 * (PARTITIONS - first);
	struct nt_bus_damage list[ROOM];

	for (size_t most = 0; most < ROOM; most++) {
		memset(list, 0x55, sizeof(list));
		assert_int_equal(nt_bus_reader_damage(reader, list, most), most < all ? most : all);
		for (size_t i = 0; i < most && i < all; i++) {
			const uint32_t partition = first + (uint32_t)i / 3;
			uint64_t bases[32];
			const size_t n = bases_of(dir, partition, bases);

			if (i % 3 < 2)
				assert_row(&list[i], dir, partition, bases[i % 3], 1, 0);
			else
				assert_row(&list[i], dir, partition, bases[n - 1], 0, TORN);
		}
		/* What there was no room for was not written. */
		for (size_t i = most; i < ROOM; i++)
			assert_int_equal(list[i].places, 0x5555555555555555);
	}
}

static void damage_is_listed_in_every_partition_as_far_as_there_is_room(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	const char *dir = *state;

	make(dir);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(read_all(reader), PARTITIONS * (RECORDS - 2));
	assert_int_equal(corrupt_frames(reader), PARTITIONS * 2);
	assert_listed(reader, dir, 0);
}

/* The lowest is not there: the others are read and listed all the same, and nothing leaks. */
static void partitions_behind_one_that_is_missing_are_listed(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	const char *dir = *state;
	char from[PATH_BYTES], to[PATH_BYTES];

	make(dir);
	(void)snprintf(from, sizeof(from), "%.200s/%s/0", dir, nt_topic_name(NT_TOPIC_WINDOW));
	(void)snprintf(to, sizeof(to), "%.200s/away", dir);
	assert_int_equal(rename(from, to), 0);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(read_all(reader), (PARTITIONS - 1) * (RECORDS - 2));
	assert_listed(reader, dir, 1);
}

/* Damage in front of a torn end: one row has both. */
static void a_torn_segment_that_is_damaged_too_is_one_row(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_damage list[ROOM];
	const char *dir = *state;

	publish_many(dir, NULL, 0, 8, RECORD_BYTES);
	damage(dir, 0, 0);
	tear(dir, 0, 0);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(read_all(reader), 7);
	for (size_t most = 0; most < 3; most++)
		assert_int_equal(nt_bus_reader_damage(reader, list, most), most > 0);
	assert_row(&list[0], dir, 0, 0, 1, TORN);
}

static void what_is_whole_is_not_listed(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_damage list[ROOM];
	const char *dir = *state;

	publish_many(dir, NULL, 0, 8, RECORD_BYTES);
	reader = open_reader(dir, NT_TOPIC_WINDOW);
	assert_int_equal(read_all(reader), 8);
	assert_int_equal(nt_bus_reader_damage(reader, list, ROOM), 0);
}

static void what_is_no_directory_has_no_partitions_and_no_segments(void **state)
{
	struct nt_spool_segments segments = {0};
	uint64_t mask = 42;

	assert_int_equal(nt_spool_list_partitions(-1, &mask), -EBADF);
	assert_int_equal(mask, 42);
	assert_int_equal(nt_spool_list_segments(-1, &segments), -EBADF);
	assert_int_equal(segments.count, 0);
	/* Released twice is released once. */
	publish_many(*state, NULL, 0, 8, RECORD_BYTES);
	{
		nt_autoclose int fd = open_partition(*state, NT_TOPIC_WINDOW, 0);

		assert_int_equal(nt_spool_list_segments(fd, &segments), 0);
	}
	assert_int_equal(segments.count, 1);
	nt_spool_segments_release(&segments);
	assert_int_equal(segments.count, 0);
	assert_null(segments.base);
	nt_spool_segments_release(&segments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(damage_is_listed_in_every_partition_as_far_as_there_is_room),
		SPOOL_TEST(partitions_behind_one_that_is_missing_are_listed),
		SPOOL_TEST(a_torn_segment_that_is_damaged_too_is_one_row),
		SPOOL_TEST(what_is_whole_is_not_listed),
		SPOOL_TEST(what_is_no_directory_has_no_partitions_and_no_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
