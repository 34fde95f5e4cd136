/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A disk queue in front of brokers: kills, ends, a full disk, one that fails. */
#include <sys/wait.h>

#include "tests/unit/common/disk_queue_brokers.h"

/*
 * Does it in a process that then ends without a word, as if killed. What is only in memory is gone,
 * the queue of the bus behind included; what arrived has arrived.
 */
static void be_killed_after(void (*act)(unsigned int), unsigned int times, const char *dir)
{
	int status = -1;
	pid_t pid;

	nt_bus_close(nt_take(bus));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bus = open_disk_queue(dir);
		attach_brokers();
		act(times);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	brokers->queued = 0;
	brokers->taken = 0;
	bus = open_disk_queue(dir);
	attach_brokers();
}

static void send_into_outage(unsigned int turns)
{
	send_all(0, 200);
	turn();
	for (size_t i = 0; i < 100; i++)
		arrive(i);
	brokers->cause = NT_BUS_UNREACHABLE;
	for (unsigned int i = 0; i < turns; i++) {
		turn();
		send_all(200 + 10 * i, 210 + 10 * i);
	}
}

static void drain_for(unsigned int turns)
{
	brokers->cause = NT_BUS_WELL;
	for (unsigned int i = 0; i < turns; i++) {
		turn();
		for (size_t j = 0; j < brokers->taken; j++)
			if (j % 2 || j + 200 < brokers->taken)
				arrive(j);
	}
}

static void drain_to_the_end(void)
{
	brokers->cause = NT_BUS_WELL;
	for (int i = 0; i < 300; i++) {
		turn();
		arrive_all();
	}
	assert_int_equal(stats().bytes, 0);
}

/* Whatever is on disk, nothing older was only in memory: what is lost is the end. */
static void a_kill_in_an_outage_leaves_no_hole(void **state)
{
	for (unsigned int turns = 0; turns < 12; turns++) {
		uint64_t last = 0;

		memset(brokers, 0, sizeof(*brokers));
		brokers->room = MOST;
		attach_brokers();
		be_killed_after(send_into_outage, turns, *state);
		drain_to_the_end();
		for (uint64_t i = 0; i < 1000; i++)
			if (brokers->arrived[i])
				last = i;
		assert_arrived(0, last);
		/* The last turn wrote what was sent before it. */
		assert_true(last + 1 >= (turns ? 200 + 10 * (turns - 1) : 100));
	}
}

static void kills_in_the_middle_of_draining_lose_nothing(void **state)
{
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	send_all(0, 1000);
	turn();
	for (unsigned int kills = 0; kills < 12; kills++)
		be_killed_after(drain_for, 3 + 4 * kills, *state);
	drain_to_the_end();
	assert_arrived(0, 1000);
}

static void what_cannot_be_delivered_at_the_end_is_kept_for_the_next_start(void **state)
{
	send_all(0, 50);
	turn();
	nt_bus_close(nt_take(bus));
	assert_true(brokers->is_closed);
	bus = open_disk_queue(*state);
	attach_brokers();
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].found, 50);
	brokers->taken = 0;
	for (int i = 0; i < 50; i++) {
		turn();
		arrive_all();
	}
	assert_arrived(0, 50);
}

static void a_long_outage_loses_details_before_windows_and_counts_them(void **state)
{
	struct nt_disk_queue_stats got;

	(void)state;
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	for (uint64_t i = 0; i < 3000; i++) {
		assert_int_equal(send_as(NT_TOPIC_DETAIL, 2 * i), 0);
		assert_int_equal(send_as(NT_TOPIC_WINDOW, 2 * i + 1), 0);
		if (i % 10 == 0)
			turn();
	}
	turn();
	got = stats();
	assert_true(got.bytes <= 4 << 20);
	assert_int_equal(got.class[NT_DISK_QUEUE_VERDICT].evicted, 0);
	assert_true(got.class[NT_DISK_QUEUE_DETAIL].evicted > 1500);
	brokers->cause = NT_BUS_WELL;
	for (int i = 0; i < 1000; i++) {
		turn();
		arrive_all();
	}
	got = stats();
	assert_int_equal(got.class[NT_DISK_QUEUE_VERDICT].drained, 3000);
	assert_int_equal(got.class[NT_DISK_QUEUE_DETAIL].drained +
				 got.class[NT_DISK_QUEUE_DETAIL].evicted,
			 3000);
	assert_int_equal(brokers->arrivals, 3000 + got.class[NT_DISK_QUEUE_DETAIL].drained);
}

static void a_disk_that_takes_nothing_is_an_error_that_is_counted(void **state)
{
	struct nt_bus_stats got;
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%.200s/%s", (const char *)*state,
		       nt_topic_name(NT_TOPIC_WINDOW));
	/* A file where a directory ought to be. */
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	brokers->cause = NT_BUS_UNREACHABLE;
	turn();
	assert_true(send_as(NT_TOPIC_WINDOW, 1) < 0);
	assert_int_equal(stats().class[NT_DISK_QUEUE_VERDICT].dropped, 1);
	nt_bus_stats(bus, &got);
	assert_int_equal(got.dropped_full, 1);
	/* And not the end: */
	brokers->cause = NT_BUS_WELL;
	turn();
	assert_int_equal(send_as(NT_TOPIC_WINDOW, 2), 0);
	assert_int_equal(brokers->taken, 1);
}

static void a_spool_behind_it_gets_everything_too(void **state)
{
	char url[PATH_BYTES], dir[PATH_BYTES];
	struct nt_bus *disk_queue, *behind = NULL;

	(void)snprintf(dir, sizeof(dir), "%.200s/shelter", (const char *)*state);
	(void)snprintf(url, sizeof(url), "spool:%.200s/spool", (const char *)*state);
	disk_queue = open_disk_queue(dir);
	/* Before there is anything behind it. */
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(publish(disk_queue, NT_TOPIC_WINDOW, i, 64), 0);
	assert_int_equal(nt_bus_flush(disk_queue), 0);
	assert_int_equal(nt_bus_open(url, NULL, &behind), 0);
	nt_disk_queue_attach(disk_queue, behind);
	for (uint64_t i = 20; i < 40; i++)
		assert_int_equal(publish(disk_queue, NT_TOPIC_WINDOW, i, 64), 0);
	for (int i = 1; i < 20; i++)
		nt_disk_queue_turn(disk_queue, NT_HOUR + (uint64_t)i * NT_SECOND, NT_HOUR);
	nt_bus_close(disk_queue);
	{
		nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
		bool seen[40] = {false};

		assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_WINDOW, &reader), 0);
		for (int i = 0; i < 40; i++)
			seen[read_number(reader)] = true;
		assert_nothing_more(reader);
		for (int i = 0; i < 40; i++)
			assert_true(seen[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kill_in_an_outage_leaves_no_hole),
		TEST(kills_in_the_middle_of_draining_lose_nothing),
		TEST(what_cannot_be_delivered_at_the_end_is_kept_for_the_next_start),
		TEST(a_long_outage_loses_details_before_windows_and_counts_them),
		TEST(a_disk_that_takes_nothing_is_an_error_that_is_counted),
		TEST(a_spool_behind_it_gets_everything_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
