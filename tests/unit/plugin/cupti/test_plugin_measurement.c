/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <time.h>

#include "tests/unit/plugin/cupti/cupti_fake.h"

/* ---- open and close ---- */

static void nobody_asks(void)
{
	tick(100, IDLE);
	assert(cupti.calls == 0 && reports == 0);
}

static void nothing_is_called_while_nobody_asks(void **state)
{
	(void)state;
	in_child(nobody_asks);
}

static void open_and_close(void)
{
	struct timespec now;

	is_wanted = true;
	tick(1, BUSY);
	assert(called("load flush0 clock callbacks +runtime +driver +10 +1 "));
	assert(was_reported(NT_GPU_RECORD_OPEN, 0));
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	assert(reported.start_ns && cupti.clock() >= reported.start_ns);
	assert((uint64_t)now.tv_sec - reported.start_ns / 1000000000 <= 1);
	cupti.gives = true;
	tick(50, BUSY);
	cupti.log[0] = '\0';
	is_wanted = false;
	tick(1, BUSY);
	assert(called("flush0 -runtime -driver -10 -1 ") && is_off());
	tick(DRAIN_TICKS - 1, BUSY);
	cupti.log[0] = '\0';
	tick(1, BUSY);
	assert(called("flush0 flush1 "));
	tick(100, IDLE);
	assert(called("") && reports == 0);
	/* Nothing is registered twice. */
	is_wanted = true;
	tick(1, BUSY);
	assert(called("+runtime +driver +10 +1 ") && was_reported(NT_GPU_RECORD_OPEN, 0));
}

static void a_measurement_opens_and_closes_in_order(void **state)
{
	(void)state;
	in_child(open_and_close);
}

static void reopen_while_draining(void)
{
	open_it();
	cupti.gives = true;
	is_wanted = false;
	tick(5, BUSY);
	assert(is_off());
	cupti.log[0] = '\0';
	is_wanted = true;
	tick(1, BUSY);
	assert(called("flush0 +runtime +driver +10 +1 ") && was_reported(NT_GPU_RECORD_OPEN, 0));
	/* It lasts as if it had been closed. */
	tick(DRAIN_TICKS * 2, BUSY);
	assert(!is_off() && reports == 0);
	is_wanted = false;
	tick(1, BUSY);
	assert(is_off());
}

static void one_that_drains_opens_again(void **state)
{
	(void)state;
	in_child(reopen_while_draining);
}

static void close_late(void)
{
	open_it();
	/* A client may have come since the last buffer: so the next one is waited for. */
	is_wanted = false;
	tick(SILENT_TICKS - 1, BUSY);
	assert(!is_off());
	cupti.log[0] = '\0';
	cupti.gives = true;
	tick(1, BUSY);
	assert(called("flush0 -runtime -driver -10 -1 "));
}

static void it_closes_with_a_buffer_that_shows_whose_it_is(void **state)
{
	(void)state;
	in_child(close_late);
}

static void reopen_while_closing(void)
{
	open_it();
	is_wanted = false;
	tick(3, BUSY);
	assert(!is_off() && reports == 0);
	cupti.log[0] = '\0';
	is_wanted = true;
	tick(1, BUSY);
	assert(called("flush0 ") && was_reported(NT_GPU_RECORD_OPEN, 0));
	tick(5, BUSY);
	assert(reports == 0);
}

static void an_agent_that_comes_while_it_closes_gets_an_open_record(void **state)
{
	(void)state;
	in_child(reopen_while_closing);
}

/* ---- other clients, and failures ---- */

static void taken_before(void)
{
	cupti.is_taken = true;
	is_wanted = true;
	tick(1, IDLE);
	assert(called("load flush0 ") && was_reported(NT_GPU_RECORD_GIVEN_UP, 0));
	tick(29, IDLE);
	assert(called("") && reports == 0);
	tick(1, IDLE);
	assert(was_reported(NT_GPU_RECORD_GIVEN_UP, 0));
	/* Another request is refused at once. */
	is_wanted = false;
	tick(100, IDLE);
	assert(reports == 0);
	is_wanted = true;
	tick(1, IDLE);
	assert(called("") && was_reported(NT_GPU_RECORD_GIVEN_UP, 0));
}

static void another_client_that_came_first_is_left_alone(void **state)
{
	(void)state;
	in_child(taken_before);
}

static void missing(void)
{
	cupti.is_missing = true;
	is_wanted = true;
	tick(1, IDLE);
	assert(called("load ") && was_reported(NT_GPU_RECORD_GIVEN_UP, -1));
	/* The reason stays the same. */
	tick(30, IDLE);
	assert(called("") && was_reported(NT_GPU_RECORD_GIVEN_UP, -1));
}

static void without_the_library_it_is_given_up(void **state)
{
	(void)state;
	in_child(missing);
}

static void fails(int what, const char *calls)
{
	cupti.failing = what;
	is_wanted = true;
	tick(1, IDLE);
	assert(called(calls) && is_off());
	assert(was_reported(NT_GPU_RECORD_GIVEN_UP, REFUSED));
	tick(30, IDLE);
	assert(called("") && was_reported(NT_GPU_RECORD_GIVEN_UP, REFUSED));
}

static void callbacks_fail(void)
{
	fails(-1, "load flush0 clock callbacks ");
}

static void launches_fail(void)
{
	fails(-2, "load flush0 clock callbacks +runtime +driver -10 -1 ");
}

