/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "tests/unit/common/kafka_mock.h"

enum {
	PATIENCE_MS = 30000,
	STALL_NS = 2000000000,
	SOON_MS = 3000,
	LATE_MS = 3500,
	LATE_ANSWERS = 100,
	STUCK_REQUESTS = 10000,
	WINDOW = 1U << NT_TOPIC_WINDOW,
};

static int set_up(void **state)
{
	struct mock *mock = calloc(1, sizeof(*mock));

	*state = mock;
	return mock ? mock_make(mock, 1, 2) : -1;
}

static int tear_down(void **state)
{
	mock_remove(*state);
	free(*state);
	return 0;
}

static struct nt_bus_reader *open_reader(const struct mock *mock)
{
	const struct nt_bus_options options = {.stall_ns = STALL_NS};
	struct nt_bus_reader *reader = NULL;

	assert_int_equal(nt_bus_reader_open_with(mock->url, WINDOW, &options, &reader), 0);
	return reader;
}

static void publish_bytes(struct nt_bus *bus, const void *value, size_t len, uint64_t real_ns)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.key = "a",
		.key_len = 1,
		.value = value,
		.value_len = len,
		.real_ns = real_ns,
	};

	assert_int_equal(nt_bus_publish(bus, &record), 0);
}

static void publish_numbers(const struct mock *mock, uint64_t from, uint64_t to)
{
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	assert_int_equal(nt_bus_open(mock->url, NULL, &bus), 0);
	for (uint64_t i = from; i < to; i++)
		publish_bytes(bus, &i, sizeof(i), i);
	assert_int_equal(nt_bus_flush(bus), 0);
}

static void assert_number(struct nt_bus_reader *reader, uint64_t number)
{
	struct nt_bus_record record;

	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.real_ns, number);
}

