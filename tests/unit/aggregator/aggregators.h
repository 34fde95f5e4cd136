/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several aggregators on one bus, with partitions that move between them. The bus is a spool; the
 * test assigns the partitions.
 */
#ifndef NT_TESTS_UNIT_AGGREGATOR_AGGREGATORS_H
#define NT_TESTS_UNIT_AGGREGATOR_AGGREGATORS_H

#include "aggregator/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregator/store/store.h"
#include "common/bus/bus_impl.h"
#include "common/system/clock.h"
#include "tests/unit/engine/window_feed.h"
#include "tests/unit/scratch.h"

enum {
	JOBS = 3, /* each on a partition of its own */
	INSTANCES = 2,
	RANKS = 8,
	SLOW = 5,
	MAX_SENT = 64,
};

/* ---- a group --------------------------------------------------------------------------------- */

/* A reader with the partitions that the test sets in `wanted`. */
struct fake {
	struct nt_bus_reader bus;
	struct nt_bus_reader *spool;
	struct nt_bus_group group;
	bool owned[JOBS], wanted[JOBS], lost;
	unsigned int stall; /* seconds that the next call takes longer than it was asked to */
};

static inline void change(struct fake *fake, uint32_t partition)
{
	struct nt_bus_position position = {NT_TOPIC_WINDOW, partition, NT_BUS_OLDEST};

	if (fake->owned[partition]) {
		fake->owned[partition] = false;
		fake->group.revoked(fake->group.data, &position, fake->lost);
		return;
	}
	fake->owned[partition] = true;
	fake->group.assigned(fake->group.data, &position);
	if (position.offset == NT_BUS_OLDEST)
		position.offset = 0;
	assert_int_equal(nt_bus_reader_seek(fake->spool, &position), 0);
}

static inline bool is_taken(const struct fake *but, uint32_t partition);

static inline int fake_next(struct nt_bus_reader *bus, int timeout_ms,
			    struct nt_bus_record *ret_record)
{
	struct fake *fake = (struct fake *)bus;
	int r;

	(void)sleep(fake->stall);
	fake->stall = 0;
	for (uint32_t i = 0; i < JOBS; i++)
		if (fake->owned[i] && !fake->wanted[i])
			change(fake, i);
	for (uint32_t i = 0; i < JOBS; i++)
		if (!fake->owned[i] && fake->wanted[i] && !is_taken(fake, i))
			change(fake, i);
	do
		r = nt_bus_reader_next(fake->spool, timeout_ms, ret_record);
	while (r > 0 && !fake->owned[ret_record->partition]);
	return r;
}

static inline void fake_close(struct nt_bus_reader *bus)
{
	struct fake *fake = (struct fake *)bus;

	for (uint32_t i = 0; i < JOBS; i++)
		if (fake->owned[i])
			change(fake, i);
	nt_bus_reader_close(fake->spool);
	free(fake);
}

static struct fake *newest;

static inline int fake_join(const char *url, uint32_t topics, const struct nt_bus_options *options,
			    const struct nt_bus_group *group, struct nt_bus_reader **ret_reader)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	(void)options;
	assert_non_null(fake);
	assert_int_equal(topics, 1U << NT_TOPIC_WINDOW);
	assert_int_equal(nt_bus_reader_open(url, topics, &fake->spool), 0);
	fake->bus.next = fake_next;
	fake->bus.close = fake_close;
	fake->group = *group;
	newest = fake;
	*ret_reader = &fake->bus;
	return 0;
}

/* ---- instances and the world ------------------------------------------------------------------- */

static struct instance {
	struct nt_board *board;
	struct nt_store *store;
	struct nt_sink sink;
	struct nt_state_store states;
	struct nt_service *service;
	struct fake *fake;
	char address[32];
	bool mute; /* sends nothing */
} instances[INSTANCES];

/* No partition is assigned before its owner has revoked it, or is dead. */
static inline bool is_taken(const struct fake *but, uint32_t partition)
{
	for (size_t i = 0; i < INSTANCES; i++) {
		const struct fake *fake = instances[i].fake;

		if (fake && fake != but && fake->owned[partition] && !fake->lost)
			return true;
	}
	return false;
}

static char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 16];
static struct nt_bus *bus[JOBS];
static struct feed_agent agent[JOBS];
static char *sent[MAX_SENT]; /* ids of messages, in the order of sending */
static size_t sents;

