/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Workers: children of the agent that take none of its memory along. */
#include "agent/discover/worker.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	BALLAST_BYTES = 64 << 20,
	WAIT_MS = 60000,
};

struct facts {
	pid_t pid, parent;
	long peak_kb;
};

static long peak_kb(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) < 0 ? -1 : usage.ru_maxrss;
}

/* Answers what it is. */
static void serve(int socket, const uint8_t *request, size_t len, int fd)
{
	const struct facts facts = {getpid(), getppid(), peak_kb()};

	(void)request;
	(void)len;
	(void)fd;
	nt_worker_answer(socket, &facts, sizeof(facts), -1);
}

static struct facts read_facts(const struct nt_worker *worker)
{
	struct pollfd answered = {.fd = nt_worker_fd(worker), .events = POLLIN};
	struct facts facts;
	int fd;

	assert_int_equal(nt_worker_send(worker, "?", 1, -1), 0);
	assert_int_equal(poll(&answered, 1, WAIT_MS), 1);
	assert_int_equal(nt_worker_take(worker, &facts, sizeof(facts), &fd), sizeof(facts));
	assert_int_equal(facts.pid, nt_worker_pid(worker));
	return facts;
}

static struct facts facts_of_new(struct nt_workers *workers)
{
	struct nt_worker *worker = NULL;
	struct facts facts;

	assert_int_equal(nt_worker_start(workers, serve, &worker), 0);
	facts = read_facts(worker);
	nt_worker_kill(workers, worker);
	return facts;
}

static void all_are_reaped(struct nt_workers *workers)
{
	nt_workers_end(workers);
	while (workers->lefts)
		nt_workers_reap(workers);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void a_worker_of_the_spawner_takes_none_of_our_memory_along(void **state)
{
	struct nt_workers workers = {0};
	struct facts spawned, forked;
	char *ballast;

	(void)state;
	assert_int_equal(nt_workers_begin(&workers), 0);
	ballast = malloc(BALLAST_BYTES);
	assert_non_null(ballast);
	memset(ballast, 1, BALLAST_BYTES);
	spawned = facts_of_new(&workers);
	nt_workers_end(&workers);
	forked = facts_of_new(&workers);
	free(ballast);
	assert_int_equal(spawned.parent, getpid());
	assert_int_equal(forked.parent, getpid());
	assert_true(spawned.peak_kb > 0);
	assert_true(forked.peak_kb - spawned.peak_kb > BALLAST_BYTES / 2048);
	all_are_reaped(&workers);
}

static void without_its_spawner_the_agent_forks_them(void **state)
{
	struct nt_workers workers = {0};

	(void)state;
	assert_int_equal(nt_workers_begin(&workers), 0);
	assert_int_equal(kill(nt_worker_pid(workers.spawner), SIGKILL), 0);
	assert_int_equal(facts_of_new(&workers).parent, getpid());
	assert_null(workers.spawner);
	all_are_reaped(&workers);
}

static void many_come_and_go(void **state)
{
	struct nt_workers workers = {0};
	pid_t before = 0;

	(void)state;
	assert_int_equal(nt_workers_begin(&workers), 0);
	for (int i = 0; i < 100; i++) {
		const struct facts facts = facts_of_new(&workers);

		assert_int_equal(facts.parent, getpid());
		assert_int_not_equal(facts.pid, before);
		before = facts.pid;
		while (workers.lefts)
			nt_workers_reap(&workers);
	}
	assert_int_equal(workers.started, 101);
	all_are_reaped(&workers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_of_the_spawner_takes_none_of_our_memory_along),
		cmocka_unit_test(without_its_spawner_the_agent_forks_them),
		cmocka_unit_test(many_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
