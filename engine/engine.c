/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/engine_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEATH_SHOWN_NS (30 * NT_SECOND) /* agents of an ended job send heartbeats for a minute */

struct nt_engine_options nt_engine_options_default(void)
{
	return (struct nt_engine_options){
		.rules = nt_rules_default(),
		.prices = nt_prices_unknown(),
	};
}

/* ---- data of a job --------------------------------------------------------------------------- */

/* Resolves the open incidents of a job that ended or was given up. Pending ones are dropped. */
static void resolve_all(struct nt_engine *engine, struct nt_job *job)
{
	struct nt_job_view *view = job->user;

	while (view && view->opens) {
		struct nt_open_incident *open = &view->open[view->opens - 1];

		if (open->firing) {
			open->incident.state = nt_incident_state_name(NT_INCIDENT_RESOLVED);
			open->incident.until_real_ns =
				job->ended_ns ? job->ended_ns : job->last_seen_ns;
			open->incident.version++;
			nt_engine_report(engine, &open->incident);
		}
		nt_engine_remove_open(view, open);
	}
}

static void forget_job(void *data, struct nt_job *job)
{
	struct nt_engine *engine = data;
	struct nt_job_view *view = job->user;

	/* A job without data for an hour is dropped; its open incidents must be resolved here. */
	if (!engine->is_closing)
		resolve_all(engine, job);
	nt_detect_free(job->detect);
	if (!view)
		return;
	for (size_t i = 0; i < view->opens; i++)
		nt_engine_free_open(&view->open[i]);
	free(view->open);
	nt_snapshot_job_unref(view->snapshot);
	nt_job_timeline_free(view->timeline);
	free(view);
}

static int prepare_job(struct nt_engine *engine, struct nt_job *job)
{
	if (!job->user)
		job->user = calloc(1, sizeof(struct nt_job_view));
	if (!job->user)
		return -ENOMEM;
	if (job->detect)
		return 0;
	return nt_detect_new(&engine->options.rules, job->hash, job->attempt, &job->detect);
}

/* A job whose state was loaded has no timeline yet. */
static int add_to_timeline(struct nt_engine *engine, struct nt_job *job,
			   const struct nt_frame *frame)
{
	struct nt_job_view *view = job->user;
	int r = 0;

	if (!engine->options.timelines)
		return 0;
	if (!view->timeline)
		r = nt_job_timeline_new(engine->options.timelines, &view->timeline);
	return r < 0 ? r : nt_job_timeline_add(view->timeline, job->detect, frame);
}

const struct nt_job_view *nt_engine_view(const struct nt_job *job)
{
	return job->user;
}

int nt_engine_new(const struct nt_engine_options *options, const struct nt_engine_handler *handler,
		  struct nt_engine **ret_engine)
{
	nt_auto(nt_engine) struct nt_engine *engine = calloc(1, sizeof(*engine));
	int r;

	if (!engine)
		return -ENOMEM;
	engine->options = *options;
	if (handler)
		engine->handler = *handler;
	r = nt_jobs_new(&options->limits, forget_job, engine, &engine->jobs);
	if (r < 0)
		return r;
	r = nt_frame_builder_new(options->cell_min_ns, &engine->frame_builder);
	if (r < 0)
		return r;
	*ret_engine = nt_take(engine);
	return 0;
}

void nt_engine_free(struct nt_engine *engine)
{
	if (!engine)
		return;
	engine->is_closing = true;
	nt_jobs_free(engine->jobs);
	nt_frame_builder_free(engine->frame_builder);
	nt_shortages_release(&engine->shortages);
	nt_rank_stacks_release(&engine->stacks);
	nt_agent_runs_release(&engine->runs);
	free(engine);
}

/* ---- incidents ------------------------------------------------------------------------------- */

/* Reports the incidents that ended with the last frame or before. */
static int report_ended(struct nt_engine *engine, struct nt_job *job)
{
	const struct nt_finding *finding;
	size_t findings;
	int r = nt_detect_finish(job->detect, &finding, &findings);

	for (size_t i = 0; r >= 0 && i < findings; i++)
		r = nt_engine_take_finding(engine, job, &finding[i]);
	return r;
}

