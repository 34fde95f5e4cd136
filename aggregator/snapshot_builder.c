/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/snapshot_builder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/agents/shortage.h"
#include "engine/links/job_links.h"
#include "proto/arena.h"

/* ---- ranks ----------------------------------------------------------------------------------- */

static int by_series(const void *a, const void *b)
{
	const struct nt_snapshot_op *left = a, *right = b;

	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	return (int)left->op - (int)right->op;
}

static int copy_ops(struct nt_snapshot_job *out, const struct nt_rank_session *session,
		    struct nt_snapshot_rank *rank)
{
	size_t count = HASH_COUNT(session->series), at = 0;
	struct nt_snapshot_op *op = nt_snapshot_job_alloc(out, count, sizeof(*op));

	if (!op)
		return -ENOMEM;
	for (const struct nt_session_series *series = session->series; series;
	     series = series->hh.next)
		op[at++] = (struct nt_snapshot_op){
			.comm = series->key.comm,
			.library = series->library,
			.op = (enum nt_op)series->key.op,
			.comm_size = series->comm_size,
			.comm_rank = series->comm_rank,
			.calls = series->calls,
			.bytes = series->bytes,
		};
	qsort(op, count, sizeof(*op), by_series);
	rank->op = op;
	rank->ops = count;
	return 0;
}

/* Fills in per-step values and the detector's view of the rank. */
static int copy_work(struct nt_snapshot_job *out, const struct nt_job *job,
		     const struct nt_rank_session *session, struct nt_snapshot_rank *rank)
{
	const double steps = session->frame_steps ? session->frame_steps : 1;
	struct nt_detect_rank_view view;
	uint32_t *peers;

	rank->tier = session->tier;
	rank->own_source = session->own_source;
	rank->sampled = session->sampled_permille / 1000.0;
	rank->shed = session->shed;
	rank->level = session->level;
	rank->steps = session->frame_steps;
	rank->own_ns = (double)session->own_ns / steps;
	rank->host_ns = (double)session->host_ns / steps;
	rank->blocked_ns = (double)session->blocked_ns / steps;
	rank->comm_ns = (double)session->comm_ns / steps;
	rank->step_ns = (double)session->step_ns / steps;
	rank->gpu_lag_ns = (double)session->gpu_lag_ns / steps;
	rank->own_observable = session->tier == NT_TIER_T2 || session->tier == NT_TIER_T3;
	if (!job->detect || !nt_detect_rank(job->detect, session->number, &view))
		return 0;
	rank->own_observable = view.own_observable;
	rank->own_peers_ns = view.own_peers_ns;
	rank->host_peers_ns = view.host_peers_ns;
	rank->peer_deviation = view.peer_deviation;
	rank->width = view.width;
	rank->cusum = view.cusum;
	rank->threshold = view.threshold;
	if (!view.peers || !view.peer_count)
		return 0;
	if (view.peer_count > NT_SNAPSHOT_MAX_PEERS)
		view.peer_count = NT_SNAPSHOT_MAX_PEERS;
	peers = nt_snapshot_job_alloc(out, view.peer_count, sizeof(*peers));
	if (!peers)
		return -ENOMEM;
	memcpy(peers, view.peers, view.peer_count * sizeof(*peers));
	rank->peers = peers;
	rank->peer_count = view.peer_count;
	return 0;
}

static int copy_gemms(struct nt_snapshot_job *out, const struct nt_rank_session *session,
		      struct nt_snapshot_rank *rank)
{
	struct nt_gemm_rate *gemms;

	if (!session->gemm_rate)
		return 0;
	gemms = nt_snapshot_job_alloc(out, 1, sizeof(*gemms));
	if (!gemms)
		return -ENOMEM;
	*gemms = *session->gemm_rate;
	rank->gemms = gemms;
	return 0;
}

