/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/profiler_plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/lib/nccl/profiler_adapter.h"
#include "tests/sim/lib/nccl/version.h"

enum {
	LOG_WARN = 2,
	LOG_INFO = 3,
	UNLOADS_FAILED_FROM = 30, /* 2.30 unloads a plugin whose init fails */
};

enum load_state {
	LOAD_READY,
	LOAD_SUCCESS,
	LOAD_FAILED, /* for the life of the process */
};

/* The mask is one for the process; every init gets its address. The name is the real library's. */
static int ncclProfilerEventMask;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static enum load_state load_state;
static int
	references; /* one for each communicator; wrong after an init that failed, as the real one */
static void *library;
static const struct sim_profiler_table *table; /* atomic */
static int version;

static const struct sim_profiler_table *loaded(void)
{
	return __atomic_load_n(&table, __ATOMIC_ACQUIRE);
}

/* NCCL_DEBUG=INFO shows all, WARN warnings. */
__attribute__((format(printf, 5, 6))) static void
write_log(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	const char *wanted = getenv("NCCL_DEBUG");
	char text[1024];
	va_list args;

	(void)flags;
	if (!wanted || (strcasecmp(wanted, "INFO") != 0 && level > LOG_WARN))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (level <= LOG_WARN)
		(void)fprintf(stderr, "[%d:%ld] %s:%d NCCL WARN %s\n", (int)getpid(),
			      syscall(SYS_gettid), file, line, text);
	else
		(void)fprintf(stderr, "[%d:%ld] NCCL INFO %s\n", (int)getpid(), syscall(SYS_gettid),
			      text);
}

#define INFO(...) write_log(LOG_INFO, 0, __FILE__, __LINE__, __VA_ARGS__)

/* ---- finding it: src/plugin/plugin_open.cc ---- */

static void *open_file(const char *name)
{
	void *found;

	if (name[0] == '\0')
		return NULL;
	/* Any prefix of the word is the word: the symbols of the program itself. */
	if (strncasecmp(name, "STATIC_PLUGIN", strlen(name)) == 0)
		return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
	found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!found)
		INFO("PROFILER/Plugin: %s", dlerror());
	return found;
}

static bool is_file_name(const char *name)
{
	size_t len = strlen(name);

	return strchr(name, '/') ||
	       (len >= 3 && strncmp(name, "lib", 3) == 0 && strcmp(name + len - 3, ".so") == 0);
}

static void *open_plugin(const char *prefix, const char *name)
{
	char path[255];
	void *found;

	if (!name || !name[0]) {
		(void)snprintf(path, sizeof(path), "%s.so", prefix);
		return open_file(path);
	}
	(void)snprintf(path, sizeof(path), "%s", name);
	found = open_file(path);
	if (found || is_file_name(name))
		return found;
	(void)snprintf(path, sizeof(path), "%s-%s.so", prefix, name);
	return open_file(path);
}

/* The newest interface that this release has, first. */
static const struct sim_profiler_table *find_table(void *in, int *ret_version)
{
	static const int newest[] = {1, 2, 2, 3, 4, 5, 6, 6, 7, 7}; /* of 2.23 to 2.32 */

	for (int i = newest[sim_nccl_minor() - 23]; i >= SIM_PROFILER_OLDEST; i--) {
		const struct sim_profiler_table *found;
		char name[32];

		(void)snprintf(name, sizeof(name), "ncclProfiler_v%d", i);
		found = dlsym(in, name);
		if (!found)
			continue;
		INFO("PROFILER/Plugin: Loaded %s (v%d)", found->name, i);
		*ret_version = i;
		return found;
	}
	return NULL;
}

/* src/plugin/profiler.cc: what fails once is not tried again. Locked. */
static void load(void)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN");
	const struct sim_profiler_table *found = NULL;

	if (load_state == LOAD_FAILED)
		return;
	if (load_state == LOAD_SUCCESS) {
		references++;
		return;
	}
	load_state = LOAD_FAILED;
	if (name && strcasecmp(name, "none") == 0)
		return;
	library = open_plugin("libnccl-profiler", name);
	if (!library && getenv("NCCL_NET_PLUGIN"))
		library = open_plugin("libnccl-net", getenv("NCCL_NET_PLUGIN"));
	if (!library)
		return;
	found = find_table(library, &version);
	if (!found) {
		INFO("External profiler plugin %s is unsupported", name ? name : "");
		(void)dlclose(library);
		library = NULL;
		return;
	}
	references++;
	load_state = LOAD_SUCCESS;
	__atomic_store_n(&table, found, __ATOMIC_RELEASE);
}

