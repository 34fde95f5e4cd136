/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process that does one thing again and again while its system events are observed. */
#ifndef NT_TESTS_BPF_PARTS_HOST_CHILD_H
#define NT_TESTS_BPF_PARTS_HOST_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/system/system.h"
#include "common/system/clock.h"

enum {
	HOST_DEADLINE_S = 120, /* the machine may be busy */
	HOST_LOOKS_A_SECOND = 10,
	HOST_EVENTS = 4096,
	HOST_EVENTS_MAX = 500, /* a second */
};

struct host_test {
	struct nt_system *system;
	struct nt_host_event event[HOST_EVENTS];
	size_t events;
	uint64_t event_start_ns;
};

static inline void host_keep(void *data, uint64_t start_boot_ns, const struct nt_host_event *event)
{
	struct host_test *test = data;

	test->event_start_ns = start_boot_ns;
	if (test->events < HOST_EVENTS)
		test->event[test->events++] = *event;
}

static inline int host_open(struct host_test *test)
{
	const struct nt_system_options options = {
		.ring_bytes = 256 << 10,
		.events_max = HOST_EVENTS_MAX,
		.event = host_keep,
		.data = test,
	};

	return nt_system_new(&options, &test->system);
}

static inline void host_pause_ms(unsigned int ms)
{
	const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	(void)nanosleep(&wait, NULL);
}

/*
 * When to give up: after this time and as many looks, which take pauses of 10 to 50 ms. An emulated machine on a busy one
 * may stand still for most of the time.
 */
struct host_deadline {
	uint64_t end_ns;
	unsigned int looks;
};

static inline struct host_deadline host_deadline(unsigned int seconds)
{
	return (struct host_deadline){.end_ns = nt_clock_mono_ns() + seconds * NT_SECOND,
				      .looks = seconds * HOST_LOOKS_A_SECOND};
}

/* Counts a look. */
static inline bool host_is_over(struct host_deadline *deadline)
{
	if (deadline->looks > 0)
		deadline->looks--;
	return deadline->looks == 0 && nt_clock_mono_ns() >= deadline->end_ns;
}

static inline void host_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static inline void host_burn_ms(unsigned int ms)
{
	const uint64_t end_ns = nt_clock_mono_ns() + ms * NT_MILLISECOND;

	while (nt_clock_mono_ns() < end_ns)
		;
}

/* As fork(), but the child ends with its parent, even if that has ended before. */
static inline pid_t host_fork(void)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

typedef void (*host_work)(void *data);

/* Forks; the child waits until it is let go, and then works until it is killed. */
static inline pid_t host_start(host_work work, void *data, int *ret_go)
{
	int pipes[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(pipes), 0);
	pid = host_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(pipes[1]);
		(void)!read(pipes[0], &byte, 1);
		for (;;)
			work(data);
	}
	(void)close(pipes[0]);
	*ret_go = pipes[1];
	return pid;
}

static inline void host_stop(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

typedef bool (*host_holds)(const struct nt_system_total *total, const void *data);

/*
 * Observes a child that does this work until what was read of it holds. False: it never did. *ret_total
 * is the last reading.
 */
static inline bool host_observe(struct host_test *test, host_work work, void *data,
				host_holds holds, const void *expected,
				struct nt_system_total *ret_total)
{
	struct host_deadline deadline = host_deadline(HOST_DEADLINE_S);
	bool held = false;
	int go;
	const pid_t pid = host_start(work, data, &go);

	nt_system_enrol(test->system, (uint32_t)pid, 1, 1);
	(void)close(go);
	while (!held && !host_is_over(&deadline)) {
		host_pause_ms(50);
		nt_system_poll(test->system);
		assert_true(nt_system_read(test->system, (uint32_t)pid, (uint32_t)pid, ret_total));
		held = holds(ret_total, expected);
	}
	host_stop(pid);
	nt_system_leave(test->system, (uint32_t)pid, 1);
	return held;
}

/* ---- control groups ------------------------------------------------------------------------- */

struct host_cgroup {
	char path[PATH_MAX];
};

static inline bool host_write(const char *folder, const char *file, const char *text)
{
	char path[PATH_MAX + 64];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		n = write(fd, text, strlen(text));
	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text);
}

/* A group of version 1, else of version 2. False: neither can be made. */
static inline bool host_cgroup_make(struct host_cgroup *group, const char *controller, bool *ret_v2)
{
	(void)snprintf(group->path, sizeof(group->path), "/sys/fs/cgroup/%s/neutracer-test-%d",
		       controller, getpid());
	*ret_v2 = false;
	if (mkdir(group->path, 0755) == 0)
		return true;
	(void)snprintf(group->path, sizeof(group->path), "/sys/fs/cgroup/neutracer-test-%d",
		       getpid());
	*ret_v2 = true;
	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) < 0)
		return false;
	(void)host_write("/sys/fs/cgroup", "cgroup.subtree_control",
			 strcmp(controller, "cpu") == 0 ? "+cpu" : "+memory");
	return mkdir(group->path, 0755) == 0;
}

static inline void host_cgroup_enter(const struct host_cgroup *group)
{
	if (!host_write(group->path, "cgroup.procs", "0"))
		_exit(1);
}

static inline void host_cgroup_remove(const struct host_cgroup *group)
{
	for (int i = 0; i < 100 && rmdir(group->path) < 0 && errno == EBUSY; i++)
		host_pause_ms(20);
}

/* ---- fixtures ------------------------------------------------------------------------------- */

static inline int host_setup(void **state)
{
	static struct host_test test;

	test = (struct host_test){0};
	*state = &test;
	return host_open(&test);
}

static inline int host_teardown(void **state)
{
	struct host_test *test = *state;

	nt_system_free(test->system);
	return 0;
}

#define HOST_CASE(name_) cmocka_unit_test_setup_teardown(name_, host_setup, host_teardown)

/* The time of a listing is limited: an emulated processor lists fewer in it. */
static inline void host_skip_if_emulated(void)
{
	if (!getenv("NT_NETWORK_FILE"))
		return;
	print_message("skip: slow: the processor is emulated\n");
	skip();
}

#endif
