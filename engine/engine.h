/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine: turns messages into incidents through jobs, frames and detection. It is pure: no I/O,
 * no clock, no threads; time is event time of the messages. Used by the aggregator and `neutracer
 * analyze`.
 */
#ifndef NT_ENGINE_ENGINE_H
#define NT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "detect/detect.h"
#include "engine/agents/shortage.h"
#include "engine/frame_builder.h"
#include "engine/incidents/incident.h"
#include "engine/job.h"
#include "engine/nodes/fleet.h"
#include "engine/timeline/job_timeline.h"
#include "proto/wire.h"

struct nt_engine_options {
	struct nt_rules rules;
	struct nt_prices prices; /* `currency` is borrowed and outlives the engine */
	uint64_t cell_min_ns; /* shortest frame; 0: half a second */
	struct nt_jobs_limits limits;
	/* Alarms of nodes, which explain slow ranks on them; borrowed; NULL: none. */
	const struct nt_fleet *fleet;
	struct nt_job_timelines *timelines; /* borrowed; NULL: no timelines are kept */
};

/* The shipped rules, no prices, default limits. */
struct nt_engine_options nt_engine_options_default(void);

/* Callbacks; any may be NULL. */
struct nt_engine_handler {
	/*
	 * An incident was opened, changed or resolved; pending ones included. Borrowed for the
	 * call.
	 */
	void (*incident)(void *data, const struct nt_wire_incident *incident);
	/* A frame of the job, before it is judged. */
	void (*frame)(void *data, const struct nt_job *job, const struct nt_frame *frame);
	void *data;
	/* The same frame after job->detect has judged it. */
	void (*judged)(void *data, const struct nt_job *job, const struct nt_frame *frame);
	/* The firing incident names what stands out on the node of an accused rank. */
	void (*joined)(void *data, const struct nt_wire_incident *incident);
	/* A node vector, for the first time; its error ends nt_engine_push(). */
	int (*vector)(void *data, const struct nt_message *message);
};

/* Monotonic. */
struct nt_engine_counters {
	uint64_t heartbeats, node_vectors, others; /* others: messages of other kinds, ignored */
	uint64_t incidents; /* passed to the handler */
	uint64_t refused_frames; /* rejected by the detector as invalid */
	uint64_t lapsed_comms; /* collective rounds that lapsed with members missing */
};

struct nt_engine;

NT_MUST_CHECK int nt_engine_new(const struct nt_engine_options *options,
				const struct nt_engine_handler *handler,
				struct nt_engine **ret_engine);
void nt_engine_free(struct nt_engine *engine);
NT_DEFINE_AUTO(nt_engine, nt_engine_free)

/* Processes a message and takes ownership in every case. `again`: see nt_jobs_put(). -ENOMEM. */
NT_MUST_CHECK int nt_engine_push(struct nt_engine *engine, struct nt_message *message, bool again);

/* End of a recording: judges all windows that still wait. */
NT_MUST_CHECK int nt_engine_finish(struct nt_engine *engine);

/*
 * To be called about every second: judges windows that wait for silent agents, and frees old jobs.
 * waited_ns is the time since the last call in which the bus was empty. For a job with a single
 * agent this is the only measure of elapsed time.
 */
NT_MUST_CHECK int nt_engine_sweep(struct nt_engine *engine, uint64_t waited_ns);

/* Firing incidents that accuse something on the node are reported anew with the next frame. */
void nt_engine_mark_node(struct nt_engine *engine, const char *node);

/* Takes the job's current state as normal. -ENOENT. */
NT_MUST_CHECK int nt_engine_rebaseline(struct nt_engine *engine, uint64_t job_id);

/* An incident that is pending or firing. */
struct nt_open_incident {
	uint64_t id;
	bool firing;
	enum nt_class class;
	uint64_t links_ns; /* when its links were last looked at, in event time; 0: never */
	struct nt_arena *arena; /* owned: holds the incident */
	struct nt_wire_incident incident;
};

/* The engine's data at nt_job.user. */
struct nt_job_view {
	struct nt_open_incident *open;
	size_t opens, open_cap;
	struct nt_snapshot_job *snapshot; /* the job's last snapshot; see snapshot.h */
	struct nt_job_timeline *timeline; /* NULL: none is kept */
};

enum {
	NT_ENGINE_JOB_NAME = 17,
};

/* The job's id as text. */
void nt_engine_job_name(const struct nt_job *job, char name[NT_ENGINE_JOB_NAME]);

/* The detector's state of a job: baselines, sums, open incidents. Loading: -EBADMSG if damaged. */
NT_MUST_CHECK int nt_engine_save_job(const struct nt_job *job, struct nt_buf *buf);
NT_MUST_CHECK int nt_engine_load_job(struct nt_engine *engine, struct nt_job *job, const void *data,
				     size_t size);

const struct nt_job_view *nt_engine_view(const struct nt_job *job);

const struct nt_shortages *nt_engine_shortages(const struct nt_engine *engine);
struct nt_jobs *nt_engine_jobs(struct nt_engine *engine);
const struct nt_frame_builder_counters *
nt_engine_frame_builder_counters(const struct nt_engine *engine);
const struct nt_engine_counters *nt_engine_counters(const struct nt_engine *engine);

#endif