static int copy_rank(struct nt_snapshot_job *out, const struct nt_job *job,
		     const struct nt_rank_session *session, struct nt_snapshot_rank *rank)
{
	const char **const names[] = {&rank->node,      &rank->namespace, &rank->pod,
				      &rank->container, &rank->gpu,       &rank->process,
				      &rank->replica,   &rank->pod_uid};
	int r;

	*rank = (struct nt_snapshot_rank){
		.rank = session->number,
		.local_rank = session->local_rank,
		.pid = session->pid,
		.rank_known = session->rank_known,
		.observed = session->observed,
		.silent = session->silent,
		.ended = session->ended,
		.finalized = session->finalized,
		.uses_gpu = session->uses_gpu,
		.gpu_state = session->gpu,
		.inside = session->inside.in_call,
		.inside_op = session->inside.op,
		.inside_comm = session->inside.comm,
		.inside_since_ns = session->inside_since_ns,
		.total_steps = session->steps,
		.launches = session->launches,
		.copies = session->copies,
		.copy_bytes = session->copy_bytes,
		.allocs = session->allocs,
		.alloc_bytes = session->alloc_bytes,
		.lost = session->lost,
		.rdma_not_visible = session->links ? session->links->not_visible : 0,
		.link_ends_over_cap = session->links ? session->links->pairs_over_cap +
							       session->links->sockets_over_cap
						     : 0,
		.first_seen_ns = session->first_seen_ns,
		.last_seen_ns = session->last_seen_ns,
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*names[i] = nt_snapshot_job_text(
			out, nt_rank_session_text(session, (enum nt_rank_session_name)i));
		if (!*names[i])
			return -ENOMEM;
	}
	if (session->heap) {
		struct nt_rank_heap *heap = nt_snapshot_job_alloc(out, 1, sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		*heap = *session->heap;
		rank->heap = heap;
	}
	r = copy_work(out, job, session, rank);
	if (r < 0)
		return r;
	r = copy_gemms(out, session, rank);
	if (r < 0)
		return r;
	return copy_ops(out, session, rank);
}

/* ---- links ----------------------------------------------------------------------------------- */

static int join_links(const struct nt_job *job, size_t sessions, struct nt_job_link **ret_link,
		      size_t *ret_count, uint64_t *ret_over_cap)
{
	nt_autofree const struct nt_rank_links **links = NULL;

	links = calloc(sessions + 1, sizeof(const struct nt_rank_links *));
	if (!links)
		return -ENOMEM;
	for (size_t i = 0; i < sessions; i++)
		links[i] = job->session[i]->links;
	return nt_job_links_join(links, sessions, ret_link, ret_count, ret_over_cap);
}

static int copy_links(struct nt_snapshot_job *out, const struct nt_job *job, size_t sessions,
		      const struct nt_snapshot_rank *rank)
{
	nt_autofree struct nt_job_link *joined = NULL;
	struct nt_snapshot_link *link;
	struct nt_job_link *copy;
	size_t count;
	int r = join_links(job, sessions, &joined, &count, &out->links_over_cap);

	if (r < 0)
		return r;
	link = nt_snapshot_job_alloc(out, count, sizeof(*link));
	copy = nt_snapshot_job_alloc(out, count, sizeof(*copy));
	if (!link || !copy)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		copy[i] = joined[i];
		link[i] = (struct nt_snapshot_link){
			.rank = &rank[copy[i].rank],
			.peer = copy[i].has_peer ? &rank[copy[i].peer] : NULL,
			.link = &copy[i],
		};
	}
	out->link = link;
	out->links = count;
	return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static enum nt_job_state job_state(const struct nt_job *job)
{
	const struct nt_job_view *view = nt_engine_view(job);

	if (job->closed || job->ended_ns)
		return NT_JOB_ENDED;
	if (job->owner->quiet_ns >= NT_JOBS_SILENCE_NS)
		return NT_JOB_UNOBSERVED;
	for (size_t i = 0; view && i < view->opens; i++)
		if (view->open[i].firing && (view->open[i].class == NT_CLASS_HANG ||
					     view->open[i].class == NT_CLASS_MISMATCH))
			return NT_JOB_HUNG;
	return NT_JOB_RUNNING;
}

static int copy_incidents(struct nt_snapshot_job *out, const struct nt_job_view *view)
{
	const struct nt_wire_incident **incident;
	size_t count = 0;
	int r;

	if (!view)
		return 0;
	incident = nt_snapshot_job_alloc(out, view->opens, sizeof(const struct nt_wire_incident *));
	if (!incident)
		return -ENOMEM;
	for (size_t i = 0; i < view->opens; i++) {
		struct nt_wire_incident *copy;

		if (!view->open[i].firing)
			continue;
		copy = nt_snapshot_job_alloc(out, 1, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		r = nt_incident_copy(&view->open[i].incident, out->arena, copy);
		if (r < 0)
			return r;
		incident[count++] = copy;
	}
	out->incident = incident;
	out->incidents = count;
	return 0;
}

static int copy_timeline(struct nt_snapshot_job *out, const struct nt_job_view *view)
{
	const struct nt_job_timeline *timeline = view ? view->timeline : NULL;
	const size_t count = timeline ? nt_job_timeline_count(timeline) : 0;
	struct nt_timeline_cell **cell =
		nt_snapshot_job_alloc(out, count, sizeof(struct nt_timeline_cell *));

	if (!cell)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		cell[i] = nt_timeline_cell_ref(nt_job_timeline_at(timeline, i));
	out->timeline = cell;
	out->timeline_cells = count;
	return 0;
}

static int fill_job(struct nt_snapshot_job *out, const struct nt_job *job)
{
	const size_t sessions = job->sessions - job->retired;
	struct nt_snapshot_rank *rank = nt_snapshot_job_alloc(out, sessions, sizeof(*rank));
	const char *name = job->name && *job->name ? job->name : job->owner->key;
	int r;

	out->key = nt_snapshot_job_text(out, job->owner->key);
	out->name = nt_snapshot_job_text(out, name);
	out->namespace = nt_snapshot_job_text(out, job->namespace);
	if (!rank || !out->key || !out->name || !out->namespace)
		return -ENOMEM;
	(void)snprintf(out->id, sizeof(out->id), "%016" PRIx64, job->id);
	out->attempt = job->attempt;
	out->state = job_state(job);
	out->size = job->size;
	out->live = job->live;
	out->nodes = (uint32_t)job->nodes;
	out->step_ns = job->detect ? nt_detect_step_ns(job->detect) : 0;
	out->completeness = job->grid.completeness;
	out->frames = job->grid.frames;
	out->cell_ns = job->grid.length_ns;
	out->since_ns = job->since_ns;
	out->last_seen_ns = job->last_seen_ns;
	out->ended_ns = job->ended_ns;
	for (size_t i = 0; i < sessions; i++) {
		r = copy_rank(out, job, job->session[i], &rank[i]);
		if (r < 0)
			return r;
	}
	out->sampled = 1;
	for (size_t i = 0; i < sessions; i++) {
		if (rank[i].ended)
			continue;
		out->sampled = rank[i].sampled < out->sampled ? rank[i].sampled : out->sampled;
		out->shed |= rank[i].shed;
	}
	out->rank = rank;
	out->ranks = sessions;
	r = copy_links(out, job, sessions, rank);
	if (r < 0)
		return r;
	r = copy_timeline(out, nt_engine_view(job));
	if (r < 0)
		return r;
	return copy_incidents(out, nt_engine_view(job));
}

/* The job's snapshot, the previous one if unchanged. Borrowed from the job's view. */
static int copy_job(struct nt_job *job, struct nt_snapshot_job **ret_out)
{
	struct nt_job_view *view = job->user;
	struct nt_snapshot_job *out;
	int r;

	if (view->snapshot && !job->changed && view->snapshot->state == job_state(job)) {
		*ret_out = view->snapshot;
		return 0;
	}
	out = nt_snapshot_job_new();
	if (!out)
		return -ENOMEM;
	r = fill_job(out, job);
	if (r < 0) {
		nt_snapshot_job_unref(out);
		return r;
	}
	nt_snapshot_job_unref(view->snapshot);
	view->snapshot = out;
	job->changed = false;
	*ret_out = out;
	return 0;
}

/* Running ones first, then the newest. */
static int by_life(const void *a, const void *b)
{
	const struct nt_snapshot_job *left = *(const struct nt_snapshot_job *const *)a;
	const struct nt_snapshot_job *right = *(const struct nt_snapshot_job *const *)b;

	if ((left->state == NT_JOB_ENDED) != (right->state == NT_JOB_ENDED))
		return left->state == NT_JOB_ENDED ? 1 : -1;
	if (left->since_ns != right->since_ns)
		return left->since_ns > right->since_ns ? -1 : 1;
	return strcmp(left->id, right->id);
}

static size_t count_jobs(struct nt_engine *engine)
{
	size_t count = 0;

	for (struct nt_job_key *key = nt_jobs_keys(nt_engine_jobs(engine)); key; key = key->hh.next)
		count += key->jobs;
	return count;
}

static int copy_jobs(struct nt_engine *engine, struct nt_snapshot *snapshot,
		     const struct nt_snapshot_job **list)
{
	int r;

	for (struct nt_job_key *key = nt_jobs_keys(nt_engine_jobs(engine)); key; key = key->hh.next)
		for (struct nt_job *job = key->job; job; job = job->next) {
			struct nt_snapshot_job *out;

			/* No frame of it was judged yet. */
			if (!job->user)
				continue;
			r = copy_job(job, &out);
			if (r < 0)
				return r;
			list[snapshot->jobs++] = nt_snapshot_job_ref(out);
		}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct nt_snapshot_job *left = *(const struct nt_snapshot_job *const *)a;
	const struct nt_snapshot_job *right = *(const struct nt_snapshot_job *const *)b;
	const int order = strcmp(left->id, right->id);

	return order ? order : left->is_summary - right->is_summary;
}

/* Prefers our own snapshot of a job to another aggregator's summary. */
static void drop_twins(struct nt_snapshot *snapshot, const struct nt_snapshot_job **list)
{
	size_t kept = 0;

	qsort(list, snapshot->jobs, sizeof(const struct nt_snapshot_job *), by_id);
	for (size_t i = 0; i < snapshot->jobs; i++) {
		if (kept && list[i]->is_summary && !strcmp(list[kept - 1]->id, list[i]->id))
			nt_snapshot_job_unref((struct nt_snapshot_job *)list[i]);
		else
			list[kept++] = list[i];
	}
	snapshot->jobs = kept;
}

static int copy_all_jobs(const struct nt_snapshot_builder *from, struct nt_snapshot *snapshot)
{
	const struct nt_snapshot_job **list;
	size_t most = from->summaries;
	int r;

	for (size_t i = 0; i < from->engines; i++)
		most += count_jobs(from->engine[i]);
	list = nt_snapshot_alloc(snapshot, most, sizeof(const struct nt_snapshot_job *));
	if (!list)
		return -ENOMEM;
	snapshot->job = list;
	for (size_t i = 0; i < from->engines; i++) {
		r = copy_jobs(from->engine[i], snapshot, list);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < from->summaries; i++)
		list[snapshot->jobs++] =
			nt_snapshot_job_ref((struct nt_snapshot_job *)from->summary[i]);
	if (from->summaries)
		drop_twins(snapshot, list);
	qsort(list, snapshot->jobs, sizeof(const struct nt_snapshot_job *), by_life);
	return 0;
}

/* ---- nodes and numbers ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct nt_snapshot_node *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* Merges the entries of a node with ranks in several shards. */
static void join_nodes(struct nt_snapshot_node *node, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++) {
		struct nt_snapshot_node *last = kept ? &node[kept - 1] : NULL;

		if (!last || strcmp(last->name, node[i].name) != 0) {
			node[kept++] = node[i];
			continue;
		}
		last->ranks += node[i].ranks;
		last->silent = last->silent && node[i].silent;
		if (node[i].limits) {
			last->limit = node[i].limit;
			last->limits = node[i].limits;
		}
		if (node[i].last_seen_ns > last->last_seen_ns)
			last->last_seen_ns = node[i].last_seen_ns;
	}
	*count = kept;
}

/* A node with shortages may have no known rank, and is then in no other list. */
static int copy_shortages(const struct nt_shortages *shortages, struct nt_snapshot *snapshot,
			  struct nt_snapshot_node *node, size_t *count)
{
	for (const struct nt_shortage *from = shortages->node; from; from = from->hh.next) {
		struct nt_shortage_limit *limit;

		if (!nt_shortage_is_fresh(shortages, from))
			continue;
		limit = nt_snapshot_alloc(snapshot, from->limits, sizeof(*limit));
		node[*count] = (struct nt_snapshot_node){
			.name = nt_snapshot_text(snapshot, from->node),
			.silent = from->quiet_ns >= NT_JOBS_SILENCE_NS,
			.last_seen_ns = from->real_ns,
			.limit = limit,
			.limits = from->limits,
		};
		if (!limit || !node[*count].name)
			return -ENOMEM;
		memcpy(limit, from->limit, from->limits * sizeof(*limit));
		(*count)++;
	}
	return 0;
}

/* A node without ranks is known by its vectors alone. */
static int copy_fleet(const struct nt_fleet *fleet, struct nt_snapshot *snapshot,
		      struct nt_snapshot_node *node, size_t *count)
{
	for (const struct nt_fleet_node *from = nt_fleet_nodes(fleet); from; from = from->hh.next) {
		node[*count] = (struct nt_snapshot_node){
			.name = nt_snapshot_text(snapshot, from->name),
			.last_seen_ns = from->real_ns,
			.silent = nt_fleet_silence_ns(fleet, from) >= NT_JOBS_SILENCE_NS,
		};
		if (!node[*count].name)
			return -ENOMEM;
		(*count)++;
	}
	return 0;
}

static int copy_nodes(const struct nt_snapshot_builder *from, struct nt_snapshot *snapshot)
{
	struct nt_snapshot_node *node;
	size_t most = from->shortages ? HASH_COUNT(from->shortages->node) : 0, at = 0;
	int r = 0;

	for (size_t i = 0; i < from->engines; i++)
		most += HASH_COUNT(nt_jobs_nodes(nt_engine_jobs(from->engine[i]))) +
			HASH_COUNT(nt_engine_shortages(from->engine[i])->node);
	if (from->fleet)
		most += HASH_COUNT(nt_fleet_nodes(from->fleet));
	node = nt_snapshot_alloc(snapshot, most, sizeof(*node));
	if (!node)
		return -ENOMEM;
	for (size_t i = 0; i < from->engines; i++)
		for (const struct nt_node_entry *entry =
			     nt_jobs_nodes(nt_engine_jobs(from->engine[i]));
		     entry; entry = entry->hh.next) {
			node[at].name = nt_snapshot_text(snapshot, entry->name);
			if (!node[at].name)
				return -ENOMEM;
			node[at].ranks = entry->live;
			node[at].last_seen_ns = entry->last_seen_ns;
			node[at].silent = entry->quiet_ns >= NT_JOBS_SILENCE_NS;
			at++;
		}
	for (size_t i = 0; i < from->engines; i++) {
		r = copy_shortages(nt_engine_shortages(from->engine[i]), snapshot, node, &at);
		if (r < 0)
			return r;
	}
	if (from->shortages)
		r = copy_shortages(from->shortages, snapshot, node, &at);
	if (r < 0)
		return r;
	if (from->fleet) {
		r = copy_fleet(from->fleet, snapshot, node, &at);
		if (r < 0)
			return r;
	}
	qsort(node, at, sizeof(*node), by_name);
	join_nodes(node, &at);
	snapshot->node = node;
	snapshot->nodes = at;
	return 0;
}

int nt_snapshot_builder_build(const struct nt_snapshot_builder *from,
			      struct nt_snapshot **ret_snapshot)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	int r;

	if (!snapshot)
		return -ENOMEM;
	for (size_t i = 0; i < from->engines; i++) {
		const uint64_t lead_ns = nt_jobs_lead_ns(nt_engine_jobs(from->engine[i]));

		if (lead_ns > snapshot->made_ns)
			snapshot->made_ns = lead_ns;
	}
	r = copy_all_jobs(from, snapshot);
	if (r >= 0)
		r = copy_nodes(from, snapshot);
	if (r < 0) {
		nt_snapshot_release(snapshot);
		return r;
	}
	*ret_snapshot = snapshot;
	return 0;
}
