/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Topics of which the newest record of a key is enough. */
#include "common/system/clock.h"
#include "tests/unit/common/spool.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(compaction_leaves_little_more_than_one_record_a_key),
		SPOOL_TEST(more_keys_than_fit_a_segment_are_all_kept),
		SPOOL_TEST(much_that_stays_is_compacted_too),
		SPOOL_TEST(a_deletion_goes_too_but_not_before_an_hour),
		SPOOL_TEST(readers_survive_compaction_wherever_they_are),
		SPOOL_TEST(a_compaction_that_stopped_half_way_shows_every_record_once),
		SPOOL_TEST(
			the_end_of_a_partition_stays_the_end_when_its_last_records_are_compacted_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
