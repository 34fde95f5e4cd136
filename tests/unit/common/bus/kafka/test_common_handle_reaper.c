/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/kafka/client.h"
#include "tests/unit/common/kafka_mock.h"

enum {
	MOST = 16, /* that may be left behind */
	PATIENCE_MS = 20000,
};

/* A client that reads, and one of its messages, which holds it for as long as it lives. */
struct held {
	rd_kafka_t *rk;
	rd_kafka_message_t *message;
	pthread_t thread;
};

static int set_up(void **state)
{
	struct mock *mock = calloc(1, sizeof(*mock));
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW, .key = "", .value = "x", .value_len = 1};
	struct nt_bus *bus = NULL;
	int r;

	*state = mock;
	if (!mock || mock_make(mock, 1, 1) < 0 || nt_bus_open(mock->url, NULL, &bus) < 0)
		return -1;
	r = nt_bus_publish(bus, &record);
	if (r == 0)
		r = nt_bus_flush(bus);
	nt_bus_close(bus);
	return r;
}

static int tear_down(void **state)
{
	mock_remove(*state);
	free(*state);
	return 0;
}

static int make(struct nt_kafka_client *client, rd_kafka_t **ret_rk, struct nt_bus_error *error)
{
	return nt_kafka_client_make(client, RD_KAFKA_CONSUMER, RD_KAFKA_EVENT_ERROR, NULL, 0, error,
				    ret_rk);
}

static void hold(struct nt_kafka_client *client, struct held *held)
{
	struct nt_bus_error error;
	rd_kafka_topic_t *topic;

	assert_int_equal(make(client, &held->rk, &error), 0);
	topic = rd_kafka_topic_new(held->rk, nt_topic_name(NT_TOPIC_WINDOW), NULL);
	assert_non_null(topic);
	assert_int_equal(rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING), 0);
	held->message = rd_kafka_consume(topic, 0, PATIENCE_MS);
	assert_non_null(held->message);
	assert_int_equal(held->message->err, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(rd_kafka_consume_stop(topic, 0), 0);
	rd_kafka_topic_destroy(topic);
}

static void *end(void *data)
{
	nt_kafka_end(((struct held *)data)->rk, false);
	return NULL;
}

static void init_client(const struct mock *mock, struct nt_kafka_client *client)
{
	const struct nt_bus_options options = {0};

	assert_int_equal(nt_kafka_client_init(client, mock->url, &options), 0);
}

static void what_ends_is_not_left_behind(void **state)
{
	struct nt_kafka_client client;
	struct held held;

	init_client(*state, &client);
	hold(&client, &held);
	rd_kafka_message_destroy(held.message);
	nt_kafka_end(held.rk, false);
	assert_int_equal(nt_kafka_left_behind(), 0);
	nt_kafka_client_release(&client);
}

/* Also by what it was made from. */
static void what_does_not_end_is_left_behind_until_it_does(void **state)
{
	struct nt_kafka_client client;
	struct held held;

	init_client(*state, &client);
	hold(&client, &held);
	nt_kafka_end(held.rk, false);
	assert_int_equal(nt_kafka_left_behind(), 1);
	nt_kafka_client_release(&client);
	rd_kafka_message_destroy(held.message);
	assert_true(MOCK_EVENTUALLY(nt_kafka_left_behind() == 0));
}

static void where_too_many_are_left_behind_none_is_made(void **state)
{
	struct nt_kafka_client client;
	struct nt_bus_error error = {0};
	struct held held[MOST];
	rd_kafka_t *rk = NULL;

	init_client(*state, &client);
	for (int i = 0; i < MOST; i++)
		hold(&client, &held[i]);
	for (int i = 0; i < MOST; i++)
		assert_int_equal(pthread_create(&held[i].thread, NULL, end, &held[i]), 0);
	for (int i = 0; i < MOST; i++)
		assert_int_equal(pthread_join(held[i].thread, NULL), 0);
	assert_int_equal(nt_kafka_left_behind(), MOST);
	assert_int_equal(make(&client, &rk, &error), -EBUSY);
	assert_string_equal(error.text, "16 earlier clients of the Kafka library do not end: "
					"restart this program");
	for (int i = 0; i < MOST; i++)
		rd_kafka_message_destroy(held[i].message);
	assert_true(MOCK_EVENTUALLY(nt_kafka_left_behind() == 0));
	assert_int_equal(make(&client, &rk, &error), 0);
	nt_kafka_end(rk, false);
	nt_kafka_client_release(&client);
}

#define MOCK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOCK_TEST(what_ends_is_not_left_behind),
		MOCK_TEST(what_does_not_end_is_left_behind_until_it_does),
		MOCK_TEST(where_too_many_are_left_behind_none_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
