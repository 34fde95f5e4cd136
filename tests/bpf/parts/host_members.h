/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Children with threads and forked processes of their own, for tests/bpf/test_host_work.c. */
#ifndef NT_TESTS_BPF_PARTS_HOST_MEMBERS_H
#define NT_TESTS_BPF_PARTS_HOST_MEMBERS_H

#include <pthread.h>
#include <sys/mman.h>

#include "tests/bpf/parts/host_child.h"

enum {
	MANY_HELPERS = 900, /* whose numbers are more than a page */
	MANY_THREADS = 9000, /* more than a rank alone may have */
	SOME_THREADS = 200,
	STACK = 16 << 10,
	STAYING = 2, /* helpers */
	STAYING_THREADS = 3, /* theirs */
	ENDING = NT_HOST_HELPERS - STAYING, /* so that there is room for no other */
};

/* In memory that is shared. */
struct host_steps {
	volatile pid_t pid; /* that the child has forked */
	volatile int step; /* of the child and the test, in turn */
};

static struct host_steps *host_steps;

static bool host_share_steps(void)
{
	host_steps = mmap(NULL, sizeof(*host_steps), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return host_steps != MAP_FAILED;
}

static void host_set_step(int step)
{
	__atomic_store_n(&host_steps->step, step, __ATOMIC_RELEASE);
}

/* At most two minutes: sanitized, forks are slow. */
static void host_wait_for_step(int step)
{
	for (int i = 0; i < 12000 && __atomic_load_n(&host_steps->step, __ATOMIC_ACQUIRE) < step;
	     i++)
		host_pause_ms(10);
}

/* ---- what the observer has ------------------------------------------------------------------- */

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
	struct host_deadline deadline = host_deadline(5);
	struct nt_system_stats stats;

	do {
		stats = stats_of(test);
		if (stats.threads == threads && stats.helpers == helpers)
			return true;
		host_pause_ms(20);
	} while (!host_is_over(&deadline));
	return false;
}

/*
 * The budget pays for nothing: in a few seconds of a made-up clock all tracepoints are let go. The time of that clock; 0:
 * they stay.
 */
static uint64_t let_go(struct nt_system *system)
{
	uint64_t now_ns = nt_clock_boot_ns();
	struct nt_system_stats stats = {0};

	for (int i = 0; i < 20 && !stats.is_shed; i++) {
		const pid_t pid = host_fork(); /* a hit in each second */

		if (pid == 0)
			_exit(0);
		(void)waitpid(pid, NULL, 0);
		now_ns += NT_SECOND;
		(void)nt_system_tick(system, now_ns, 1.0);
		nt_system_stats(system, &stats);
	}
	return stats.is_shed ? now_ns : 0;
}

/* A process with that number; 0: none can be made. */
static pid_t fork_as(pid_t wanted)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%d", wanted - 1);
	for (int i = 0; i < 100; i++) {
		pid_t pid;

		if (!host_write("/proc/sys/kernel", "ns_last_pid", text))
			return 0;
		pid = host_fork();
		if (pid == 0)
			for (;;)
				(void)pause();
		if (pid == wanted)
			return pid;
		host_stop(pid); /* another one was faster */
	}
	return 0;
}

/* ---- children -------------------------------------------------------------------------------- */

static void *exec_sleep(void *data)
{
	(void)execlp("sleep", "sleep", "60", NULL);
	return data;
}

/* Its second thread executes a program that lasts. */
static void fork_one_that_execs(void *data)
{
	const pid_t pid = host_fork();
	pthread_t thread;

	(void)data;
	if (pid == 0) {
		(void)pthread_create(&thread, NULL, exec_sleep, NULL);
		host_pause_ms(60000);
		_exit(1); /* not reached */
	}
	host_pause_ms(300);
	host_stop(pid);
	host_pause_ms(60000);
}

static void fork_a_rank(void *data)
{
	const pid_t pid = host_fork();

	(void)data;
	if (pid > 0)
		host_steps->pid = pid;
	for (;;)
		host_pause_ms(60000);
}

/* The kernel knows of a child before its parent does; sanitized, forks are slow. 0: never. */
static pid_t wait_for_forked(void)
{
	for (int i = 0; i < 1200 && !host_steps->pid; i++)
		host_pause_ms(100);
	return host_steps->pid;
}

static void *stay(void *data)
{
	for (;;)
		(void)pause();
	return data;
}

static void fork_many(void *data)
{
	for (int i = 0; i < MANY_HELPERS; i++)
		if (host_fork() == 0)
			(void)stay(NULL);
	host_steps->pid = getpid();
	(void)stay(data);
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

static void fork_ended(void *data)
{
	for (int i = 0; i < 8; i++) {
		const pid_t pid = fork();
		siginfo_t info;

		if (pid == 0)
			_exit(0);
		(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	}
	host_steps->pid = getpid();
	(void)stay(data);
}

static pid_t fork_one_that_stays(void)
{
	const pid_t pid = host_fork();

	if (pid == 0)
		(void)stay(NULL);
	return pid;
}

static void *end_in_step_2(void *data)
{
	host_wait_for_step(2);
	return data;
}

/* Two helpers stay: one is forked by the other, so that no listing finds it. */
static void replace_helpers(void *data)
{
	pthread_t thread, staying;
	pid_t pid[ENDING];
	siginfo_t info;

	if (host_fork() == 0) {
		(void)fork_one_that_stays();
		(void)pthread_create(&staying, NULL, stay, NULL);
		(void)stay(NULL);
	}
	(void)pthread_create(&thread, NULL, end_in_step_2, NULL);
	for (int i = 0; i < ENDING; i++)
		pid[i] = fork_one_that_stays();
	host_set_step(1);
	(void)pthread_join(thread, NULL);
	for (int i = 0; i < ENDING; i++) {
		(void)kill(pid[i], SIGKILL);
		(void)waitid(P_PID, (id_t)pid[i], &info, WEXITED | (i % 2 ? WNOWAIT : 0));
	}
	host_steps->pid = pid[0];
	host_pause_ms(200); /* a thread is joined before it has ended */
	host_set_step(3);
	host_wait_for_step(4);
	for (int i = 0; i < ENDING; i++)
		(void)fork_one_that_stays();
	host_set_step(5);
	(void)stay(data);
}

#endif
