/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A disk queue in front of brokers: outage, backlog, records that brokers refuse. */
#include "tests/unit/common/disk_queue_brokers.h"

static void with_brokers_nothing_goes_to_disk(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		send_all(i * 10, i * 10 + 10);
		turn();
		arrive_all();
	}
	assert_int_equal(brokers->arrivals, 500);
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].stored, 0);
	assert_int_equal(stats().outages, 0);
	assert_int_equal(stats().bytes, 0);
}

static void what_is_sent_while_brokers_are_away_arrives_once_after_it(void **state)
{
	uint64_t number = 0;

	(void)state;
	send_all(0, 100);
	arrive_all();
	turn();
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	for (number = 100; number < 1100; number += 10) {
		send_all(number, number + 10);
		turn();
	}
	assert_int_equal(stats().is_away, 1);
	assert_int_equal(brokers->taken, 100);
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].stored, 1000);
	brokers->cause = NT_BUS_WELL;
	turn();
	for (; stats().class[NT_DISK_QUEUE_VERDICT].left; number += 10) {
		send_all(number, number + 10);
		arrive_all();
		turn();
		assert_true(number < 5000);
	}
	arrive_all();
	turn();
	assert_arrived(0, number);
	assert_int_equal(brokers->arrivals, number);
	assert_int_equal(stats().bytes, 0);
	assert_int_equal(stats().outages, 1);
}

/* 100 records a second, and so at most 200 of the backlog. */
static void the_backlog_follows_live_records_at_twice_their_rate(void **state)
{
	uint64_t number = 0, live, late;

	(void)state;
	for (int i = 0; i < 200; i++, number += 10) {
		send_all(number, number + 10);
		arrive_all();
		turn();
	}
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	for (int i = 0; i < 200; i++, number += 10) {
		send_all(number, number + 10);
		turn();
	}
	brokers->cause = NT_BUS_WELL;
	turn();
	arrive_all();
	live = number;
	brokers->arrivals = 0;
	for (int i = 0; i < 50; i++, number += 10) {
		send_all(number, number + 10);
		turn();
		arrive_all();
	}
	/* Every live record came at once, 5 s of them; what came with them is oldest first. */
	late = brokers->arrivals - (number - live);
	assert_in_range(late, 900, 1100);
	for (size_t i = 0, last = 0; i < brokers->arrivals; i++) {
		if (brokers->order[i] >= live)
			continue;
		assert_true(brokers->order[i] > last);
		last = brokers->order[i];
	}
	assert_arrived(live, number);
}

static void a_small_backlog_is_drained_though_nothing_else_is_sent(void **state)
{
	(void)state;
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	send_all(0, 200);
	turn();
	brokers->cause = NT_BUS_WELL;
	for (int i = 0; i < 25; i++) {
		turn();
		arrive_all();
	}
	assert_int_equal(brokers->arrivals, 200);
}

static void a_full_queue_sends_records_to_the_disk_queue_and_loses_none(void **state)
{
	(void)state;
	brokers->room = 30;
	send_all(0, 100);
	turn();
	assert_int_equal(stats().is_away, 1);
	/* All of them: the queue is only in memory. */
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].stored, 100);
	for (int i = 0; i < 100; i++) {
		arrive_all();
		turn();
	}
	assert_arrived(0, 100);
	/* Those that were in the queue came twice. */
	assert_int_equal(brokers->arrivals, 130);
	assert_int_equal(stats().bytes, 0);
}

static void what_is_given_back_is_sent_again(void **state)
{
	(void)state;
	send_all(0, 100);
	turn();
	for (size_t i = 0; i < 100; i++) {
		if (i % 3)
			arrive(i);
		else
			fail_one(i, NT_BUS_TIMED_OUT);
	}
	turn();
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].stored, 34);
	assert_int_equal(stats().given_back, 34);
	assert_int_equal(stats().is_away, 0);
	for (int i = 0; i < 100; i++) {
		turn();
		arrive_all();
	}
	assert_arrived(0, 100);
	assert_int_equal(brokers->arrivals, 100);
}

static void what_brokers_never_take_is_counted_not_sent_for_ever(void **state)
{
	(void)state;
	send_all(0, 10);
	turn();
	fail_one(3, NT_BUS_TOO_LARGE);
	assert_int_equal(stats().refused[NT_DISK_QUEUE_VERDICT], 1);
	arrive_all();
	for (int i = 0; i < 100; i++)
		turn();
	assert_int_equal(brokers->taken, 10);
}

static void what_fails_while_it_is_drained_stays_in_the_disk_queue(void **state)
{
	(void)state;
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	send_all(0, 500);
	turn();
	for (int flap = 0; flap < 20; flap++) {
		brokers->cause = NT_BUS_WELL;
		for (int i = 0; i < 60; i++) {
			turn();
			for (size_t j = 0; j < brokers->taken; j += 2)
				arrive(j);
		}
		brokers->cause = NT_BUS_UNREACHABLE;
		turn();
		fail_all(NT_BUS_UNREACHABLE);
		turn();
	}
	brokers->cause = NT_BUS_WELL;
	for (int i = 0; i < 200; i++) {
		turn();
		arrive_all();
	}
	assert_arrived(0, 500);
	assert_int_equal(brokers->arrivals, 500);
	assert_int_equal(stats().bytes, 0);
	assert_int_equal(stats().outages, 21);
}

/* Brokers that accept connections and say nothing. */
static void brokers_that_answer_nothing_are_away(void **state)
{
	uint64_t number = 0;

	(void)state;
	for (int i = 0; i < 60; i++, number += 10) {
		send_all(number, number + 10);
		turn();
	}
	assert_int_equal(stats().is_away, 1);
	assert_true(brokers->taken < 350);
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].stored, 600);
	fail_all(NT_BUS_TIMED_OUT);
	for (int i = 0; i < 200; i++) {
		turn();
		arrive_all();
	}
	assert_arrived(0, 600);
	assert_int_equal(brokers->arrivals, 600);
}

static void one_partition_that_waits_does_not_keep_the_others(void **state)
{
	uint64_t number = 0;

	(void)state;
	for (int i = 0; i < 100; i++, number += 10) {
		send_all(number, number + 10);
		turn();
		for (size_t j = 1; j < brokers->taken; j++)
			arrive(j);
	}
	assert_int_equal(stats().is_away, 0);
	assert_int_equal(brokers->arrivals, 999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(with_brokers_nothing_goes_to_disk),
		TEST(what_is_sent_while_brokers_are_away_arrives_once_after_it),
		TEST(the_backlog_follows_live_records_at_twice_their_rate),
		TEST(a_small_backlog_is_drained_though_nothing_else_is_sent),
		TEST(a_full_queue_sends_records_to_the_disk_queue_and_loses_none),
		TEST(what_is_given_back_is_sent_again),
		TEST(what_brokers_never_take_is_counted_not_sent_for_ever),
		TEST(what_fails_while_it_is_drained_stays_in_the_disk_queue),
		TEST(brokers_that_answer_nothing_are_away),
		TEST(one_partition_that_waits_does_not_keep_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
