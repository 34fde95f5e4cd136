/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t *watched[SIM_WATCHED];
static size_t watched_count;
static uint32_t bell; /* wakes the thread; changed under the lock */
static bool thread_runs;
static __thread bool is_device_thread;
static uint64_t next_host_ns; /* 0: no host function waits for its time */
static struct sim_op *ready_host; /* the one to be run now */

/* The thread itself needs no bell: it would never come to rest. */
static void ring(void)
{
	if (is_device_thread)
		return;
	(void)__atomic_add_fetch(&bell, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool sim_thread_call(struct sim_op *op, uint64_t start_ns, uint64_t *ret_end_ns)
{
	if (op->host.state == SIM_HOST_DONE) {
		*ret_end_ns = op->host.end_ns;
		return true;
	}
	if (op->host.state == SIM_HOST_RUNNING)
		return false;
	if (start_ns <= sim_model_now()) {
		if (!ready_host) {
			ready_host = op;
			ring();
		}
	} else if (next_host_ns == 0 || start_ns < next_host_ns) {
		next_host_ns = start_ns;
		ring();
	}
	return false;
}

static size_t snapshot(struct futex_waitv *wait)
{
	wait[0] = (struct futex_waitv){.uaddr = (uintptr_t)&bell,
				       .val = __atomic_load_n(&bell, __ATOMIC_SEQ_CST),
				       .flags = FUTEX_32};
	for (size_t i = 0; i < watched_count; i++)
		wait[i + 1] =
			(struct futex_waitv){.uaddr = (uintptr_t)watched[i],
					     .val = __atomic_load_n(watched[i], __ATOMIC_SEQ_CST),
					     .flags = FUTEX_32};
	return watched_count + 1;
}

/* Runs the host functions whose time has come. True when any ran. */
static bool run_host(void)
{
	struct sim_op *op = ready_host;

	if (!op)
		return false;
	ready_host = NULL;
	op->host.state = SIM_HOST_RUNNING;
	sim_model_unlock();
	op->host.fn(op->host.data);
	sim_model_lock();
	op->host.state = SIM_HOST_DONE;
	op->host.end_ns = sim_model_now();
	return true;
}

static void *serve(void *unused)
{
	struct futex_waitv wait[SIM_WATCHED + 1];

	(void)unused;
	is_device_thread = true;
	sim_model_lock();
	for (;;) {
		size_t n = snapshot(wait);
		struct timespec until;
		bool timed;

		next_host_ns = 0;
		sim_model_progress();
		if (run_host())
			continue;
		timed = next_host_ns != 0;
		until = sim_model_timespec(next_host_ns);
		sim_model_unlock();
		if (syscall(SYS_futex_waitv, wait, n, 0, timed ? &until : NULL, CLOCK_MONOTONIC) <
			    0 &&
		    errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR)
			/* An old kernel, or a word that was just unmapped. */
			sim_model_sleep_until(sim_model_now() + 200000);
		sim_model_lock();
	}
	return NULL;
}

void sim_thread_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (thread_runs)
		return;
	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, serve, NULL) == 0) {
		(void)pthread_setname_np(thread, "sim-device");
		thread_runs = true;
	}
	(void)pthread_attr_destroy(&attributes);
}

int cuSimWatch(uint32_t *word)
{
	if (watched_count == SIM_WATCHED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	watched[watched_count++] = word;
	sim_thread_start();
	ring();
	return CUDA_SUCCESS;
}

void cuSimUnwatch(uint32_t *word)
{
	for (size_t i = 0; i < watched_count; i++) {
		if (watched[i] != word)
			continue;
		watched[i] = watched[--watched_count];
		ring();
		return;
	}
}
