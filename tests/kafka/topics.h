/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fresh topics for each test, and records in them. */
#ifndef NT_TESTS_KAFKA_TOPICS_H
#define NT_TESTS_KAFKA_TOPICS_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "tests/kafka/anew.h"

enum {
	PARTITIONS = 6,
	PATIENCE_MS = 30000,
	LOOK_MS = 20,
	GONE_MS = 12000,
	AGAIN_MS = 120000,
	MAX_KEYS = 64,
};

struct place {
	char url[KAFKA_URL_BYTES];
};

static inline int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	*state = place;
	return place ? kafka_fresh_url(PARTITIONS, place->url) : -1;
}

static inline int tear_down(void **state)
{
	free(*state);
	return 0;
}

static inline const char *url_of(void **state)
{
	return ((const struct place *)*state)->url;
}

static inline int publish_at(struct nt_bus *bus, enum nt_topic topic, const char *key,
			     uint64_t number, uint64_t real_ns)
{
	const struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = strlen(key),
		.value = &number,
		.value_len = sizeof(number),
		.real_ns = real_ns,
	};

	return nt_bus_publish(bus, &record);
}

static inline int publish(struct nt_bus *bus, enum nt_topic topic, const char *key, uint64_t number)
{
	return publish_at(bus, topic, key, number, number);
}

/* Of as many keys as there are numbers, so that every partition gets some. */
static inline void publish_many(struct nt_bus *bus, enum nt_topic topic, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "key-%u", (unsigned int)(i % MAX_KEYS));
		assert_int_equal(publish(bus, topic, key, i), 0);
	}
	assert_true(EVENTUALLY(nt_bus_flush(bus) == 0));
}

static inline struct nt_bus *open_bus(const char *url)
{
	struct nt_bus *bus = NULL;

	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	return bus;
}

static inline uint64_t number_of(const struct nt_bus_record *record)
{
	uint64_t number;

	assert_int_equal(record->value_len, sizeof(number));
	memcpy(&number, record->value, sizeof(number));
	return number;
}

#define KAFKA_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