/* What programs of others put on the topic: a key too long, no header, a time of their own. */
static void publish_foreign(const struct mock *mock, const void *key, size_t key_len,
			    const void *value, size_t value_len, const void *time, size_t time_len,
			    int64_t ms)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_resp_err_t error;
	rd_kafka_t *rk;

	assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers",
					   rd_kafka_mock_cluster_bootstraps(mock->cluster), NULL,
					   0),
			 RD_KAFKA_CONF_OK);
	assert_int_equal(rd_kafka_conf_set(conf, "message.max.bytes", "3000000", NULL, 0),
			 RD_KAFKA_CONF_OK);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
	assert_non_null(rk);
	error = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC("neutracer.window.v1"),
				  RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY(key, key_len),
				  RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value_len),
				  RD_KAFKA_V_HEADER(time ? "time-ns" : "other", time, time_len),
				  RD_KAFKA_V_TIMESTAMP(ms), RD_KAFKA_V_END);
	assert_int_equal(error, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(rd_kafka_flush(rk, PATIENCE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_destroy(rk);
}

static void a_reader_goes_on_when_its_broker_comes_back(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_health health;
	struct nt_bus_record record;

	publish_numbers(mock, 1, 11);
	reader = open_reader(mock);
	for (uint64_t i = 1; i <= 10; i++)
		assert_number(reader, i);
	nt_bus_reader_health(reader, &health);
	assert_int_equal(health.cause, NT_BUS_WELL);
	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	assert_true(MOCK_EVENTUALLY(
		(nt_bus_reader_health(reader, &health), health.cause == NT_BUS_UNREACHABLE)));
	assert_int_equal(nt_bus_reader_next(reader, 10, &record), 0);
	rd_kafka_mock_broker_set_up(mock->cluster, 1);
	publish_numbers(mock, 11, 21);
	for (uint64_t i = 11; i <= 20; i++)
		assert_number(reader, i);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
	assert_true(MOCK_EVENTUALLY(
		(nt_bus_reader_health(reader, &health), health.cause == NT_BUS_WELL)));
}

static void a_position_that_is_refused_though_it_is_there_is_kept(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_numbers(mock, 1, 11);
	reader = open_reader(mock);
	for (uint64_t i = 1; i <= 10; i++)
		assert_number(reader, i);
	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_FETCH, 1,
					  RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
	publish_numbers(mock, 11, 21);
	for (uint64_t i = 11; i <= 20; i++)
		assert_number(reader, i);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
}

/* More requests than there can be in the time. */
static void keep_from(const struct mock *mock, int16_t request, rd_kafka_resp_err_t error)
{
	rd_kafka_resp_err_t errors[STUCK_REQUESTS];

	for (size_t i = 0; i < STUCK_REQUESTS; i++)
		errors[i] = error;
	rd_kafka_mock_push_request_errors_array(mock->cluster, request, STUCK_REQUESTS, errors);
}

static uint64_t reconnected(const struct nt_bus_reader *reader)
{
	struct nt_bus_stats stats;

	nt_bus_reader_stats(reader, &stats);
	return stats.reconnected;
}

static void a_client_that_gets_nothing_though_there_is_more_is_made_anew(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;

	publish_numbers(mock, 1, 11);
	reader = open_reader(mock);
	for (uint64_t i = 1; i <= 10; i++)
		assert_number(reader, i);
	keep_from(mock, MOCK_FETCH, RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH);
	publish_numbers(mock, 11, 21);
	for (int i = 0; i < PATIENCE_MS / 100 && !reconnected(reader); i++)
		assert_int_equal(nt_bus_reader_next(reader, 100, &record), 0);
	assert_int_equal(reconnected(reader), 1);
	rd_kafka_mock_clear_request_errors(mock->cluster, MOCK_FETCH);
	for (uint64_t i = 11; i <= 20; i++)
		assert_number(reader, i);
	assert_int_equal(nt_bus_reader_missed(reader), 0);
	assert_int_equal(reconnected(reader), 1);
}

static void a_client_that_never_gets_anything_is_made_anew(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;

	publish_numbers(mock, 1, 11);
	keep_from(mock, MOCK_FETCH, RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH);
	reader = open_reader(mock);
	for (int i = 0; i < PATIENCE_MS / 100 && !reconnected(reader); i++)
		assert_int_equal(nt_bus_reader_next(reader, 100, &record), 0);
	assert_int_equal(reconnected(reader), 1);
	rd_kafka_mock_clear_request_errors(mock->cluster, MOCK_FETCH);
	for (uint64_t i = 1; i <= 10; i++)
		assert_number(reader, i);
}

static void without_a_broker_reading_waits_and_says_why(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_health health;
	struct nt_bus_record record;
	struct nt_bus_stats stats;

	(void)state;
	assert_int_equal(nt_bus_reader_open("kafka://127.0.0.1:1", WINDOW, &reader), 0);
	nt_bus_reader_health(reader, &health);
	assert_true(health.cause == NT_BUS_CONNECTING || health.cause == NT_BUS_UNREACHABLE);
	assert_int_equal(nt_bus_reader_next(reader, 0, &record), 0);
	assert_int_equal(nt_bus_reader_seek_time(reader, 5), 0);
	assert_int_equal(nt_bus_reader_next(reader, 50, &record), 0);
	assert_true(MOCK_EVENTUALLY(
		(nt_bus_reader_health(reader, &health), health.cause == NT_BUS_UNREACHABLE)));
	assert_non_null(strstr(health.text, "no broker answers at 127.0.0.1:1"));
	nt_bus_reader_stats(reader, &stats);
	assert_true(stats.errors[NT_BUS_UNREACHABLE] > 0);
}

/* As where its topics are others of the same names, and it has read nothing of either. */
static void a_client_that_is_not_told_where_partitions_end_is_made_anew(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;

	reader = open_reader(mock);
	/* Answers come when nobody waits for them any more. */
	for (int i = 0; i < LATE_ANSWERS; i++)
		rd_kafka_mock_broker_push_request_error_rtts(mock->cluster, 1, MOCK_LIST_OFFSETS, 1,
							     RD_KAFKA_RESP_ERR_NO_ERROR, LATE_MS);
	for (int i = 0; i < PATIENCE_MS / 100 && !reconnected(reader); i++)
		assert_int_equal(nt_bus_reader_next(reader, 100, &record), 0);
	assert_int_equal(reconnected(reader), 1);
	/* It may be the brokers: the next one is given twice the time. */
	for (int i = 0; i < SOON_MS / 100; i++)
		assert_int_equal(nt_bus_reader_next(reader, 100, &record), 0);
	assert_int_equal(reconnected(reader), 1);
}

/* The mock keeps five mebibytes of a partition. */
static void what_was_removed_before_it_was_read_is_counted(void **state)
{
	static const char filling[500000];
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = open_reader(mock);
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_position position = {.topic = NT_TOPIC_WINDOW};
	struct nt_bus_record record;
	uint64_t missed;

	assert_int_equal(nt_bus_open(mock->url, NULL, &bus), 0);
	publish_bytes(bus, "x", 1, 1);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_number(reader, 1);
	for (uint64_t i = 2; i <= 40; i++) {
		uint8_t noise[sizeof(filling)];

		/* Nothing that lz4 could make small. */
		for (size_t j = 0; j < sizeof(noise); j++)
			noise[j] = (uint8_t)((i * 2654435761U + j * j * 40503U + j) >> 7 ^ j * 97);
		publish_bytes(bus, noise, sizeof(noise), i);
		assert_int_equal(nt_bus_flush(bus), 0);
	}
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	missed = nt_bus_reader_missed(reader);
	position.partition = record.partition;
	position.offset = 1;
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	if (record.offset == 1)
		skip(); /* the mock found room for all */
	assert_int_equal(nt_bus_reader_missed(reader) - missed, record.offset - 1);
	assert_int_equal(record.real_ns, record.offset + 1);
}

static void what_is_over_our_caps_is_passed_over_and_counted(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_autofree uint8_t *bytes = calloc(1, NT_BUS_MAX_VALUE + 1);
	struct nt_bus_record record;
	struct nt_bus_stats stats;

	assert_non_null(bytes);
	publish_foreign(mock, bytes, NT_BUS_MAX_KEY + 1, "v", 1, NULL, 0, 1000);
	publish_foreign(mock, "k", 1, bytes, NT_BUS_MAX_VALUE + 1, NULL, 0, 1000);
	publish_foreign(mock, "k", 1, "good", 4, NULL, 0, 1000);
	reader = open_reader(mock);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.value_len, 4);
	nt_bus_reader_stats(reader, &stats);
	assert_int_equal(stats.corrupt_frames, 2);
}

static void the_time_of_others_records_is_what_kafka_says(void **state)
{
	static const uint8_t seven[8] = {0, 0, 0, 0, 0, 0, 0, 7};
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;

	publish_foreign(mock, "k", 1, "v", 1, NULL, 0, 1000);
	publish_foreign(mock, "k", 1, "v", 1, seven, 3, 2000);
	publish_foreign(mock, "k", 1, "v", 1, seven, sizeof(seven), 3000);
	reader = open_reader(mock);
	assert_number(reader, 1000 * NT_MILLISECOND);
	assert_number(reader, 2000 * NT_MILLISECOND);
	assert_number(reader, 7);
}

static void no_key_and_no_value_are_empty_ones(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;

	publish_foreign(mock, NULL, 0, NULL, 0, NULL, 0, 1000);
	reader = open_reader(mock);
	assert_int_equal(nt_bus_reader_next(reader, PATIENCE_MS, &record), 1);
	assert_int_equal(record.key_len, 0);
	assert_int_equal(record.value_len, 0);
}

static void a_position_without_sense_is_refused(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = open_reader(*state);
	struct nt_bus_position position = {.topic = NT_TOPIC_WINDOW, .offset = UINT64_MAX};

	assert_int_equal(nt_bus_reader_seek(reader, &position), -EINVAL);
	position.offset = 0;
	position.partition = 4096;
	assert_int_equal(nt_bus_reader_seek(reader, &position), -EINVAL);
	position.partition = 4095;
	assert_int_equal(nt_bus_reader_seek(reader, &position), 0);
	assert_int_equal(nt_bus_reader_pause(reader, 1U << NT_TOPIC_END), -EINVAL);
}

static void what_a_group_needs_is_checked(void **state)
{
	const struct mock *mock = *state;
	struct nt_bus_group group = {.name = "g", .grouped = WINDOW};
	struct nt_bus_reader *reader = NULL;

	group.grouped = 0;
	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), -EINVAL);
	group.grouped = 1U << NT_TOPIC_NODE; /* not asked for */
	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), -EINVAL);
	group.grouped = WINDOW;
	group.name = "";
	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), -EINVAL);
	assert_null(reader);
}

