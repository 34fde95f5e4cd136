/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus_shelter.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/bus_impl.h"
#include "common/clock.h"
#include "tests/unit/spool.h"

enum {
	MOST = 20000, /* records of a test */
	BIG = 1000, /* bytes of one */
	TICK_MS = 100,
};

/*
 * The bus behind, as brokers would make it: what it takes waits in its queue until the test says
 * what becomes of it. A number is what a record begins with, and stands for its sequence number.
 */
struct brokers {
	struct nt_bus bus;
	struct nt_bus_record queue[MOST]; /* all that was ever taken; value: the number */
	uint64_t value[MOST];
	enum { QUEUED, ARRIVED, RETURNED } state[MOST];
	size_t taken, room; /* room: of the queue */
	size_t queued;
	uint64_t delivered;
	enum nt_bus_cause cause;
	struct nt_bus *shelter;
	unsigned int arrived[MOST]; /* how often each number did */
	uint64_t order[MOST]; /* in which they did */
	size_t arrivals;
	bool is_closed;
};

static struct brokers *brokers; /* outlive the bus that they are to the shelter */
static struct nt_bus *bus;
static uint64_t mono_ns;

static int take(struct nt_bus *behind, const struct nt_bus_record *record)
{
	struct brokers *b = (struct brokers *)behind;

	if (b->queued >= b->room)
		return -EAGAIN;
	assert_true(b->taken < MOST);
	b->queue[b->taken] = *record;
	b->value[b->taken] = number_of(record);
	b->queue[b->taken].key = "key";
	b->queue[b->taken].key_len = 3;
	b->queue[b->taken].offset = b->taken + 1;
	b->state[b->taken++] = QUEUED;
	b->queued++;
	return 0;
}

static uint64_t settled(const struct nt_bus *behind)
{
	const struct brokers *b = (const struct brokers *)behind;
	size_t n = 0;

	while (n < b->taken && b->state[n] != QUEUED)
		n++;
	return n;
}

static void each_unsettled(struct nt_bus *behind,
			   void (*fn)(void *data, const struct nt_bus_record *record), void *data)
{
	struct brokers *b = (struct brokers *)behind;

	for (size_t i = 0; i < b->taken; i++) {
		char value[BIG] = {0};

		memcpy(value, &b->value[i], sizeof(b->value[i]));
		b->queue[i].value = value;
		if (b->state[i] == QUEUED)
			fn(data, &b->queue[i]);
	}
}

static void give_back(struct nt_bus *behind)
{
	(void)behind;
}

static int flush_brokers(struct nt_bus *behind)
{
	(void)behind;
	fail(); /* it would wait */
	return 0;
}

static void get_stats(const struct nt_bus *behind, struct nt_bus_stats *stats)
{
	stats->delivered = ((const struct brokers *)behind)->delivered;
}

static void get_health(const struct nt_bus *behind, struct nt_bus_health *ret_health)
{
	ret_health->cause = ((const struct brokers *)behind)->cause;
}

static void arrive(size_t i)
{
	if (brokers->state[i] != QUEUED)
		return;
	brokers->state[i] = ARRIVED;
	brokers->queued--;
	brokers->delivered++;
	brokers->arrived[brokers->value[i]]++;
	brokers->order[brokers->arrivals++] = brokers->value[i];
}

static void fail_one(size_t i, enum nt_bus_cause cause)
{
	char value[BIG] = {0};

	if (brokers->state[i] != QUEUED)
		return;
	memcpy(value, &brokers->value[i], sizeof(brokers->value[i]));
	brokers->queue[i].value = value;
	brokers->state[i] = RETURNED;
	brokers->queued--;
	nt_shelter_undelivered(brokers->shelter, &brokers->queue[i], cause);
}

static void arrive_all(void)
{
	for (size_t i = 0; i < brokers->taken; i++)
		arrive(i);
}

static void fail_all(enum nt_bus_cause cause)
{
	for (size_t i = 0; i < brokers->taken; i++)
		fail_one(i, cause);
}

static void close_brokers(struct nt_bus *behind)
{
	(void)behind;
	brokers->is_closed = true;
	fail_all(NT_BUS_TIMED_OUT);
}

static struct nt_bus *open_shelter(const char *dir)
{
	const struct nt_shelter_options options = {
		.dir = dir,
		.limits = {.max_bytes = 4 << 20, .max_age_ns = NT_HOUR},
		.least_rate = 100 * BIG,
	};
	struct nt_bus *shelter = NULL;

	assert_int_equal(nt_shelter_open(&options, &shelter), 0);
	return shelter;
}

static void attach_brokers(void)
{
	brokers->bus = (struct nt_bus){
		.close = close_brokers,
		.publish = take,
		.flush = flush_brokers,
		.get_stats = get_stats,
		.get_health = get_health,
		.settled = settled,
		.give_back = give_back,
		.each_unsettled = each_unsettled,
	};
	brokers->is_closed = false;
	brokers->shelter = bus;
	nt_shelter_attach(bus, &brokers->bus);
}

