/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnccl-profiler-neutracer.so: NCCL loads it into a process whose environment has
 *
 *	NCCL_PROFILER_PLUGIN=/path/to/libnccl-profiler-neutracer.so
 *	NEUTRACER_NCCL_NEXT_PLUGIN=NAME   another profiler plugin, which gets all events too
 *	NEUTRACER_NCCL_KERNELS=always     with NCCL 2.31 and later: times of kernels for the whole job
 *
 * It starts no thread, opens no file and no socket, and prints nothing. No call fails: up to 2.29
 * NCCL goes on with a plugin whose init() failed, and from 2.30 on it may unload one in use.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/nccl/chained.h"
#include "plugin/nccl/profiler.h"
#include "plugin/nccl/profiler_abi.h"

#define EXPORT __attribute__((visibility("default")))

static enum nt_profiler_use use_of(int version)
{
	const char *kernels = getenv("NEUTRACER_NCCL_KERNELS");

	if (version <= 3)
		return NT_PROFILER_NEVER;
	if (version <= 6)
		return NT_PROFILER_IN_WINDOWS;
	return kernels && strcmp(kernels, "always") == 0 ? NT_PROFILER_ALWAYS
							 : NT_PROFILER_NOT_REQUESTED;
}

static int begin(int version, void **ret_context, const struct nt_chained_init *init)
{
	void *own = nt_profiler_add(init->mask, version, use_of(version), init->id, init->rank);

	*ret_context =
		nt_chained_is_there(version, init->log) ? nt_chained_add(version, own, init) : own;
	return NT_NCCL_SUCCESS;
}

static int has_other(void)
{
	return __atomic_load_n(&nt_chained_was_loaded, __ATOMIC_ACQUIRE);
}

__attribute__((noinline)) static int start_needed(int version, void *context, void **ret_handle,
						  struct nt_nccl_event *event)
{
	if (has_other())
		return nt_chained_start(version, context, ret_handle, event);
	*ret_handle = nt_profiler_start(version, context, event);
	return NT_NCCL_SUCCESS;
}

static inline int start(int version, void *context, void **ret_handle, struct nt_nccl_event *event)
{
	if (nt_profiler_is_active() | has_other())
		return start_needed(version, context, ret_handle, event);
	*ret_handle = NULL;
	return NT_NCCL_SUCCESS;
}

static int stop(void *handle)
{
	if (has_other())
		return nt_chained_stop(handle);
	nt_profiler_stop(handle);
	return NT_NCCL_SUCCESS;
}

static int record_state(void *handle, int state, void *args)
{
	if (has_other())
		return nt_chained_state(handle, state, args);
	nt_profiler_state(handle, state, args);
	return NT_NCCL_SUCCESS;
}

static int finalize(void *context)
{
	if (has_other())
		return nt_chained_remove(context);
	nt_profiler_remove(context);
	return NT_NCCL_SUCCESS;
}

/* ---- versions ------------------------------------------------------------------------------- */

#define START(version_)                                                                            \
	static int start_##version_(void *context, void **ret_handle, void *event)                 \
	{                                                                                          \
		return start(version_, context, ret_handle, event);                                \
	}

#define INIT_1(version_)                                                                           \
	static int init_##version_(void **ret_context, int *mask)                                  \
	{                                                                                          \
		return begin(version_, ret_context, &(struct nt_chained_init){.mask = mask});      \
	}

#define INIT_5(version_)                                                                           \
	static int init_##version_(void **ret_context, uint64_t id, int *mask, const char *name,   \
				   int nodes, int ranks, int rank, nt_nccl_log_fn log)             \
	{                                                                                          \
		const struct nt_chained_init init = {.mask = mask,                                 \
						     .name = name,                                 \
						     .id = id,                                     \
						     .nodes = nodes,                               \
						     .ranks = ranks,                               \
						     .rank = rank,                                 \
						     .log = log};                                  \
                                                                                                   \
		return begin(version_, ret_context, &init);                                        \
	}

#define EXPORTED(version_, member_)                                                                \
	EXPORT extern const struct nt_nccl_profiler ncclProfiler_v##version_;                      \
	EXPORT const struct nt_nccl_profiler ncclProfiler_v##version_ = {                          \
		.name = "NeuTracer",                                                               \
		.member_ = init_##version_,                                                        \
		.start = start_##version_,                                                         \
		.stop = stop,                                                                      \
		.state = record_state,                                                             \
		.finalize = finalize,                                                              \
	}

static int init_4(void **ret_context, int *mask, const char *name, uint64_t hash, int nodes,
		  int ranks, int rank, nt_nccl_log_fn log)
{
	const struct nt_chained_init init = {.mask = mask,
					     .name = name,
					     .id = hash,
					     .nodes = nodes,
					     .ranks = ranks,
					     .rank = rank,
					     .log = log};

	return begin(4, ret_context, &init);
}

INIT_1(1)
INIT_1(2)
INIT_1(3)
INIT_5(5)
INIT_5(6)
INIT_5(7)
START(1)
START(2)
START(3)
START(4)
START(5)
START(6)
START(7)

EXPORTED(1, init_1);
EXPORTED(2, init_1);
EXPORTED(3, init_1);
EXPORTED(4, init_4);
EXPORTED(5, init_5);
EXPORTED(6, init_5);
EXPORTED(7, init_5);
