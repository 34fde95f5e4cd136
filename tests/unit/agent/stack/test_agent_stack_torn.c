/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that run while they are read: what is seen then is not taken for one stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "agent/host/proc.h"
#include "agent/stack/stack_read.h"
#include "agent/stack/thread_wait.h"
#include "common/system/clock.h"
#include "tests/unit/agent/stack/live_python.h"

enum {
	WAIT_S = 30, /* the machine may be busy */
	SAMPLES = 3000,
};

static struct nt_stack stack;

/* ---- a thread that a read wakes ------------------------------------------------------------- */

/* It waits at the same place again: neither registers nor frames show that it has run. */
static struct {
	pid_t pid;
	int ask, answer;
	int wakes; /* left: reads of memory that wake it */
} sleeper;

static void start_sleeper(void)
{
	int ask[2], answer[2];

	assert_int_equal(pipe(ask), 0);
	assert_int_equal(pipe(answer), 0);
	sleeper.pid = fork();
	assert_true(sleeper.pid >= 0);
	if (sleeper.pid == 0) {
		char byte;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(ask[0], &byte, 1) == 1)
			if (write(answer[1], &byte, 1) != 1)
				break;
		_exit(0);
	}
	(void)close(ask[0]);
	(void)close(answer[1]);
	sleeper.ask = ask[1];
	sleeper.answer = answer[0];
}

static void await_sleep(void)
{
	const uint64_t until_ns = nt_clock_mono_ns() + WAIT_S * NT_SECOND;
	char state = '?';

	while (state != 'S' && nt_clock_mono_ns() < until_ns)
		assert_int_equal(nt_proc_state((uint32_t)sleeper.pid, &state), 0);
	assert_int_equal(state, 'S');
}

static void end_sleeper(void)
{
	(void)close(sleeper.ask);
	(void)close(sleeper.answer);
	(void)kill(sleeper.pid, SIGKILL);
	(void)waitpid(sleeper.pid, NULL, 0);
}

static int read_and_wake(void *data, uint32_t pid, uint64_t address, void *buf, size_t size)
{
	const struct nt_memory live = nt_memory_live();

	(void)data;
	if (sleeper.wakes > 0) {
		char byte = 0;

		sleeper.wakes--;
		assert_int_equal(write(sleeper.ask, &byte, 1), 1);
		assert_int_equal(read(sleeper.answer, &byte, 1), 1);
		await_sleep();
	}
	return nt_memory_read(&live, pid, address, buf, size);
}

/* Reads the sleeper's stack, whose first `wakes` reads of memory wake it. */
static const struct nt_stack_thread *read_sleeper(int wakes)
{
	const struct nt_memory memory = {.read = read_and_wake};
	nt_auto(nt_stack_reader) struct nt_stack_reader *reader = NULL;

	start_sleeper();
	await_sleep();
	sleeper.wakes = wakes;
	assert_int_equal(nt_stack_reader_new((uint32_t)sleeper.pid, false, &memory, &reader), 0);
	nt_stack_reader_read(reader, NULL, 0, &stack);
	end_sleeper();
	assert_int_equal(stack.threads, 1);
	assert_int_equal(stack.thread[0].state, 'S');
	return &stack.thread[0];
}

static void a_thread_that_sleeps_on_is_whole(void **state)
{
	const struct nt_stack_thread *thread;

	(void)state;
	thread = read_sleeper(0);
	assert_false(thread->is_torn);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_int_equal(thread->native, NT_STACK_WHOLE);
	assert_true(thread->frames > 0);
#endif
}

#if defined(__x86_64__)
static void a_thread_that_runs_once_is_read_again(void **state)
{
	const struct nt_stack_thread *thread;

	(void)state;
	thread = read_sleeper(1);
	assert_false(thread->is_torn);
	assert_int_equal(sleeper.wakes, 0);
	assert_true(thread->frames > 0);
}

static void a_thread_that_runs_each_time_is_torn(void **state)
{
	const struct nt_stack_thread *thread;

	(void)state;
	thread = read_sleeper(INT_MAX);
	assert_true(thread->is_torn);
	assert_int_equal(thread->native, NT_STACK_CHANGED);
	assert_int_equal(thread->frames, 0);
	assert_int_equal(stack.frames, 0);
}
#endif

/* ---- a real interpreter ---------------------------------------------------------------------- */

static const char script[] = "import os, time\n"
			     "def spin():\n"
			     "    end = time.perf_counter() + 0.0001\n"
			     "    while time.perf_counter() < end:\n"
			     "        pass\n"
			     "def rest():\n"
			     "    time.sleep(0.0001)\n"
			     "os.write(1, b'x')\n"
			     "while True:\n"
			     "    spin()\n"
			     "    rest()\n";

