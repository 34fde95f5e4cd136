/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Another client of CUPTI in a job, as profilers are: named in CUDA_INJECTION64_PATH, it counts kernels
 * and the calls that enqueue them. Its buffers are of the heap, and it frees what it is given. In the
 * environment:
 * SIM_PROFILER_DIR    the counts are in DIR/PID, written anew several times a second
 * SIM_PROFILER_START  it starts when there is such a file; unset: at once
 * SIM_PROFILER_NEXT   a library that is injected then, after it has started if that is at once
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/lib/call_id.h"
#include "tests/sim/lib/cupti/cupti.h"

int InitializeInjection(void);

enum {
	BUFFER_BYTES = 32 << 10,
	ROUND_NS = 100000000,
};

static size_t kernels, launches, failures; /* atomic */

static void request(uint8_t **buffer, size_t *size, size_t *most_records)
{
	*buffer = malloc(BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*most_records = 0;
}

static int is_launch(const struct sim_cupti_api *call)
{
	if (call->kind == SIM_CUPTI_DRIVER)
		return call->cbid == SIM_DRIVER_LAUNCH_KERNEL ||
		       call->cbid == SIM_DRIVER_LAUNCH_COOPERATIVE_KERNEL ||
		       call->cbid == SIM_DRIVER_LAUNCH_KERNEL_EX;
	return call->cbid == SIM_RUNTIME_LAUNCH_KERNEL ||
	       call->cbid == SIM_RUNTIME_LAUNCH_COOPERATIVE_KERNEL ||
	       call->cbid == SIM_RUNTIME_LAUNCH_KERNEL_EX ||
	       call->cbid == SIM_RUNTIME_COMPILED_LAUNCH_KERNEL;
}

static void add(size_t *count, size_t more)
{
	(void)__atomic_add_fetch(count, more, __ATOMIC_SEQ_CST);
}

static void complete(struct CUctx_st *context, uint32_t stream, uint8_t *buffer, size_t size,
		     size_t valid)
{
	struct sim_cupti_record *record = NULL;
	size_t dropped = 0;

	(void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == SIM_CUPTI_SUCCESS) {
		if (record->kind == SIM_CUPTI_CONCURRENT_KERNEL)
			add(&kernels, 1);
		else if (record->kind == SIM_CUPTI_RUNTIME || record->kind == SIM_CUPTI_DRIVER)
			add(&launches, is_launch((const struct sim_cupti_api *)record) != 0);
	}
	if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == SIM_CUPTI_SUCCESS)
		add(&failures, dropped);
	free(buffer);
}

static void start(void)
{
	static const enum sim_cupti_kind kinds[] = {SIM_CUPTI_RUNTIME, SIM_CUPTI_DRIVER,
						    SIM_CUPTI_CONCURRENT_KERNEL};

	add(&failures, cuptiActivityRegisterCallbacks(request, complete) != SIM_CUPTI_SUCCESS);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		add(&failures, cuptiActivityEnable(kinds[i]) != SIM_CUPTI_SUCCESS);
}

/* Whole or not at all. */
static void write_counts(const char *directory)
{
	char path[4096], part[4096];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%d", directory, (int)getpid());
	(void)snprintf(part, sizeof(part), "%s/.%d", directory, (int)getpid());
	file = fopen(part, "w");
	if (!file)
		return;
	(void)fprintf(file, "%zu %zu %zu\n", __atomic_load_n(&kernels, __ATOMIC_SEQ_CST),
		      __atomic_load_n(&launches, __ATOMIC_SEQ_CST),
		      __atomic_load_n(&failures, __ATOMIC_SEQ_CST));
	if (fclose(file) == 0)
		(void)rename(part, path);
}

static void *run(void *unused)
{
	const char *directory = getenv("SIM_PROFILER_DIR"), *file = getenv("SIM_PROFILER_START");
	const struct timespec round = {.tv_nsec = ROUND_NS};

	(void)unused;
	while (file && access(file, F_OK) != 0)
		(void)nanosleep(&round, NULL);
	if (file)
		start();
	for (;;) {
		(void)nanosleep(&round, NULL);
		(void)cuptiActivityFlushAll(0);
		if (directory)
			write_counts(directory);
	}
	return NULL;
}

static void inject_next(void)
{
	const char *path = getenv("SIM_PROFILER_NEXT");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		(void)initialize();
}

int InitializeInjection(void)
{
	pthread_t thread;

	if (!getenv("SIM_PROFILER_START"))
		start();
	inject_next();
	return pthread_create(&thread, NULL, run, NULL) == 0;
}
