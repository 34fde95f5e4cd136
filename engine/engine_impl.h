/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the engine. Private to engine/engine*.c. */
#ifndef NT_ENGINE_ENGINE_IMPL_H
#define NT_ENGINE_ENGINE_IMPL_H

#include "engine/agents/agent_run.h"
#include "engine/engine.h"
#include "engine/snapshot.h"
#include "proto/arena.h"

struct nt_engine {
	struct nt_engine_options options;
	struct nt_engine_handler handler;
	struct nt_engine_counters counters;
	struct nt_jobs *jobs;
	struct nt_frame_builder *frame_builder;
	struct nt_shortages shortages;
	struct nt_agent_runs runs;
	bool is_closing; /* shutdown: jobs freed now are not resolved */
};

/* The open incident with this id, or NULL. */
struct nt_open_incident *nt_engine_find_open(struct nt_job_view *view, uint64_t id);
/* -ENOMEM. */
NT_MUST_CHECK int nt_engine_add_open(struct nt_job_view *view, uint64_t id,
				     struct nt_open_incident **ret_open);
void nt_engine_remove_open(struct nt_job_view *view, struct nt_open_incident *open);

#endif
