/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/cupti/cupti_state.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/lib/cupti/cupti_record.h"

struct sim_cupti_cuda sim_cupti_cuda;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static bool kinds[SIM_CUPTI_KIND_END];
static bool calls[2][SIM_CUPTI_CALLS]; /* of the runtime, of the driver */
static uint64_t clock_offset_ns; /* modulo 2^64 */
static unsigned int thread_type;

static uint64_t real_time(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void sim_cupti_set_clock(sim_cupti_timestamp clock)
{
	uint64_t before_ns = sim_cupti_cuda.now();
	uint64_t client_ns = clock ? clock() : real_time();
	uint64_t after_ns = sim_cupti_cuda.now(), offset_ns = 0;

	/* The client's clock may be the monotonic one itself. */
	if (client_ns < before_ns || client_ns > after_ns)
		offset_ns = client_ns - (before_ns + after_ns) / 2;
	__atomic_store_n(&clock_offset_ns, offset_ns, __ATOMIC_RELAXED);
}

static void load(void)
{
	static const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{"cuSimObserve", &sim_cupti_cuda.observe},
		{"cuSimNow", &sim_cupti_cuda.now},
		{"cuSimUnfinished", &sim_cupti_cuda.unfinished},
		{"cuSimGraphExecId", &sim_cupti_cuda.graph_exec_id},
		{"cuStreamGetId", &sim_cupti_cuda.stream_id},
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	loaded = library != NULL;
	for (size_t i = 0; loaded && i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		memcpy(wanted[i].slot, &found, sizeof(found));
		loaded = found != NULL;
	}
	if (loaded)
		sim_cupti_set_clock(NULL);
}

bool sim_cupti_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, load);
	return loaded;
}

static bool *call_of(bool is_driver, uint32_t cbid)
{
	return cbid < SIM_CUPTI_CALLS ? &calls[is_driver][cbid] : NULL;
}

static bool get(const bool *flag)
{
	return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

bool sim_cupti_is_enabled(enum sim_cupti_kind kind)
{
	return get(&kinds[kind]);
}

bool sim_cupti_is_call_enabled(bool is_driver, uint32_t cbid)
{
	return get(call_of(is_driver, cbid));
}

/* Under the mutex. */
static void observe_if_needed(void)
{
	bool any = false;

	for (size_t i = 0; i < SIM_CUPTI_KIND_END; i++)
		any |= kinds[i];
	for (size_t i = 0; i < SIM_CUPTI_CALLS; i++)
		any |= calls[0][i] || calls[1][i];
	sim_cupti_cuda.observe(any ? &sim_cupti_observer : NULL);
}

void sim_cupti_enable(enum sim_cupti_kind kind, bool enable)
{
	(void)pthread_mutex_lock(&mutex);
	kinds[kind] = enable;
	if (kind == SIM_CUPTI_RUNTIME || kind == SIM_CUPTI_DRIVER)
		memset(calls[kind == SIM_CUPTI_DRIVER], enable, sizeof(calls[0]));
	observe_if_needed();
	(void)pthread_mutex_unlock(&mutex);
}

void sim_cupti_enable_call(bool is_driver, uint32_t cbid, bool enable)
{
	(void)pthread_mutex_lock(&mutex);
	if (call_of(is_driver, cbid))
		*call_of(is_driver, cbid) = enable;
	observe_if_needed();
	(void)pthread_mutex_unlock(&mutex);
}

void sim_cupti_disable_all(void)
{
	(void)pthread_mutex_lock(&mutex);
	memset(kinds, 0, sizeof(kinds));
	memset(calls, 0, sizeof(calls));
	observe_if_needed();
	(void)pthread_mutex_unlock(&mutex);
	sim_cupti_set_clock(NULL);
	sim_cupti_set_thread_type(SIM_CUPTI_THREAD_PTHREAD);
}

uint64_t sim_cupti_time(uint64_t monotonic_ns)
{
	return monotonic_ns + __atomic_load_n(&clock_offset_ns, __ATOMIC_RELAXED);
}

void sim_cupti_set_thread_type(unsigned int type)
{
	__atomic_store_n(&thread_type, type, __ATOMIC_RELAXED);
}

unsigned int sim_cupti_thread_type(void)
{
	return __atomic_load_n(&thread_type, __ATOMIC_RELAXED);
}

uint64_t sim_cupti_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value = 0;

	if (!text || !text[0])
		return otherwise;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > UINT32_MAX)
			return otherwise;
		value = 10 * value + (uint64_t)(*text - '0');
	}
	return value;
}
