/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/bus_producer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/common/kafka_mock.h"

static int set_up(void **state)
{
	struct mock *mock = calloc(1, sizeof(*mock));

	*state = mock;
	if (!mock || mock_make(mock, 1, 1) < 0)
		return -1;
	MOCK_SOON(mock, rd_kafka_mock_topic_create(mock->cluster, nt_topic_name(NT_TOPIC_INCIDENT),
						   1, 1));
	return 0;
}

static int tear_down(void **state)
{
	mock_remove(*state);
	free(*state);
	return 0;
}

static int publish(struct nt_bus_producer *bus_producer)
{
	const struct nt_wire_incident incident = {
		.id = "1", .version = 1, .state = "firing", .severity = "warning", .class = "host"};

	return nt_bus_producer_incident(bus_producer, &incident);
}

/* Whoever believes that it arrived would not publish it again. */
static void what_brokers_refuse_after_the_bus_took_it_is_not_published(void **state)
{
	struct mock *mock = *state;
	const struct nt_bus_options options = {.flush_ns = 10 * NT_SECOND};
	nt_auto(nt_bus_producer) struct nt_bus_producer *bus_producer = NULL;
	struct nt_bus_health health;

	assert_int_equal(nt_bus_producer_open(mock->url, &options, 1, &bus_producer), 0);
	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	assert_int_equal(publish(bus_producer), 0);
	assert_int_equal(nt_bus_producer_flush(bus_producer), -EIO);
	assert_int_equal(nt_bus_producer_counters(bus_producer)->undelivered[NT_BUS_TOO_LARGE], 1);
	nt_bus_producer_health(bus_producer, &health);
	assert_int_equal(health.cause, NT_BUS_TOO_LARGE);

	assert_int_equal(publish(bus_producer), 0);
	assert_int_equal(nt_bus_producer_flush(bus_producer), 0);
	assert_int_equal(nt_bus_producer_counters(bus_producer)->undelivered[NT_BUS_TOO_LARGE], 1);
	nt_bus_producer_health(bus_producer, &health);
	assert_int_equal(health.cause, NT_BUS_WELL);
}

/* An aggregator of twelve shards would otherwise be waited for, and killed, while it ends. */
static void who_leaves_waits_for_brokers_that_are_away_only_once(void **state)
{
	struct mock *mock = *state;
	const struct nt_bus_options options = {.flush_ns = NT_SECOND / 5, .close_ns = 1};
	nt_auto(nt_bus_producer) struct nt_bus_producer *bus_producer = NULL;
	uint64_t begin_ns;

	assert_int_equal(nt_bus_producer_open(mock->url, &options, 1, &bus_producer), 0);
	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	assert_int_equal(publish(bus_producer), 0);
	begin_ns = nt_clock_mono_ns();
	assert_true(nt_bus_producer_flush(bus_producer) < 0);
	assert_true(nt_bus_producer_flush(bus_producer) < 0);
	assert_true(nt_clock_mono_ns() - begin_ns >= 2 * options.flush_ns);

	nt_bus_producer_leave(bus_producer);
	assert_true(nt_bus_producer_flush(bus_producer) < 0);
	assert_int_equal(publish(bus_producer), 0);
	begin_ns = nt_clock_mono_ns();
	for (int i = 0; i < 100; i++)
		assert_true(nt_bus_producer_flush(bus_producer) < 0);
	assert_true(nt_clock_mono_ns() - begin_ns < 50 * options.flush_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			who_leaves_waits_for_brokers_that_are_away_only_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_brokers_refuse_after_the_bus_took_it_is_not_published, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
