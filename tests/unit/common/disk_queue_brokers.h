/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Simulated brokers with outages, and a bus with a disk queue in front of them. */
#ifndef NT_TESTS_UNIT_COMMON_DISK_QUEUE_BROKERS_H
#define NT_TESTS_UNIT_COMMON_DISK_QUEUE_BROKERS_H

#include "common/bus/bus_disk_queue.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/bus/bus_impl.h"
#include "common/system/clock.h"
#include "tests/unit/common/spool.h"

enum {
	MOST = 20000, /* records of a test */
	BIG = 1000, /* bytes of one */
	TICK_MS = 100,
};

/*
 * The bus behind the disk queue. Accepted records stay in its queue until the test decides their
 * fate. A record begins with its number, which stands for its sequence number.
 */
struct brokers {
	struct nt_bus bus;
	struct nt_bus_record queue[MOST]; /* all records ever accepted; value: the number */
	uint64_t value[MOST];
	enum { QUEUED, ARRIVED, RETURNED } state[MOST];
	size_t taken, room; /* room: of the queue */
	size_t queued;
	uint64_t delivered;
	enum nt_bus_cause cause;
	struct nt_bus *disk_queue;
	unsigned int arrived[MOST]; /* arrivals of each number */
	uint64_t order[MOST]; /* of their arrival */
	size_t arrivals;
	bool is_closed;
};

static struct brokers *brokers; /* outlive the bus that represents them */
static struct nt_bus *bus;
static uint64_t mono_ns;

static inline int take(struct nt_bus *behind, const struct nt_bus_record *record)
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

static inline uint64_t settled(const struct nt_bus *behind)
{
	const struct brokers *b = (const struct brokers *)behind;
	size_t n = 0;

	while (n < b->taken && b->state[n] != QUEUED)
		n++;
	return n;
}

static inline void each_unsettled(struct nt_bus *behind,
				  void (*fn)(void *data, const struct nt_bus_record *record),
				  void *data)
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

static inline void give_back(struct nt_bus *behind)
{
	(void)behind;
}

static inline int flush_brokers(struct nt_bus *behind)
{
	(void)behind;
	fail(); /* it would block */
	return 0;
}

static inline void get_stats(const struct nt_bus *behind, struct nt_bus_stats *stats)
{
	stats->delivered = ((const struct brokers *)behind)->delivered;
}

static inline void get_health(const struct nt_bus *behind, struct nt_bus_health *ret_health)
{
	ret_health->cause = ((const struct brokers *)behind)->cause;
}

static inline void arrive(size_t i)
{
	if (brokers->state[i] != QUEUED)
		return;
	brokers->state[i] = ARRIVED;
	brokers->queued--;
	brokers->delivered++;
	brokers->arrived[brokers->value[i]]++;
	brokers->order[brokers->arrivals++] = brokers->value[i];
}

static inline void fail_one(size_t i, enum nt_bus_cause cause)
{
	char value[BIG] = {0};

	if (brokers->state[i] != QUEUED)
		return;
	memcpy(value, &brokers->value[i], sizeof(brokers->value[i]));
	brokers->queue[i].value = value;
	brokers->state[i] = RETURNED;
	brokers->queued--;
	nt_disk_queue_undelivered(brokers->disk_queue, &brokers->queue[i], cause);
}

static inline void arrive_all(void)
{
	for (size_t i = 0; i < brokers->taken; i++)
		arrive(i);
}

static inline void fail_all(enum nt_bus_cause cause)
{
	for (size_t i = 0; i < brokers->taken; i++)
		fail_one(i, cause);
}

static inline void close_brokers(struct nt_bus *behind)
{
	(void)behind;
	brokers->is_closed = true;
	fail_all(NT_BUS_TIMED_OUT);
}

static inline struct nt_bus *open_disk_queue(const char *dir)
{
	const struct nt_disk_queue_options options = {
		.dir = dir,
		.limits = {.max_bytes = 4 << 20, .max_age_ns = NT_HOUR},
		.least_rate = 100 * BIG,
	};
	struct nt_bus *disk_queue = NULL;

	assert_int_equal(nt_disk_queue_open(&options, &disk_queue), 0);
	return disk_queue;
}

static inline void attach_brokers(void)
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
	brokers->disk_queue = bus;
	nt_disk_queue_attach(bus, &brokers->bus);
}

static inline int set_up(void **state)
{
	if (make_scratch(state) < 0)
		return -1;
	brokers = mmap(NULL, sizeof(*brokers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(brokers != MAP_FAILED);
	brokers->room = MOST;
	mono_ns = NT_HOUR;
	bus = open_disk_queue(*state);
	attach_brokers();
	return 0;
}

static inline int tear_down(void **state)
{
	nt_bus_close(nt_take(bus));
	assert_int_equal(munmap(nt_take(brokers), sizeof(*brokers)), 0);
	return remove_scratch(state);
}

static inline void turn(void)
{
	mono_ns += TICK_MS * NT_MILLISECOND;
	nt_disk_queue_turn(bus, mono_ns, NT_DAY);
}

static inline int send_as(enum nt_topic topic, uint64_t number)
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

static inline void send_all(uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++)
		assert_int_equal(send_as(NT_TOPIC_WINDOW, number), 0);
}

static inline struct nt_disk_queue_stats stats(void)
{
	struct nt_disk_queue_stats got;

	nt_disk_queue_stats(bus, &got);
	return got;
}

static inline void assert_arrived(uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++)
		if (!brokers->arrived[number])
			fail_msg("%llu did not arrive", (unsigned long long)number);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
