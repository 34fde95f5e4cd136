/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second profiler plugin. NCCL loads one, so that ours loads the user's other one and forwards all
 * events to it, with its own contexts and handles, and returns what it returned.
 *
 * An event's handles are kept until as many later events have begun as the table holds: children may
 * come after the end of their parent. Of older ones, and if another thread holds the table for too
 * long, nothing more is forwarded.
 */
#ifndef NT_PLUGIN_NCCL_CHAINED_H
#define NT_PLUGIN_NCCL_CHAINED_H

#include "plugin/nccl/profiler_abi.h"

enum {
	NT_CHAINED_COMMS = 1024,
	NT_CHAINED_EVENTS = 1 << 16,
};

struct nt_chained_init {
	int *mask;
	const char *name;
	uint64_t id;
	int nodes, ranks, rank;
	nt_nccl_log_fn log;
};

/* True if there is one; it is loaded at the first call. A failure is one line in NCCL's log. */
int nt_chained_is_there(int version, nt_nccl_log_fn log);
/* The same without loading: for all calls but the first. */
extern int nt_chained_was_loaded;

/* As NCCL calls a plugin; both, ours and the other, get the event. */
void *nt_chained_add(int version, void *own, const struct nt_chained_init *init);
int nt_chained_start(int version, void *context, void **ret_handle, struct nt_nccl_event *event);
int nt_chained_stop(void *handle);
int nt_chained_state(void *handle, int state, void *args);
int nt_chained_remove(void *context);

#endif
