/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Another profiler plugin, of interface versions 5 and 6, that is loaded after ours. It notes what it
 * gets; its handles are its own. NEXT_PLUGIN_FAILS in the environment: its init() fails.
 */
#include "tests/unit/plugin/nccl/next_plugin.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct next_plugin_notes next_plugin_notes;
EXPORT struct next_plugin_notes next_plugin_notes;

static int init(void **ret_context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
		int rank, nt_nccl_log_fn log)
{
	struct next_plugin_notes *notes = &next_plugin_notes;

	(void)nodes, (void)log;
	notes->inits++;
	notes->id = id;
	notes->ranks = ranks;
	notes->rank = rank;
	notes->name = name;
	notes->mask = mask;
	*mask = notes->wanted;
	if (getenv("NEXT_PLUGIN_FAILS"))
		return 3;
	*ret_context = &notes->inits;
	return 0;
}

static int start(void *context, void **ret_handle, void *event)
{
	struct next_plugin_notes *notes = &next_plugin_notes;

	notes->starts++;
	notes->context = context;
	notes->parent = ((struct nt_nccl_event *)event)->parent;
	(void)memcpy(notes->event, event, notes->event_bytes);
	*ret_handle = notes->declines ? NULL : &notes->handle[notes->starts % NEXT_PLUGIN_HANDLES];
	return notes->result;
}

static int stop(void *handle)
{
	next_plugin_notes.stops++;
	next_plugin_notes.last = handle;
	return next_plugin_notes.result;
}

static int record_state(void *handle, int state, void *args)
{
	next_plugin_notes.states++;
	next_plugin_notes.last = handle;
	next_plugin_notes.state = state;
	next_plugin_notes.args = args;
	return next_plugin_notes.result;
}

static int finalize(void *context)
{
	next_plugin_notes.finals++;
	next_plugin_notes.context = context;
	return next_plugin_notes.result;
}

#define EXPORTED(version_)                                                                         \
	EXPORT extern const struct nt_nccl_profiler ncclProfiler_v##version_;                      \
	EXPORT const struct nt_nccl_profiler ncclProfiler_v##version_ = {                          \
		"next", {.init_5 = init}, start, stop, record_state, finalize}

EXPORTED(5);
EXPORTED(6);
