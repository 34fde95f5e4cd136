/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A bus for the tests of the contract of every bus. fresh_url() gives each test an unused bus; only
 * that function depends on the implementation. It is a spool, or with NT_TEST_KAFKA=HOST:PORT
 * topics of that Kafka.
 */
#ifndef NT_TESTS_UNIT_COMMON_BUS_CONTRACT_H
#define NT_TESTS_UNIT_COMMON_BUS_CONTRACT_H

#include "common/bus/bus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/common/kafka.h"
#include "tests/unit/scratch.h"

enum {
	PATIENCE_MS = 10000, /* timeout of expected events; reached only by failing tests */
	MAX_PARTITIONS = 64,
};

struct fixture {
	char dir[SCRATCH_BYTES];
	char url[KAFKA_URL_BYTES];
};

static inline int fresh_url(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	*state = fixture;
	if (kafka_servers())
		return kafka_fresh_url(2, fixture->url);
	if (scratch_make(fixture->dir) < 0)
		return -1;
	(void)snprintf(fixture->url, sizeof(fixture->url), "spool:%s/a/bus", fixture->dir);
	return 0;
}

static inline int remove_bus(void **state)
{
	struct fixture *fixture = *state;

	if (*fixture->dir)
		scratch_remove(fixture->dir);
	free(fixture);
	return 0;
}

static inline const char *url_of(void **state)
{
	const struct fixture *fixture = *state;

	return fixture->url;
}

static inline struct nt_bus *open_bus(const char *url)
{
	struct nt_bus *bus = NULL;

	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	return bus;
}

static inline struct nt_bus_reader *open_reader(const char *url, enum nt_topic topic)
{
	struct nt_bus_reader *reader = NULL;

	assert_int_equal(nt_bus_reader_open(url, 1U << topic, &reader), 0);
	return reader;
}

/* A record whose value and time are the number. */
static inline int publish(struct nt_bus *bus, enum nt_topic topic, const char *key, uint64_t number)
{
	const struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = strlen(key),
		.value = &number,
		.value_len = sizeof(number),
		.real_ns = number,
	};

	return nt_bus_publish(bus, &record);
}

static inline void publish_many(const char *url, enum nt_topic topic, const char *key,
				uint64_t from, uint64_t to)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url);

	for (uint64_t i = from; i < to; i++)
		assert_int_equal(publish(bus, topic, key, i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
}

static inline uint64_t number_of(const struct nt_bus_record *record)
{
	uint64_t number;

	assert_int_equal(record->value_len, sizeof(number));
	memcpy(&number, record->value, sizeof(number));
	return number;
}

static inline uint64_t read_number(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	return number_of(&record);
}

static inline void assert_nothing_more(struct nt_bus_reader *reader)
{
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 0);
}

#define BUS_TEST(f) cmocka_unit_test_setup_teardown(f, fresh_url, remove_bus)

#endif
