/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the engine. Private to engine/engine*.c. */
#ifndef NT_ENGINE_ENGINE_IMPL_H
#define NT_ENGINE_ENGINE_IMPL_H

#include "engine/agents/agent_run.h"
#include "engine/engine.h"
#include "engine/snapshot.h"
#include "engine/stacks/rank_stack.h"
#include "proto/arena.h"

struct nt_engine {
	struct nt_engine_options options;
	struct nt_engine_handler handler;
	struct nt_engine_counters counters;
	struct nt_jobs *jobs;
	struct nt_frame_builder *frame_builder;
	struct nt_shortages shortages;
	struct nt_agent_runs runs;
	struct nt_rank_stacks stacks;
	bool is_closing; /* shutdown: jobs freed now are not resolved */
};

/* engine/engine_incident.c: takes a finding of the job's detector and reports it. */
NT_MUST_CHECK int nt_engine_take_finding(struct nt_engine *engine, struct nt_job *job,
					 const struct nt_finding *finding);
void nt_engine_report(struct nt_engine *engine, const struct nt_wire_incident *incident);
/* Takes the stacks of a window; the open incidents of its key are reported anew. -ENOMEM. */
NT_MUST_CHECK int nt_engine_take_stacks(struct nt_engine *engine, const struct nt_message *message);
void nt_engine_free_open(struct nt_open_incident *open);

/*
 * engine/engine_links.c: adds what stands out of the links of accused ranks, or what was found a short
 * time before. before: zero-initialised if there is none. -ENOMEM.
 */
NT_MUST_CHECK int nt_engine_attach_links(const struct nt_job *job,
					 const struct nt_open_incident *before,
					 struct nt_open_incident *open);

/* The open incident with this id, or NULL. */
struct nt_open_incident *nt_engine_find_open(struct nt_job_view *view, uint64_t id);
/* -ENOMEM. */
NT_MUST_CHECK int nt_engine_add_open(struct nt_job_view *view, uint64_t id,
				     struct nt_open_incident **ret_open);
void nt_engine_remove_open(struct nt_job_view *view, struct nt_open_incident *open);

#endif