/* Reports the firing incidents with their cost up to now. */
static int report_costs(struct nt_engine *engine, struct nt_job *job)
{
	const struct nt_finding *finding;
	size_t findings;

	nt_detect_open(job->detect, &finding, &findings);
	for (size_t i = 0; i < findings; i++) {
		int r = finding[i].state == NT_INCIDENT_FIRING
				? nt_engine_take_finding(engine, job, &finding[i])
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int close_cell(struct nt_engine *engine, struct nt_job *job)
{
	const struct nt_finding *finding;
	const struct nt_frame *frame;
	size_t findings;
	uint64_t lapsed;
	int r;

	r = prepare_job(engine, job);
	if (r < 0)
		return r;
	lapsed = nt_detect_lapsed_rounds(job->detect);
	r = nt_frame_builder_close(engine->frame_builder, engine->jobs, job, &frame);
	if (r < 0)
		return r;
	if (engine->handler.frame)
		engine->handler.frame(engine->handler.data, job, frame);
	r = nt_detect_step(job->detect, frame, &finding, &findings);
	if (r == -EINVAL) {
		engine->counters.refused_frames++;
		return 0;
	}
	engine->counters.lapsed_comms += nt_detect_lapsed_rounds(job->detect) - lapsed;
	if (r < 0)
		return r;
	if (engine->handler.judged)
		engine->handler.judged(engine->handler.data, job, frame);
	r = add_to_timeline(engine, job, frame);
	if (r < 0)
		return r;
	for (size_t i = 0; i < findings; i++) {
		r = nt_engine_take_finding(engine, job, &finding[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_waiting(const struct nt_job *job)
{
	for (size_t i = 0; i < job->sessions; i++)
		if (job->session[i]->waitings)
			return true;
	return false;
}

/* Whether an open incident names the rank whose end ended the job. */
static bool has_first_death(const struct nt_job *job)
{
	const struct nt_job_view *view = job->user;

	for (size_t i = 0; view && i < view->opens; i++)
		if (view->open[i].firing && strcmp(view->open[i].incident.class, "missing") == 0)
			return true;
	return false;
}

/*
 * Whether all ranks have ended; ranks never observed get the time allowed to agents. The rank whose
 * end ended the job stays named for a while, for those who only look at what is firing.
 */
static bool is_over(const struct nt_job *job, uint64_t closable_ns)
{
	if (job->live || !job->ended_ns || job->owner->admissions)
		return false;
	if (has_first_death(job) && closable_ns < job->ended_ns + DEATH_SHOWN_NS)
		return false;
	return job->sessions - job->retired >= job->size ||
	       closable_ns >= job->ended_ns + NT_JOBS_SILENCE_NS;
}

static int end_job(struct nt_engine *engine, struct nt_job *job)
{
	int r;

	while (has_waiting(job)) {
		nt_frame_builder_skip(engine->frame_builder, job, UINT64_MAX);
		r = close_cell(engine, job);
		if (r < 0)
			return r;
	}
	r = job->detect ? report_ended(engine, job) : 0;
	if (r < 0)
		return r;
	resolve_all(engine, job);
	nt_jobs_close(engine->jobs, job);
	return 0;
}

static struct nt_job *first_due(struct nt_engine *engine, struct nt_job_key *key, uint64_t *ret_due)
{
	struct nt_job *first = NULL;

	*ret_due = UINT64_MAX;
	for (struct nt_job *job = key->job; job; job = job->next) {
		uint64_t due = nt_frame_builder_due_ns(engine->frame_builder, job);

		if (due < *ret_due) {
			*ret_due = due;
			first = job;
		}
	}
	return first;
}

/* Advances the key to closable_ns, in the order of event time. */
static int advance_to(struct nt_engine *engine, struct nt_job_key *key, uint64_t closable_ns)
{
	for (;;) {
		uint64_t due, admission = nt_jobs_admission_ns(key);
		struct nt_job *job = first_due(engine, key, &due);
		int r;

		key->due_ns = due < admission ? due : admission;
		if (key->due_ns > closable_ns)
			return 0;
		if (admission <= due) {
			r = nt_jobs_admit(engine->jobs, key, admission,
					  due < closable_ns ? due : closable_ns);
		} else {
			nt_frame_builder_skip(engine->frame_builder, job, closable_ns);
			r = close_cell(engine, job);
		}
		if (r < 0)
			return r;
	}
}

static int end_jobs(struct nt_engine *engine, struct nt_job_key *key, uint64_t closable_ns)
{
	int r;

	for (struct nt_job *job = key->job; job; job = job->next) {
		if (job->closed || !is_over(job, closable_ns))
			continue;
		r = end_job(engine, job);
		if (r < 0)
			return r;
	}
	return 0;
}

static int advance(struct nt_engine *engine, struct nt_job_key *key)
{
	uint64_t closable_ns;
	int r;

	/* Most messages make nothing due: no agent is ahead of the most advanced one. */
	if (key->lead_ns < key->due_ns)
		return 0;
	closable_ns = nt_jobs_closable_ns(key);
	if (closable_ns < key->due_ns)
		return 0;
	r = advance_to(engine, key, closable_ns);
	if (r < 0)
		return r;
	return end_jobs(engine, key, closable_ns);
}

static bool has_hang(const struct nt_job *job)
{
	const struct nt_job_view *view = job->user;

	for (size_t i = 0; view && i < view->opens; i++)
		if (strcmp(view->open[i].incident.class, "hang") == 0)
			return true;
	return false;
}

/*
 * Ends the ranks of earlier runs of an agent that its current run has not found. Ranks that hang
 * make no call by which they could be found: their jobs stay as they are.
 */
static int end_unreported(struct nt_engine *engine, const struct nt_message *message)
{
	for (struct nt_job_key *key = nt_jobs_keys(engine->jobs); key; key = key->hh.next) {
		struct nt_source *source;
		int r;

		HASH_FIND(hh, key->source, message->agent, strlen(message->agent), source);
		if (!source || source->boot == message->boot || !source->sessions)
			continue;
		for (struct nt_job *job = key->job; job; job = job->next)
			for (size_t i = 0; !has_hang(job) && i < job->sessions; i++)
				if (job->session[i]->source == source)
					nt_jobs_end_session(job->session[i],
							    job->session[i]->last_seen_ns, true);
		r = end_jobs(engine, key, UINT64_MAX);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_vector(struct nt_engine *engine, const struct nt_message *message, bool again)
{
	const size_t max = nt_jobs_max_nodes(engine->jobs);
	bool settled;
	int r = nt_shortages_take(&engine->shortages, message, max);

	if (r < 0 || again)
		return r;
	if (engine->handler.vector)
		r = engine->handler.vector(engine->handler.data, message);
	if (r < 0)
		return r;
	r = nt_agent_runs_take(&engine->runs, message, max, &settled);
	return r < 0 || !settled ? r : end_unreported(engine, message);
}

int nt_engine_push(struct nt_engine *engine, struct nt_message *message, bool again)
{
	struct nt_job_key *key;
	int r;

	switch (message->body) {
	case NT_BODY_WINDOW:
		break;
	case NT_BODY_HEARTBEAT:
		engine->counters.heartbeats += !again;
		break;
	case NT_BODY_NODE:
		engine->counters.node_vectors += !again;
		r = take_vector(engine, message, again);
		nt_message_free(message);
		return r;
	default:
		engine->counters.others += !again;
		nt_message_free(message);
		return 0;
	}
	r = nt_engine_take_stacks(engine, message);
	if (r < 0) {
		nt_message_free(message);
		return r;
	}
	r = nt_jobs_put(engine->jobs, message, again, &key);
	/* During a replay windows are missing that were present at the original decision. */
	if (r < 0 || !key || again)
		return r;
	return advance(engine, key);
}

static int finish_key(struct nt_engine *engine, struct nt_job_key *key)
{
	int r;

	while (nt_jobs_admission_ns(key) != UINT64_MAX) {
		r = advance_to(engine, key, nt_jobs_admission_ns(key));
		if (r < 0)
			return r;
	}
	/* Cells without windows are then skipped. */
	for (struct nt_job *job = key->job; job; job = job->next) {
		while (!job->closed && has_waiting(job)) {
			nt_frame_builder_skip(engine->frame_builder, job, UINT64_MAX);
			r = close_cell(engine, job);
			if (r < 0)
				return r;
		}
		if (job->closed || !job->detect)
			continue;
		r = report_ended(engine, job);
		r = r < 0 ? r : report_costs(engine, job);
		if (r < 0)
			return r;
	}
	return end_jobs(engine, key, UINT64_MAX);
}

int nt_engine_finish(struct nt_engine *engine)
{
	for (struct nt_job_key *key = nt_jobs_keys(engine->jobs); key; key = key->hh.next) {
		int r = finish_key(engine, key);

		if (r < 0)
			return r;
	}
	return 0;
}

int nt_engine_sweep(struct nt_engine *engine, uint64_t waited_ns)
{
	nt_jobs_wait(engine->jobs, waited_ns);
	nt_shortages_wait(&engine->shortages, waited_ns);
	for (struct nt_job_key *key = nt_jobs_keys(engine->jobs); key; key = key->hh.next) {
		const uint64_t bound_ns = key->lead_ns + key->quiet_ns - NT_JOBS_LATENESS_NS;
		int r;

		if (key->quiet_ns < NT_JOBS_LATENESS_NS)
			continue;
		r = advance_to(engine, key, bound_ns);
		if (r >= 0)
			r = end_jobs(engine, key, bound_ns);
		if (r < 0)
			return r;
	}
	nt_jobs_sweep(engine->jobs);
	return 0;
}

int nt_engine_rebaseline(struct nt_engine *engine, uint64_t job_id)
{
	for (struct nt_job_key *key = nt_jobs_keys(engine->jobs); key; key = key->hh.next)
		for (struct nt_job *job = key->job; job; job = job->next)
			if (job->id == job_id && !job->closed && job->detect) {
				nt_detect_rebaseline(job->detect);
				return 0;
			}
	return -ENOENT;
}

/* ---- views ----------------------------------------------------------------------------------- */

void nt_engine_job_name(const struct nt_job *job, char name[NT_ENGINE_JOB_NAME])
{
	(void)snprintf(name, NT_ENGINE_JOB_NAME, "%016" PRIx64, job->id);
}

const struct nt_shortages *nt_engine_shortages(const struct nt_engine *engine)
{
	return &engine->shortages;
}

struct nt_jobs *nt_engine_jobs(struct nt_engine *engine)
{
	return engine->jobs;
}

const struct nt_frame_builder_counters *
nt_engine_frame_builder_counters(const struct nt_engine *engine)
{
	return nt_frame_builder_counters(engine->frame_builder);
}

const struct nt_engine_counters *nt_engine_counters(const struct nt_engine *engine)
{
	return &engine->counters;
}
