/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A disk queue in front of Kafka: what goes in while brokers come and go is there in the end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/bus/bus_disk_queue.h"
#include "tests/unit/common/kafka_mock.h"
#include "tests/unit/scratch.h"

enum {
	MOST = 4000,
};

struct place {
	struct mock mock;
	char dir[SCRATCH_BYTES];
	struct nt_bus *bus;
	uint64_t sent;
};

static void open_place(struct place *place)
{
	const struct nt_disk_queue_options options = {
		.dir = place->dir,
		.limits = {.max_bytes = 4 << 20},
		.least_rate = 1 << 20,
	};
	struct nt_bus_options behind_options = {
		.undelivered = nt_disk_queue_undelivered,
		.give_up_ns = 2 * NT_SECOND,
		.flush_ns = NT_SECOND,
	};
	struct nt_bus *behind = NULL;

	assert_int_equal(nt_disk_queue_open(&options, &place->bus), 0);
	behind_options.data = place->bus;
	assert_int_equal(nt_bus_open(place->mock.url, &behind_options, &behind), 0);
	nt_disk_queue_attach(place->bus, behind);
}

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	*state = place;
	if (!place || scratch_make_in_memory(place->dir) < 0)
		return -1;
	return mock_make(&place->mock, 1, 2);
}

static int tear_down(void **state)
{
	struct place *place = *state;

	mock_remove(&place->mock);
	scratch_remove(place->dir);
	free(place);
	return 0;
}

static struct nt_disk_queue_stats stats_of(const struct place *place)
{
	struct nt_disk_queue_stats stats;

	nt_disk_queue_stats(place->bus, &stats);
	return stats;
}

/* One more record, and a turn. */
static bool go_on(struct place *place)
{
	const uint64_t number = place->sent++;
	const char key = (char)('a' + number % 5);
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.key = &key,
		.key_len = 1,
		.value = &number,
		.value_len = sizeof(number),
		.real_ns = nt_clock_real_ns(),
	};

	assert_true(number < MOST);
	assert_int_equal(nt_bus_publish(place->bus, &record), 0);
	nt_disk_queue_turn(place->bus, nt_clock_mono_ns(), nt_clock_real_ns());
	return true;
}

static bool is_away(struct place *place)
{
	return go_on(place) && stats_of(place).is_away;
}

static bool is_drained(struct place *place)
{
	nt_disk_queue_turn(place->bus, nt_clock_mono_ns(), nt_clock_real_ns());
	return !stats_of(place).is_away && stats_of(place).bytes == 0;
}

/* How many came; each must have come once at least. */
static uint64_t read_all(const struct place *place)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	nt_autofree bool *seen = calloc(MOST, sizeof(*seen));
	struct nt_bus_record record;
	uint64_t count = 0, distinct = 0, number;

	assert_non_null(seen);
	assert_int_equal(nt_bus_reader_open(place->mock.url, 1U << NT_TOPIC_WINDOW, &reader), 0);
	while (distinct < place->sent) {
		if (nt_bus_reader_next(reader, 10000, &record) != 1)
			break;
		memcpy(&number, record.value, sizeof(number));
		assert_true(number < place->sent);
		distinct += !seen[number];
		seen[number] = true;
		count++;
	}
	assert_int_equal(distinct, place->sent);
	return count;
}

static void an_outage_in_the_middle_loses_nothing(void **state)
{
	struct place *place = *state;

	open_place(place);
	for (int i = 0; i < 100; i++)
		(void)go_on(place);
	assert_int_equal(rd_kafka_mock_broker_set_down(place->mock.cluster, 1), 0);
	assert_true(MOCK_EVENTUALLY(is_away(place)));
	for (int i = 0; i < 200; i++)
		(void)go_on(place);
	assert_true(stats_of(place).class[NT_DISK_QUEUE_VERDICT].stored >= 200);
	assert_int_equal(rd_kafka_mock_broker_set_up(place->mock.cluster, 1), 0);
	assert_true(MOCK_EVENTUALLY(is_drained(place)));
	for (int i = 0; i < 100; i++)
		(void)go_on(place);
	nt_bus_close(nt_take(place->bus));
	assert_true(read_all(place) >= place->sent);
}

static void an_end_while_brokers_are_away_leaves_all_to_the_next_start(void **state)
{
	struct place *place = *state;

	open_place(place);
	assert_int_equal(rd_kafka_mock_broker_set_down(place->mock.cluster, 1), 0);
	for (int i = 0; i < 50; i++)
		(void)go_on(place);
	nt_bus_close(nt_take(place->bus));

	open_place(place);
	assert_int_equal(stats_of(place).class[NT_DISK_QUEUE_VERDICT].found, place->sent);
	assert_int_equal(rd_kafka_mock_broker_set_up(place->mock.cluster, 1), 0);
	assert_true(MOCK_EVENTUALLY(is_drained(place)));
	nt_bus_close(nt_take(place->bus));
	assert_int_equal(read_all(place), place->sent);
}

static void a_queue_that_is_full_spills_into_the_disk_queue(void **state)
{
	const struct nt_disk_queue_options options = {
		.dir = ((struct place *)*state)->dir,
		.limits = {.max_bytes = 4 << 20},
		.least_rate = 1 << 20,
	};
	struct place *place = *state;
	struct nt_bus_options behind_options = {
		.undelivered = nt_disk_queue_undelivered,
		.queue_records = 20,
		.linger_ns = 50 * NT_MILLISECOND,
	};
	struct nt_bus *behind = NULL;

	assert_int_equal(nt_disk_queue_open(&options, &place->bus), 0);
	behind_options.data = place->bus;
	assert_int_equal(nt_bus_open(place->mock.url, &behind_options, &behind), 0);
	nt_disk_queue_attach(place->bus, behind);
	for (int i = 0; i < 300; i++)
		(void)go_on(place);
	assert_true(stats_of(place).outages > 0);
	assert_true(MOCK_EVENTUALLY(is_drained(place)));
	nt_bus_close(nt_take(place->bus));
	assert_true(read_all(place) >= place->sent);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_outage_in_the_middle_loses_nothing),
		TEST(an_end_while_brokers_are_away_leaves_all_to_the_next_start),
		TEST(a_queue_that_is_full_spills_into_the_disk_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
