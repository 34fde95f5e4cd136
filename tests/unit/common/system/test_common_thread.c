/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/system/clock.h"
#include "common/system/thread.h"

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t condition;
	bool has_come;
	sigset_t blocked;
};

static void *come(void *data)
{
	struct meeting *meeting = data;

	(void)pthread_mutex_lock(&meeting->lock);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &meeting->blocked);
	meeting->has_come = true;
	(void)pthread_cond_signal(&meeting->condition);
	(void)pthread_mutex_unlock(&meeting->lock);
	return NULL;
}

static void a_thread_takes_no_signals_and_leaves_the_callers_as_they_are(void **state)
{
	struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER};
	sigset_t before, after;
	pthread_t thread;

	(void)state;
	nt_thread_condition_init(&meeting.condition);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(nt_thread_start(&thread, come, &meeting), 0);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &after);
	(void)pthread_mutex_lock(&meeting.lock);
	while (!meeting.has_come)
		assert_true(nt_thread_wait(&meeting.condition, &meeting.lock,
					   nt_clock_mono_ns() + NT_MINUTE));
	(void)pthread_mutex_unlock(&meeting.lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sigismember(&meeting.blocked, SIGTERM), 1);
	assert_int_equal(sigismember(&meeting.blocked, SIGPIPE), 1);
	for (int i = 1; i < NSIG; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
	(void)pthread_cond_destroy(&meeting.condition);
}

static void a_wait_ends_when_its_time_has_come(void **state)
{
	struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER};
	uint64_t until_ns = nt_clock_mono_ns() + 2 * NT_MILLISECOND;

	(void)state;
	nt_thread_condition_init(&meeting.condition);
	(void)pthread_mutex_lock(&meeting.lock);
	while (nt_thread_wait(&meeting.condition, &meeting.lock, until_ns))
		;
	assert_true(nt_clock_mono_ns() >= until_ns);
	assert_false(nt_thread_wait(&meeting.condition, &meeting.lock, 0));
	(void)pthread_mutex_unlock(&meeting.lock);
	(void)pthread_cond_destroy(&meeting.condition);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_takes_no_signals_and_leaves_the_callers_as_they_are),
		cmocka_unit_test(a_wait_ends_when_its_time_has_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