/* Locked. */
static void unload(void)
{
	if (--references != 0)
		return;
	__atomic_store_n(&table, NULL, __ATOMIC_RELEASE);
	if (library)
		(void)dlclose(library);
	library = NULL;
	load_state = LOAD_READY;
}

/* ---- communicators ---- */

bool sim_profiler_init(const struct sim_profiler_comm_info *info, void **context)
{
	const struct sim_profiler_table *now;
	int *mask = &ncclProfilerEventMask, r, before;

	(void)pthread_mutex_lock(&mutex);
	load();
	(void)pthread_mutex_unlock(&mutex);
	now = loaded();
	if (!now)
		return false;
	if (version <= 3)
		r = now->init_v3(context, mask);
	else if (version == 4)
		r = now->init_v4(context, mask, info->name, info->hash, info->nodes, info->ranks,
				 info->rank, write_log);
	else
		r = now->init_v7(context, info->hash, mask, info->name, info->nodes, info->ranks,
				 info->rank, write_log);
	if (r == 0)
		(void)__atomic_and_fetch(mask, ~sim_profiler_unknown_bits(version),
					 __ATOMIC_RELAXED);
	before = sim_profiler_mask();
	if (sim_nccl_minor() >= 31 && before & SIM_PROFILE_KERNEL_PHASE)
		(void)__atomic_or_fetch(mask, SIM_PROFILE_KERNEL_CH, __ATOMIC_RELAXED);
	if (r == 0)
		return true;
	INFO("Profiler init failed with error '%d'. Continue without profiler.", r);
	/* Older releases say so too, but go on with the context as it is. */
	if (sim_nccl_minor() < UNLOADS_FAILED_FROM)
		return true;
	(void)pthread_mutex_lock(&mutex);
	unload();
	(void)pthread_mutex_unlock(&mutex);
	return true;
}

void sim_profiler_finalize(void *context)
{
	const struct sim_profiler_table *now = loaded();

	if (now && context)
		(void)now->finalize(context);
	(void)pthread_mutex_lock(&mutex);
	unload();
	(void)pthread_mutex_unlock(&mutex);
}

bool sim_profiler_is_loaded(void)
{
	return loaded() != NULL;
}

int sim_profiler_version(void)
{
	return loaded() ? version : 0;
}

int sim_profiler_mask(void)
{
	return __atomic_load_n(&ncclProfilerEventMask, __ATOMIC_RELAXED);
}

/* ---- events ---- */

void sim_profiler_start(void *context, void **handle, const struct sim_descr_v7 *descr,
			const struct sim_profiler_comm_info *info)
{
	const struct sim_profiler_table *now = loaded();
	union sim_profiler_descr adapted;

	if (now && sim_profiler_adapt(version, descr, info, &adapted))
		(void)now->start(context, handle, &adapted);
}

void sim_profiler_stop(void *handle)
{
	const struct sim_profiler_table *now = loaded();

	if (now && handle)
		(void)now->stop(handle);
}

void sim_profiler_record(void *handle, enum sim_profile_state state, union sim_state_args *args)
{
	const struct sim_profiler_table *now = loaded();
	union sim_state_args_v3 old = {.appended = 0};

	if (!now || !handle || !sim_profiler_has_state(version, state))
		return;
	if (version <= 3 && args)
		old.appended = args->appended;
	(void)now->record(handle, (int)state, version <= 3 ? (void *)&old : (void *)args);
}

void sim_profiler_record_op(void *handle, enum sim_profile_state state, size_t bytes, int steps)
{
	const struct sim_profiler_table *now = loaded();
	union sim_state_args_v3 args = {.proxy_op = {.trans_bytes = bytes, .steps = steps}};

	if (now && handle && version <= 3)
		(void)now->record(handle, (int)state, &args);
}