static const char *innermost_python(const struct nt_stack_thread *thread)
{
	for (uint32_t i = 0; i < thread->frames; i++)
		if (!stack.frame[thread->first + i].is_native)
			return nt_stack_text_at(&stack, stack.frame[thread->first + i].function);
	return "";
}

/* Thousands of times a second it begins and ends to sleep. */
static void one_that_sleeps_is_nowhere_else_unless_torn(void **state)
{
	const struct nt_memory memory = nt_memory_live();
	nt_auto(nt_stack_reader) struct nt_stack_reader *reader = NULL;
	static char interpreter[PATH_MAX];
	struct live_python python = {0};
	uint32_t torn = 0, sleeps = 0;

	(void)state;
	if (!live_python_find(11, interpreter)) {
		print_message("skip: CPython 3.11: no interpreter on this machine\n");
		skip();
	}
	assert_int_equal(live_python_start(interpreter, script, &python), 0);
	assert_int_equal(nt_stack_reader_new((uint32_t)python.pid, false, &memory, &reader), 0);
	for (int i = 0; i < SAMPLES; i++) {
		const struct nt_stack_thread *thread = &stack.thread[0];

		nt_stack_reader_read(reader, NULL, 0, &stack);
		assert_true(stack.threads > 0);
		torn += thread->is_torn;
		if (thread->is_torn || thread->state != 'S')
			continue;
		sleeps++;
		if (strcmp(innermost_python(thread), "rest") == 0)
			continue;
		live_python_end(&python);
		fail_msg("it sleeps in '%s'", innermost_python(thread));
	}
	live_python_end(&python);
	assert_true(sleeps > 0);
	print_message("%u of %d were torn\n", torn, SAMPLES);
}

/* ---- counts of runs -------------------------------------------------------------------------- */

static void runs_are_parsed(void **state)
{
	static const char status[] = "Name:\tpython3\nvoluntary_ctxt_switches:\t7\n"
				     "nonvoluntary_ctxt_switches:\t35\n";
	static const char fake[] = "Name:\tnonvoluntary_ctxt_switches:\t1\n";
	static const char *const others[] = {"", "\n", "1 2\n", "0 0 0\n", "1 2 -3\n", "1 2 3 4\n"};
	uint64_t runs = 0;

	(void)state;
	assert_true(nt_thread_wait_parse_runs("113599 157765 12\n", 17, &runs));
	assert_int_equal(runs, 12);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(nt_thread_wait_parse_runs(others[i], strlen(others[i]), &runs));
	assert_true(nt_thread_wait_parse_switches(status, &runs));
	assert_int_equal(runs, 42);
	assert_false(nt_thread_wait_parse_switches(fake, &runs));
	assert_false(nt_thread_wait_parse_switches("", &runs));
}

static void what_has_run_is_not_steady(void **state)
{
	struct nt_thread_wait wait;

	(void)state;
	start_sleeper();
	await_sleep();
	assert_int_equal(nt_thread_wait_read((uint32_t)sleeper.pid, (uint32_t)sleeper.pid, &wait),
			 0);
	assert_true(wait.has_runs);
	assert_true(nt_thread_wait_is_steady((uint32_t)sleeper.pid, (uint32_t)sleeper.pid, &wait));
	wait.runs++;
	assert_false(nt_thread_wait_is_steady((uint32_t)sleeper.pid, (uint32_t)sleeper.pid, &wait));
	wait.runs--;
	wait.state = 'R'; /* it was running, and sleeps now */
	assert_false(nt_thread_wait_is_steady((uint32_t)sleeper.pid, (uint32_t)sleeper.pid, &wait));
	wait.state = 'S';
	assert_false(wait.was_awake);
	wait.was_awake = true; /* it was about to sleep, but ran on instead */
	assert_false(nt_thread_wait_is_steady((uint32_t)sleeper.pid, (uint32_t)sleeper.pid, &wait));
	wait.was_awake = false;
	wait.has_runs = false;
	assert_false(nt_thread_wait_is_steady((uint32_t)sleeper.pid, (uint32_t)sleeper.pid, &wait));
	end_sleeper();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_sleeps_on_is_whole),
#if defined(__x86_64__)
		cmocka_unit_test(a_thread_that_runs_once_is_read_again),
		cmocka_unit_test(a_thread_that_runs_each_time_is_torn),
#endif
		cmocka_unit_test(one_that_sleeps_is_nowhere_else_unless_torn),
		cmocka_unit_test(runs_are_parsed),
		cmocka_unit_test(what_has_run_is_not_steady),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
