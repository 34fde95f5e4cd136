/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Same input, same verdicts, byte for byte: whatever the order in which messages come within the
 * lateness that is waited for, and however often the aggregator starts anew between them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/group/shard.h"
#include "proto/json.h"

#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 8, /* four on each of two nodes */
	SLOW_RANK = 5,
	RUN_S = 170,
	SLOW_FROM_S = 30,
	SLOW_TO_S = 60,
	WINDOW_MS = 520,
	MAX_RECORDS = 4096,
	MAX_ITEMS = 32,
};

/* What the bus holds, in the order in which it came. */
struct record {
	struct nt_buf value;
	uint64_t real_ns, arrival_ns;
	uint32_t number; /* in the order of sending */
};

static struct record record[MAX_RECORDS];
static size_t records;

static struct nt_bus_record bus_record(size_t at)
{
	return (struct nt_bus_record){.topic = NT_TOPIC_WINDOW,
				      .key = "job",
				      .key_len = 3,
				      .value = record[at].value.data,
				      .value_len = record[at].value.len,
				      .real_ns = record[at].real_ns,
				      .offset = 100 + at};
}

static void send(struct nt_message *message)
{
	struct record *one = &record[records];

	assert_true(records < MAX_RECORDS);
	*one = (struct record){.real_ns = message->real_ns, .number = (uint32_t)records};
	assert_int_equal(nt_message_encode(message, &one->value), 0);
	nt_message_free(message);
	records++;
}

static void send_window(struct feed_agent *agent, uint32_t rank, uint64_t n)
{
	const uint64_t to_ms = (n + 1) * WINDOW_MS;
	const bool is_slow =
		rank == SLOW_RANK && to_ms > SLOW_FROM_S * 1000 && to_ms <= SLOW_TO_S * 1000;
	const struct feed_window window = {
		.rank = rank,
		.size = RANKS,
		.from_ms = n * WINDOW_MS + rank,
		.to_ms = to_ms + rank,
		.steps = 10,
		.own_ms = (is_slow ? 45 : 30) + 0.1 * (double)((n * 5 + rank) % 7),
		.step_ms = is_slow ? 60 : 52,
		.comm = 0xabc,
		.last = 10 * (n + 1),
	};

	send(feed_window(agent, &window));
}

/* A rank that is slow for half a minute, and recovers. */
static int send_all(void **state)
{
	struct feed_agent agent[] = {feed_agent("n0", "job"), feed_agent("n1", "job")};

	(void)state;
	agent[1].booted_ms = 77777;
	for (uint64_t n = 0; (n + 1) * WINDOW_MS < RUN_S * 1000; n++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			send_window(&agent[rank / (RANKS / 2)], rank, n);
	return 0;
}

static int forget_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < records; i++)
		nt_buf_release(&record[i].value);
	return 0;
}

