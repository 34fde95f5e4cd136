/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A service that reads a spool, a store in memory, and an agent that publishes to it. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_SERVICE_FEED_H
#define NT_TESTS_UNIT_AGGREGATOR_SERVICE_FEED_H

#include "aggregator/service.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/engine/window_feed.h"
#include "tests/unit/scratch.h"

enum {
	RANKS = 8,
	SLOW = 5,
	MAX_TOLD = 1024,
};

struct memory {
	struct nt_buf name[64], bytes[64];
	size_t items;
	uint64_t saves;
	int error;
};

static inline void clear_memory(struct memory *memory)
{
	for (size_t i = 0; i < 64; i++) {
		nt_buf_release(&memory->name[i]);
		nt_buf_release(&memory->bytes[i]);
	}
	memory->items = 0;
}

static inline int save_set(void *data, const struct nt_state_set *set)
{
	struct memory *memory = data;

	if (memory->error)
		return memory->error;
	if (set->shard) /* the scores of nodes */
		return 0;
	clear_memory(memory);
	assert_true(set->items <= 64);
	for (size_t i = 0; i < set->items; i++) {
		assert_int_equal(nt_buf_append(&memory->name[i], set->item[i].name,
					       strlen(set->item[i].name) + 1),
				 0);
		assert_int_equal(
			nt_buf_append(&memory->bytes[i], set->item[i].bytes, set->item[i].size), 0);
	}
	memory->items = set->items;
	memory->saves++;
	return 0;
}

static inline int load_set(void *data, uint32_t shard,
			   int (*loaded)(void *loader, const struct nt_state_set *set),
			   void *loader)
{
	struct memory *memory = data;
	struct nt_state_item item[64];
	const struct nt_state_set set = {.item = item, .items = memory->items};

	if (!memory->items || shard)
		return -ENOENT;
	for (size_t i = 0; i < memory->items; i++)
		item[i] = (struct nt_state_item){
			.name = (const char *)memory->name[i].data,
			.bytes = memory->bytes[i].data,
			.size = memory->bytes[i].len,
		};
	return loaded(loader, &set);
}

static char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 16];
static struct nt_bus *bus;
static struct nt_board *board;
static struct nt_service *service;
static struct memory memory;
static struct feed_agent agent;
static char *told[MAX_TOLD]; /* "id version state: summary", each new one once, as a store does */
static size_t tolds;
static uint64_t snapshot_every_ns; /* 0: the service's default */

/* As in the store: known versions are dropped. */
static inline int take_incident(void *data, const struct nt_wire_incident *incident)
{
	char *line;

	(void)data;
	assert_true(asprintf(&line, "%s %llu %s %s: %s", incident->id,
			     (unsigned long long)incident->version, incident->state,
			     incident->class, incident->summary) > 0);
	for (size_t i = 0; i < tolds; i++)
		if (strcmp(told[i], line) == 0) {
			free(line);
			return 0;
		}
	assert_true(tolds < MAX_TOLD);
	told[tolds++] = line;
	return 0;
}

static const struct nt_sink sink = {.incident = take_incident};
static const struct nt_state_store states = {.save = save_set, .load = load_set, .data = &memory};

static inline void start_service(void)
{
	const struct nt_service_options options = {
		.bus_url = url,
		.engine = nt_engine_options_default(),
		.sink = &sink,
		.states = &states,
		.snapshot_every_ns = snapshot_every_ns,
	};

	assert_int_equal(nt_service_new(&options, board, &service), 0);
}

/* As by kill -9: nothing is saved. */
static inline void kill_service(void)
{
	nt_service_free(service);
	service = NULL;
}

static inline int set_up(void **state)
{
	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	assert_int_equal(nt_board_new(&board), 0);
	agent = feed_agent("gpu-01", "job");
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	kill_service();
	nt_bus_close(bus);
	bus = NULL;
	nt_board_free(board);
	board = NULL;
	clear_memory(&memory);
	memory = (struct memory){0};
	while (tolds)
		free(told[--tolds]);
	snapshot_every_ns = 0;
	scratch_remove(dir);
	return 0;
}

static inline void publish(struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};
	const struct nt_bus_record record = feed_record(message, &buf);

	assert_int_equal(nt_bus_publish(bus, &record), 0);
	nt_message_free(message);
}

/* A job of eight ranks on a node; from slow_ms on one of them needs 1.5 times as long. */
static inline void publish_run(uint64_t from_ms, uint64_t to_ms, uint64_t slow_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 520)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			const bool slow = rank == SLOW && at >= slow_ms;
			/* Real durations vary. */
			const double noise = (double)((at / 520 * 7 + rank * 13) % 17) * 0.01;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = at,
				.to_ms = at + 520,
				.steps = 10,
				.own_ms = (slow ? 30 : 20) + noise,
				.step_ms = at >= slow_ms ? 31 : 21,
				.comm = 0xabc,
				.last = at / 52 + 10,
				.gpu = "GPU-5f",
			};

			publish(feed_window(&agent, &window));
		}
	assert_int_equal(nt_bus_flush(bus), 0);
}

static inline void turn_until_read(void)
{
	for (int i = 0; i < 50; i++) {
		assert_int_equal(nt_service_turn(service, 0), 0);
		if (nt_service_caught_up(service))
			break;
	}
	assert_true(nt_service_caught_up(service));
	assert_int_equal(nt_service_turn(service, 0), 0);
}

static inline size_t count_told(const char *what)
{
	size_t count = 0;

	for (size_t i = 0; i < tolds; i++)
		count += strstr(told[i], what) != NULL;
	return count;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
