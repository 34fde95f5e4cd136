/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "tests/unit/common/kafka_mock.h"

enum {
	MAX_BACK = 64,
};

/* What was given back. */
struct back {
	unsigned int count;
	uint64_t number[MAX_BACK];
	enum nt_bus_cause cause;
};

static void keep(void *data, const struct nt_bus_record *record, enum nt_bus_cause cause)
{
	struct back *back = data;

	assert_true(back->count < MAX_BACK);
	assert_int_equal(record->value_len, sizeof(uint64_t));
	assert_int_equal(record->topic, NT_TOPIC_WINDOW);
	assert_int_equal(record->key_len, 1);
	memcpy(&back->number[back->count], record->value, sizeof(uint64_t));
	assert_int_equal(record->real_ns, back->number[back->count]);
	back->cause = cause;
	back->count++;
}

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

static struct nt_bus *open_with(const struct mock *mock, const struct nt_bus_options *options)
{
	struct nt_bus *bus = NULL;

	assert_int_equal(nt_bus_open(mock->url, options, &bus), 0);
	return bus;
}

static int publish_as(struct nt_bus *bus, const char *key, uint64_t number)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.key = key,
		.key_len = 1,
		.value = &number,
		.value_len = sizeof(number),
		.real_ns = number,
	};

	return nt_bus_publish(bus, &record);
}

static int publish(struct nt_bus *bus, uint64_t number)
{
	return publish_as(bus, "a", number);
}

static struct nt_bus_stats stats_of(const struct nt_bus *bus)
{
	struct nt_bus_stats stats;

	nt_bus_stats(bus, &stats);
	return stats;
}

static struct nt_bus_health health_of(const struct nt_bus *bus)
{
	struct nt_bus_health health;

	nt_bus_health(bus, &health);
	return health;
}

/* Until the writer has given back so many. */
static void wait_for_back(struct nt_bus *bus, const struct back *back, unsigned int count)
{
	assert_true(MOCK_EVENTUALLY(((void)!nt_bus_flush(bus), back->count >= count)));
	assert_int_equal(back->count, count);
}

static void what_brokers_acknowledge_is_counted_and_leaves_the_queue(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_with(*state, NULL);

	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(stats_of(bus).delivered, 100);
	assert_int_equal(stats_of(bus).queued_now, 0);
	assert_int_equal(stats_of(bus).queued_bytes_now, 0);
	assert_int_equal(health_of(bus).cause, NT_BUS_WELL);
	assert_string_equal(health_of(bus).text, "");
}

static void an_idle_writer_finds_out_that_its_brokers_answer(void **state)
{
	nt_auto(nt_bus) struct nt_bus *bus = open_with(*state, NULL);

	assert_true(MOCK_EVENTUALLY(health_of(bus).cause == NT_BUS_WELL));
}