static inline void start_instance(size_t i)
{
	static const char *const receivers[] = {"webhook"};
	struct instance *instance = &instances[i];
	char path[SCRATCH_BYTES + 16];
	struct nt_store_error error;

	(void)snprintf(path, sizeof(path), "%s/store-%zu.db", dir, i);
	(void)snprintf(instance->address, sizeof(instance->address), "http://instance-%zu", i);
	assert_int_equal(nt_board_new(&instance->board), 0);
	assert_int_equal(nt_store_open(&(struct nt_store_options){.path = path,
								  .receiver = receivers,
								  .receivers = 1,
								  .shared = true},
				       &instance->store, &error),
			 0);
	instance->sink = nt_store_sink(instance->store);
	instance->states = nt_store_states(instance->store);
	assert_int_equal(nt_service_new(
				 &(struct nt_service_options){
					 .bus_url = url,
					 .join = fake_join,
					 .shared = true,
					 .address = instance->address,
					 .engine = nt_engine_options_default(),
					 .sink = &instance->sink,
					 .states = &instance->states,
					 .save_every_ns = NT_HOUR,
					 .summaries_every_ns = 1,
					 .snapshot_every_ns = 1,
					 .retry_after_ns = 1,
				 },
				 instance->board, &instance->service),
			 0);
	instance->fake = newest;
}

/* As by kill -9. The machine may be lost too, with its store. */
static inline void kill_instance(size_t i)
{
	struct instance *instance = &instances[i];

	nt_service_free(instance->service);
	nt_store_close(instance->store);
	nt_board_free(instance->board);
	*instance = (struct instance){0};
}

static inline void stop_instance(size_t i)
{
	nt_service_stop(instances[i].service);
	assert_int_equal(nt_service_run(instances[i].service), 0);
	kill_instance(i);
}

static inline void send_all(struct instance *instance)
{
	for (;;) {
		struct nt_outbox_message message = {0};
		uint64_t next_ns;

		if (nt_store_outbox_next(instance->store, "webhook", nt_clock_real_ns(), &message,
					 &next_ns) <= 0)
			return;
		assert_true(sents < MAX_SENT);
		sent[sents++] = strdup(message.id);
		assert_int_equal(nt_store_outbox_done(instance->store, message.number,
						      NT_OUTBOX_SENT, nt_clock_real_ns(), 0),
				 0);
		nt_outbox_message_release(&message);
	}
}

/* A snapshot that took long is not rebuilt at once: on a busy machine the old one is shown. */
static inline void await_snapshot(struct instance *instance)
{
	const struct nt_snapshot *before = nt_snapshot_acquire(instance->board);

	/* It is kept open, so that no other instance gets its address. */
	for (bool fresh = false; !fresh;) {
		const struct nt_snapshot *now;

		assert_int_equal(nt_service_turn(instance->service, 1), 0);
		now = nt_snapshot_acquire(instance->board);
		fresh = now != before;
		nt_snapshot_release(now);
	}
	nt_snapshot_release(before);
}

/* Until all instances have read and published everything. */
static inline void turn_all(void)
{
	for (int round = 0; round < 12; round++)
		for (size_t i = 0; i < INSTANCES; i++) {
			if (!instances[i].service)
				continue;
			assert_int_equal(nt_service_turn(instances[i].service, 0), 0);
			if (!instances[i].mute)
				send_all(&instances[i]);
		}
	for (size_t i = 0; i < INSTANCES; i++)
		if (instances[i].service)
			await_snapshot(&instances[i]);
}

static inline void give(size_t instance, uint32_t partition)
{
	for (size_t i = 0; i < INSTANCES; i++)
		if (instances[i].fake)
			instances[i].fake->wanted[partition] = i == instance;
}

static inline void give_all(size_t instance)
{
	for (uint32_t i = 0; i < JOBS; i++)
		give(instance, i);
}