struct owner {
	unsigned int assigned, revoked;
};

static void count_assigned(void *data, struct nt_bus_position *position)
{
	struct owner *owner = data;

	assert_int_equal(position->topic, NT_TOPIC_WINDOW);
	owner->assigned++;
	position->offset = 3; /* as from a store */
}

static void count_revoked(void *data, const struct nt_bus_position *position, bool is_lost)
{
	struct owner *owner = data;

	assert_int_equal(position->topic, NT_TOPIC_WINDOW);
	assert_false(is_lost);
	owner->revoked++;
}

static void the_only_member_gets_all_from_the_positions_of_its_store(void **state)
{
	struct mock *mock = *state;
	struct owner owner = {0};
	const struct nt_bus_group group = {
		.name = "g",
		.grouped = WINDOW,
		.assigned = count_assigned,
		.revoked = count_revoked,
		.data = &owner,
	};
	struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;

	publish_numbers(mock, 0, 10); /* one key: one partition, offsets 0 to 9 */
	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), 0);
	for (uint64_t i = 3; i < 10; i++)
		assert_number(reader, i);
	assert_int_equal(owner.assigned, 2);
	assert_int_equal(nt_bus_reader_next(reader, 10, &record), 0);
	nt_bus_reader_close(reader);
	assert_int_equal(owner.revoked, 2);
}

