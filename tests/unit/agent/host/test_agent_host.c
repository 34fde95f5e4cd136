/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/host/host.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static void stat_is_read_behind_a_command_that_holds_anything(void **state)
{
	static const char text[] = "42 (a) R (b) c) D 1 42 42 0 -1 4194560 31 0 7 0 12 34 0 0 20 0";
	struct nt_host_sample sample = {0};
	uint64_t cpu_ns = 0;

	(void)state;
	assert_true(nt_host_parse_stat(text, sizeof(text) - 1, 10, &sample, &cpu_ns));
	assert_int_equal(sample.state, 'D');
	assert_int_equal(sample.major_faults, 7);
	assert_int_equal(cpu_ns, 460);
}

static void waiting_for_io_is_read_where_the_kernel_tells_it(void **state)
{
	/* As proc(5) has them: 42 is the delay in ticks. */
	static const char text[] = "42 (a) S 1 42 42 0 -1 4194560 31 0 7 0 12 34 0 0 -51 0 1 0 99 "
				   "4096 1 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 "
				   "250 0 0 1 1 1 1 1 1 1 0\n";
	static const char odd[] = "42 (a) S 1 42 42 0 -1 4194560 31 0 7 0 12 34 0 0 -51 0 1 0 99 "
				  "4096 1 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 "
				  "18446744073709551615 0";
	struct nt_host_sample sample = {0};
	uint64_t cpu_ns = 0;

	(void)state;
	assert_true(nt_host_parse_stat(text, sizeof(text) - 1, 10, &sample, &cpu_ns));
	assert_int_equal(sample.io_wait_ns, 2500);
	assert_int_equal(cpu_ns, 460);
	assert_true(nt_host_parse_stat(odd, sizeof(odd) - 1, 10, &sample, &cpu_ns));
	assert_int_equal(sample.io_wait_ns, 0);
}

static void a_short_or_odd_stat_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "42 (a)",
					    "42 (a) R 1 2 3",
					    "42 a R 1 2 3 4 5 6 7 8",
					    "42 (a) R 1 2 3 4 5 6 7 8 x 10 11 12 13 14",
					    "42 (a) R 1 2 3 4 5 6 7 8 9 10 1844674407370955162 14"};
	struct nt_host_sample sample = {.state = 'Q'};
	uint64_t cpu_ns = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(nt_host_parse_stat(texts[i], strlen(texts[i]), 10, &sample, &cpu_ns));
	assert_int_equal(sample.state, 'Q');
	assert_int_equal(cpu_ns, 5);
}

static void schedstat_tells_time_on_and_waiting_for_a_processor(void **state)
{
	struct nt_host_sample sample = {0};

	(void)state;
	assert_true(nt_host_parse_schedstat("123 456 7\n", 10, &sample));
	assert_int_equal(sample.on_cpu_ns, 123);
	assert_int_equal(sample.run_queue_ns, 456);
	assert_false(nt_host_parse_schedstat("123", 3, &sample));
	assert_false(nt_host_parse_schedstat("", 0, &sample));
}

static void io_is_lines_with_names(void **state)
{
	static const char io[] = "rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 8192\n";
	struct nt_host_sample sample = {0};

	(void)state;
	nt_host_parse_io(io, sizeof(io) - 1, &sample);
	assert_int_equal(sample.read_bytes, 4096);
	assert_int_equal(sample.write_bytes, 8192);
	assert_int_equal(sample.read_chars, 9);
	assert_int_equal(sample.write_chars, 8);
	nt_host_parse_io("read_bytes: x\n", 14, &sample);
	assert_int_equal(sample.read_bytes, 4096);
}

static void our_own_thread_can_be_read_again_and_again(void **state)
{
	nt_auto(nt_host) struct nt_host *host = NULL;
	struct nt_host_sample before, after;

	(void)state;
	assert_int_equal(nt_host_open((uint32_t)getpid(), (uint32_t)getpid(), &host), 0);
	assert_int_equal(nt_host_tid(host), getpid());
	assert_int_equal(nt_host_read(host, &before), 0);
	assert_int_equal(nt_host_read(host, &after), 0);
	assert_int_equal(after.state, 'R');
	assert_true(after.on_cpu_ns > 0);
	assert_true(after.on_cpu_ns >= before.on_cpu_ns);
}

static void a_thread_that_has_ended_says_so(void **state)
{
	nt_auto(nt_host) struct nt_host *host = NULL;
	struct nt_host_sample sample;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(nt_host_open((uint32_t)child, (uint32_t)child, &host), 0);
	assert_int_equal(nt_host_read(host, &sample), 0);
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(nt_host_read(host, &sample), -ESRCH);
	nt_host_close(host);
	host = NULL;
	assert_int_equal(nt_host_open((uint32_t)child, (uint32_t)child, &host), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_is_read_behind_a_command_that_holds_anything),
		cmocka_unit_test(waiting_for_io_is_read_where_the_kernel_tells_it),
		cmocka_unit_test(a_short_or_odd_stat_is_refused),
		cmocka_unit_test(schedstat_tells_time_on_and_waiting_for_a_processor),
		cmocka_unit_test(io_is_lines_with_names),
		cmocka_unit_test(our_own_thread_can_be_read_again_and_again),
		cmocka_unit_test(a_thread_that_has_ended_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
