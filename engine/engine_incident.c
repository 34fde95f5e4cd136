/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open incidents of a job: from the detector's findings, with names and stacks. */
#include "engine/engine_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/search.h"
#include "engine/incidents/incident_summary.h"
#include "engine/nodes/node_cause.h"
#include "engine/stacks/incident_stack.h"

void nt_engine_free_open(struct nt_open_incident *open)
{
	if (open->arena)
		nt_arena_release(open->arena);
	free(open->arena);
}

void nt_engine_report(struct nt_engine *engine, const struct nt_wire_incident *incident)
{
	engine->counters.incidents++;
	if (engine->handler.incident)
		engine->handler.incident(engine->handler.data, incident);
}

void nt_engine_remove_open(struct nt_job_view *view, struct nt_open_incident *open)
{
	nt_engine_free_open(open);
	*open = view->open[--view->opens];
}

struct nt_open_incident *nt_engine_find_open(struct nt_job_view *view, uint64_t id)
{
	for (size_t i = 0; i < view->opens; i++)
		if (view->open[i].id == id)
			return &view->open[i];
	return NULL;
}

int nt_engine_add_open(struct nt_job_view *view, uint64_t id, struct nt_open_incident **ret_open)
{
	struct nt_open_incident *grown;

	if (view->opens == view->open_cap) {
		size_t cap = view->open_cap ? 2 * view->open_cap : 4;

		grown = reallocarray(view->open, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		view->open = grown;
		view->open_cap = cap;
	}
	view->open[view->opens] = (struct nt_open_incident){.id = id};
	*ret_open = &view->open[view->opens++];
	return 0;
}

/* Names for nt_incident_describe(). */
struct engine_naming {
	struct nt_engine *engine;
	const struct nt_job *job;
};

static const struct nt_rank_session *find_number(const struct nt_job *job, uint32_t number)
{
	const size_t low = nt_search_first(0, job->sessions - job->retired, i,
					   job->session[i]->number >= number);

	if (low == job->sessions - job->retired || job->session[low]->number != number)
		return NULL;
	return job->session[low];
}

static bool name_rank(void *data, uint32_t rank, struct nt_detect_rank_names *ret_names)
{
	const struct engine_naming *naming = data;
	const struct nt_rank_session *session = find_number(naming->job, rank);

	if (!session)
		return false;
	*ret_names = (struct nt_detect_rank_names){
		.node = nt_rank_session_text(session, NT_RANK_SESSION_NODE),
		.pod = nt_rank_session_text(session, NT_RANK_SESSION_POD),
		.pod_uid = nt_rank_session_text(session, NT_RANK_SESSION_POD_UID),
		.container = nt_rank_session_text(session, NT_RANK_SESSION_CONTAINER),
		.gpu = nt_rank_session_text(session, NT_RANK_SESSION_GPU),
		.rank_known = session->rank_known,
		.own_source = session->own_source,
		.cpu_takers = &session->cpu_takers,
	};
	return true;
}

static const char *name_node(void *data, uint32_t index)
{
	const struct engine_naming *naming = data;

	if (index >= naming->job->nodes)
		return NULL;
	return nt_jobs_node(naming->engine->jobs, naming->job->node_at[index]->node)->name;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static const struct nt_rank_stack *stack_of(const struct nt_engine *engine,
					    const struct nt_job *job,
					    const struct nt_rank_session *session)
{
	const struct nt_rank_stack_id id = nt_rank_stack_id_of(
		job->owner->key, nt_rank_session_text(session, NT_RANK_SESSION_NODE), session->pid,
		session->start_boot_ns);

	return nt_rank_stacks_find(&engine->stacks, &id);
}

/* Of the first accused rank that has one, and the newest of the others. */
static void find_stacks(const struct nt_engine *engine, const struct nt_job *job,
			const struct nt_wire_incident *incident,
			struct nt_incident_stack_source *ret_culprit,
			struct nt_incident_stack_source *ret_peer)
{
	*ret_culprit = *ret_peer = (struct nt_incident_stack_source){0};
	for (size_t i = 0; i < job->sessions - job->retired; i++) {
		const struct nt_rank_session *session = job->session[i];
		const struct nt_rank_stack *stack = stack_of(engine, job, session);
		const bool is_accused = nt_incident_stack_accuses(incident, session->number);
		struct nt_incident_stack_source *source = is_accused ? ret_culprit : ret_peer;

		if (!stack ||
		    (source->stack && (is_accused || source->stack->real_ns >= stack->real_ns)))
			continue;
		*source =
			(struct nt_incident_stack_source){.stack = stack, .rank = session->number};
	}
}

/* before: what was reported of it last; NULL: nothing. */
static int attach_stacks(const struct nt_engine *engine, const struct nt_job *job,
			 const struct nt_wire_incident *before, struct nt_open_incident *open)
{
	struct nt_incident_stack_source culprit = {0}, peer = {0};
	struct nt_wire_incident *incident = &open->incident;
	int r;

	if (nt_rank_stacks_has(&engine->stacks, job->owner->key))
		find_stacks(engine, job, incident, &culprit, &peer);
	/* An incident that accuses no rank has none. */
	if (!culprit.stack && (!before || !before->stacks))
		return 0;
	r = nt_incident_stack_attach(incident, &culprit, &peer, before, open->arena);
	if (r < 0)
		return r;
	return nt_incident_summary_write(open->class, incident, open->arena, &incident->summary);
}

int nt_engine_take_stacks(struct nt_engine *engine, const struct nt_message *message)
{
	struct nt_job_key *keys = nt_jobs_keys(engine->jobs), *key;
	int r;

	if (message->body != NT_BODY_WINDOW || !message->window.stacks)
		return 0;
	r = nt_rank_stacks_take(&engine->stacks, message);
	if (r <= 0)
		return r;
	HASH_FIND_STR(keys, message->key, key);
	for (struct nt_job *job = key ? key->job : NULL; job; job = job->next) {
		const struct nt_job_view *view = job->user;

		for (size_t i = 0; view && job->detect && i < view->opens; i++)
			if (view->open[i].firing)
				nt_detect_mark(job->detect, view->open[i].id);
	}
	return 0;
}

/* ---- findings -------------------------------------------------------------------------------- */

/* What stands out on the nodes of the accused; their own incidents are as severe from now on. */
static int join_nodes(struct nt_engine *engine, struct nt_open_incident *open)
{
	int r = nt_node_cause_join(engine->options.fleet, &open->incident, open->arena);

	if (r > 0 && engine->handler.joined)
		engine->handler.joined(engine->handler.data, &open->incident);
	return r < 0 ? r : 0;
}

int nt_engine_take_finding(struct nt_engine *engine, struct nt_job *job,
			   const struct nt_finding *finding)
{
	struct engine_naming naming = {.engine = engine, .job = job};
	const struct nt_incident_names names = {
		.job = job->name && *job->name ? job->name : job->owner->key,
		.namespace = job->namespace,
		.job_key = job->owner->key,
		.attempt = job->attempt,
		.rank = name_rank,
		.node = name_node,
		.data = &naming,
	};
	struct nt_job_view *view = job->user;
	struct nt_open_incident *open = nt_engine_find_open(view, finding->id);
	struct nt_open_incident before;
	struct nt_arena *arena;
	int r;

	if (!open) {
		r = nt_engine_add_open(view, finding->id, &open);
		if (r < 0)
			return r;
	}
	arena = calloc(1, sizeof(*arena));
	if (!arena)
		return -ENOMEM;
	before = *open;
	open->arena = arena;
	open->class = finding->class;
	open->firing = finding->state == NT_INCIDENT_FIRING;
	r = nt_incident_describe(finding, &names, &engine->options.prices, arena, &open->incident);
	if (r == 0)
		r = nt_engine_attach_links(job, &before, open);
	if (r == 0)
		r = attach_stacks(engine, job, before.arena ? &before.incident : NULL, open);
	if (r == 0 && engine->options.fleet && open->firing)
		r = join_nodes(engine, open);
	nt_engine_free_open(&before);
	if (r < 0) {
		nt_engine_remove_open(view, open);
		return r;
	}
	nt_engine_report(engine, &open->incident);
	if (finding->state == NT_INCIDENT_RESOLVED)
		nt_engine_remove_open(view, open);
	return 0;
}

static bool accuses_node(const struct nt_open_incident *open, const char *node)
{
	for (size_t i = 0; i < open->incident.culprits; i++)
		if (strcmp(open->incident.culprit[i].node, node) == 0)
			return true;
	return false;
}

void nt_engine_mark_node(struct nt_engine *engine, const char *node)
{
	for (struct nt_job_key *key = nt_jobs_keys(engine->jobs); key; key = key->hh.next)
		for (struct nt_job *job = key->job; job; job = job->next) {
			const struct nt_job_view *view = job->user;

			for (size_t i = 0; view && job->detect && i < view->opens; i++)
				if (view->open[i].firing && accuses_node(&view->open[i], node))
					nt_detect_mark(job->detect, view->open[i].id);
		}
}
