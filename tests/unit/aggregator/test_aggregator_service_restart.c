/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A service that is restarted: in good order, after a crash, with a damaged state or spool. */
#include "tests/unit/aggregator/service_feed.h"

/* In good order: saves. */
static void stop_service(void)
{
	nt_service_stop(service);
	assert_int_equal(nt_service_run(service), 0);
	kill_service();
}

/* The notifications in the order of their first delivery, as one text. */
static char *all_told(void)
{
	nt_autobuf struct nt_buf buf = {0};

	for (size_t i = 0; i < tolds; i++)
		assert_int_equal(nt_buf_printf(&buf, "%s\n", told[i]), 0);
	assert_int_equal(nt_buf_append(&buf, "", 1), 0);
	return (char *)nt_take(buf.data);
}

static void forget_told(void)
{
	while (tolds)
		free(told[--tolds]);
}

static double windows_counted(void)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(board);
	double calls = 0;

	for (size_t i = 0; i < snapshot->job[0]->ranks; i++)
		calls += (double)snapshot->job[0]->rank[i].op[0].calls;
	nt_snapshot_release(snapshot);
	return calls;
}

static void a_restart_in_good_order_changes_nothing(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;
	double calls;

	(void)state;
	/* Once in one go … */
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	want = all_told();
	calls = windows_counted();
	kill_service();
	forget_told();
	tear_down(NULL);
	/* … and once with restarts all the time. */
	set_up(NULL);
	for (uint64_t at = 0; at < 60000; at += 5200) {
		uint64_t to = at + 5200 < 60000 ? at + 5200 : 60000;

		publish_run(at, to, 30000);
		start_service();
		turn_until_read();
		stop_service();
	}
	start_service();
	turn_until_read();
	got = all_told();
	assert_string_equal(want, got);
	assert_true(windows_counted() == calls);
}

static void a_crash_repeats_what_followed_the_last_saving_and_no_more(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;
	double calls;

	(void)state;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	want = all_told();
	calls = windows_counted();
	kill_service();
	forget_told();
	tear_down(NULL);

	set_up(NULL);
	publish_run(0, 20800, 30000);
	start_service();
	turn_until_read();
	stop_service();
	publish_run(20800, 45760, 30000);
	start_service();
	turn_until_read();
	kill_service(); /* a notification went out after the last save */
	publish_run(45760, 60000, 30000);
	start_service();
	turn_until_read();
	got = all_told();
	assert_string_equal(want, got);
	assert_true(windows_counted() == calls);
}

static void a_damaged_state_is_left_behind(void **state)
{
	(void)state;
	publish_run(0, 30000, UINT64_MAX);
	start_service();
	turn_until_read();
	stop_service();
	assert_true(memory.items >= 3);
	memory.bytes[2].len /= 2;
	start_service();
	turn_until_read();
	assert_true(windows_counted() == 58 * 10 * RANKS);
}

static void a_spool_that_was_begun_anew_is_read(void **state)
{
	(void)state;
	publish_run(0, 30000, UINT64_MAX);
	start_service();
	turn_until_read();
	stop_service();
	nt_bus_close(bus);
	scratch_remove(dir);
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	publish_run(60000 + 320, 65000, UINT64_MAX);
	start_service();
	turn_until_read();
	assert_true(windows_counted() == (58 + 9) * 10 * RANKS);
}

static void a_store_that_fails_stops_nothing(void **state)
{
	(void)state;
	memory.error = -ENOSPC;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	nt_service_stop(service);
	assert_int_equal(nt_service_run(service), 0);
	assert_int_equal(memory.saves, 0);
	assert_true(count_told(" firing ") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_restart_in_good_order_changes_nothing),
		TEST(a_crash_repeats_what_followed_the_last_saving_and_no_more),
		TEST(a_damaged_state_is_left_behind),
		TEST(a_spool_that_was_begun_anew_is_read),
		TEST(a_store_that_fails_stops_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
