/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profiler plugin of this process: how it is found and loaded, its mask, and the calls of it. An
 * event is described as the newest version describes it; a plugin of an older version gets what the
 * library's adapter for that version passes on.
 */
#ifndef NT_SIM_NCCL_PROFILER_PLUGIN_H
#define NT_SIM_NCCL_PROFILER_PLUGIN_H

#include "tests/sim/lib/nccl/profiler_interface.h"

/* The arguments of init that describe a communicator. */
struct sim_profiler_comm_info {
	uint64_t hash;
	const char *name; /* NULL: none was given */
	int device;
	int nodes, ranks, rank;
};

/*
 * Loads the plugin, if it is not, and calls its init. The context is what init has left there. False:
 * there is no plugin. Where init fails, the plugin may be unloaded when this returns.
 */
bool sim_profiler_init(const struct sim_profiler_comm_info *info, void **context);
/* Calls finalize, unless the context is NULL. The last communicator unloads the plugin. */
void sim_profiler_finalize(void *context);

bool sim_profiler_is_loaded(void);
/* The version of the interface that is in use. 0: no plugin. */
int sim_profiler_version(void);
/* Of the process, as the plugin has set it last. */
int sim_profiler_mask(void);

/* These do nothing without a plugin. NULL as a handle: the event was not started, or declined. */
void sim_profiler_start(void *context, void **handle, const struct sim_descr_v7 *descr,
			const struct sim_profiler_comm_info *info);
void sim_profiler_stop(void *handle);
void sim_profiler_record(void *handle, enum sim_profile_state state, union sim_state_args *args);
/* Of a proxy operation, versions 1 to 3. */
void sim_profiler_record_op(void *handle, enum sim_profile_state state, size_t bytes, int steps);

#endif
