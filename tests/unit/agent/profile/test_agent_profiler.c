/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles of a real interpreter, by real workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/host/proc.h"
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
static struct nt_quarantine *quarantine;
static size_t stalls;
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

static void on_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	(void)data, (void)pid, (void)owner, (void)held;
	stalls++;
}

static int set_up(void **state)
{
	const struct nt_profiler_hooks hooks = {.done = on_done, .stalled = on_stalled};

	(void)state;
	stalls = 0;
	if (nt_quarantine_new(&quarantine) < 0)
		return -1;
	return nt_profiler_new(&workers, quarantine, &hooks, &profiler);
}

static void free_results(void)
{
	for (size_t i = 0; i < result_count; i++)
		nt_window_profile_free(results[i]);
	result_count = 0;
}

static int tear_down(void **state)
{
	(void)state;
	free_results();
	nt_profiler_free(profiler);
	nt_quarantine_free(quarantine);
	if (python.pid)
		live_python_end(&python);
	python = (struct live_python){0};
	return 0;
}

/* Each sample takes the state of each thread. */
static const char threads_script[] = "import os, threading\n"
				     "threading.stack_size(65536)\n"
				     "end = threading.Event()\n"
				     "for i in range(3000):\n"
				     "    threading.Thread(target=end.wait, daemon=True).start()\n"
				     "os.write(1, b'x')\n"
				     "end.wait()\n";

static void start_script(const char *text)
{
	static char interpreter[PATH_MAX];

	for (int minor = 14; minor >= 8; minor--) {
		if (!live_python_find(minor, interpreter))
			continue;
		assert_int_equal(live_python_start(interpreter, text, &python), 0);
		return;
	}
	skip();
}

static void start_python(void)
{
	start_script(script);
}

static struct nt_profiler_order order_of(uint32_t pid, uint64_t owner, uint32_t seconds)
{
	struct nt_profiler_order order = {
		.request = REQUEST,
		.owner.id = owner,
		.task = {.pid = pid, .wish = {.seconds = seconds, .hz = 49}},
	};

	assert_int_equal(nt_proc_start_ns(pid, &order.task.start_boot_ns), 0);
	return order;
}

static int begin(uint32_t pid, uint32_t seconds)
{
	const struct nt_profiler_order order = order_of(pid, 1, seconds);

	return nt_profiler_begin(profiler, &order);
}