/* Jobs of eight ranks, each on a node of its own; from slow_ms to well_ms one rank of each is slow. */
static inline void publish_run(uint64_t from_ms, uint64_t to_ms, uint64_t slow_ms, uint64_t well_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 520)
		for (size_t job = 0; job < JOBS; job++)
			for (uint32_t rank = 0; rank < RANKS; rank++) {
				const bool is_slow = at >= slow_ms && at < well_ms;
				const bool slow = rank == SLOW && is_slow;
				const double noise =
					(double)((at / 520 * 7 + rank * 13 + job) % 17) * 0.01;
				const struct feed_window window = {
					.rank = rank,
					.size = RANKS,
					.from_ms = at,
					.to_ms = at + 520,
					.steps = 10,
					.own_ms = (slow ? 30 : 20) + noise,
					.step_ms = is_slow ? 31 : 21,
					.comm = 0xabc + job,
					.last = at / 52 + 10,
				};
				nt_autobuf struct nt_buf buf = {0};
				struct nt_message *message = feed_window(&agent[job], &window);
				const struct nt_bus_record record = feed_record(message, &buf);

				assert_int_equal(nt_bus_publish(bus[job], &record), 0);
				nt_message_free(message);
			}
	for (size_t job = 0; job < JOBS; job++)
		assert_int_equal(nt_bus_flush(bus[job]), 0);
}

static inline int set_up(void **state)
{
	static const char *const nodes[JOBS] = {"gpu-01", "gpu-02", "gpu-03"};
	static const char *const keys[JOBS] = {"job-a", "job-b", "job-c"};

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	for (size_t i = 0; i < JOBS; i++) {
		assert_int_equal(nt_bus_open(url, NULL, &bus[i]), 0);
		agent[i] = feed_agent(nodes[i], keys[i]);
	}
	/* So that each job has its partition, in this order. */
	publish_run(0, 520, UINT64_MAX, UINT64_MAX);
	for (size_t i = 0; i < INSTANCES; i++)
		start_instance(i);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < INSTANCES; i++)
		kill_instance(i);
	for (size_t i = 0; i < JOBS; i++) {
		nt_bus_close(bus[i]);
		bus[i] = NULL;
	}
	while (sents)
		free(sent[--sents]);
	scratch_remove(dir);
	return 0;
}

/* Incidents as a instance shows them, one a line, by id. */
static inline char *show(size_t instance)
{
	nt_autopage struct nt_store_page page = {0};
	nt_autobuf struct nt_buf buf = {0};
	char *line[NT_STORE_MAX_PAGE];
	size_t lines = 0;

	assert_int_equal(nt_store_list(instances[instance].store,
				       &(struct nt_store_filter){.limit = 100}, &page),
			 0);
	for (size_t i = 0; i < page.count; i++) {
		const struct nt_wire_incident *incident = &page.incident[i]->incident;
		size_t at = lines;

		assert_true(asprintf(&line[lines], "%s %llu %s %s", incident->id,
				     (unsigned long long)incident->version, incident->state,
				     incident->summary) > 0);
		for (; at && strcmp(line[at - 1], line[at]) > 0; at--) {
			char *swap = line[at];

			line[at] = line[at - 1];
			line[at - 1] = swap;
		}
		lines++;
	}
	for (size_t i = 0; i < lines; i++) {
		assert_int_equal(nt_buf_printf(&buf, "%s\n", line[i]), 0);
		free(line[i]);
	}
	assert_int_equal(nt_buf_append(&buf, "", 1), 0);
	return (char *)nt_take(buf.data);
}

static inline size_t count_sent(const char *what)
{
	size_t count = 0;

	for (size_t i = 0; i < sents; i++)
		count += strstr(sent[i], what) != NULL;
	return count;
}

static inline void no_message_was_sent_twice(void)
{
	for (size_t i = 0; i < sents; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(sent[i], sent[j]);
}

static inline double metric(size_t instance, const char *name)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(instances[instance].board);
	double value = -1;

	for (size_t i = 0; i < snapshot->metrics; i++)
		if (strcmp(snapshot->metric[i].name, name) == 0)
			value = snapshot->metric[i].value;
	nt_snapshot_release(snapshot);
	return value;
}

/* The incidents of a single instance that has processed everything. */
static inline char *reference(uint64_t to_ms, uint64_t well_ms)
{
	char *shown;

	give_all(0);
	publish_run(520, to_ms, 30000, well_ms);
	turn_all();
	shown = show(0);
	assert_int_equal(count_sent("_firing_"), JOBS);
	tear_down(NULL);
	set_up(NULL);
	return shown;
}

#endif
