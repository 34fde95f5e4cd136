/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a partition is read from after a restart. */
#include "aggregator/group/offsets.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/codec.h"

#define MS     1000000ULL
#define SECOND (1000 * MS)

enum {
	PARTITION = 7,
	STEP_MS = 100, /* between two records */
};

static bool take_at(struct nt_offsets *offsets, uint64_t offset, uint64_t real_ns)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW,
		.partition = PARTITION,
		.offset = offset,
		.real_ns = real_ns,
	};
	bool again;

	assert_int_equal(nt_offsets_take(offsets, &record, &again), 0);
	return again;
}

/* Records from `from` to before `to`, one every 100 ms. */
static void take(struct nt_offsets *offsets, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		(void)take_at(offsets, i, (i + 1) * STEP_MS * MS);
}

/* Saved with the oldest window waiting that ends at waiting_ms, and loaded. The caller frees it. */
static struct nt_offsets *restart(struct nt_offsets *offsets, uint64_t waiting_ms)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_offsets *loaded = NULL;

	assert_int_equal(nt_offsets_save(offsets,
					 waiting_ms == UINT64_MAX ? UINT64_MAX : waiting_ms * MS,
					 &buf),
			 0);
	assert_int_equal(nt_offsets_new(&loaded), 0);
	assert_int_equal(nt_offsets_load(loaded, buf.data, buf.len), 0);
	nt_offsets_free(offsets);
	return loaded;
}

static uint64_t start_of(const struct nt_offsets *offsets)
{
	uint64_t offset = 0;

	assert_int_equal(nt_offsets_start(offsets, NT_TOPIC_WINDOW, PARTITION, &offset), 0);
	return offset;
}

static void a_partition_that_was_never_read_is_enoent(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
	uint64_t offset = 5;

	(void)state;
	assert_int_equal(nt_offsets_new(&offsets), 0);
	assert_int_equal(nt_offsets_start(offsets, NT_TOPIC_WINDOW, 0, &offset), -ENOENT);
	assert_int_equal(offset, 5);
}

static void where_nothing_waits_reading_goes_on_behind_what_was_taken(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;

	(void)state;
	assert_int_equal(nt_offsets_new(&offsets), 0);
	take(offsets, 0, 1000);
	offsets = restart(offsets, UINT64_MAX);
	/* The last one is read once more, and known. */
	assert_int_equal(start_of(offsets), 999);
	assert_true(take_at(offsets, 999, 1000 * STEP_MS * MS));
	assert_false(take_at(offsets, 1000, 1001 * STEP_MS * MS));
}

static void windows_that_wait_are_read_again_however_old_they_are(void **state)
{
	static const uint64_t ages_ms[] = {100, 1000, 2500, 10000, 60000, 600000, 3000000};

	(void)state;
	for (size_t i = 0; i < sizeof(ages_ms) / sizeof(ages_ms[0]); i++) {
		nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
		const uint64_t now_ms = 40000 * STEP_MS, waiting_ms = now_ms - ages_ms[i];
		uint64_t start;

		assert_int_equal(nt_offsets_new(&offsets), 0);
		take(offsets, 0, 40000);
		offsets = restart(offsets, waiting_ms);
		start = start_of(offsets);
		/* Two seconds before it, for clocks that differ … */
		assert_true((start + 1) * STEP_MS <= waiting_ms - 2000 || start == 0);
		/* … and not much further back than as long again as it has waited. */
		assert_true((start + 1) * STEP_MS + 2 * ages_ms[i] + 6000 >= waiting_ms);
	}
}

static void a_state_saved_in_the_middle_of_a_second_reading_loses_nothing(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
	uint64_t start;

	(void)state;
	assert_int_equal(nt_offsets_new(&offsets), 0);
	take(offsets, 0, 1000);
	offsets = restart(offsets, 90000);
	start = start_of(offsets);
	assert_true(start < 900);
	/* Before anything was read again … */
	offsets = restart(offsets, UINT64_MAX);
	assert_true(start_of(offsets) <= start);
	/* … with some of it, of which nothing waits, while what comes after is not here yet. */
	take(offsets, start, 950);
	offsets = restart(offsets, UINT64_MAX);
	assert_true(start_of(offsets) < 950);
	/* And with all of it. */
	take(offsets, start_of(offsets), 1000);
	offsets = restart(offsets, UINT64_MAX);
	assert_int_equal(start_of(offsets), 999);
}

static void what_is_not_there_any_more_is_not_waited_for(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;

	(void)state;
	assert_int_equal(nt_offsets_new(&offsets), 0);
	take(offsets, 0, 1000);
	offsets = restart(offsets, 90000);
	nt_offsets_caught_up(offsets);
	offsets = restart(offsets, UINT64_MAX);
	assert_int_equal(start_of(offsets), 999);
}

static void a_clock_that_is_far_ahead_costs_a_longer_way_back_and_no_window(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;

	(void)state;
	assert_int_equal(nt_offsets_new(&offsets), 0);
	take(offsets, 0, 500);
	(void)take_at(offsets, 500, UINT64_MAX);
	take(offsets, 501, 1000);
	offsets = restart(offsets, 90000);
	assert_true((start_of(offsets) + 1) * STEP_MS <= 88000);
}

static void a_state_of_the_first_version_goes_on_behind_what_was_taken(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_codec codec = {.out = &buf};

	(void)state;
	nt_codec_put_u32(&codec, 1);
	nt_codec_put_u64(&codec, UINT64_MAX);
	nt_codec_put_u32(&codec, 1);
	nt_codec_put_u64(&codec, (uint64_t)NT_TOPIC_WINDOW << 32 | PARTITION);
	nt_codec_put_u64(&codec, 42);
	nt_codec_put_u64(&codec, SECOND);
	assert_int_equal(codec.error, 0);
	assert_int_equal(nt_offsets_new(&offsets), 0);
	assert_int_equal(nt_offsets_load(offsets, buf.data, buf.len), 0);
	assert_int_equal(start_of(offsets), 42);
	assert_true(take_at(offsets, 42, SECOND));
	assert_false(take_at(offsets, 43, SECOND));
}

static void damage_is_noticed(void **state)
{
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
	nt_autobuf struct nt_buf buf = {0};

	(void)state;
	assert_int_equal(nt_offsets_new(&offsets), 0);
	take(offsets, 0, 10);
	assert_int_equal(nt_offsets_save(offsets, UINT64_MAX, &buf), 0);
	for (size_t len = 0; len < buf.len; len++)
		assert_int_equal(nt_offsets_load(offsets, buf.data, len), -EBADMSG);
	/* A start behind what was taken would pass something over. */
	buf.data[buf.len - 1] = 1;
	assert_int_equal(nt_offsets_load(offsets, buf.data, buf.len), -EBADMSG);
	buf.data[buf.len - 1] = 0;
	assert_int_equal(nt_offsets_load(offsets, buf.data, buf.len), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_partition_that_was_never_read_is_enoent),
		cmocka_unit_test(where_nothing_waits_reading_goes_on_behind_what_was_taken),
		cmocka_unit_test(windows_that_wait_are_read_again_however_old_they_are),
		cmocka_unit_test(a_state_saved_in_the_middle_of_a_second_reading_loses_nothing),
		cmocka_unit_test(what_is_not_there_any_more_is_not_waited_for),
		cmocka_unit_test(a_clock_that_is_far_ahead_costs_a_longer_way_back_and_no_window),
		cmocka_unit_test(a_state_of_the_first_version_goes_on_behind_what_was_taken),
		cmocka_unit_test(damage_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
