/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The buffers of a measurement, and the end of its process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "plugin/cupti/report.h"
#include "tests/unit/plugin/cupti/cupti_fake.h"

/* ---- buffers ---- */

static void take_all(void)
{
	uint8_t *buffer;
	size_t size, most;

	for (int i = 0; i < NT_BUFFERS; i++) {
		cupti.request(&buffer, &size, &most);
		assert(buffer && size == NT_BUFFER_BYTES && most == 0);
	}
}

static void request_of_old_version(void)
{
	uint8_t *buffer = NULL;
	size_t size, most;

	cupti.version = 26;
	open_it();
	take_all();
	cupti.request(&buffer, &size, &most);
	assert(buffer && size == NT_BUFFER_BYTES && most == 0);
	assert(!nt_buffer_pool_give(buffer));
	cupti.complete(NULL, 0, buffer, size, 8); /* frees it */
	assert(copies == 0);
	tick(1, BUSY);
	nt_report_state(NT_GPU_RECORD_OPEN, 1, 0);
	assert(gaps == 1); /* what the buffer of 8 bytes cut off */
}

static void request_of_new_version(void)
{
	uint8_t *buffer = (uint8_t *)&cupti;
	size_t size = 1, most = 1;

	cupti.version = 27;
	open_it();
	take_all();
	for (int i = 0; i < 3; i++) {
		cupti.request(&buffer, &size, &most);
		assert(!buffer && size == 0 && most == 0);
	}
	cupti.complete(NULL, 0, NULL, 0, 0);
	tick(1, BUSY);
	nt_report_state(NT_GPU_RECORD_OPEN, 1, 0);
	assert(gaps == 3);
	tick(5, BUSY);
	nt_report_state(NT_GPU_RECORD_OPEN, 1, 0);
	assert(gaps == 3);
}

static void without_a_buffer_old_versions_get_one_and_new_ones_count_a_loss(void **state)
{
	(void)state;
	in_child(request_of_old_version);
	in_child(request_of_new_version);
}

static void drop_records(void)
{
	open_it();
	cupti.dropped = 1234;
	deliver(NT_BUFFER_BYTES);
	assert(copies == 1 && gaps == 0);
	deliver(NT_BUFFER_BYTES);
	assert(copies == 2 && gaps == 1234);
	/* All are given back: many times more than there are. */
	for (int i = 0; i < 4 * NT_BUFFERS; i++)
		deliver(NT_BUFFER_BYTES);
	assert(copies == 2 + 4 * NT_BUFFERS && gaps == 1234);
}

static void what_cupti_dropped_counts_as_lost(void **state)
{
	(void)state;
	in_child(drop_records);
}

/* ---- the end of the process ---- */

static atomic_int stage;
enum {
	STAGE_INSIDE = 1, /* a call of CUPTI runs */
	STAGE_ENDING, /* exit() waits for it */
	STAGE_LEFT, /* it has returned */
};

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
	int inside = STAGE_INSIDE;

	(void)wait;
	(void)left;
	(void)atomic_compare_exchange_strong(&stage, &inside, STAGE_ENDING);
	while (atomic_load(&stage) == STAGE_ENDING)
		(void)sched_yield();
	return 0;
}

/* Ends once exit() was seen to wait. */
static void stay_inside(void)
{
	atomic_store(&stage, STAGE_INSIDE);
	while (atomic_load(&stage) != STAGE_ENDING)
		(void)sched_yield();
	atomic_store(&stage, STAGE_LEFT);
}

static void *tick_in_thread(void *unused)
{
	(void)unused;
	for (;;)
		(void)nt_measurement_tick();
	return NULL;
}

/* As CUPTI's own: registered before that of the measurement, so it runs after it. */
static void at_exit_of_cupti(void)
{
	const uint32_t before = cupti.calls;

	if (atomic_load(&stage) != STAGE_LEFT)
		_exit(3);
	is_wanted = false;
	for (int i = 0; i < 10; i++)
		(void)nt_measurement_tick();
	_exit(cupti.calls == before ? 0 : 4);
}

static void end_while_inside(void)
{
	pthread_t thread;

	assert(atexit(at_exit_of_cupti) == 0);
	open_it();
	cupti.in_flush = stay_inside;
	assert(pthread_create(&thread, NULL, tick_in_thread, NULL) == 0);
	while (atomic_load(&stage) != STAGE_INSIDE)
		(void)sched_yield();
	exit(5); /* at_exit_of_cupti() says whether all was right */
}

static void the_end_of_the_process_waits_for_a_call_and_lets_no_other_begin(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		in_child(end_while_inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_buffer_old_versions_get_one_and_new_ones_count_a_loss),
		cmocka_unit_test(what_cupti_dropped_counts_as_lost),
		cmocka_unit_test(the_end_of_the_process_waits_for_a_call_and_lets_no_other_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