static int set_up(void **state)
{
	if (make_scratch(state) < 0)
		return -1;
	brokers = mmap(NULL, sizeof(*brokers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(brokers != MAP_FAILED);
	brokers->room = MOST;
	mono_ns = NT_HOUR;
	bus = open_shelter(*state);
	attach_brokers();
	return 0;
}

static int tear_down(void **state)
{
	nt_bus_close(nt_take(bus));
	assert_int_equal(munmap(nt_take(brokers), sizeof(*brokers)), 0);
	return remove_scratch(state);
}

static void turn(void)
{
	mono_ns += TICK_MS * NT_MILLISECOND;
	nt_shelter_turn(bus, mono_ns, NT_DAY);
}

static int send_as(enum nt_topic topic, uint64_t number)
{
	char value[BIG] = {0};
	const struct nt_bus_record record = {
		.topic = topic,
		.key = "key",
		.key_len = 3,
		.value = value,
		.value_len = sizeof(value),
		.real_ns = NT_DAY + number,
	};

	memcpy(value, &number, sizeof(number));
	return nt_bus_publish(bus, &record);
}

static void send_all(uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++)
		assert_int_equal(send_as(NT_TOPIC_WINDOW, number), 0);
}

static struct nt_shelter_stats stats(void)
{
	struct nt_shelter_stats got;

	nt_shelter_stats(bus, &got);
	return got;
}

static void assert_arrived(uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++)
		if (!brokers->arrived[number])
			fail_msg("%llu did not arrive", (unsigned long long)number);
}

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
		bus = open_shelter(dir);
		attach_brokers();
		act(times);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	brokers->queued = 0;
	brokers->taken = 0;
	bus = open_shelter(dir);
	attach_brokers();
}

static void with_brokers_nothing_goes_to_disk(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		send_all(i * 10, i * 10 + 10);
		turn();
		arrive_all();
	}
	assert_int_equal(brokers->arrivals, 500);
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].stored, 0);
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
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].stored, 1000);
	brokers->cause = NT_BUS_WELL;
	turn();
	for (; stats().class[NT_SHELTER_VERDICT].left; number += 10) {
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

static void a_full_queue_sends_records_to_the_shelter_and_loses_none(void **state)
{
	(void)state;
	brokers->room = 30;
	send_all(0, 100);
	turn();
	assert_int_equal(stats().is_away, 1);
	/* All of them: the queue is only in memory. */
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].stored, 100);
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
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].stored, 34);
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
	assert_int_equal(stats().refused[NT_SHELTER_VERDICT], 1);
	arrive_all();
	for (int i = 0; i < 100; i++)
		turn();
	assert_int_equal(brokers->taken, 10);
}

static void what_fails_while_it_is_drained_stays_in_the_shelter(void **state)
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
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].stored, 600);
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
	bus = open_shelter(*state);
	attach_brokers();
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].found, 50);
	brokers->taken = 0;
	for (int i = 0; i < 50; i++) {
		turn();
		arrive_all();
	}
	assert_arrived(0, 50);
}

static void a_long_outage_loses_details_before_windows_and_counts_them(void **state)
{
	struct nt_shelter_stats got;

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
	assert_int_equal(got.class[NT_SHELTER_VERDICT].evicted, 0);
	assert_true(got.class[NT_SHELTER_DETAIL].evicted > 1500);
	brokers->cause = NT_BUS_WELL;
	for (int i = 0; i < 1000; i++) {
		turn();
		arrive_all();
	}
	got = stats();
	assert_int_equal(got.class[NT_SHELTER_VERDICT].drained, 3000);
	assert_int_equal(
		got.class[NT_SHELTER_DETAIL].drained + got.class[NT_SHELTER_DETAIL].evicted, 3000);
	assert_int_equal(brokers->arrivals, 3000 + got.class[NT_SHELTER_DETAIL].drained);
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
	assert_int_equal(stats().class[NT_SHELTER_VERDICT].dropped, 1);
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
	struct nt_bus *shelter, *behind = NULL;

	(void)snprintf(dir, sizeof(dir), "%.200s/shelter", (const char *)*state);
	(void)snprintf(url, sizeof(url), "spool:%.200s/spool", (const char *)*state);
	shelter = open_shelter(dir);
	/* Before there is anything behind it. */
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(publish(shelter, NT_TOPIC_WINDOW, i, 64), 0);
	assert_int_equal(nt_bus_flush(shelter), 0);
	assert_int_equal(nt_bus_open(url, NULL, &behind), 0);
	nt_shelter_attach(shelter, behind);
	for (uint64_t i = 20; i < 40; i++)
		assert_int_equal(publish(shelter, NT_TOPIC_WINDOW, i, 64), 0);
	for (int i = 1; i < 20; i++)
		nt_shelter_turn(shelter, NT_HOUR + (uint64_t)i * NT_SECOND, NT_HOUR);
	nt_bus_close(shelter);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(with_brokers_nothing_goes_to_disk),
		TEST(what_is_sent_while_brokers_are_away_arrives_once_after_it),
		TEST(the_backlog_follows_live_records_at_twice_their_rate),
		TEST(a_small_backlog_is_drained_though_nothing_else_is_sent),
		TEST(a_full_queue_sends_records_to_the_shelter_and_loses_none),
		TEST(what_is_given_back_is_sent_again),
		TEST(what_brokers_never_take_is_counted_not_sent_for_ever),
		TEST(what_fails_while_it_is_drained_stays_in_the_shelter),
		TEST(brokers_that_answer_nothing_are_away),
		TEST(one_partition_that_waits_does_not_keep_the_others),
		TEST(a_kill_in_an_outage_leaves_no_hole),
		TEST(kills_in_the_middle_of_draining_lose_nothing),
		TEST(what_cannot_be_delivered_at_the_end_is_kept_for_the_next_start),
		TEST(a_long_outage_loses_details_before_windows_and_counts_them),
		TEST(a_disk_that_takes_nothing_is_an_error_that_is_counted),
		TEST(a_spool_behind_it_gets_everything_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
