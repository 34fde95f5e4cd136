/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles of a real interpreter, by real workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/profile/profiler.h"
#include "common/system/clock.h"
#include "tests/unit/agent/stack/live_python.h"

enum {
	REQUEST = 7,
	WAIT_S = 30, /* the machine may be busy */
};

static const char script[] = "import os, time\n"
			     "def spin(end):\n"
			     "    while time.monotonic() < end:\n"
			     "        pass\n"
			     "def rest():\n"
			     "    time.sleep(0.05)\n"
			     "os.write(1, b'x')\n"
			     "while True:\n"
			     "    spin(time.monotonic() + 0.05)\n"
			     "    rest()\n";

static struct nt_workers workers;
static struct nt_profiler *profiler;
static struct live_python python;
static struct nt_window_profile *results[NT_PROFILER_TASKS];
static size_t result_count;

static void on_done(void *data, const struct nt_profiler_order *order,
		    struct nt_window_profile *profile)
{
	(void)data;
	assert_int_equal(order->request, REQUEST);
	assert_true(result_count < NT_PROFILER_TASKS);
	results[result_count++] = profile;
}

static int set_up(void **state)
{
	(void)state;
	return nt_profiler_new(&workers, on_done, NULL, &profiler);
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < result_count; i++)
		nt_window_profile_free(results[i]);
	result_count = 0;
	nt_profiler_free(profiler);
	if (python.pid)
		live_python_end(&python);
	python = (struct live_python){0};
	return 0;
}

static void start_python(void)
{
	static char interpreter[PATH_MAX];

	for (int minor = 14; minor >= 8; minor--) {
		if (!live_python_find(minor, interpreter))
			continue;
		assert_int_equal(live_python_start(interpreter, script, &python), 0);
		return;
	}
	skip();
}

static int begin(uint32_t pid, uint32_t seconds)
{
	const struct nt_profiler_order order = {
		.request = REQUEST,
		.task = {.pid = pid, .wish = {.seconds = seconds, .hz = 49}},
	};

	return nt_profiler_begin(profiler, &order);
}

static void await(size_t count)
{
	const struct timespec rest = {.tv_nsec = 20 * NT_MILLISECOND};
	const uint64_t until_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;

	while (result_count < count && nt_clock_mono_ns() < until_ns) {
		nt_profiler_tick(profiler, nt_clock_mono_ns());
		(void)nanosleep(&rest, NULL);
	}
	assert_int_equal(result_count, count);
}

/* Samples with that function, on the CPU and off it. */
static void count_function(const struct nt_wire_profile *wire, const char *function,
			   uint64_t ret_count[2])
{
	for (size_t i = 0; i < wire->stacks; i++) {
		const struct nt_wire_profile_stack *stack = &wire->stack[i];

		for (size_t j = 0; j < stack->frames; j++) {
			if (strcmp(wire->frame[stack->frame[j]].function, function) != 0)
				continue;
			ret_count[stack->on_cpu] += stack->count;
			break;
		}
	}
}

static void functions_have_their_shares(void **state)
{
	uint64_t spin[2] = {0}, rest[2] = {0};
	const struct nt_wire_profile *wire;

	(void)state;
	start_python();
	assert_int_equal(begin((uint32_t)python.pid, 2), 0);
	await(1);
	wire = &results[0]->wire;
	count_function(wire, "spin", spin);
	count_function(wire, "rest", rest);
	assert_string_equal(wire->reason, "");
	assert_int_equal(wire->taken + wire->missed, 98);
	assert_true(wire->taken >= 30);
	assert_true(spin[1] >= 10 && spin[1] > 4 * spin[0]);
	assert_true(rest[0] >= 10 && rest[0] > 4 * rest[1]);
	assert_int_equal(wire->left_out, 0);
	assert_true(wire->duration_ns >= NT_SECOND && wire->begin_boot_ns > 0);
	assert_int_equal(nt_profiler_stats(profiler)->taken, 1);
}

static void two_run_at_a_time(void **state)
{
	(void)state;
	start_python();
	assert_int_equal(begin((uint32_t)python.pid, 1), 0);
	assert_int_equal(begin((uint32_t)python.pid, 1), 0);
	assert_int_equal(begin((uint32_t)python.pid, 1), -EAGAIN);
	assert_int_equal(nt_profiler_stats(profiler)->refused, 1);
	await(2);
	assert_int_equal(begin((uint32_t)python.pid, 1), 0);
}

static void a_process_that_ends_states_it(void **state)
{
	(void)state;
	start_python();
	assert_int_equal(begin((uint32_t)python.pid, 20), 0);
	live_python_end(&python);
	python = (struct live_python){0};
	await(1);
	assert_string_equal(results[0]->wire.reason, nt_stack_reason_text(NT_STACK_ENDED));
}

/* The worker sleeps still when its time is over. */
static void a_late_worker_is_killed(void **state)
{
	(void)state;
	start_python();
	assert_int_equal(begin((uint32_t)python.pid, 20), 0);
	nt_profiler_tick(profiler, nt_clock_mono_ns() + 29 * NT_SECOND);
	assert_int_equal(result_count, 0);
	nt_profiler_tick(profiler, nt_clock_mono_ns() + (20 + NT_PROFILER_LATE_S + 1) * NT_SECOND);
	assert_int_equal(result_count, 1);
	assert_int_equal(results[0]->wire.taken, 0);
	assert_string_equal(results[0]->wire.reason, nt_stack_reason_text(NT_STACK_STALLED));
	assert_int_equal(nt_profiler_stats(profiler)->failed, 1);
	assert_int_equal(workers.killed, workers.started);
}

static void nobody_reads_a_malformed_wish(void **state)
{
	(void)state;
	start_python();
	assert_int_equal(begin((uint32_t)python.pid, 0), 0);
	await(1);
	assert_int_equal(results[0]->wire.taken, 0);
	assert_string_equal(results[0]->wire.reason, nt_stack_reason_text(NT_STACK_STALLED));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(functions_have_their_shares),   TEST(two_run_at_a_time),
		TEST(a_process_that_ends_states_it), TEST(a_late_worker_is_killed),
		TEST(nobody_reads_a_malformed_wish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
