/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cupti/calls.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const uint32_t runtime_launches[] = {
	NT_CUPTI_RUNTIME_LAUNCH,
	NT_CUPTI_RUNTIME_LAUNCH_PTSZ,
	NT_CUPTI_RUNTIME_LAUNCH_COOPERATIVE,
	NT_CUPTI_RUNTIME_LAUNCH_COOPERATIVE_PTSZ,
	NT_CUPTI_RUNTIME_GRAPH_LAUNCH,
	NT_CUPTI_RUNTIME_GRAPH_LAUNCH_PTSZ,
	NT_CUPTI_RUNTIME_LAUNCH_EX,
	NT_CUPTI_RUNTIME_LAUNCH_EX_PTSZ,
	NT_CUPTI_RUNTIME_LAUNCH_MULTI_DEVICE,
	NT_CUPTI_RUNTIME_LAUNCH_COMPILED,
	NT_CUPTI_RUNTIME_LAUNCH_COMPILED_PTSZ,
};

static const uint32_t driver_launches[] = {
	NT_CUPTI_DRIVER_LAUNCH,
	NT_CUPTI_DRIVER_LAUNCH_OLD,
	NT_CUPTI_DRIVER_LAUNCH_GRID,
	NT_CUPTI_DRIVER_LAUNCH_GRID_ASYNC,
	NT_CUPTI_DRIVER_LAUNCH_PTSZ,
	NT_CUPTI_DRIVER_LAUNCH_COOPERATIVE,
	NT_CUPTI_DRIVER_LAUNCH_COOPERATIVE_PTSZ,
	NT_CUPTI_DRIVER_LAUNCH_MULTI_DEVICE,
	NT_CUPTI_DRIVER_GRAPH_LAUNCH,
	NT_CUPTI_DRIVER_GRAPH_LAUNCH_PTSZ,
	NT_CUPTI_DRIVER_LAUNCH_EX,
	NT_CUPTI_DRIVER_LAUNCH_EX_PTSZ,
};

/* Newest first. Up to 11 the name has the minor version. */
static const char *const names[] = {
	"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
	"libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so",
};

/* False: the library lacks a call, or refuses to work here. */
static bool find(void *handle, struct nt_cupti_calls *calls)
{
	if (!handle)
		return false;
	*(void **)&calls->get_version = dlsym(handle, "cuptiGetVersion");
	*(void **)&calls->register_clock = dlsym(handle, "cuptiActivityRegisterTimestampCallback");
	*(void **)&calls->register_callbacks = dlsym(handle, "cuptiActivityRegisterCallbacks");
	*(void **)&calls->enable = dlsym(handle, "cuptiActivityEnable");
	*(void **)&calls->disable = dlsym(handle, "cuptiActivityDisable");
	*(void **)&calls->flush = dlsym(handle, "cuptiActivityFlushAll");
	*(void **)&calls->next_record = dlsym(handle, "cuptiActivityGetNextRecord");
	*(void **)&calls->dropped = dlsym(handle, "cuptiActivityGetNumDroppedRecords");
	*(void **)&calls->enable_runtime = dlsym(handle, "cuptiActivityEnableRuntimeApi");
	*(void **)&calls->enable_driver = dlsym(handle, "cuptiActivityEnableDriverApi");
	return calls->get_version && calls->register_clock && calls->register_callbacks &&
	       calls->enable && calls->disable && calls->flush && calls->next_record &&
	       calls->dropped && calls->get_version(&calls->version) == NT_CUPTI_SUCCESS;
}

int nt_cupti_calls_load(struct nt_cupti_calls *ret_calls)
{
	static const int flags[] = {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL};
	const char *named = secure_getenv(NT_CUPTI_LIBRARY);
	struct nt_cupti_calls calls;

	if (named && *named) {
		if (!find(dlopen(named, RTLD_NOW | RTLD_LOCAL), &calls))
			return -1;
		*ret_calls = calls;
		return 0;
	}
	for (size_t i = 0; i < COUNT(flags); i++) {
		for (size_t j = 0; j < COUNT(names); j++) {
			if (!find(dlopen(names[j], flags[i]), &calls))
				continue;
			*ret_calls = calls;
			return 0;
		}
	}
	return -1;
}

/* The result of the first call of the list. Releases refuse calls that they do not know. */
static int set(int (*one)(uint32_t, uint8_t), const uint32_t *call, size_t calls, int on)
{
	const int r = one(call[0], (uint8_t)on);

	for (size_t i = 1; i < calls && r == NT_CUPTI_SUCCESS; i++)
		(void)one(call[i], (uint8_t)on);
	return r;
}

int nt_cupti_calls_launches(const struct nt_cupti_calls *calls, int on)
{
	int r, s;

	if (calls->enable_runtime && calls->enable_driver) {
		r = set(calls->enable_runtime, runtime_launches, COUNT(runtime_launches), on);
		s = set(calls->enable_driver, driver_launches, COUNT(driver_launches), on);
	} else {
		int (*kind)(int) = on ? calls->enable : calls->disable;

		r = kind(NT_CUPTI_KIND_RUNTIME);
		s = kind(NT_CUPTI_KIND_DRIVER);
	}
	return r != NT_CUPTI_SUCCESS ? r : s;
}

static int holds(const uint32_t *list, size_t n, uint32_t call)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i] == call)
			return 1;
	}
	return 0;
}

int nt_cupti_calls_is_launch(uint32_t kind, uint32_t call)
{
	return kind == NT_CUPTI_KIND_RUNTIME
		       ? holds(runtime_launches, COUNT(runtime_launches), call)
		       : holds(driver_launches, COUNT(driver_launches), call);
}