/* Its brokers are well at once, but the group's answer is taken in a call of ours. */
static void a_member_is_not_well_before_it_has_its_share(void **state)
{
	struct mock *mock = *state;
	struct owner owner = {0};
	const struct nt_bus_group group = {
		.name = "g",
		.grouped = WINDOW,
		.assigned = count_assigned,
		.revoked = count_revoked,
		.data = &owner,
	};
	struct nt_bus_reader *reader = NULL;
	struct nt_bus_health health;

	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), 0);
	nt_bus_reader_health(reader, &health);
	assert_int_equal(health.cause, NT_BUS_CONNECTING);
	assert_true(MOCK_EVENTUALLY((nt_bus_reader_health(reader, &health),
				     strstr(health.text, "a share of the work"))));
	assert_int_equal(health.cause, NT_BUS_CONNECTING);
	assert_int_equal(owner.assigned, 0);
	while (owner.assigned < 2)
		assert_int_equal(nt_bus_reader_next(reader, 20, &(struct nt_bus_record){0}), 0);
	nt_bus_reader_health(reader, &health);
	assert_int_equal(health.cause, NT_BUS_WELL);
	nt_bus_reader_close(reader);
}

static void count_lost(void *data, const struct nt_bus_position *position, bool is_lost)
{
	struct owner *owner = data;

	(void)position;
	(void)is_lost;
	owner->revoked++;
}