static void kernels_fail(void)
{
	fails(10, "load flush0 clock callbacks +runtime +driver +10 -runtime -driver -10 -1 ");
}

static void copies_fail(void)
{
	fails(1, "load flush0 clock callbacks +runtime +driver +10 +1 -runtime -driver -10 -1 ");
}

static void what_fails_half_way_is_undone_and_given_up(void **state)
{
	(void)state;
	in_child(callbacks_fail);
	in_child(launches_fail);
	in_child(kernels_fail);
	in_child(copies_fail);
}

/* Opens, and nothing comes in the second before the close. */
static void yield_it(void)
{
	open_it();
	cupti.gives = true;
	tick(5, BUSY);
	cupti.gives = false;
	tick(SILENT_TICKS - 1, BUSY);
	cupti.log[0] = '\0';
	is_wanted = false;
	tick(1, BUSY);
	assert(called("flush0 ") && !is_off());
}

static void yield_and_get_a_buffer(void)
{
	yield_it();
	tick(1000, IDLE);
	assert(called("") && !is_off());
	deliver(0);
	tick(1, BUSY);
	assert(called("-runtime -driver -10 -1 ") && is_off() && reports == 0);
	tick(DRAIN_TICKS, BUSY);
	tick(10, IDLE);
	open_it();
}

static void after_a_silent_second_all_is_left_until_a_buffer_comes(void **state)
{
	(void)state;
	in_child(yield_and_get_a_buffer);
}

static void yield_and_ask(void)
{
	yield_it();
	tick(100, IDLE);
	is_wanted = true;
	tick(1, IDLE);
	assert(called("flush0 ") && reports == 0);
	tick(1, IDLE);
	assert(was_reported(NT_GPU_RECORD_GIVEN_UP, 0) && !is_off());
	tick(29, IDLE);
	assert(reports == 0);
	tick(1, IDLE);
	assert(was_reported(NT_GPU_RECORD_GIVEN_UP, 0));
	/* It was a long pause of the program after all. */
	cupti.gives = true;
	cupti.log[0] = '\0';
	tick(1, BUSY);
	assert(called("flush0 -runtime -driver -10 -1 "));
	tick(1, BUSY);
	assert(called("flush0 +runtime +driver +10 +1 ") && was_reported(NT_GPU_RECORD_OPEN, 0));
}

static void a_request_after_a_silent_second_is_refused_until_a_buffer_comes(void **state)
{
	(void)state;
	in_child(yield_and_ask);
}

/* So many requests until one is granted. */
static int requests_until_it_opens(void)
{
	for (int i = 1; i <= 100; i++) {
		is_wanted = true;
		if (nt_measurement_tick() == BUSY)
			return i;
		is_wanted = false;
		tick(2, IDLE);
	}
	return 0;
}

static void empty_again_and_again(void)
{
	/* A client registered between two measurements, and does not expect what it gets now. */
	open_it();
	tick(29, BUSY);
	assert(!is_off());
	cupti.log[0] = '\0';
	tick(1, BUSY);
	assert(called("flush0 -runtime -driver -10 -1 ") && is_off() && reports == 0);
	tick(100, IDLE);
	assert(called(""));
	is_wanted = false;
	tick(10, IDLE);
	open_it();
	is_wanted = false;
	tick(9, BUSY);
	assert(!is_off());
	tick(1, BUSY);
	assert(is_off() && reports == 0);
	tick(5, IDLE);
	/* More and more requests are passed over, but not for ever: the GPU may do nothing. */
	for (int skips = 1; skips <= 64; skips *= 2) {
		assert(requests_until_it_opens() == (skips < 32 ? skips : 32) + 1);
		is_wanted = false;
		tick(10, BUSY);
		tick(2, IDLE);
		assert(is_off());
	}
	assert(requests_until_it_opens() == 33);
	cupti.gives = true;
	tick(5, BUSY);
	is_wanted = false;
	tick(1 + DRAIN_TICKS, BUSY);
	cupti.gives = false;
	assert(requests_until_it_opens() == 1);
}

static void empty_and_full(void)
{
	for (int i = 0; i < 5; i++) {
		open_it();
		is_wanted = false;
		tick(10, BUSY);
		tick(5, IDLE);
		assert(is_off());
		open_it();
		cupti.gives = true;
		tick(5, BUSY);
		is_wanted = false;
		tick(1 + DRAIN_TICKS, BUSY);
		cupti.gives = false;
		tick(1, IDLE);
	}
	assert(is_off());
}

static void without_any_buffer_all_is_disabled_and_requests_are_passed_over(void **state)
{
	(void)state;
	in_child(empty_again_and_again);
	in_child(empty_and_full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_called_while_nobody_asks),
		cmocka_unit_test(a_measurement_opens_and_closes_in_order),
		cmocka_unit_test(one_that_drains_opens_again),
		cmocka_unit_test(it_closes_with_a_buffer_that_shows_whose_it_is),
		cmocka_unit_test(an_agent_that_comes_while_it_closes_gets_an_open_record),
		cmocka_unit_test(another_client_that_came_first_is_left_alone),
		cmocka_unit_test(without_the_library_it_is_given_up),
		cmocka_unit_test(what_fails_half_way_is_undone_and_given_up),
		cmocka_unit_test(after_a_silent_second_all_is_left_until_a_buffer_comes),
		cmocka_unit_test(a_request_after_a_silent_second_is_refused_until_a_buffer_comes),
		cmocka_unit_test(without_any_buffer_all_is_disabled_and_requests_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
