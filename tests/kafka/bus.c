/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the contract does not say and only a real Kafka can show, on one broker without secrets. */
#include <errno.h>
#include <librdkafka/rdkafka.h>

#include "tests/kafka/control.h"
#include "tests/kafka/topics.h"

/* ---- topics ---------------------------------------------------------------------------------- */

/* The broker of this test makes topics for whoever asks. */
static void using_a_topic_does_not_make_it(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {0};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_record record;
	struct nt_bus_health health;
	struct nt_bus_error error;
	char url[KAFKA_URL_BYTES];

	(void)state;
	(void)snprintf(url, sizeof(url), "kafka://%s/never-made", kafka_servers());
	bus = open_bus(url);
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "a", 1), 0);
	assert_true(EVENTUALLY((nt_bus_health(bus, &health), health.cause == NT_BUS_NO_TOPIC)));
	assert_non_null(strstr(health.text, "there is no topic 'never-made.window.v1'"));
	assert_int_equal(nt_bus_reader_next(reader, 2000, &record), 0);
	nt_bus_reader_health(reader, &health);
	assert_int_equal(health.cause, NT_BUS_NO_TOPIC);
	assert_int_equal(nt_kafka_topics_check(url, &options, &wanted, states, &error), 0);
	for (int i = 0; i < NT_TOPIC_END; i++)
		assert_int_equal(states[i].status, NT_KAFKA_TOPIC_MISSING);
}

static void topics_that_are_made_later_are_found(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {.partitions = 3, .retention_ns = UINT64_MAX};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_record record;
	struct nt_bus_error error;
	char url[KAFKA_URL_BYTES];

	(void)state;
	(void)snprintf(url, sizeof(url), "kafka://%s/later-%llx", kafka_servers(),
		       (unsigned long long)nt_clock_real_ns());
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	assert_int_equal(nt_bus_reader_next(reader, 500, &record), 0);
	assert_int_equal(nt_kafka_topics_create(url, &options, &wanted, states, &error), 0);
	bus = open_bus(url);
	assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "a", 7), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(number_of(&record), 7);
}

static void a_check_says_what_differs(void **state)
{
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {
		.partitions = PARTITIONS + 1, .replication = 2, .retention_ns = NT_DAY};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error;

	assert_int_equal(nt_kafka_topics_check(url_of(state), &options, &wanted, states, &error),
			 0);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		assert_int_equal(states[i].status, NT_KAFKA_TOPIC_DIFFERS);
		assert_int_equal(states[i].partitions, PARTITIONS);
		assert_int_equal(states[i].notes, nt_topic_is_compacted((enum nt_topic)i) ? 2 : 3);
	}
	assert_non_null(strstr(states[NT_TOPIC_NODE].note[0], "it has 6 partitions"));
	assert_non_null(strstr(states[NT_TOPIC_NODE].note[1], "it has 1 replicas"));
	assert_non_null(strstr(states[NT_TOPIC_NODE].note[2],
			       "retention.ms is -1, it should be 86400000: kafka-configs.sh"));
}

static void making_topics_twice_changes_nothing(void **state)
{
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {0};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error;

	assert_int_equal(nt_kafka_topics_create(url_of(state), &options, &wanted, states, &error),
			 0);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		assert_int_equal(states[i].status, NT_KAFKA_TOPIC_FINE);
		assert_int_equal(states[i].partitions, PARTITIONS);
	}
}

/* ---- positions ------------------------------------------------------------------------------- */

/* What retention does in hours: the partition begins at this offset. */
static void delete_before(const char *url, uint32_t partition, int64_t offset)
{
	char servers[KAFKA_URL_BYTES], name[KAFKA_URL_BYTES];
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_DeleteRecords_t *request;
	rd_kafka_queue_t *queue;
	rd_kafka_event_t *event;
	rd_kafka_t *rk;

	(void)snprintf(servers, sizeof(servers), "%s", kafka_servers());
	(void)snprintf(name, sizeof(name), "%s.window.v1", strrchr(url, '/') + 1);
	assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", servers, NULL, 0), 0);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
	assert_non_null(rk);
	queue = rd_kafka_queue_new(rk);
	rd_kafka_topic_partition_list_add(list, name, (int32_t)partition)->offset = offset;
	request = rd_kafka_DeleteRecords_new(list);
	rd_kafka_DeleteRecords(rk, &request, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, PATIENCE_MS);
	assert_non_null(event);
	assert_int_equal(rd_kafka_event_error(event), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_event_destroy(event);
	rd_kafka_DeleteRecords_destroy(request);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_queue_destroy(queue);
	rd_kafka_destroy(rk);
}

static void an_evicted_position_moves_to_the_oldest_and_counts_as_missed(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	struct nt_bus_record record;
	struct nt_bus_position position = {.topic = NT_TOPIC_WINDOW};

	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "a", i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_open(url_of(state), 1U << NT_TOPIC_WINDOW, &reader), 0);
	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(number_of(&record), i);
	}
	position.partition = record.partition;
	position.offset = 20;
	delete_before(url_of(state), record.partition, 50);
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	for (uint64_t i = 50; i < 100; i++) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(number_of(&record), i);
	}
	assert_int_equal(nt_bus_reader_missed(reader), 30);
}

