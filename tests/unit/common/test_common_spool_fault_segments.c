/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compaction, trimming and recovery of segments on a disk that fails: no newer record is lost. */
#include "common/bus/spool/compact.h"
#include "common/bus/spool/partition.h"
#include "common/bus/spool/trim.h"
#include "tests/unit/common/spool_disk.h"

/* The partition 0 of a topic in `where`, with segments of ten records each. */
static struct nt_spool_partition *fill_partition(const struct nt_spool_limits *limits,
						 struct nt_bus_stats *stats, enum nt_topic topic,
						 int *ret_topic)
{
	struct nt_spool_partition *partition = NULL;
	nt_autoclose int root = -1;

	assert_int_equal(nt_spool_make_root(where, &root), 0);
	assert_int_equal(nt_spool_make_dir(root, nt_topic_name(topic), ret_topic), 0);
	assert_int_equal(nt_spool_partition_open(*ret_topic, 0, limits, stats, &partition), 0);
	for (uint64_t i = 1; i <= RECORDS; i++) {
		uint64_t value[8] = {i};
		const char key[2] = {'k', (char)('0' + i % 10)};
		const struct nt_bus_record record = {
			.topic = topic,
			.key = key,
			.key_len = sizeof(key),
			.value = value,
			.value_len = sizeof(value),
			.real_ns = i,
		};

		assert_int_equal(nt_spool_partition_add(partition, &record), 0);
		if (i % 10)
			continue;
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		nt_spool_partition_roll(partition);
	}
	return partition;
}

static void a_compaction_that_fails_leaves_the_newest_of_every_key(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = 4 << 10, .max_keys = 100};

	SWEEP(n, *state)
	{
		nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
		struct nt_bus_stats stats = {0};
		nt_autoclose int topic = -1;
		struct count count;
		struct usage usage;
		int r;

		partition = fill_partition(&limits, &stats, NT_TOPIC_CONTROL, &topic);
		fail_nth(n);
		r = nt_spool_compact(partition, 1);
		(void)has_failed();
		assert_true(r == 0 || r == -EIO);
		count = read_all(where, NT_TOPIC_CONTROL);
		for (uint64_t i = 0; i < 10; i++)
			assert_int_equal(count.newest[i], i ? RECORDS - 10 + i : RECORDS);
		usage = measure(where, NT_TOPIC_CONTROL, 0);
		assert_int_equal(usage.drafts, 0);
		if (r < 0)
			assert_int_equal(count.records, RECORDS);
		else
			assert_int_equal(count.records, 10);
		/* Who cannot look whether it is worth it compacts; leftovers go the next time. */
		if (failed != CALL_END && failed != CALL_OPEN && failed != CALL_FSTAT &&
		    failed != CALL_PREAD && failed != CALL_UNLINK)
			assert_int_equal(r, -EIO);
		assert_int_equal(nt_spool_compact(partition, 1), 0);
	}
}

/* Of some keys the newest is in the middle, where an older one must not be taken for it. */
static void a_segment_that_cannot_be_read_hides_no_newer_record(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = 4 << 10, .max_keys = 100};
	static const uint64_t numbers[] = {1, 2, 3, 4, 0, 11, 12, 0, 23, 24, 0};

	SWEEP(n, *state)
	{
		nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
		nt_autoclose int root = -1, topic = -1;
		struct nt_bus_stats stats = {0};
		struct count count;
		int r;

		assert_int_equal(nt_spool_make_root(where, &root), 0);
		assert_int_equal(nt_spool_make_dir(root, nt_topic_name(NT_TOPIC_CONTROL), &topic),
				 0);
		assert_int_equal(nt_spool_partition_open(topic, 0, &limits, &stats, &partition), 0);
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			const char key = (char)('0' + numbers[i] % 10);
			const struct nt_bus_record record = {
				.topic = NT_TOPIC_CONTROL,
				.key = &key,
				.key_len = 1,
				.value = &numbers[i],
				.value_len = sizeof(numbers[i]),
			};

			if (numbers[i]) {
				assert_int_equal(nt_spool_partition_add(partition, &record), 0);
				continue;
			}
			assert_int_equal(nt_spool_partition_flush(partition), 0);
			nt_spool_partition_roll(partition);
		}
		fail_nth(n);
		r = nt_spool_compact(partition, 1);
		(void)has_failed();
		count = read_all(where, NT_TOPIC_CONTROL);
		assert_int_equal(count.newest[1], 11);
		assert_int_equal(count.newest[2], 12);
		assert_int_equal(count.newest[3], 23);
		assert_int_equal(count.newest[4], 24);
		assert_int_equal(count.records, r < 0 ? 8 : 4);
	}
}

