/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stands in for CUPTI and for the agent in tests of a measurement: see tests/make/plugin.mk. Each test
 * runs in a child, as a measurement is of a process. The child ends with 0 if all holds.
 */
#ifndef NT_TESTS_PLUGIN_CUPTI_FAKE_H
#define NT_TESTS_PLUGIN_CUPTI_FAKE_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/batch.h"
#include "plugin/cupti/buffer_pool.h"
#include "plugin/cupti/calls.h"
#include "plugin/cupti/measurement.h"

enum {
	IDLE = NT_MEASUREMENT_IDLE_MS,
	BUSY = NT_MEASUREMENT_BUSY_MS,
	MOST = 64,
	SILENT_TICKS = 10,
	DRAIN_TICKS = 20,
	REFUSED = 1000, /* the result of a call that fails */
};

/* ---- what stands in for CUPTI ---- */

static struct {
	char log[4096]; /* of the calls since the last look */
	uint32_t version;
	bool is_missing, is_taken; /* there is no library; another client registered before */
	bool gives; /* a flush delivers a buffer */
	int failing; /* kind that cannot be enabled; -1: the callbacks, -2: the launches */
	bool kinds[16], launches[2];
	size_t dropped;
	nt_cupti_request_fn *request;
	nt_cupti_complete_fn *complete;
	uint64_t (*clock)(void);
	void (*in_flush)(void);
	uint32_t calls;
} cupti;

static inline void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void say(const char *format, ...)
{
	const size_t used = strlen(cupti.log);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(cupti.log + used, sizeof(cupti.log) - used, format, args);
	va_end(args);
	cupti.calls++;
}

static inline int get_version(uint32_t *ret_version)
{
	*ret_version = cupti.version;
	return 0;
}

static inline int register_clock(nt_cupti_clock_fn *clock)
{
	say("clock ");
	cupti.clock = clock;
	return 0;
}

static inline int register_callbacks(nt_cupti_request_fn *request, nt_cupti_complete_fn *complete)
{
	say("callbacks ");
	if (cupti.failing == -1)
		return REFUSED;
	cupti.request = request;
	cupti.complete = complete;
	return 0;
}

static inline int enable(int kind)
{
	say("+%d ", kind);
	if (cupti.failing == kind)
		return REFUSED;
	cupti.kinds[kind] = true;
	return 0;
}

static inline int disable(int kind)
{
	say("-%d ", kind);
	cupti.kinds[kind] = false;
	return 0;
}

static inline void deliver(size_t valid_size)
{
	uint8_t *buffer = NULL;
	size_t size, most;

	cupti.request(&buffer, &size, &most);
	assert(buffer && size == NT_BUFFER_BYTES && most == 0);
	memset(buffer, 0, size);
	cupti.complete(NULL, 0, buffer, size, valid_size);
}

static inline int flush(uint32_t flag)
{
	say("flush%u ", flag);
	if (cupti.in_flush)
		cupti.in_flush();
	if (!cupti.request && !cupti.is_taken)
		return NT_CUPTI_INVALID_OPERATION;
	if (cupti.gives)
		deliver(0);
	return 0;
}

static inline int next_record(uint8_t *buffer, size_t valid_size, void **record)
{
	(void)valid_size;
	if (*record)
		return NT_CUPTI_MAX_LIMIT_REACHED;
	*(uint32_t *)(void *)buffer = NT_CUPTI_KIND_MEMCPY;
	*record = buffer;
	return 0;
}

static inline int dropped(void *context, uint32_t stream, size_t *ret_dropped)
{
	(void)context;
	(void)stream;
	*ret_dropped = cupti.dropped;
	cupti.dropped = 0;
	return 0;
}

static inline int enable_launches(int driver, uint8_t on)
{
	if (cupti.launches[driver] != on)
		say("%c%s ", on ? '+' : '-', driver ? "driver" : "runtime");
	if (on && cupti.failing == -2)
		return REFUSED;
	cupti.launches[driver] = on;
	return 0;
}

static inline int enable_runtime(uint32_t call, uint8_t on)
{
	(void)call;
	return enable_launches(0, on);
}

static inline int enable_driver(uint32_t call, uint8_t on)
{
	(void)call;
	return enable_launches(1, on);
}

int __wrap_nt_cupti_calls_load(struct nt_cupti_calls *ret_calls);
int __wrap_nt_cupti_calls_load(struct nt_cupti_calls *ret_calls)
{
	say("load ");
	if (cupti.is_missing)
		return -1;
	*ret_calls = (struct nt_cupti_calls){.get_version = get_version,
					     .register_clock = register_clock,
					     .register_callbacks = register_callbacks,
					     .enable = enable,
					     .disable = disable,
					     .flush = flush,
					     .next_record = next_record,
					     .dropped = dropped,
					     .enable_runtime = enable_runtime,
					     .enable_driver = enable_driver,
					     .version = cupti.version};
	return 0;
}

/* ---- what stands in for the agent ---- */

volatile uint16_t neutracer_gpu_records_semaphore; /* of the mark */
#define is_wanted neutracer_gpu_records_semaphore
static struct nt_gpu_record reported; /* the last record */
static uint32_t reports, copies;
static uint64_t last_number, gaps;

void nt_batch_hand_over(const struct nt_gpu_record *record, uint32_t count, uint64_t number)
{
	assert(count == 1);
	gaps += number - last_number - 1;
	last_number = number;
	if (record->kind == NT_GPU_RECORD_COPY) {
		copies++;
		return;
	}
	reported = *record;
	reports++;
}

/* ---- helpers ---- */

/* So many ticks, each of which asks for the next in `ms`. */
static inline void tick(int count, uint32_t ms)
{
	for (int i = 0; i < count; i++)
		assert(nt_measurement_tick() == ms);
}

/* The calls since the last look. */
static inline bool called(const char *calls)
{
	const bool same = strcmp(cupti.log, calls) == 0;

	if (!same)
		(void)fprintf(stderr, "called: %s\nwanted: %s\n", cupti.log, calls);
	cupti.log[0] = '\0';
	return same;
}

/* One record was handed over since the last look: this one. */
static inline bool was_reported(enum nt_gpu_record_kind kind, int code)
{
	const bool same =
		reports == 1 && reported.kind == kind && reported.stream == (uint32_t)code;

	reports = 0;
	return same;
}

static inline bool is_off(void)
{
	for (size_t i = 0; i < sizeof(cupti.kinds) / sizeof(cupti.kinds[0]); i++)
		if (cupti.kinds[i])
			return false;
	return !cupti.launches[0] && !cupti.launches[1];
}

static inline void open_it(void)
{
	is_wanted = true;
	assert(nt_measurement_tick() == BUSY);
	assert(was_reported(NT_GPU_RECORD_OPEN, 0));
	cupti.log[0] = '\0';
}

/* The test runner would go on with the next test, so cmocka's own assertions are not for a child. */
static inline void in_child(void (*test)(void))
{
	int status = -1;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		cupti.version = 26;
		test();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#endif