/* The same for a process of another owner. */
static int begin_of(uint64_t owner)
{
	const struct nt_profiler_order order = order_of((uint32_t)python.pid, owner, 1);

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

/*
 * On a busy machine there are fewer samples, and a function that has slept waits for a processor. One
 * that never sleeps is not off it.
 */
static void functions_have_their_shares(void **state)
{
	uint64_t spin[2] = {0}, rest[2] = {0}, taken = 0, missed = 0, torn = 0, cpu_ns = 0;
	int profiles = 0;

	(void)state;
	start_python();
	for (; (spin[1] < 10 || rest[0] < 10) && profiles < 10; profiles++) {
		const struct nt_wire_profile *wire;

		free_results();
		assert_int_equal(begin((uint32_t)python.pid, 2), 0);
		await(1);
		wire = &results[0]->wire;
		assert_string_equal(wire->reason, "");
		assert_int_equal(wire->taken + wire->missed, 98);
		assert_int_equal(wire->left_out, 0);
		assert_true(wire->duration_ns >= NT_SECOND && wire->begin_boot_ns > 0);
		count_function(wire, "spin", spin);
		count_function(wire, "rest", rest);
		taken += wire->taken;
		missed += wire->missed;
		torn += wire->torn;
		cpu_ns += wire->cpu_ns;
	}
	assert_true(spin[1] >= 10 && spin[1] > 4 * spin[0]);
	assert_true(rest[0] >= 10);
	assert_int_equal(nt_profiler_stats(profiler)->taken, profiles);
	assert_int_equal(nt_profiler_stats(profiler)->times, taken);
	assert_int_equal(nt_profiler_stats(profiler)->missed, missed);
	assert_int_equal(nt_profiler_stats(profiler)->torn, torn);
	print_message("a time takes %.2f ms of processor time\n",
		      (double)cpu_ns / 1e6 / (double)taken);
}

static void samples_that_cost_too_much_are_fewer(void **state)
{
	enum {
		SECONDS = 5,
		SLACK_MS = 60, /* the last sample, and what is outside of samples */
	};
	struct nt_profiler_order order;
	const struct nt_wire_profile *wire;

	(void)state;
	start_script(threads_script);
	order = order_of((uint32_t)python.pid, 1, SECONDS);
	order.task.wish.hz = NT_PROFILE_HZ;
	assert_int_equal(nt_profiler_begin(profiler, &order), 0);
	await(1);
	wire = &results[0]->wire;
	assert_true(wire->taken > 0 && wire->missed > 0);
	assert_int_equal(wire->taken + wire->missed, SECONDS * NT_PROFILE_HZ);
	assert_true(wire->cpu_ns <= wire->duration_ns / NT_PROFILE_CPU_SHARE +
					    (NT_PROFILE_CPU_BEGIN_MS + SLACK_MS) * NT_MILLISECOND);
	assert_int_equal(nt_profiler_stats(profiler)->missed, wire->missed);
	print_message("of %d times %d were taken, of %.1f ms each\n", SECONDS * NT_PROFILE_HZ,
		      (int)wire->taken, (double)wire->cpu_ns / 1e6 / (double)wire->taken);
}

static void a_node_and_an_owner_have_a_share(void **state)
{
	(void)state;
	start_python();
	for (int i = 0; i < NT_PROFILER_OWNER_TASKS; i++)
		assert_int_equal(begin_of(1), 0);
	assert_int_equal(begin_of(1), -EDQUOT);
	assert_int_equal(nt_profiler_stats(profiler)->refused_owner, 1);
	for (int i = NT_PROFILER_OWNER_TASKS; i < NT_PROFILER_TASKS; i++)
		assert_int_equal(begin_of(2), 0);
	assert_int_equal(begin_of(3), -EAGAIN);
	assert_int_equal(nt_profiler_stats(profiler)->refused, 1);
	await(NT_PROFILER_TASKS);
	assert_int_equal(begin_of(1), 0);
}

static void a_process_in_quarantine_is_refused(void **state)
{
	struct nt_profiler_order order;

	(void)state;
	start_python();
	order = order_of((uint32_t)python.pid, 1, 1);
	(void)nt_quarantine_strike(quarantine, order.task.pid, order.task.start_boot_ns, 1,
				   nt_clock_boot_ns());
	assert_int_equal(nt_profiler_begin(profiler, &order), -EACCES);
	assert_int_equal(nt_profiler_stats(profiler)->refused_held, 1);
}

/* The process of the request has ended, and another one has its number. */
static void another_process_of_that_number_is_not_read(void **state)
{
	struct nt_profiler_order order;

	(void)state;
	start_python();
	order = order_of((uint32_t)python.pid, 1, 20);
	order.task.start_boot_ns--;
	assert_int_equal(nt_profiler_begin(profiler, &order), 0);
	await(1);
	assert_int_equal(results[0]->wire.taken, 0);
	assert_string_equal(results[0]->wire.reason, nt_stack_reason_text(NT_STACK_ENDED));
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

/* One that runs is only slow. It sleeps between two samples, but may have had no processor so far. */
static void a_late_worker_that_sleeps_counts_for_the_quarantine(void **state)
{
	const struct timespec rest = {.tv_nsec = 20 * NT_MILLISECOND};
	const uint64_t until_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;

	(void)state;
	start_python();
	while (!stalls && nt_clock_mono_ns() < until_ns) {
		assert_int_equal(begin((uint32_t)python.pid, 20), 0);
		(void)nanosleep(&rest, NULL);
		nt_profiler_tick(profiler, nt_clock_mono_ns() + 31 * NT_SECOND);
		assert_int_equal(result_count, 1);
		free_results();
	}
	assert_int_equal(stalls, 1);
	assert_int_equal(begin((uint32_t)python.pid, 1), -EACCES);
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
		TEST(functions_have_their_shares),
		TEST(samples_that_cost_too_much_are_fewer),
		TEST(a_node_and_an_owner_have_a_share),
		TEST(a_process_in_quarantine_is_refused),
		TEST(another_process_of_that_number_is_not_read),
		TEST(a_process_that_ends_states_it),
		TEST(a_late_worker_is_killed),
		TEST(a_late_worker_that_sleeps_counts_for_the_quarantine),
		TEST(nobody_reads_a_malformed_wish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