static void lag_counts_what_is_not_read_yet(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	const uint32_t topics = 1U << NT_TOPIC_WINDOW;
	struct nt_bus_record record;
	struct nt_bus_lag lag;

	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "a", i * NT_SECOND), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(nt_bus_reader_open(url_of(state), topics, &reader), 0);
	for (uint64_t i = 1; i <= 40; i++)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(nt_bus_reader_lag(reader, topics, 100 * NT_SECOND, &lag), 0);
	assert_int_equal(lag.records, 60);
	assert_int_equal(lag.ns, 60 * NT_SECOND);
	for (uint64_t i = 41; i <= 100; i++)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(nt_bus_reader_lag(reader, topics, 200 * NT_SECOND, &lag), 0);
	assert_int_equal(lag.records, 0);
	assert_int_equal(lag.ns, 0);
	assert_true(lag.partitions >= 1);
}

static void a_paused_topic_is_silent_and_loses_nothing(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url_of(state));
	uint64_t window = 0, node = 0;
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_open(url_of(state),
					    1U << NT_TOPIC_WINDOW | 1U << NT_TOPIC_NODE, &reader),
			 0);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(publish(bus, NT_TOPIC_WINDOW, "a", i), 0);
		assert_int_equal(publish(bus, NT_TOPIC_NODE, "a", i), 0);
	}
	assert_int_equal(nt_bus_flush(bus), 0);
	while (window < 10) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		if (record.topic == NT_TOPIC_WINDOW)
			assert_int_equal(number_of(&record), window++);
		else
			assert_int_equal(number_of(&record), node++);
	}
	assert_int_equal(nt_bus_reader_pause(reader, 1U << NT_TOPIC_WINDOW), 0);
	while (node < 1000) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(record.topic, NT_TOPIC_NODE);
		assert_int_equal(number_of(&record), node++);
	}
	assert_int_equal(nt_bus_reader_next(reader, 300, &record), 0);
	assert_int_equal(nt_bus_reader_resume(reader, 1U << NT_TOPIC_WINDOW), 0);
	while (window < 1000) {
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		assert_int_equal(number_of(&record), window++);
	}
}

/* ---- brokers that go ------------------------------------------------------------------------- */

/*
 * kill: as a power cut does. Each number once, each key's in order, in the log and so for the reader.
 * The times are of today: brokers that start again forget an idempotent writer whose last record is
 * older than producer.id.expiration.ms (a day), and then take a second time what it repeats because
 * the acknowledgement was lost.
 */
static void write_through(const char *url, const char *verb, uint64_t count)
{
	const struct nt_bus_options options = {.give_up_ns = 10 * NT_MINUTE};
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	uint64_t next[MAX_KEYS] = {0}, end[PARTITIONS] = {0};
	struct nt_bus_record record;
	struct nt_bus_stats stats;

	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	for (uint64_t i = 0; i < count; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "key-%u", (unsigned int)(i % MAX_KEYS));
		assert_int_equal(publish_at(bus, NT_TOPIC_WINDOW, key, i, nt_clock_real_ns()), 0);
		if (i == count / 3)
			assert_int_equal(control(verb, "1"), 0);
		if (i == 2 * count / 3)
			assert_int_equal(control("start", "1"), 0);
	}
	assert_true(EVENTUALLY(nt_bus_flush(bus) == 0));
	nt_bus_stats(bus, &stats);
	assert_int_equal(stats.delivered, count);
	assert_int_equal(stats.reconnected, 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t number;

		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
		/* Were it the reader that repeats, it would be here; the writer, below. */
		assert_true(record.offset >= end[record.partition]);
		end[record.partition] = record.offset + 1;
		number = number_of(&record);
		assert_int_equal(number / MAX_KEYS, next[number % MAX_KEYS]++);
	}
	assert_int_equal(nt_bus_reader_next(reader, 300, &record), 0);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
}

static void a_broker_that_is_restarted_loses_and_repeats_nothing(void **state)
{
	write_through(url_of(state), "stop", 6000);
}

static void a_broker_that_is_killed_loses_and_repeats_nothing(void **state)
{
	write_through(url_of(state), "kill", 6000);
}

/* ---- made anew ------------------------------------------------------------------------------- */

/*
 * A broker that was restarted has counted its leaders up, and those of the new topics begin anew, which
 * the library from 2.1 on takes for old news.
 */
static void topics_that_are_made_anew_are_read_from_their_beginning(void **state)
{
	const char *url = url_of(state);
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = open_bus(url);
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	publish_many(bus, NT_TOPIC_WINDOW, 0, 300);
	for (int i = 0; i < 300; i++)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(control("stop", "1"), 0);
	assert_int_equal(control("start", "1"), 0);
	publish_many(bus, NT_TOPIC_WINDOW, 300, 400);
	for (int i = 0; i < 100; i++)
		assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	nt_bus_close(nt_take(bus));
	make_anew(url, PARTITIONS);
	bus = open_bus(url);
	publish_many(bus, NT_TOPIC_WINDOW, 1000, 1100);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(nt_bus_reader_next(reader, AGAIN_MS, &record), 1);
		assert_in_range(number_of(&record), 1000, 1099);
	}
	assert_int_equal(nt_bus_reader_next(reader, 300, &record), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(using_a_topic_does_not_make_it),
		cmocka_unit_test(topics_that_are_made_later_are_found),
		KAFKA_TEST(a_check_says_what_differs),
		KAFKA_TEST(making_topics_twice_changes_nothing),
		KAFKA_TEST(an_evicted_position_moves_to_the_oldest_and_counts_as_missed),
		KAFKA_TEST(lag_counts_what_is_not_read_yet),
		KAFKA_TEST(a_paused_topic_is_silent_and_loses_nothing),
		KAFKA_TEST(a_broker_that_is_restarted_loses_and_repeats_nothing),
		KAFKA_TEST(a_broker_that_is_killed_loses_and_repeats_nothing),
		KAFKA_TEST(topics_that_are_made_anew_are_read_from_their_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
