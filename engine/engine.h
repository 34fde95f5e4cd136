/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From messages to incidents: jobs, frames, detection. Pure: no I/O, no clock, no threads; time is
 * what the messages say. The aggregator and `neutracer analyze` link the same.
 */
#ifndef NT_ENGINE_ENGINE_H
#define NT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "detect/detect.h"
#include "engine/frame_builder.h"
#include "engine/incident.h"
#include "engine/job.h"
#include "engine/shortage.h"
#include "proto/wire.h"

struct nt_engine_options {
	struct nt_rules rules;
	struct nt_prices prices; /* `currency` is borrowed and outlives the engine */
	uint64_t cell_min_ns; /* shortest frame; 0: half a second */
	struct nt_jobs_limits limits;
};

/* The shipped rules, no prices, default limits. */
struct nt_engine_options nt_engine_options_default(void);

/* Any of them may be NULL. */
struct nt_engine_handler {
	/* Opened, changed or resolved; pending ones come too. Borrowed for the call. */
	void (*incident)(void *data, const struct nt_wire_incident *incident);
	/* A frame of the job, before it is judged. */
	void (*frame)(void *data, const struct nt_job *job, const struct nt_frame *frame);
	void *data;
	/* The same frame when job->detect has judged it. */
	void (*judged)(void *data, const struct nt_job *job, const struct nt_frame *frame);
};

/* Monotonic. */
struct nt_engine_counters {
	uint64_t heartbeats, node_vectors, others; /* others: messages of no use here */
	uint64_t incidents; /* told to the handler */
	uint64_t refused_frames; /* the detection would not take them */
	uint64_t unheard_comms; /* of which some members were not heard in time */
};

struct nt_engine;

NT_MUST_CHECK int nt_engine_new(const struct nt_engine_options *options,
				const struct nt_engine_handler *handler,
				struct nt_engine **ret_engine);
void nt_engine_free(struct nt_engine *engine);
NT_DEFINE_AUTO(nt_engine, nt_engine_free)

/* Consumes the message, always. `again`: see nt_jobs_put(). -ENOMEM. */
NT_MUST_CHECK int nt_engine_push(struct nt_engine *engine, struct nt_message *message, bool again);

/* A recording is at its end: all that still waits is judged. */
NT_MUST_CHECK int nt_engine_finish(struct nt_engine *engine);

/*
 * Every second or so: judges what waits for agents that no longer speak, and forgets what is long
 * over. waited_ns is the time for which the bus had nothing more to read since the last call: where
 * an agent is the only one of its job, nothing else tells that time goes on.
 */
NT_MUST_CHECK int nt_engine_sweep(struct nt_engine *engine, uint64_t waited_ns);

/* What the job does now is normal. -ENOENT. */
NT_MUST_CHECK int nt_engine_rebaseline(struct nt_engine *engine, uint64_t job_id);

/* An incident that is pending or firing. */
struct nt_open_incident {
	uint64_t id;
	bool firing;
	enum nt_class class;
	struct nt_arena *arena; /* owned: holds the incident */
	struct nt_wire_incident incident;
};

/* What the engine hangs on nt_job.user. */
struct nt_job_view {
	struct nt_open_incident *open;
	size_t opens, open_cap;
	struct nt_snapshot_job *picture; /* of the job when it last changed; see picture.h */
};

enum {
	NT_ENGINE_JOB_NAME = 17,
};

/* The job's id as text. */
void nt_engine_job_name(const struct nt_job *job, char name[NT_ENGINE_JOB_NAME]);

/* What was judged of a job so far: baselines, sums, open incidents. -EBADMSG. */
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
