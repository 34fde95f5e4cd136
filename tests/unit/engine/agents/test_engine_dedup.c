/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/agents/dedup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct nt_dedup dedup;
static struct nt_dedup_counters counters;

static int set_up(void **state)
{
	(void)state;
	counters = (struct nt_dedup_counters){0};
	dedup = (struct nt_dedup){0};
	nt_dedup_start(&dedup, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_dedup_release(&dedup);
	return 0;
}

static bool take(uint64_t number)
{
	int r = nt_dedup_take(&dedup, number, &counters);

	assert_true(r == 0 || r == 1);
	return r == 1;
}

static void take_all(uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++)
		assert_true(take(number));
}

static void refuse_all(uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++)
		assert_false(take(number));
}

static uint64_t missing(void)
{
	return counters.gaps - counters.filled;
}

/* An outage of ten minutes at 16 messages a second; new ones come between those that are late. */
static void a_backlog_behind_live_messages_is_taken_once_and_leaves_no_gap(void **state)
{
	uint64_t live = 10000, late = 401;

	(void)state;
	take_all(1, 401);
	while (late < 10000) {
		assert_true(take(live++));
		assert_true(take(late++));
		if (late < 10000)
			assert_true(take(late++));
	}
	take_all(live, live + 1000);
	assert_int_equal(missing(), 0);
	assert_int_equal(counters.forgotten, 0);
	refuse_all(1, live + 1000);
	assert_int_equal(dedup.holes, 0);
}

static void a_backlog_that_comes_newest_first_leaves_no_gap(void **state)
{
	(void)state;
	take_all(1, 401);
	take_all(5000, 5600);
	for (uint64_t late = 4999; late > 400; late--)
		assert_true(take(late));
	refuse_all(1, 5600);
	assert_int_equal(missing(), 0);
}

static void what_never_comes_of_a_backlog_stays_a_gap(void **state)
{
	(void)state;
	take_all(1, 401);
	take_all(3000, 3010);
	assert_int_equal(counters.gaps, 2599);
	take_all(401, 1000);
	take_all(1010, 3000);
	take_all(3010, 6000);
	assert_int_equal(missing(), 10);
	assert_int_equal(dedup.holes, 1);
	take_all(1000, 1010);
	assert_int_equal(missing(), 0);
}

/* They are in the window of the newest, but were counted when it jumped. */
static void late_ones_next_to_the_newest_are_filled_too(void **state)
{
	(void)state;
	assert_true(take(1));
	assert_true(take(2));
	assert_true(take(1003));
	assert_int_equal(counters.gaps, 1000);
	take_all(3, 1003);
	assert_int_equal(counters.gaps, 1000);
	assert_int_equal(counters.filled, 1000);
	take_all(1004, 3000);
	assert_int_equal(missing(), 0);
}

/* Nobody knows whether they were ever ours to see; twice they are not taken. */
static void what_comes_before_the_first_is_new_and_no_gap(void **state)
{
	(void)state;
	nt_dedup_start(&dedup, 5000);
	take_all(5000, 5400);
	take_all(1, 5000);
	take_all(5400, 6000);
	refuse_all(1, 6000);
	assert_int_equal(counters.gaps, 0);
	assert_int_equal(counters.filled, 0);
}

static void holes_over_the_cap_are_forgotten_and_counted(void **state)
{
	const uint64_t holes = NT_DEDUP_MAX_HOLES + 3;

	(void)state;
	for (uint64_t i = 0; i < holes * 1000; i++)
		if (i % 1000 < 990)
			assert_true(take(i + 1));
	take_all(holes * 1000 + 1, holes * 1000 + 1 + NT_DEDUP_WINDOW);
	assert_int_equal(counters.gaps, holes * 10);
	assert_int_equal(counters.forgotten, 3 * 10);
	assert_int_equal(dedup.holes, NT_DEDUP_MAX_HOLES);
	refuse_all(991, 1001);
	take_all(3991, 4001);
	assert_int_equal(counters.filled, 10);
}

static void splitting_a_hole_at_the_cap_forgets_the_oldest(void **state)
{
	const uint64_t end = NT_DEDUP_MAX_HOLES * 1000;

	(void)state;
	for (uint64_t i = 0; i < end; i++)
		if (i % 1000 < 900)
			assert_true(take(i + 1));
	take_all(end + 1, end + 1 + NT_DEDUP_WINDOW);
	/* In the middle of the second: the first goes. */
	assert_true(take(1950));
	assert_int_equal(counters.forgotten, 100);
	/* In the middle of what is the oldest now: its front part goes. */
	assert_true(take(1920));
	assert_int_equal(counters.forgotten, 100 + 19);
	refuse_all(1901, 1920);
	take_all(1921, 1950);
	take_all(1951, 2001);
	assert_int_equal(counters.filled, 2 + 29 + 50);
}

static void numbers_at_the_very_end_do_no_harm(void **state)
{
	(void)state;
	assert_true(take(1));
	assert_true(take(UINT64_MAX));
	assert_true(take(UINT64_MAX - 1));
	assert_false(take(UINT64_MAX));
	assert_true(take(UINT64_MAX / 2));
	assert_false(take(UINT64_MAX / 2));
	assert_int_equal(missing(), UINT64_MAX - 2 - 2);
}

static void holes_survive_a_restart(void **state)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_codec out = {.out = &buf};
	struct nt_codec in;

	(void)state;
	take_all(1, 401);
	take_all(3000, 3010);
	assert_true(take(1000));
	nt_dedup_save(&dedup, &out);
	assert_int_equal(out.error, 0);
	for (size_t size = 0; size < buf.len; size++) {
		struct nt_dedup torn = {0};

		in = (struct nt_codec){.loads = true, .in = buf.data, .in_size = size};
		nt_dedup_load(&torn, &in);
		assert_int_equal(in.error, -EBADMSG);
		nt_dedup_release(&torn);
	}
	nt_dedup_release(&dedup);
	in = (struct nt_codec){.loads = true, .in = buf.data, .in_size = buf.len};
	nt_dedup_load(&dedup, &in);
	assert_int_equal(in.error, 0);
	refuse_all(1, 401);
	take_all(401, 1000);
	assert_false(take(1000));
	take_all(1001, 3000);
	refuse_all(3000, 3010);
	assert_int_equal(missing(), 0);
}

static void holes_that_make_no_sense_are_refused(void **state)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_codec out = {.out = &buf};
	struct nt_codec in;
	struct nt_dedup loaded = {0};

	(void)state;
	take_all(1, 401);
	take_all(3000, 3010);
	dedup.hole[0].to = dedup.hole[0].from;
	nt_dedup_save(&dedup, &out);
	in = (struct nt_codec){.loads = true, .in = buf.data, .in_size = buf.len};
	nt_dedup_load(&loaded, &in);
	assert_int_equal(in.error, -EBADMSG);
	nt_dedup_release(&loaded);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_backlog_behind_live_messages_is_taken_once_and_leaves_no_gap),
		TEST(a_backlog_that_comes_newest_first_leaves_no_gap),
		TEST(what_never_comes_of_a_backlog_stays_a_gap),
		TEST(late_ones_next_to_the_newest_are_filled_too),
		TEST(what_comes_before_the_first_is_new_and_no_gap),
		TEST(holes_over_the_cap_are_forgotten_and_counted),
		TEST(splitting_a_hole_at_the_cap_forgets_the_oldest),
		TEST(numbers_at_the_very_end_do_no_harm),
		TEST(holes_survive_a_restart),
		TEST(holes_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