static void what_a_failing_trim_has_removed_is_counted(void **state)
{
	const struct nt_spool_limits limits = {.max_bytes = 8 << 10, .segment_bytes = 4 << 10};

	SWEEP(n, *state)
	{
		nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
		struct nt_bus_stats stats = {0};
		nt_autoclose int topic = -1;
		int r;

		partition = fill_partition(&limits, &stats, NT_TOPIC_WINDOW, &topic);
		fail_nth(n);
		r = nt_spool_trim(topic, partition, false, 1);
		(void)has_failed();
		assert_true(r == 0 || r == -EIO);
		assert_int_equal(read_all(where, NT_TOPIC_WINDOW).records + stats.evicted_records,
				 RECORDS);
		if (failed == CALL_LIST || failed == CALL_READ_DIR)
			assert_int_equal(r, -EIO);
		if (r < 0)
			assert_int_equal(stats.evicted_records, 0);
		if (failed == CALL_END)
			assert_true(stats.evicted_records > 0);
	}
}

static void a_recovery_that_fails_can_be_done_again(void **state)
{
	const struct nt_spool_limits limits = {.max_bytes = 1 << 20, .segment_bytes = 4 << 10};
	unsigned int unknown_sizes = 0;

	SWEEP(n, *state)
	{
		struct nt_spool_partition *partition = NULL;
		nt_autoclose int topic = -1, segment = -1;
		struct nt_bus_stats stats = {0};
		uint64_t value = 61, next;
		const struct nt_bus_record record = {
			.topic = NT_TOPIC_WINDOW,
			.key = "k1",
			.key_len = 2,
			.value = &value,
			.value_len = sizeof(value),
		};
		char path[PATH_BYTES];
		int r;

		partition = fill_partition(&limits, &stats, NT_TOPIC_WINDOW, &topic);
		assert_int_equal(nt_spool_partition_add(partition, &record), 0);
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		next = partition->next;
		nt_spool_partition_free(partition);
		partition = NULL;
		segment_path(where, 60, path);
		segment = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(segment, "torn", 4), 4);

		fail_nth(n);
		r = nt_spool_partition_open(topic, 0, &limits, &stats, &partition);
		(void)has_failed();
		assert_true(r == 0 || r == -EIO);
		assert_true((r == 0) == (partition != NULL));
		unknown_sizes += failed == CALL_FSTAT && r < 0;
		if (failed == CALL_FTRUNCATE || failed == CALL_LOCK || failed == CALL_LIST)
			assert_int_equal(r, -EIO);
		if (!partition)
			assert_int_equal(
				nt_spool_partition_open(topic, 0, &limits, &stats, &partition), 0);
		assert_true(partition->next >= next);
		assert_true(stats.recovered_torn >= 1);
		value++;
		assert_int_equal(nt_spool_partition_add(partition, &record), 0);
		assert_int_equal(nt_spool_partition_flush(partition), 0);
		nt_spool_partition_free(partition);
		assert_int_equal(read_all(where, NT_TOPIC_WINDOW).records, RECORDS + 2);
	}
	/*
	 * Of the newest segment, before it is read, where its tail is searched, and after; older
	 * ones only help.
	 */
	assert_int_equal(unknown_sizes, 3);
}

/* Age is that of the newest record, or of the file where nothing tells that. */
static void a_segment_without_a_seal_is_as_old_as_its_file(void **state)
{
	const struct nt_spool_limits limits = {
		.max_bytes = 1 << 20, .segment_bytes = 4 << 10, .max_age_ns = NT_HOUR};
	nt_auto(nt_spool_partition) struct nt_spool_partition *partition = NULL;
	const uint64_t now_ns = nt_clock_real_ns();
	struct nt_bus_stats stats = {0};
	nt_autoclose int topic = -1;
	char path[PATH_BYTES];
	struct stat st;

	assert_true(place(*state, 1));
	partition = fill_partition(&limits, &stats, NT_TOPIC_WINDOW, &topic);
	segment_path(where, 0, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - NT_SPOOL_SEAL_BYTES), 0);
	assert_int_equal(nt_spool_trim(topic, partition, true, now_ns), 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_spool_trim(topic, partition, false, now_ns + 2 * NT_HOUR), 0);
	assert_int_equal(stats.evicted_records, 0);
	assert_int_equal(nt_spool_trim(topic, partition, true, now_ns + 2 * NT_HOUR), 0);
	assert_true(stats.evicted_records >= RECORDS - 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(a_compaction_that_fails_leaves_the_newest_of_every_key),
		SPOOL_TEST(a_segment_that_cannot_be_read_hides_no_newer_record),
		SPOOL_TEST(what_a_failing_trim_has_removed_is_counted),
		SPOOL_TEST(a_recovery_that_fails_can_be_done_again),
		SPOOL_TEST(a_segment_without_a_seal_is_as_old_as_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
