/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the tracepoints cost a context switch: two threads on one CPU wake each other, first without
 * programs, then with them, then as threads that are observed.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/system/system_impl.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	BATCHES = 7,
	TURNS = 150, /* of one batch: each is two context switches, and twice as many sides */
	/* Where it could not be measured, and its bounds. */
	USUAL_NS = 250,
	LEAST_NS = 20,
	MOST_NS = 20000,
};

struct pair {
	int to, from; /* eventfds */
};

static void *answer(void *data)
{
	const struct pair *pair = data;
	uint64_t value;

	while (read(pair->to, &value, sizeof(value)) == (ssize_t)sizeof(value) && value == 1)
		if (write(pair->from, &value, sizeof(value)) < 0)
			break;
	return NULL;
}

static uint64_t process_cpu_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* ns of a turn: the lower quartile of the batches, as slower ones were disturbed. */
static uint64_t time_turns(const struct pair *pair)
{
	const uint64_t one = 1;
	uint64_t batch[BATCHES], value;

	for (int i = 0; i < BATCHES; i++) {
		const uint64_t start_ns = process_cpu_ns();

		for (int n = 0; n < TURNS; n++)
			if (write(pair->to, &one, sizeof(one)) < 0 ||
			    read(pair->from, &value, sizeof(value)) < 0)
				return 0;
		batch[i] = (process_cpu_ns() - start_ns) / TURNS;
	}
	qsort(batch, BATCHES, sizeof(batch[0]), by_size);
	return batch[BATCHES / 4];
}

static uint64_t within(uint64_t more_ns, uint64_t less_ns, uint64_t parts)
{
	const uint64_t ns = more_ns > less_ns ? (more_ns - less_ns) / parts : 0;

	return ns < LEAST_NS ? LEAST_NS : ns > MOST_NS ? MOST_NS : ns;
}

static void measure(struct nt_system_loader *loader, uint32_t slot, const struct pair *pair,
		    struct nt_event_budget_costs *costs)
{
	const uint64_t bare_ns = time_turns(pair);
	struct nt_system_sweep sweep = {0};
	uint64_t passed_ns, observed_ns;

	nt_system_loader_set(loader, NT_EVENT_BUDGET_NO_INTERRUPTS);
	passed_ns = time_turns(pair);
	loader->process[slot] = (struct nt_host_process){.tgid = (uint32_t)getpid()};
	nt_system_members_add(loader, (uint32_t)getpid(), slot);
	observed_ns = time_turns(pair);
	sweep.is_swept[slot] = true;
	nt_system_shares_close(loader, (uint32_t)getpid(), slot);
	nt_system_loader_set(loader, NT_EVENT_BUDGET_NOTHING);
	while (!nt_system_shares_sweep(loader, &sweep, UINT64_MAX))
		;
	nt_system_shares_clear(loader, slot);
	if (!bare_ns || !passed_ns || !observed_ns)
		return;
	costs->switch_ns = within(passed_ns, bare_ns, 2);
	costs->side_ns = within(observed_ns, passed_ns, 4);
}

void nt_system_cost_measure(struct nt_system_loader *loader, uint32_t slot,
			    struct nt_event_budget_costs *ret_costs)
{
	struct pair pair = {.to = eventfd(0, EFD_CLOEXEC), .from = eventfd(0, EFD_CLOEXEC)};
	const uint64_t end = 2;
	cpu_set_t all, one;
	pthread_t thread;
	const int cpu = sched_getcpu();

	*ret_costs = (struct nt_event_budget_costs){USUAL_NS, USUAL_NS, USUAL_NS};
	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : cpu, &one);
	if (pair.to >= 0 && pair.from >= 0 && sched_getaffinity(0, sizeof(all), &all) == 0 &&
	    sched_setaffinity(0, sizeof(one), &one) == 0) {
		if (nt_thread_start(&thread, answer, &pair) == 0) {
			measure(loader, slot, &pair, ret_costs);
			(void)!write(pair.to, &end, sizeof(end));
			(void)pthread_join(thread, NULL);
		}
		(void)sched_setaffinity(0, sizeof(all), &all);
	}
	ret_costs->hit_ns = ret_costs->switch_ns + ret_costs->side_ns;
	nt_closep(&pair.to);
	nt_closep(&pair.from);
}
