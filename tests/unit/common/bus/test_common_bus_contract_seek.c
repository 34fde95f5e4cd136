/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every bus must do when it is read again, seeked or evicted, against common/bus/bus.h alone. */
#include "common/system/clock.h"
#include "tests/unit/common/bus_contract.h"

/* ---- seeking --------------------------------------------------------------------------------- */

static void a_reader_goes_on_where_another_one_stopped(void **state)
{
	struct nt_bus_position position = {.topic = NT_TOPIC_WINDOW};
	uint64_t next = 0;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 0, 50);
	while (next < 50) {
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
			open_reader(url_of(state), NT_TOPIC_WINDOW);
		struct nt_bus_record record;

		if (next)
			assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
		for (int i = 0; i < 7 && next < 50; i++, next++) {
			assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
			assert_int_equal(number_of(&record), next);
			position.partition = record.partition;
			position.offset = record.offset + 1;
		}
		assert_int_equal(nt_bus_reader_missed(reader), 0);
	}
}

static void seeking_goes_back_and_forth(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position[100];
	struct nt_bus_record record;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 0, 100);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		position[i] = (struct nt_bus_position){
			NT_TOPIC_WINDOW,
			record.partition,
			record.offset,
		};
	}
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t target = i * 37 % 100;

		assert_int_equal(nt_bus_reader_seek(reader, &position[target]), 0);
		assert_int_equal(read_number(reader), target);
	}
}

static void a_position_behind_the_last_record_waits_for_the_next(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_position position = {.topic = NT_TOPIC_WINDOW};
	struct nt_bus_record record;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 0, 5);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	for (int i = 0; i < 5; i++)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	position.partition = record.partition;
	position.offset = record.offset + 1;
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	assert_nothing_more(reader);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 5, 6);
	assert_int_equal(read_number(reader), 5);
}

static void seeking_a_time_finds_the_first_record_from_then_on(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 100, 200);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek_time(reader, 150), 0);
	for (uint64_t i = 150; i < 200; i++)
		assert_int_equal(read_number(reader), i);
	assert_int_equal(nt_bus_reader_seek_time(reader, 1), 0);
	assert_int_equal(read_number(reader), 100);
	assert_int_equal(nt_bus_reader_seek_time(reader, 199), 0);
	assert_int_equal(read_number(reader), 199);
	assert_nothing_more(reader);
	assert_int_equal(nt_bus_reader_seek_time(reader, 200), 0);
	assert_nothing_more(reader);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 200, 201);
	assert_int_equal(read_number(reader), 200);
}

static void seeking_the_end_gives_only_what_comes_later(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 0, 100);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_seek_end(reader), 0);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 100, 110);
	for (uint64_t i = 100; i < 110; i++)
		assert_int_equal(read_number(reader), i);
	assert_nothing_more(reader);
}

static void the_end_of_a_bus_that_is_not_there_is_its_beginning(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader =
		open_reader(url_of(state), NT_TOPIC_WINDOW);

	assert_int_equal(nt_bus_reader_seek_end(reader), 0);
	publish_many(url_of(state), NT_TOPIC_WINDOW, "a", 1, 3);
	assert_int_equal(read_number(reader), 1);
	assert_int_equal(read_number(reader), 2);
}

/* ---- caps and compaction --------------------------------------------------------------------- */

static void over_the_size_cap_the_newest_records_stay_in_order(void **state)
{
	const struct nt_bus_options options = {.max_bytes = 256 << 10, .segment_bytes = 16 << 10};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	char value[1024] = {0};
	struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.value = value,
		.value_len = sizeof(value),
	};
	uint64_t number, last = 0;

	assert_int_equal(nt_bus_open(url_of(state), &options, &bus), 0);
	for (uint64_t i = 1; i <= 2000; i++) {
		memcpy(value, &i, sizeof(i));
		record.real_ns = i;
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	}
	assert_int_equal(nt_bus_flush(bus), 0);
	reader = open_reader(url_of(state), NT_TOPIC_WINDOW);
	while (last < 2000) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		memcpy(&number, record.value, sizeof(number));
		assert_true(last == 0 || number == last + 1);
		last = number;
	}
	assert_nothing_more(reader);
}

static void a_compacted_topic_still_knows_the_newest_record_of_every_key(void **state)
{
	const struct nt_bus_options options = {.segment_bytes = 4 << 10};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_record record;
	uint64_t value[20] = {0}, want[20] = {0};

	assert_int_equal(nt_bus_open(url_of(state), &options, &bus), 0);
	for (uint64_t i = 1; i < 4000; i++) {
		const char key[] = {(char)('a' + i * i % 19), '\0'};

		assert_int_equal(publish(bus, NT_TOPIC_INCIDENT, key, i), 0);
		want[i * i % 19] = i;
	}
	/* Two keys are deleted, one of them only for a while. */
	record = (struct nt_bus_record){.topic = NT_TOPIC_INCIDENT, .key = "a", .key_len = 1};
	assert_int_equal(nt_bus_publish(bus, &record), 0);
	record.key = "b";
	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(publish(bus, NT_TOPIC_INCIDENT, "a", 9000), 0);
	for (uint64_t i = 0; i < 400; i++)
		assert_int_equal(publish(bus, NT_TOPIC_INCIDENT, "t", 10000 + i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);

	reader = open_reader(url_of(state), NT_TOPIC_INCIDENT);
	while (value[19] != 10399) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(record.key_len, 1);
		value[((const char *)record.key)[0] - 'a'] =
			record.value_len ? number_of(&record) : 0;
	}
	want[0] = 9000;
	want[1] = 0;
	want[19] = 10399;
	assert_memory_equal(value, want, sizeof(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUS_TEST(a_reader_goes_on_where_another_one_stopped),
		BUS_TEST(seeking_goes_back_and_forth),
		BUS_TEST(a_position_behind_the_last_record_waits_for_the_next),
		BUS_TEST(seeking_a_time_finds_the_first_record_from_then_on),
		BUS_TEST(seeking_the_end_gives_only_what_comes_later),
		BUS_TEST(the_end_of_a_bus_that_is_not_there_is_its_beginning),
		BUS_TEST(over_the_size_cap_the_newest_records_stay_in_order),
		BUS_TEST(a_compacted_topic_still_knows_the_newest_record_of_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
