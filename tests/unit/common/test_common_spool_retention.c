/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where records go and in which order they leave: segments keep their size, the oldest goes first. */
#include "common/bus/spool/compact.h"
#include "common/bus/spool/partition.h"
#include "common/bus/spool/trim.h"
#include "common/system/clock.h"
#include "tests/unit/common/spool.h"

enum {
	RECORDS = 60,
	SEGMENT_BYTES = 4 << 10,
};

static int open_topic(const char *dir, enum nt_topic topic)
{
	nt_autoclose int root = -1;
	int fd = -1;

	assert_int_equal(nt_spool_make_root(dir, &root), 0);
	assert_int_equal(nt_spool_make_dir(root, nt_topic_name(topic), &fd), 0);
	return fd;
}

static void add(struct nt_spool_partition *partition, enum nt_topic topic, uint64_t number)
{
	const char key[2] = {'k', (char)('0' + number % 10)};
	const struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = sizeof(key),
		.value = &number,
		.value_len = sizeof(number),
		.real_ns = number,
	};

	assert_int_equal(nt_spool_partition_add(partition, &record), 0);
}

/* Segments of ten records each, whose times begin at `from`. */
static struct nt_spool_partition *fill(int topic_fd, enum nt_topic topic, uint32_t index,
				       const struct nt_spool_limits *limits,
				       struct nt_bus_stats *stats, uint64_t from)
{
	struct nt_spool_partition *partition = NULL;

	assert_int_equal(nt_spool_partition_open(topic_fd, index, limits, stats, &partition), 0);
	for (uint64_t i = 0; i < RECORDS; i++) {
		add(partition, topic, from + i);
		if (i % 10 != 9)
			continue;
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		nt_spool_partition_roll(partition);
	}
	return partition;
}

static void a_segment_keeps_its_size_however_much_of_it_still_waits(void **state)
{
	const struct nt_bus_options options = {.segment_bytes = SEGMENT_BYTES};

	for (unsigned int at = 0; at < 14; at++) {
		nt_auto(nt_bus) struct nt_bus *bus = NULL;
		char dir[PATH_BYTES], path[PATH_BYTES];
		struct usage usage;
		struct stat st;

		(void)snprintf(dir, sizeof(dir), "%.200s/%u", (const char *)*state, at);
		bus = open_bus(dir, &options);
		for (unsigned int i = 0; i < RECORDS; i++) {
			assert_int_equal(publish(bus, NT_TOPIC_WINDOW, i, 250), 0);
			if (i % 14 == at)
				assert_int_equal(nt_bus_flush(bus), 0);
		}
		assert_int_equal(nt_bus_flush(bus), 0);
		usage = measure(dir, NT_TOPIC_WINDOW, 0);
		/* Fourteen of 284 bytes fit between header and seal. */
		assert_int_equal(usage.segments, 5);
		segment_path(dir, 0, path);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size <= SEGMENT_BYTES);
	}
}

static void the_oldest_goes_first_whichever_partition_it_is_in(void **state)
{
	const struct nt_spool_limits roomy = {.max_bytes = 1 << 20, .segment_bytes = SEGMENT_BYTES};
	struct nt_spool_limits tight = roomy;
	nt_autoclose int topic = open_topic(*state, NT_TOPIC_WINDOW);
	nt_auto(nt_spool_partition) struct nt_spool_partition *newer = NULL, *older = NULL;
	struct nt_bus_stats stats = {0};
	uint64_t both, each;

	newer = fill(topic, NT_TOPIC_WINDOW, 0, &roomy, &stats, 1000);
	older = fill(topic, NT_TOPIC_WINDOW, 1, &tight, &stats, 1);
	each = measure(*state, NT_TOPIC_WINDOW, 0).bytes;
	both = each + measure(*state, NT_TOPIC_WINDOW, 1).bytes;
	/* Half of the older one has to go. */
	tight.max_bytes = both - each / 2 + SEGMENT_BYTES;
	assert_int_equal(nt_spool_trim(topic, older, false, 1), 0);
	assert_int_equal(stats.evicted_records, RECORDS / 2);
	assert_int_equal(measure(*state, NT_TOPIC_WINDOW, 0).bytes, each);
	assert_int_equal(measure(*state, NT_TOPIC_WINDOW, 1).segments, 3);
}

/* One segment for each of the times, whose records bear its number. */
static struct nt_spool_partition *write_times(int topic_fd, uint32_t index,
					      const struct nt_spool_limits *limits,
					      struct nt_bus_stats *stats, size_t n,
					      const uint64_t *times)
{
	struct nt_spool_partition *partition = NULL;

	assert_int_equal(nt_spool_partition_open(topic_fd, index, limits, stats, &partition), 0);
	for (size_t i = 0; i < n; i++) {
		add(partition, NT_TOPIC_WINDOW, times[i]);
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		nt_spool_partition_roll(partition);
	}
	return partition;
}

enum {
	/* Of a segment with one record. */
	ONE = NT_SPOOL_HEADER_BYTES + NT_SPOOL_FRAME_BYTES + 2 + sizeof(uint64_t) +
	      NT_SPOOL_SEAL_BYTES,
};

/* The segments that are left when all but `kept` of nine have had to go. */
static void assert_left(const char *scratch, unsigned int kept, const uint64_t times[3][3],
			const unsigned int left[3])
{
	const struct nt_spool_limits limits = {
		.max_bytes = kept * ONE + SEGMENT_BYTES,
		.segment_bytes = SEGMENT_BYTES,
	};
	struct nt_spool_partition *partition[3];
	struct nt_bus_stats stats = {0};
	char dir[PATH_BYTES];
	nt_autoclose int topic = -1;

	(void)snprintf(dir, sizeof(dir), "%.200s/%u", scratch, kept);
	topic = open_topic(dir, NT_TOPIC_WINDOW);
	for (uint32_t i = 0; i < 3; i++)
		partition[i] = write_times(topic, i, &limits, &stats, 3, times[i]);
	assert_int_equal(nt_spool_trim(topic, partition[0], false, 1), 0);
	assert_int_equal(stats.evicted_records, 9 - kept);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(measure(dir, NT_TOPIC_WINDOW, i).segments, left[i]);
		nt_spool_partition_free(partition[i]);
	}
}