static void errors_that_pass_cost_nothing(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	rd_kafka_mock_push_request_errors(
		mock->cluster, MOCK_PRODUCE, 3, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
		RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
	bus = open_with(mock, NULL);
	for (uint64_t i = 1; i <= 10; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(stats_of(bus).delivered, 10);
	assert_int_equal(stats_of(bus).undelivered[NT_BUS_TIMED_OUT], 0);
}

static void a_full_queue_refuses_and_counts(void **state)
{
	const struct nt_bus_options options = {
		.queue_records = 10, .flush_ns = NT_MILLISECOND, .close_ns = NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_int_equal(publish(bus, 10), -EAGAIN);
	assert_int_equal(publish(bus, 11), -EAGAIN);
	assert_int_equal(stats_of(bus).dropped_full, 2);
	assert_int_equal(stats_of(bus).published, 10);
	assert_int_equal(stats_of(bus).queued_now, 10);
}

static void a_queue_is_full_by_bytes_too(void **state)
{
	const struct nt_bus_options options = {
		.queue_bytes = 64 << 10, .flush_ns = NT_MILLISECOND, .close_ns = NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	static const char value[10000];
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW, .value = value, .value_len = sizeof(value)};

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	for (int i = 0; i < 6; i++)
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_publish(bus, &record), -EAGAIN);
	assert_in_range(stats_of(bus).queued_bytes_now, 60000, 64 << 10);
	assert_int_equal(stats_of(bus).dropped_full, 1);
}

static void brokers_that_come_back_get_what_waited_in_order(void **state)
{
	const struct nt_bus_options options = {.flush_ns = 20 * NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_record record;

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	for (uint64_t i = 1; i <= 20; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_true(MOCK_EVENTUALLY(health_of(bus).cause == NT_BUS_UNREACHABLE));
	assert_int_equal(nt_bus_flush(bus), -ETIMEDOUT);
	assert_int_equal(stats_of(bus).queued_now, 20);
	rd_kafka_mock_broker_set_up(mock->cluster, 1);
	assert_true(MOCK_EVENTUALLY(nt_bus_flush(bus) == 0));
	assert_int_equal(stats_of(bus).delivered, 20);
	assert_int_equal(health_of(bus).cause, NT_BUS_WELL);

	assert_int_equal(nt_bus_reader_open(mock->url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	for (uint64_t i = 1; i <= 20; i++) {
		assert_int_equal(nt_bus_reader_next(reader, 10000, &record), 1);
		assert_int_equal(record.real_ns, i);
	}
}

/* The next record of the topic as any client sees it: its time, and whether it has a header. */
static void read_plainly(rd_kafka_queue_t *queue, int64_t *ret_ms, bool *ret_has_header)
{
	rd_kafka_headers_t *headers;
	rd_kafka_message_t *message = rd_kafka_consume_queue(queue, 10000);

	assert_non_null(message);
	assert_int_equal(message->err, RD_KAFKA_RESP_ERR_NO_ERROR);
	*ret_ms = rd_kafka_message_timestamp(message, NULL);
	*ret_has_header = rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR;
	rd_kafka_message_destroy(message);
}

static void a_time_that_kafka_itself_can_tell_takes_no_header(void **state)
{
	const struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = open_with(mock, NULL);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, NULL, NULL, 0);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "neutracer.window.v1", NULL);
	bool has_header;
	int64_t ms;

	assert_int_equal(publish(bus, 1763700000123 * NT_MILLISECOND), 0);
	assert_int_equal(publish(bus, 1763700000123 * NT_MILLISECOND + 1), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(rd_kafka_brokers_add(rk, rd_kafka_mock_cluster_bootstraps(mock->cluster)),
			 1);
	for (int32_t i = 0; i < 2; i++)
		assert_int_equal(
			rd_kafka_consume_start_queue(topic, i, RD_KAFKA_OFFSET_BEGINNING, queue),
			0);
	read_plainly(queue, &ms, &has_header);
	assert_int_equal(ms, 1763700000123);
	assert_false(has_header);
	read_plainly(queue, &ms, &has_header);
	assert_int_equal(ms, 1763700000123);
	assert_true(has_header);
	for (int32_t i = 0; i < 2; i++)
		assert_int_equal(rd_kafka_consume_stop(topic, i), 0);
	rd_kafka_topic_destroy(topic);
	rd_kafka_queue_destroy(queue);
	rd_kafka_destroy(rk);
}

static void brokers_that_went_are_not_suspected_of_tls(void **state)
{
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = open_with(mock, NULL);

	assert_int_equal(publish(bus, 1), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	assert_true(MOCK_EVENTUALLY(health_of(bus).cause == NT_BUS_UNREACHABLE));
	assert_null(strstr(health_of(bus).text, "TLS"));
	assert_true(MOCK_EVENTUALLY(strstr(health_of(bus).text, "refused")));
}

static void a_flush_ends_when_its_time_is_over(void **state)
{
	const struct nt_bus_options options = {.flush_ns = 50 * NT_MILLISECOND,
					       .close_ns = NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	uint64_t begin_ns;

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	assert_int_equal(publish(bus, 1), 0);
	begin_ns = nt_clock_mono_ns();
	assert_int_equal(nt_bus_flush(bus), -ETIMEDOUT);
	assert_true(nt_clock_mono_ns() - begin_ns >= 50 * NT_MILLISECOND);
	assert_true(nt_clock_mono_ns() - begin_ns < 5 * NT_SECOND);
}

static void what_cannot_be_delivered_in_time_is_given_back_in_order(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {
		.give_up_ns = 300 * NT_MILLISECOND,
		.flush_ns = NT_MILLISECOND,
		.undelivered = keep,
		.data = &back,
	};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	for (uint64_t i = 1; i <= 20; i++)
		assert_int_equal(publish(bus, i), 0);
	wait_for_back(bus, &back, 20);
	for (uint64_t i = 1; i <= 20; i++)
		assert_int_equal(back.number[i - 1], i);
	assert_int_equal(back.cause, NT_BUS_UNREACHABLE);
	assert_int_equal(stats_of(bus).undelivered[NT_BUS_UNREACHABLE], 20);
	assert_int_equal(stats_of(bus).queued_now, 0);
	assert_non_null(strstr(health_of(bus).text, "no broker answers at 127.0.0.1:"));
}

static void without_a_taker_it_is_counted_and_dropped(void **state)
{
	const struct nt_bus_options options = {.give_up_ns = 200 * NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(stats_of(bus).undelivered[NT_BUS_UNREACHABLE], 5);
	assert_int_equal(stats_of(bus).delivered, 0);
}

static void closing_gives_back_what_is_left(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {
		.flush_ns = 10 * NT_MILLISECOND,
		.close_ns = 10 * NT_MILLISECOND,
		.undelivered = keep,
		.data = &back,
	};
	struct mock *mock = *state;
	struct nt_bus *bus;

	MOCK_SOON(mock, rd_kafka_mock_broker_set_down(mock->cluster, 1));
	bus = open_with(mock, &options);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(publish(bus, i), 0);
	nt_bus_close(bus);
	assert_int_equal(back.count, 3);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(back.number[i - 1], i);
}

static void a_topic_that_is_not_there_is_named(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {
		.undelivered = keep, .data = &back, .flush_ns = NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	MOCK_SOON(mock, (rd_kafka_mock_topic_set_error(mock->cluster, "neutracer.window.v1",
						       RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
			 0));
	bus = open_with(mock, &options);
	assert_int_equal(publish(bus, 1), 0);
	wait_for_back(bus, &back, 1);
	assert_int_equal(back.cause, NT_BUS_NO_TOPIC);
	assert_int_equal(health_of(bus).cause, NT_BUS_NO_TOPIC);
	assert_string_equal(health_of(bus).text, "there is no topic 'neutracer.window.v1': "
						 "'neutracer topics create' creates it");
	assert_int_equal(stats_of(bus).errors[NT_BUS_NO_TOPIC], 1);
}

static void a_record_that_is_too_large_for_its_topic_is_given_back(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {
		.undelivered = keep, .data = &back, .flush_ns = NT_MILLISECOND};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	bus = open_with(mock, &options);
	assert_int_equal(publish(bus, 1), 0);
	wait_for_back(bus, &back, 1);
	assert_int_equal(back.cause, NT_BUS_TOO_LARGE);
	assert_non_null(strstr(health_of(bus).text, "too large for topic 'neutracer.window.v1'"));
	/* The writer lives. */
	assert_int_equal(publish(bus, 2), 0);
	assert_true(MOCK_EVENTUALLY(((void)!nt_bus_flush(bus), stats_of(bus).delivered == 1)));
}

static void after_a_fatal_error_a_new_client_sends_all_again(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {.undelivered = keep, .data = &back};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_INIT_PRODUCER_ID, 1,
					  RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
	bus = open_with(mock, &options);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_true(MOCK_EVENTUALLY(((void)!nt_bus_flush(bus), stats_of(bus).delivered == 5)));
	assert_int_equal(stats_of(bus).reconnected, 1);
	assert_int_equal(stats_of(bus).errors[NT_BUS_DENIED], 1);
	assert_int_equal(back.count, 0);
	assert_int_equal(health_of(bus).cause, NT_BUS_WELL);
}

/* The library refuses at once, with the error itself, and the thread hears of it a little later. */
static void what_comes_between_a_fatal_error_and_the_next_client_is_taken(void **state)
{
	const struct timespec pause = {.tv_nsec = 10000};
	struct mock *mock = *state;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	uint64_t published = 0;

	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_INIT_PRODUCER_ID, 1,
					  RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
	bus = open_with(mock, NULL);
	while (!stats_of(bus).reconnected) {
		int r = publish(bus, published + 1);

		assert_true(r == 0 || r == -EAGAIN); /* the queue is full: a slow machine */
		published += r == 0;
		(void)nanosleep(&pause, NULL);
	}
	assert_true(
		MOCK_EVENTUALLY(((void)!nt_bus_flush(bus), stats_of(bus).delivered == published)));
	assert_int_equal(stats_of(bus).reconnected, 1);
}

/* Both partitions' batches are under way when the answer to the first one is fatal. */
static void what_is_acknowledged_after_a_fatal_error_is_not_sent_again(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {.undelivered = keep, .data = &back};
	struct mock *mock = *state;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	struct nt_bus_record record;
	const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	const unsigned int count = sizeof(keys) / sizeof(keys[0]);
	unsigned int times = 0;

	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_PRODUCE, 1,
					  RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	bus = open_with(mock, &options);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(publish_as(bus, keys[i], i), 0);
	assert_true(MOCK_EVENTUALLY(((void)!nt_bus_flush(bus), stats_of(bus).delivered == count)));
	assert_int_equal(stats_of(bus).reconnected, 1);
	assert_int_equal(back.count, 0);
	assert_int_equal(nt_bus_reader_open(mock->url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	while (nt_bus_reader_next(reader, times ? 300 : 10000, &record) == 1)
		times++;
	assert_int_equal(times, count);
}

/*
 * In front of the library's: a handle takes long to go, as one with connections may, and who wakes
 * a queue that is gone is noticed, not left to luck.
 */
static atomic_bool goes_slowly, is_going;
static _Atomic(rd_kafka_queue_t *) gone;
static atomic_uint woken_when_gone;

void rd_kafka_queue_destroy(rd_kafka_queue_t *queue)
{
	void (*destroy)(rd_kafka_queue_t *) = dlsym(RTLD_NEXT, "rd_kafka_queue_destroy");

	atomic_store(&gone, queue);
	destroy(queue);
}

void rd_kafka_destroy(rd_kafka_t *rk)
{
	const struct timespec while_others_act = {.tv_nsec = 300000000};
	void (*destroy)(rd_kafka_t *) = dlsym(RTLD_NEXT, "rd_kafka_destroy");

	if (atomic_load(&goes_slowly)) {
		atomic_store(&is_going, true);
		(void)nanosleep(&while_others_act, NULL);
	}
	destroy(rk);
	/* Its address may be another's soon. */
	atomic_store(&gone, NULL);
}

void rd_kafka_queue_yield(rd_kafka_queue_t *queue)
{
	void (*yield)(rd_kafka_queue_t *) = dlsym(RTLD_NEXT, "rd_kafka_queue_yield");

	if (queue == atomic_load(&gone))
		atomic_fetch_add(&woken_when_gone, 1);
	else
		yield(queue);
}

static void closing_while_the_client_is_made_anew_touches_no_old_one(void **state)
{
	struct back back = {0};
	const struct nt_bus_options options = {
		.flush_ns = NT_MILLISECOND,
		.close_ns = NT_MILLISECOND,
		.undelivered = keep,
		.data = &back,
	};
	struct mock *mock = *state;
	struct nt_bus *bus;

	rd_kafka_mock_push_request_errors(mock->cluster, MOCK_INIT_PRODUCER_ID, 1,
					  RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
	bus = open_with(mock, &options);
	atomic_store(&goes_slowly, true);
	assert_int_equal(publish(bus, 1), 0);
	assert_true(MOCK_EVENTUALLY(atomic_load(&is_going)));
	nt_bus_close(bus);
	atomic_store(&goes_slowly, false);
	assert_int_equal(atomic_load(&woken_when_gone), 0);
	assert_int_equal(back.count, 1);
}

static void one_broker_of_three_may_go(void **state)
{
	struct mock three = {0};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;

	(void)state;
	assert_int_equal(mock_make(&three, 3, 3), 0);
	bus = open_with(&three, NULL);
	for (uint64_t i = 1; i <= 10; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	for (int i = 0; i < 3; i++)
		MOCK_SOON(&three, rd_kafka_mock_partition_set_leader(three.cluster,
								     "neutracer.window.v1", i, 2));
	MOCK_SOON(&three, rd_kafka_mock_broker_set_down(three.cluster, 1));
	for (uint64_t i = 11; i <= 20; i++)
		assert_int_equal(publish(bus, i), 0);
	assert_true(MOCK_EVENTUALLY(((void)!nt_bus_flush(bus), stats_of(bus).delivered == 20)));
	assert_int_equal(health_of(bus).cause, NT_BUS_WELL);
	nt_bus_close(nt_take(bus));
	mock_remove(&three);
}

#define MOCK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOCK_TEST(what_brokers_acknowledge_is_counted_and_leaves_the_queue),
		MOCK_TEST(an_idle_writer_finds_out_that_its_brokers_answer),
		MOCK_TEST(errors_that_pass_cost_nothing),
		MOCK_TEST(a_full_queue_refuses_and_counts),
		MOCK_TEST(a_queue_is_full_by_bytes_too),
		MOCK_TEST(brokers_that_come_back_get_what_waited_in_order),
		MOCK_TEST(brokers_that_went_are_not_suspected_of_tls),
		MOCK_TEST(a_time_that_kafka_itself_can_tell_takes_no_header),
		MOCK_TEST(a_flush_ends_when_its_time_is_over),
		MOCK_TEST(what_cannot_be_delivered_in_time_is_given_back_in_order),
		MOCK_TEST(without_a_taker_it_is_counted_and_dropped),
		MOCK_TEST(closing_gives_back_what_is_left),
		MOCK_TEST(a_topic_that_is_not_there_is_named),
		MOCK_TEST(a_record_that_is_too_large_for_its_topic_is_given_back),
		MOCK_TEST(after_a_fatal_error_a_new_client_sends_all_again),
		MOCK_TEST(what_comes_between_a_fatal_error_and_the_next_client_is_taken),
		MOCK_TEST(what_is_acknowledged_after_a_fatal_error_is_not_sent_again),
		MOCK_TEST(closing_while_the_client_is_made_anew_touches_no_old_one),
		cmocka_unit_test(one_broker_of_three_may_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
