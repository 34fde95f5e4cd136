/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A test's store in a scratch directory. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_STORE_H
#define NT_TESTS_UNIT_AGGREGATOR_STORE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "aggregator/store/store.h"
#include "common/system/clock.h"
#include "tests/api/snapshot_scene.h"
#include "tests/unit/scratch.h"

#define TEST(fn)      cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
#define TEST_FILE(fn) cmocka_unit_test_setup_teardown(fn, set_up_files, tear_down)

static char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];
static struct nt_store *store;
static unsigned int queued;

static const char *const receivers[] = {"webhook"};

static inline int open_with(const struct nt_store_options *options)
{
	struct nt_store_error error;
	int r = nt_store_open(options, &store, &error);

	if (r < 0)
		print_message("%s\n", error.text);
	return r;
}

static inline int open_store(void)
{
	return open_with(
		&(struct nt_store_options){.path = path, .receiver = receivers, .receivers = 1});
}

static inline int set_up_files(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/store.db", dir);
	queued = 0;
	return 0;
}

static inline int set_up(void **state)
{
	return set_up_files(state) || open_store();
}

static inline int tear_down(void **state)
{
	(void)state;
	nt_store_close(store);
	store = NULL;
	scratch_remove(dir);
	return 0;
}

static inline void reopen(void)
{
	nt_store_close(store);
	store = NULL;
	assert_int_equal(open_store(), 0);
}

static inline void on_queued(void *data)
{
	(void)data;
	queued++;
}

static inline int put(const struct nt_wire_incident *incident)
{
	const struct nt_sink sink = nt_store_sink(store);

	return sink.incident(sink.data, incident);
}

static inline int put_as(const char *id, const char *state, const char *severity, uint64_t version)
{
	struct nt_wire_incident incident = nt_test_incident(id, state, &nt_test_rank_5, 1);

	incident.severity = severity;
	incident.version = version;
	return put(&incident);
}

static inline size_t count_listed(const struct nt_store_filter *filter)
{
	nt_autopage struct nt_store_page page = {0};

	assert_int_equal(nt_store_list(store, filter, &page), 0);
	return page.count;
}

struct want {
	const struct nt_state_set *set;
	int calls;
};

static inline int compare_set(void *data, const struct nt_state_set *set)
{
	struct want *want = data;

	want->calls++;
	assert_int_equal(set->real_ns, want->set->real_ns);
	assert_int_equal(set->items, want->set->items);
	assert_int_equal(set->positions, want->set->positions);
	for (size_t i = 0; i < set->items; i++) {
		assert_string_equal(set->item[i].name, want->set->item[i].name);
		assert_int_equal(set->item[i].size, want->set->item[i].size);
		assert_memory_equal(set->item[i].bytes, want->set->item[i].bytes,
				    set->item[i].size);
	}
	for (size_t i = 0; i < set->positions; i++) {
		assert_int_equal(set->position[i].topic, want->set->position[i].topic);
		assert_int_equal(set->position[i].partition, want->set->position[i].partition);
		assert_int_equal(set->position[i].offset, want->set->position[i].offset);
	}
	return 7;
}

static const struct nt_state_item items[] = {
	{"ingest", "\0\1\2", 3},
	{"job-00a1", "", 0},
};

static const struct nt_bus_position positions[] = {
	{NT_TOPIC_CONTROL, 0, 12},
	{NT_TOPIC_WINDOW, 3, 1ULL << 40},
};

static const struct nt_state_set whole = {NT_TEST_TIME_NS, items, 2, positions, 2};

/* The delivery due at this time, or "" for none; it is then sent. */
static inline const char *send_next(uint64_t real_ns, enum nt_outbox_result result)
{
	static char id[160];
	struct nt_outbox_message message;
	uint64_t next_ns;
	int r = nt_store_outbox_next(store, "webhook", real_ns, &message, &next_ns);

	assert_true(r >= 0);
	if (!r)
		return "";
	(void)snprintf(id, sizeof(id), "%s", message.id);
	assert_int_equal(
		nt_store_outbox_done(store, message.number, result, real_ns, real_ns + NT_MINUTE),
		0);
	nt_outbox_message_release(&message);
	return id;
}

#endif