static void of_the_same_age_the_lower_partition_goes_first(void **state)
{
	static const uint64_t times[3][3] = {{5, 6, 7}, {4, 6, 7}, {6, 6, 7}};

	assert_left(*state, 9, times, (const unsigned int[]){3, 3, 3});
	assert_left(*state, 8, times, (const unsigned int[]){3, 2, 3});
	assert_left(*state, 7, times, (const unsigned int[]){2, 2, 3});
	assert_left(*state, 6, times, (const unsigned int[]){1, 2, 3});
	assert_left(*state, 5, times, (const unsigned int[]){1, 1, 3});
	assert_left(*state, 4, times, (const unsigned int[]){1, 1, 2});
	/* The newest of each stays. */
	assert_left(*state, 3, times, (const unsigned int[]){1, 1, 1});
}

static void none_goes_before_those_in_front_of_it_whatever_their_times(void **state)
{
	static const uint64_t times[3][3] = {{9, 1, 9}, {0, 0, 9}, {8, 1, 9}};

	assert_left(*state, 7, times, (const unsigned int[]){3, 1, 3});
	assert_left(*state, 6, times, (const unsigned int[]){3, 1, 2});
	assert_left(*state, 5, times, (const unsigned int[]){3, 1, 1});
	assert_left(*state, 4, times, (const unsigned int[]){2, 1, 1});
}

/* The times are 0 and 1: the least there are. */
static void the_time_of_one_partition_is_nothing_to_another(void **state)
{
	static const uint64_t times[3][3] = {{1, 1, 9}, {0, 0, 9}, {1, 1, 9}};

	assert_left(*state, 8, times, (const unsigned int[]){3, 2, 3});
	assert_left(*state, 7, times, (const unsigned int[]){3, 1, 3});
}

static void one_byte_over_the_cap_and_the_oldest_goes(void **state)
{
	struct nt_spool_limits limits = {
		.max_bytes = 3 * ONE + SEGMENT_BYTES,
		.segment_bytes = SEGMENT_BYTES,
	};
	static const uint64_t times[] = {1, 2, 3};
	nt_autoclose int topic = open_topic(*state, NT_TOPIC_WINDOW);
	nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
	struct nt_bus_stats stats = {0};

	partition = write_times(topic, 0, &limits, &stats, 3, times);
	assert_int_equal(nt_spool_trim(topic, partition, false, 1), 0);
	assert_int_equal(stats.evicted_records, 0);
	limits.max_bytes--;
	assert_int_equal(nt_spool_trim(topic, partition, false, 1), 0);
	assert_int_equal(stats.evicted_records, 1);
}

static void what_is_as_old_as_the_age_cap_stays_what_is_older_goes(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = SEGMENT_BYTES, .max_age_ns = 100};
	static const uint64_t times[] = {50, 51, 52};
	nt_autoclose int topic = open_topic(*state, NT_TOPIC_WINDOW);
	nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
	struct nt_bus_stats stats = {0};

	partition = write_times(topic, 0, &limits, &stats, 3, times);
	assert_int_equal(nt_spool_trim(topic, partition, true, 99), 0);
	assert_int_equal(nt_spool_trim(topic, partition, true, 150), 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_spool_trim(topic, partition, false, 152), 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_spool_trim(topic, partition, true, 151), 0);
	assert_int_equal(stats.evicted_records, 1);
	assert_int_equal(nt_spool_trim(topic, partition, true, 152), 0);
	assert_int_equal(stats.evicted_records, 2);
	/* The last one knows the offset. */
	assert_int_equal(nt_spool_trim(topic, partition, true, 1000), 0);
	assert_int_equal(stats.evicted_records, 2);
}

static void who_went_to_the_end_sees_nothing_old_when_it_is_compacted(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = SEGMENT_BYTES, .max_keys = 100};
	nt_autoclose int topic = open_topic(*state, NT_TOPIC_CONTROL);
	nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_stats stats = {0};

	partition = fill(topic, NT_TOPIC_CONTROL, 0, &limits, &stats, 1);
	reader = open_reader(*state, NT_TOPIC_CONTROL);
	assert_int_equal(nt_bus_reader_seek_end(reader), 0);
	assert_int_equal(nt_spool_compact(partition, 1), 0);
	assert_nothing_more(reader);
	add(partition, NT_TOPIC_CONTROL, 100);
	assert_int_equal(nt_spool_partition_flush(partition), 0);
	assert_int_equal(nt_spool_compact(partition, 1), 0);
	assert_int_equal(read_number(reader), 100);
	assert_nothing_more(reader);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(a_segment_keeps_its_size_however_much_of_it_still_waits),
		SPOOL_TEST(the_oldest_goes_first_whichever_partition_it_is_in),
		SPOOL_TEST(of_the_same_age_the_lower_partition_goes_first),
		SPOOL_TEST(none_goes_before_those_in_front_of_it_whatever_their_times),
		SPOOL_TEST(the_time_of_one_partition_is_nothing_to_another),
		SPOOL_TEST(one_byte_over_the_cap_and_the_oldest_goes),
		SPOOL_TEST(what_is_as_old_as_the_age_cap_stays_what_is_older_goes),
		SPOOL_TEST(who_went_to_the_end_sees_nothing_old_when_it_is_compacted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
