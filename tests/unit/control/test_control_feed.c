/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/control_feed.h"

#include <time.h>

#include "common/system/clock.h"
#include "tests/unit/common/spool.h"

static char url[PATH_BYTES];

static struct nt_bus *open_writer(const char *dir)
{
	struct nt_bus *bus;

	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	return bus;
}

static void write_record(struct nt_bus *bus, const char *key, const void *value, size_t size)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_CONTROL,
		.key = key,
		.key_len = strlen(key),
		.value = value,
		.value_len = size,
		.real_ns = nt_clock_real_ns(),
	};

	assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
}

static void write_control(struct nt_bus *bus, uint32_t number)
{
	char target[64];
	const struct nt_message message = {
		.agent = "neutracer-aggregator",
		.key = target,
		.body = NT_BODY_CONTROL,
		.control = {.target = target,
			    .level = 1,
			    .request = NT_REQUEST_LEVEL,
			    .reason = ""},
	};
	nt_autobuf struct nt_buf buf = {0};

	(void)snprintf(target, sizeof(target), "rank:a/%u", number);
	assert_int_equal(nt_message_encode(&message, &buf), 0);
	write_record(bus, target, buf.data, buf.len);
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 10 * NT_MILLISECOND};

	(void)nanosleep(&pause, NULL);
}

static struct nt_message *next_message(struct nt_control_feed *feed)
{
	for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
		struct nt_message *message = nt_control_feed_take(feed);

		if (message)
			return message;
		nap();
	}
	return NULL;
}

static void check_next(struct nt_control_feed *feed, uint32_t number)
{
	nt_auto(nt_message) struct nt_message *message = next_message(feed);
	char target[64];

	assert_non_null(message);
	(void)snprintf(target, sizeof(target), "rank:a/%u", number);
	assert_string_equal(message->control.target, target);
}

/* More than the queue holds: the thread waits, and nothing is lost. */
static void all_from_the_oldest_on_come_in_order(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_writer(*state);
	nt_auto(nt_control_feed) struct nt_control_feed *feed = NULL;
	struct nt_control_feed_stats stats;

	for (uint32_t i = 0; i < 2 * NT_CONTROL_FEED_QUEUE; i++)
		write_control(bus, i);
	assert_int_equal(nt_control_feed_start(url, NULL, &feed), 0);
	for (uint32_t i = 0; i < 2 * NT_CONTROL_FEED_QUEUE; i++)
		check_next(feed, i);
	assert_null(nt_control_feed_take(feed));
	write_control(bus, 7);
	check_next(feed, 7);
	nt_control_feed_stats(feed, &stats);
	assert_int_equal(stats.records, 2 * NT_CONTROL_FEED_QUEUE + 1);
	assert_int_equal(stats.bad, 0);
	assert_int_equal(stats.open_now, 1);
}

static void what_is_no_control_is_counted_and_passed_over(void **state)
{
	static const uint8_t bad[] = {0xff, 0xff, 0xff};
	nt_auto(nt_bus) struct nt_bus *bus = open_writer(*state);
	nt_auto(nt_control_feed) struct nt_control_feed *feed = NULL;
	const struct nt_message other = {
		.agent = "x", .key = "k", .body = NT_BODY_HEARTBEAT, .heartbeat_ranks = 1};
	nt_autobuf struct nt_buf buf = {0};
	struct nt_control_feed_stats stats;

	assert_int_equal(nt_message_encode(&other, &buf), 0);
	write_record(bus, "a", bad, sizeof(bad));
	write_record(bus, "b", buf.data, buf.len);
	write_record(bus, "c", NULL, 0); /* deleted */
	write_control(bus, 1);
	assert_int_equal(nt_control_feed_start(url, NULL, &feed), 0);
	check_next(feed, 1);
	nt_control_feed_stats(feed, &stats);
	assert_int_equal(stats.bad, 2);
	assert_int_equal(stats.records, 1);
}

/* The thread waits for room in the queue, or for records, or for the next attempt to open. */
static void it_stops_whatever_it_waits_for(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_writer(*state);
	struct nt_control_feed *feed;
	struct nt_control_feed_stats stats;

	assert_int_equal(nt_control_feed_start(url, NULL, &feed), 0);
	nt_control_feed_stop(feed);
	for (uint32_t i = 0; i < 2 * NT_CONTROL_FEED_QUEUE; i++)
		write_control(bus, i);
	assert_int_equal(nt_control_feed_start(url, NULL, &feed), 0);
	do {
		nap();
		nt_control_feed_stats(feed, &stats);
	} while (stats.records < NT_CONTROL_FEED_QUEUE);
	nt_control_feed_stop(feed);
	assert_int_equal(nt_control_feed_start("kafka://", NULL, &feed), 0);
	do {
		nap();
		nt_control_feed_stats(feed, &stats);
	} while (!stats.open_failures);
	assert_int_equal(stats.open_now, 0);
	nt_control_feed_stop(feed);
}

/* Under the address sanitizer a name that is only borrowed fails here. */
static void the_clients_name_is_its_own(void **state)
{
	struct nt_control_feed_stats stats = {0};
	nt_auto(nt_control_feed) struct nt_control_feed *feed = NULL;
	struct nt_bus_options options = {.client = strdup("neutracer-agent-here"), .close_ns = 1};

	(void)state;
	assert_non_null(options.client);
	assert_int_equal(nt_control_feed_start("kafka://127.0.0.1:1", &options, &feed), 0);
	free((void *)(uintptr_t)options.client);
	while (!stats.open_now) {
		nap();
		nt_control_feed_stats(feed, &stats);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPOOL_TEST(all_from_the_oldest_on_come_in_order),
		SPOOL_TEST(what_is_no_control_is_counted_and_passed_over),
		SPOOL_TEST(it_stops_whatever_it_waits_for),
		cmocka_unit_test(the_clients_name_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
