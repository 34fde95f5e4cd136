/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which threads and processes of a rank are observed: execs, forks, many of them. */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/bpf/host_child.h"

static struct nt_system_stats stats_of(const struct host_test *test)
{
	struct nt_system_stats stats;

	nt_system_poll(test->system);
	nt_system_stats(test->system, &stats);
	return stats;
}

/* Threads and helpers in the tables, once they are as many. False: they never are. */
static bool has_members(const struct host_test *test, uint64_t threads, uint64_t helpers)
{
	const uint64_t end_ns = nt_clock_mono_ns() + HOST_DEADLINE_NS / 8;
	struct nt_system_stats stats;

	do {
		stats = stats_of(test);
		if (stats.threads == threads && stats.helpers == helpers)
			return true;
		host_pause_ms(20);
	} while (nt_clock_mono_ns() < end_ns);
	printf("# %llu threads, %llu helpers\n", (unsigned long long)stats.threads,
	       (unsigned long long)stats.helpers);
	return false;
}

static void *exec_sleep(void *data)
{
	(void)execlp("sleep", "sleep", "60", NULL);
	return data;
}

/* Its second thread executes a program that lasts. */
static void fork_one_that_execs(void *data)
{
	const pid_t pid = fork();
	pthread_t thread;

	(void)data;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pthread_create(&thread, NULL, exec_sleep, NULL);
		host_pause_ms(60000);
	}
	host_pause_ms(300);
	host_stop(pid);
	host_pause_ms(60000);
}

static void a_thread_that_execs_leaves_nothing_behind(void **state)
{
	struct host_test *test = *state;
	int go;
	const pid_t pid = host_start(fork_one_that_execs, NULL, &go);
	bool was_seen, is_gone;

	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	(void)close(go);
	was_seen = has_members(test, 2, 1);
	is_gone = has_members(test, 1, 0);
	host_stop(pid);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	assert_true(was_seen);
	assert_true(is_gone);
	assert_true(has_members(test, 0, 0));
}

static pid_t *forked; /* in memory that is shared */

static void fork_a_rank(void *data)
{
	const pid_t pid = fork();

	(void)data;
	if (pid)
		*forked = pid;
	else
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	host_pause_ms(60000);
}

static void a_helper_that_becomes_a_rank_is_no_helper(void **state)
{
	struct host_test *test = *state;
	bool was_helper, is_rank, is_left;
	pid_t pid;
	int go;

	forked = mmap(NULL, sizeof(*forked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(forked, MAP_FAILED);
	pid = host_start(fork_a_rank, NULL, &go);
	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	(void)close(go);
	was_helper = has_members(test, 2, 1);
	nt_system_enrol(test->system, (uint32_t)*forked, 1, 1);
	is_rank = has_members(test, 2, 0);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	is_left = has_members(test, 1, 0);
	host_stop(pid); /* and with it the other */
	nt_system_leave(test->system, (uint32_t)*forked, 1);
	(void)munmap(forked, sizeof(*forked));
	assert_true(was_helper);
	assert_true(is_rank);
	assert_true(is_left);
}

enum {
	MANY_HELPERS = 900, /* whose numbers are more than a page */
	MANY_THREADS = 9000, /* more than a rank alone may have */
	SOME_THREADS = 200,
	STACK = 16 << 10,
};

static void *stay(void *data)
{
	for (;;)
		(void)pause();
	return data;
}

static void fork_many(void *data)
{
	for (int i = 0; i < MANY_HELPERS; i++)
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)stay(NULL);
		}
	*forked = 1;
	(void)stay(data);
}

/* Of a process, until there are as many. */
static bool waits_for_flag(void)
{
	for (int i = 0; i < 400 && !*(volatile pid_t *)forked; i++)
		host_pause_ms(20);
	return *forked != 0;
}

static void helpers_beyond_a_page_of_numbers_are_listed_or_counted(void **state)
{
	struct host_test *test = *state;
	struct nt_system_stats stats;
	bool are_there;
	pid_t pid;
	int go;

	forked = mmap(NULL, sizeof(*forked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(forked, MAP_FAILED);
	pid = host_start(fork_many, NULL, &go);
	(void)close(go);
	are_there = waits_for_flag();
	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	stats = stats_of(test);
	host_stop(pid);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	(void)munmap(forked, sizeof(*forked));
	assert_true(are_there);
	assert_int_equal(stats.helpers, NT_HOST_HELPERS);
	assert_int_equal(stats.helpers_over_cap, MANY_HELPERS - NT_HOST_HELPERS);
	assert_int_equal(stats.threads, 1 + NT_HOST_HELPERS);
	assert_true(has_members(test, 0, 0));
}

static void make_threads(void *data)
{
	const int *threads = data;
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	for (int i = 0; i < *threads; i++)
		if (pthread_create(&thread, &attr, stay, NULL) != 0)
			_exit(1);
	(void)stay(NULL);
}

static void one_with_many_threads_takes_no_place_of_others(void **state)
{
	static int many = MANY_THREADS, some = SOME_THREADS;
	const uint64_t most = NT_HOST_OWN_THREADS + NT_HOST_OPEN_THREADS / 2;
	struct host_test *test = *state;
	bool are_bounded, are_observed, is_left;
	uint64_t over_cap;
	int go, go_other;
	const pid_t pid = host_start(make_threads, &many, &go);
	const pid_t other = host_start(make_threads, &some, &go_other);

	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	assert_int_equal(write(go, "", 1), 1);
	are_bounded = has_members(test, most, 0);
	host_pause_ms(500);
	over_cap = stats_of(test).threads_over_cap;
	nt_system_enrol(test->system, (uint32_t)other, 1, 2);
	assert_int_equal(write(go_other, "", 1), 1);
	are_observed = has_members(test, most + 1 + SOME_THREADS, 0);
	/* They are still alive. */
	nt_system_leave(test->system, (uint32_t)pid, 1);
	is_left = has_members(test, 1 + SOME_THREADS, 0);
	host_stop(pid);
	host_stop(other);
	nt_system_leave(test->system, (uint32_t)other, 1);
	assert_true(are_bounded);
	assert_int_equal(over_cap, 1 + MANY_THREADS - most);
	assert_true(are_observed);
	assert_true(is_left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOST_CASE(a_thread_that_execs_leaves_nothing_behind),
		HOST_CASE(a_helper_that_becomes_a_rank_is_no_helper),
		HOST_CASE(helpers_beyond_a_page_of_numbers_are_listed_or_counted),
		HOST_CASE(one_with_many_threads_takes_no_place_of_others),
	};
	struct host_test test = {0};
	int r = host_open(&test);

	if (r < 0) {
		printf("skip: bpf: tracepoints cannot be loaded here: %s\n", strerrordesc_np(-r));
		return 77;
	}
	nt_system_free(test.system);
	cmocka_set_test_filter(
		getenv("NT_TEST")); /* one of them, or those of a pattern; NULL: all */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
