/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Starts threads that each make some probed calls and live until a wave is complete: the tables of
 * threads and the ring between kernel and agent fill up. 5,000 threads in one wave, or 100,000 in
 * waves of 20,000, as said.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/attack/attack.h"
#include "tests/sim/job.h"

enum {
	STACK_BYTES = 64 << 10,
};

struct storm {
	attack_call call;
	double calls;
	atomic_uint arrived;
	atomic_bool wave_ended;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static struct storm storm = {.lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER};

static void *run(void *data)
{
	const void *a = attack_target;

	(void)data;
	for (int i = 0; i < (int)storm.calls; i++)
		(void)storm.call(a, a, a, a, a, a, a, a);
	(void)pthread_mutex_lock(&storm.lock);
	while (!storm.wave_ended)
		(void)pthread_cond_wait(&storm.changed, &storm.lock);
	(void)pthread_mutex_unlock(&storm.lock);
	return NULL;
}

static unsigned int run_wave(pthread_t *thread, unsigned int count)
{
	pthread_attr_t attributes;
	unsigned int started = 0;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	storm.wave_ended = false;
	while (started < count && pthread_create(&thread[started], &attributes, run, NULL) == 0)
		started++;
	(void)pthread_attr_destroy(&attributes);
	(void)pthread_mutex_lock(&storm.lock);
	storm.wave_ended = true;
	(void)pthread_cond_broadcast(&storm.changed);
	(void)pthread_mutex_unlock(&storm.lock);
	for (unsigned int i = 0; i < started; i++)
		(void)pthread_join(thread[i], NULL);
	return started;
}

int main(int argc, char **argv)
{
	double threads = 5000, at_once = 5000, calls = 10, user = ATTACK_NOBODY, pause_ms = 0;
	const char *function = "ncclAllReduce", *libraries = NULL;
	const struct attack_option options[] = {
		{"threads", "threads in all (5000)", &threads, NULL},
		{"at-once", "threads of a wave (5000)", &at_once, NULL},
		{"calls", "calls of each (10)", &calls, NULL},
		{"pause-ms", "between waves (0)", &pause_ms, NULL},
		{"function", "probed function (ncclAllReduce)", NULL, &function},
		{"libraries", "directory of the libraries (lib beside the program)", NULL,
		 &libraries},
		{"user", "user id to run as (nobody)", &user, NULL},
	};
	double started = 0;
	pthread_t *thread;
	char line[64];

	(void)attack_options(argc, argv, options, sizeof(options) / sizeof(options[0]));
	attack_become((uid_t)user);
	storm.call = attack_function(libraries, function);
	storm.calls = calls;
	thread = calloc((size_t)at_once, sizeof(*thread));
	if (!thread)
		return 1;
	while (started < threads) {
		double left = threads - started;
		unsigned int wanted = (unsigned int)(left < at_once ? left : at_once);
		unsigned int came = run_wave(thread, wanted);

		/* Where the machine has no room for so many, the waves are smaller. */
		if (came == 0)
			attack_give_up("start a thread");
		started += came;
		sim_sleep_ns((uint64_t)(pause_ms * 1e6));
	}
	free(thread);
	(void)snprintf(line, sizeof(line), "threads %.0f", started);
	attack_say(line);
	return 0;
}
