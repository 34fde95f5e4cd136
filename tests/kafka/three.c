/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What three brokers are for. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "tests/kafka/anew.h"
#include "tests/kafka/control.h"

enum {
	PATIENCE_MS = 60000,
	KEYS = 32,
	PARTITIONS = 3,
	RECORDS = 3000,
	TIMES_ANEW = 2,
};

static void topics_have_three_replicas_of_which_two_must_write(void **state)
{
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {.replication = 3};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error;
	char url[KAFKA_URL_BYTES];

	(void)state;
	assert_int_equal(kafka_fresh_url(PARTITIONS, url), 0);
	assert_true(EVENTUALLY(nt_kafka_topics_check(url, &options, &wanted, states, &error) == 0));
	for (int i = 0; i < NT_TOPIC_END; i++) {
		assert_int_equal(states[i].status, NT_KAFKA_TOPIC_FINE);
		assert_int_equal(states[i].replication, 3);
	}
}

/*
 * Each broker is killed once, and comes back, while records are written. No record is lost and none
 * comes twice, as long as brokers know the writer: see write_through() in bus.c.
 */
static void brokers_that_are_killed_in_turn_cost_nothing(void **state)
{
	const struct nt_bus_options options = {.give_up_ns = 10 * NT_MINUTE};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	uint64_t next[KEYS] = {0}, end[PARTITIONS] = {0}, read = 0;
	struct nt_bus_record record;
	struct nt_bus_health health;
	struct nt_bus_stats stats;
	char url[KAFKA_URL_BYTES];

	(void)state;
	assert_int_equal(kafka_fresh_url(PARTITIONS, url), 0);
	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	for (uint64_t i = 0; i < RECORDS; i++) {
		const char key[] = {'k', (char)('A' + i % KEYS)};
		const struct nt_bus_record out = {
			.topic = NT_TOPIC_WINDOW,
			.key = key,
			.key_len = sizeof(key),
			.value = &i,
			.value_len = sizeof(i),
			.real_ns = nt_clock_real_ns(),
		};
		const char node[] = {(char)('1' + i / (RECORDS / 3)), '\0'};

		assert_int_equal(nt_bus_publish(bus, &out), 0);
		if (i % (RECORDS / 3) == 200)
			assert_int_equal(control("kill", node), 0);
		if (i % (RECORDS / 3) == 600) {
			/* The other two must do. */
			assert_true(EVENTUALLY(nt_bus_flush(bus) == 0));
			nt_bus_health(bus, &health);
			assert_int_equal(health.cause, NT_BUS_WELL);
			assert_int_equal(control("start", node), 0);
		}
	}
	assert_true(EVENTUALLY(nt_bus_flush(bus) == 0));
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.delivered, RECORDS);
	assert_int_equal(stats.reconnected, 0);
	for (; read < RECORDS; read++) {
		uint64_t number;

		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_true(record.offset >= end[record.partition]);
		end[record.partition] = record.offset + 1;
		memcpy(&number, record.value, sizeof(number));
		assert_int_equal(number / KEYS, next[number % KEYS]++);
	}
	assert_int_equal(nt_bus_reader_next(reader, 500, &record), 0);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
}

/* One record of each key, as an agent publishes again and again. */
static void publish_keys(struct nt_bus *bus, uint64_t number)
{
	for (int i = 0; i < KEYS; i++) {
		const char key[] = {'k', (char)('A' + i)};
		const struct nt_bus_record out = {
			.topic = NT_TOPIC_WINDOW,
			.key = key,
			.key_len = sizeof(key),
			.value = &number,
			.value_len = sizeof(number),
			.real_ns = nt_clock_real_ns(),
		};

		assert_int_equal(nt_bus_publish(bus, &out), 0);
	}
}

/* Whether a record of this number or a later one has come from every partition. */
static bool have_come(struct nt_bus_reader *reader, uint64_t least, uint32_t *came)
{
	struct nt_bus_record record;

	while (nt_bus_reader_next(reader, 50, &record) == 1) {
		uint64_t number;

		memcpy(&number, record.value, sizeof(number));
		if (number >= least)
			*came |= 1U << record.partition;
	}
	return *came == (1U << PARTITIONS) - 1;
}

/* The leaders of the new topics are other brokers, and counted from the beginning. */
static void topics_made_anew_are_written_and_read_by_clients_that_stay(void **state)
{
	const struct nt_bus_options options = {.give_up_ns = 3 * NT_SECOND};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	char url[KAFKA_URL_BYTES];
	uint64_t number = 0;

	(void)state;
	assert_int_equal(kafka_fresh_url(PARTITIONS, url), 0);
	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	for (int i = 0; i < TIMES_ANEW; i++) {
		const char node[] = {(char)('1' + i), '\0'};
		uint64_t least = ++number;
		uint32_t came = 0;

		assert_true(
			EVENTUALLY((publish_keys(bus, number++), have_come(reader, least, &came))));
		assert_int_equal(control("stop", node), 0);
		assert_int_equal(control("start", node), 0);
		make_anew(url, PARTITIONS);
		least = ++number;
		came = 0;
		assert_true(
			EVENTUALLY((publish_keys(bus, number++), have_come(reader, least, &came))));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topics_have_three_replicas_of_which_two_must_write),
		cmocka_unit_test(brokers_that_are_killed_in_turn_cost_nothing),
		cmocka_unit_test(topics_made_anew_are_written_and_read_by_clients_that_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