/* As brokers do that have lost sight of it: it is its own double, and nobody else's. */
static void a_member_that_is_fenced_off_before_its_share_has_lasted_joins_anew(void **state)
{
	struct mock *mock = *state;
	struct owner owner = {0};
	const struct nt_bus_group group = {
		.name = "g",
		.member = "one",
		.session_ns = 4 * NT_SECOND, /* the mock takes three for a round */
		.grouped = WINDOW,
		.assigned = count_assigned,
		.revoked = count_lost,
		.data = &owner,
	};
	struct nt_bus_reader *reader = NULL;
	struct nt_bus_health health;
	struct nt_bus_stats stats;

	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_JOIN_GROUP, 1,
					  RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), 0);
	for (int i = 0; i < 1000 && owner.assigned < 2; i++)
		assert_int_equal(nt_bus_reader_next(reader, 20, &(struct nt_bus_record){0}), 0);
	assert_int_equal(owner.assigned, 2);
	nt_bus_reader_health(reader, &health);
	assert_int_equal(health.cause, NT_BUS_WELL);
	nt_bus_reader_stats(reader, &stats);
	assert_true(stats.errors[NT_BUS_FENCED] > 0);
	nt_bus_reader_close(reader);
}

/* Two that fence each other off in turn come to an end: somebody has to look. */
static void a_member_that_is_fenced_off_again_and_again_gives_up(void **state)
{
	struct mock *mock = *state;
	struct owner owner = {0};
	const struct nt_bus_group group = {
		.name = "g",
		.member = "one",
		.session_ns = 200 * NT_MILLISECOND,
		.grouped = WINDOW,
		.assigned = count_assigned,
		.revoked = count_lost,
		.data = &owner,
	};
	struct nt_bus_reader *reader = NULL;
	struct nt_bus_health health;
	struct nt_bus_stats stats = {0};

	for (int i = 0; i < 4; i++)
		rd_kafka_mock_push_request_errors(mock->cluster, MOCK_JOIN_GROUP, 1,
						  RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
	assert_int_equal(nt_bus_reader_join(mock->url, WINDOW, NULL, &group, &reader), 0);
	for (int i = 0; i < 1000 && stats.errors[NT_BUS_FENCED] < 4; i++) {
		assert_int_equal(nt_bus_reader_next(reader, 20, &(struct nt_bus_record){0}), 0);
		stats = (struct nt_bus_stats){0};
		nt_bus_reader_stats(reader, &stats);
	}
	assert_int_equal(nt_bus_reader_next(reader, 500, &(struct nt_bus_record){0}), 0);
	nt_bus_reader_health(reader, &health);
	assert_int_equal(health.cause, NT_BUS_FENCED);
	assert_int_equal(owner.assigned, 0);
	nt_bus_reader_close(reader);
}

#define MOCK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOCK_TEST(a_reader_goes_on_when_its_broker_comes_back),
		MOCK_TEST(a_position_that_is_refused_though_it_is_there_is_kept),
		MOCK_TEST(a_client_that_gets_nothing_though_there_is_more_is_made_anew),
		MOCK_TEST(a_client_that_never_gets_anything_is_made_anew),
		MOCK_TEST(a_client_that_is_not_told_where_partitions_end_is_made_anew),
		cmocka_unit_test(without_a_broker_reading_waits_and_says_why),
		MOCK_TEST(what_was_removed_before_it_was_read_is_counted),
		MOCK_TEST(what_is_over_our_caps_is_passed_over_and_counted),
		MOCK_TEST(the_time_of_others_records_is_what_kafka_says),
		MOCK_TEST(no_key_and_no_value_are_empty_ones),
		MOCK_TEST(a_position_without_sense_is_refused),
		MOCK_TEST(what_a_group_needs_is_checked),
		MOCK_TEST(the_only_member_gets_all_from_the_positions_of_its_store),
		MOCK_TEST(a_member_is_not_well_before_it_has_its_share),
		MOCK_TEST(a_member_that_is_fenced_off_before_its_share_has_lasted_joins_anew),
		MOCK_TEST(a_member_that_is_fenced_off_again_and_again_gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