static int by_arrival(const void *a, const void *b)
{
	const struct record *left = a, *right = b;

	if (left->arrival_ns != right->arrival_ns)
		return left->arrival_ns < right->arrival_ns ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

/* Each comes up to two seconds late, in whatever order. Seed 0: as they were sent. */
static void arrive(unsigned int seed)
{
	srand(seed);
	for (size_t i = 0; i < records; i++)
		record[i].arrival_ns =
			record[i].real_ns + (seed ? (uint64_t)rand() % (2 * SECOND) : 0);
	qsort(record, records, sizeof(*record), by_arrival);
}

/* ---- a store in memory ----------------------------------------------------------------------------- */

struct memory {
	struct nt_state_set set;
	struct nt_state_item item[MAX_ITEMS];
	struct nt_bus_position position[NT_TOPIC_END];
};

static void *copy(const void *data, size_t size)
{
	void *made = malloc(size + 1);

	assert_non_null(made);
	if (size)
		memcpy(made, data, size);
	return made;
}

static void memory_clear(struct memory *memory)
{
	for (size_t i = 0; i < memory->set.items; i++) {
		free((void *)memory->item[i].name);
		free((void *)memory->item[i].bytes);
	}
	*memory = (struct memory){0};
}

static int memory_save(void *data, const struct nt_state_set *set)
{
	struct memory *memory = data;

	memory_clear(memory);
	assert_true(set->items <= MAX_ITEMS && set->positions <= NT_TOPIC_END);
	memory->set = *set;
	for (size_t i = 0; i < set->items; i++)
		memory->item[i] = (struct nt_state_item){
			.name = copy(set->item[i].name, strlen(set->item[i].name) + 1),
			.bytes = copy(set->item[i].bytes, set->item[i].size),
			.size = set->item[i].size};
	memcpy(memory->position, set->position, set->positions * sizeof(*set->position));
	memory->set.item = memory->item;
	memory->set.position = memory->position;
	return 0;
}

static int memory_load(void *data, uint32_t shard,
		       int (*loaded)(void *loader, const struct nt_state_set *set), void *loader)
{
	const struct memory *memory = data;

	(void)shard;
	return memory->set.items ? loaded(loader, &memory->set) : -ENOENT;
}

/* ---- runs ------------------------------------------------------------------------------------------ */

static void write_down(void *data, const struct nt_shard *shard,
		       const struct nt_wire_incident *incident)
{
	nt_autojson json_t *json = nt_json_incident(incident);

	(void)shard;
	assert_non_null(json);
	assert_int_equal(nt_json_dump(json, false, data), 0);
}

/* All that is decided, in the aggregator's life of that many parts. */
static void judge(uint32_t parts, struct nt_buf *ret_told)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_shard_handler handler = {.incident = write_down, .data = ret_told};
	struct memory memory = {0};
	const struct nt_state_store store = {
		.save = memory_save, .load = memory_load, .data = &memory};
	struct nt_shard *shard = NULL;
	uint32_t part = 1;

	assert_int_equal(nt_shard_new(NT_SHARD_WHOLE, &options, &handler, &shard), 0);
	for (size_t i = 0; i < records; i++) {
		const struct nt_bus_record one = bus_record(i);
		uint64_t offset;

		assert_int_equal(nt_shard_take(shard, &one, 0), 0);
		if (i + 1 < records / parts * part || part == parts)
			continue;
		part++;
		assert_int_equal(nt_shard_save(shard, &store, NULL), 0);
		nt_shard_free(shard);
		assert_int_equal(nt_shard_new(NT_SHARD_WHOLE, &options, &handler, &shard), 0);
		assert_int_equal(nt_shard_load(shard, &store, NULL), 0);
		assert_true(shard->loaded);
		assert_int_equal(nt_offsets_start(shard->offsets, NT_TOPIC_WINDOW, 0, &offset), 0);
		assert_in_range(offset, 100, 100 + i + 1);
		i = (size_t)(offset - 100) - 1;
	}
	assert_int_equal(nt_engine_finish(shard->engine), 0);
	assert_int_equal(nt_buf_append(ret_told, "", 1), 0);
	nt_shard_free(shard);
	memory_clear(&memory);
}

static void expect_verdict(struct nt_buf *ret_told)
{
	arrive(0);
	judge(1, ret_told);
	assert_non_null(strstr((const char *)ret_told->data, "\"state\":\"firing\""));
	assert_non_null(strstr((const char *)ret_told->data, "\"state\":\"resolved\""));
	assert_non_null(strstr((const char *)ret_told->data, "\"rank\":5"));
}

static void any_order_of_arrival_within_two_seconds_gives_the_same_bytes(void **state)
{
	nt_autobuf struct nt_buf want = {0};

	(void)state;
	expect_verdict(&want);
	for (unsigned int seed = 1; seed <= 10; seed++) {
		nt_autobuf struct nt_buf got = {0};

		arrive(seed);
		judge(1, &got);
		assert_string_equal(got.data, want.data);
	}
}

static void restarts_at_any_time_give_the_same_bytes(void **state)
{
	static const uint32_t parts[] = {2, 3, 7, 40, 200};
	nt_autobuf struct nt_buf want = {0};

	(void)state;
	expect_verdict(&want);
	for (unsigned int seed = 0; seed < 2; seed++) {
		arrive(seed);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			nt_autobuf struct nt_buf got = {0};

			judge(parts[i], &got);
			assert_string_equal(got.data, want.data);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order_of_arrival_within_two_seconds_gives_the_same_bytes),
		cmocka_unit_test(restarts_at_any_time_give_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, send_all, forget_all);
}
