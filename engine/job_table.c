/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables of the job model: nodes, agents, keys, processes, communicators; and their removal. */
#include "engine/job_impl.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Ensures room for one more element; doubles the capacity. */
int nt_jobs_grow(void *array, size_t count, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 8;
	void **items = array, *grown;

	if (count < *cap)
		return 0;
	grown = reallocarray(*items, more, size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = more;
	return 0;
}

int nt_jobs_new(const struct nt_jobs_limits *limits, nt_job_gone_fn gone, void *data,
		struct nt_jobs **ret_jobs)
{
	struct nt_jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	if (limits)
		jobs->limits = *limits;
	if (!jobs->limits.jobs)
		jobs->limits.jobs = NT_JOBS_MAX_LIVE;
	if (!jobs->limits.ranks)
		jobs->limits.ranks = NT_FRAME_MAX_RANKS;
	if (!jobs->limits.keys)
		jobs->limits.keys = NT_JOBS_MAX_KEYS;
	if (!jobs->limits.nodes)
		jobs->limits.nodes = NT_JOBS_MAX_NODES;
	jobs->gone = gone;
	jobs->gone_data = data;
	*ret_jobs = jobs;
	return 0;
}

/* ---- nodes and sources ----------------------------------------------------------------------- */

/* Adds an unnamed entry at a new index. */
static int append_node(struct nt_jobs *jobs, struct nt_node_entry **ret_node)
{
	struct nt_node_entry *node;
	int r;

	if (jobs->nodes >= jobs->limits.nodes) {
		jobs->counters.refused_nodes++;
		return -ENOBUFS;
	}
	r = nt_jobs_grow(&jobs->node_at, jobs->nodes, &jobs->node_cap,
			 sizeof(struct nt_node_entry *));
	if (r < 0)
		return r;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->index = (uint32_t)jobs->nodes;
	jobs->node_at[jobs->nodes++] = node;
	jobs->free_nodes++;
	*ret_node = node;
	return 0;
}

static int name_node(struct nt_jobs *jobs, struct nt_node_entry *node, const char *name)
{
	node->name = strdup(name);
	if (!node->name)
		return -ENOMEM;
	HASH_ADD_KEYPTR(hh, jobs->node, node->name, strlen(node->name), node);
	if (!nt_table_has(node)) {
		free(nt_take(node->name));
		return -ENOMEM;
	}
	node->last_seen_ns = node->quiet_ns = 0;
	jobs->free_nodes--;
	return 0;
}

int nt_jobs_find_node(struct nt_jobs *jobs, const char *name, struct nt_node_entry **ret_node)
{
	struct nt_node_entry *node;
	int r;

	HASH_FIND_STR(jobs->node, name, node);
	if (node) {
		*ret_node = node;
		return 0;
	}
	for (size_t i = 0; jobs->free_nodes && i < jobs->nodes && !node; i++)
		if (!jobs->node_at[i]->name)
			node = jobs->node_at[i];
	if (!node) {
		r = append_node(jobs, &node);
		if (r < 0)
			return r;
	}
	r = name_node(jobs, node, name);
	if (r < 0)
		return r;
	*ret_node = node;
	return 0;
}

int nt_jobs_append_node(struct nt_jobs *jobs, const char *name, struct nt_node_entry **ret_node)
{
	struct nt_node_entry *node;
	int r;

	HASH_FIND_STR(jobs->node, name, node);
	if (node)
		return -EEXIST;
	r = append_node(jobs, &node);
	if (r >= 0 && *name)
		r = name_node(jobs, node, name);
	if (r < 0)
		return r;
	*ret_node = node;
	return 0;
}

int nt_jobs_find_source(struct nt_jobs *jobs, struct nt_job_key *key, const char *agent,
			struct nt_source **ret_source)
{
	struct nt_source *source;

	HASH_FIND_STR(key->source, agent, source);
	if (!source) {
		if (HASH_COUNT(key->source) >= jobs->limits.nodes) {
			jobs->counters.refused_nodes++;
			return -ENOBUFS;
		}
		source = calloc(1, sizeof(*source));
		if (!source)
			return -ENOMEM;
		source->agent = strdup(agent);
		if (!source->agent) {
			free(source);
			return -ENOMEM;
		}
		HASH_ADD_KEYPTR(hh, key->source, source->agent, strlen(source->agent), source);
		if (!nt_table_has(source)) {
			free(source->agent);
			free(source);
			return -ENOMEM;
		}
	}
	*ret_source = source;
	return 0;
}

void nt_rank_session_move(struct nt_rank_session *session, struct nt_source *source)
{
	if (session->source == source)
		return;
	if (!session->ended && !session->retired) {
		if (session->source)
			session->source->sessions--;
		source->sessions++;
	}
	session->source = source;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void free_job(struct nt_jobs *jobs, struct nt_job *job)
{
	struct nt_job_node *node, *next_node;

	if (jobs->gone)
		jobs->gone(jobs->gone_data, job);
	for (size_t i = 0; i < job->sessions; i++)
		nt_rank_session_free(job->session[i]);
	free(job->session);
	HASH_ITER(hh, job->node, node, next_node)
	{
		HASH_DEL(job->node, node);
		free(node);
	}
	free(job->node_at);
	free(job->name);
	free(job->namespace);
	free(job);
}

static void free_key(struct nt_jobs *jobs, struct nt_job_key *key)
{
	struct nt_process_index *process, *next_process;
	struct nt_shared_comm_index *shared, *next;
	struct nt_source *source, *next_source;

	while (key->job) {
		struct nt_job *job = key->job;

		key->job = job->next;
		free_job(jobs, job);
	}
	for (size_t i = 0; i < key->admissions; i++)
		nt_rank_session_free(key->admission[i]);
	free(key->admission);
	HASH_ITER(hh, key->process, process, next_process)
	{
		HASH_DEL(key->process, process);
		free(process);
	}
	HASH_ITER(hh, key->shared_comm, shared, next)
	{
		HASH_DEL(key->shared_comm, shared);
		free(shared);
	}
	HASH_ITER(hh, key->source, source, next_source)
	{
		HASH_DEL(key->source, source);
		free(source->agent);
		free(source);
	}
	free(key->key);
	free(key);
}

void nt_jobs_free(struct nt_jobs *jobs)
{
	struct nt_job_key *key, *next_key;

	if (!jobs)
		return;
	HASH_ITER(hh, jobs->key, key, next_key)
	{
		HASH_DEL(jobs->key, key);
		free_key(jobs, key);
	}
	HASH_CLEAR(hh, jobs->node);
	for (size_t i = 0; i < jobs->nodes; i++) {
		free(jobs->node_at[i]->name);
		free(jobs->node_at[i]);
	}
	free(jobs->node_at);
	free(jobs);
}

int nt_jobs_find_key(struct nt_jobs *jobs, const char *text, struct nt_job_key **ret_key)
{
	struct nt_job_key *key;

	HASH_FIND_STR(jobs->key, text, key);
	if (!key) {
		if (HASH_COUNT(jobs->key) >= jobs->limits.keys) {
			jobs->counters.refused_keys++;
			return -ENOBUFS;
		}
		key = calloc(1, sizeof(*key));
		if (!key)
			return -ENOMEM;
		key->key = strdup(text);
		if (!key->key) {
			free(key);
			return -ENOMEM;
		}
		HASH_ADD_KEYPTR(hh, jobs->key, key->key, strlen(key->key), key);
		if (!nt_table_has(key)) {
			free(key->key);
			free(key);
			return -ENOMEM;
		}
	}
	*ret_key = key;
	return 0;
}

/* ---- processes and communicators ------------------------------------------------------------- */

int nt_jobs_find_process(struct nt_jobs *jobs, struct nt_job_key *key,
			 const struct nt_process_id *id, struct nt_process_index **ret_process)
{
	struct nt_process_index *process;

	HASH_FIND(hh, key->process, id, sizeof(*id), process);
	if (!process) {
		if (HASH_COUNT(key->process) >= jobs->limits.ranks) {
			jobs->counters.refused_ranks++;
			return -ENOBUFS;
		}
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->id = *id;
		HASH_ADD(hh, key->process, id, sizeof(process->id), process);
		if (!nt_table_has(process)) {
			free(process);
			return -ENOMEM;
		}
	}
	*ret_process = process;
	return 0;
}

void nt_jobs_forget_process(struct nt_job_key *key, struct nt_process_index *process)
{
	HASH_DEL(key->process, process);
	free(process);
}

void nt_jobs_forget_session(struct nt_job_key *key, struct nt_rank_session *session)
{
	const struct nt_process_id id = {
		.node = session->node,
		.pid = session->pid,
		.start_boot_ns = session->start_boot_ns,
	};
	struct nt_process_index *process;
	struct nt_rank_session **link;

	HASH_FIND(hh, key->process, &id, sizeof(id), process);
	if (process) {
		for (link = &process->session; *link; link = &(*link)->next)
			if (*link == session) {
				*link = session->next;
				break;
			}
		if (!process->session)
			nt_jobs_forget_process(key, process);
	}
	if (!session->ended && !session->retired && session->source)
		session->source->sessions--;
	key->sessions--;
}

static int index_comm(struct nt_jobs *jobs, struct nt_job *job, const struct nt_shared_comm *shared)
{
	struct nt_job_key *key = job->owner;
	struct nt_shared_comm_index *index;

	HASH_FIND(hh, key->shared_comm, &shared->comm, sizeof(shared->comm), index);
	if (index)
		return 0;
	if (HASH_COUNT(key->shared_comm) >= NT_JOBS_MAX_COMMS) {
		jobs->counters.session.refused_comms++;
		return 0;
	}
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	index->comm = shared->comm;
	index->job = job;
	HASH_ADD(hh, key->shared_comm, comm, sizeof(index->comm), index);
	if (!nt_table_has(index)) {
		free(index);
		return -ENOMEM;
	}
	if (shared->size == job->size)
		job->world_comms++;
	return 0;
}

int nt_jobs_index_comms(struct nt_jobs *jobs, struct nt_rank_session *session, size_t from)
{
	int r;

	for (size_t i = from; i < session->shared_comms; i++) {
		r = index_comm(jobs, session->job, &session->shared_comm[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- removal --------------------------------------------------------------------------------- */

static void remove_job(struct nt_jobs *jobs, struct nt_job_key *key, struct nt_job *job)
{
	struct nt_shared_comm_index *shared, *next;
	struct nt_job **link;

	HASH_ITER(hh, key->shared_comm, shared, next)
	{
		if (shared->job != job)
			continue;
		HASH_DEL(key->shared_comm, shared);
		free(shared);
	}
	for (size_t i = 0; i < job->sessions; i++)
		nt_jobs_forget_session(key, job->session[i]);
	for (link = &key->job; *link != job; link = &(*link)->next)
		;
	*link = job->next;
	key->jobs--;
	if (!job->closed)
		jobs->live--;
	jobs->counters.forgotten_jobs++;
	free_job(jobs, job);
}

void nt_jobs_close(struct nt_jobs *jobs, struct nt_job *job)
{
	if (job->closed)
		return;
	job->closed = true;
	job->changed = true;
	jobs->live--;
	for (size_t i = 0; i < job->sessions; i++)
		(void)nt_rank_session_drop(job->session[i], UINT64_MAX);
}

void nt_jobs_wait(struct nt_jobs *jobs, uint64_t waited_ns)
{
	for (struct nt_job_key *key = jobs->key; key; key = key->hh.next)
		key->quiet_ns += waited_ns;
	for (size_t i = 0; i < jobs->nodes; i++)
		jobs->node_at[i]->quiet_ns += waited_ns;
}

/* Age of the job's last data, by the time of this key. */
static uint64_t age_of(const struct nt_job_key *key, const struct nt_job *job)
{
	const uint64_t last_ns = job->ended_ns ? job->ended_ns : job->last_seen_ns;
	const uint64_t now_ns = key->lead_ns + key->quiet_ns;

	return last_ns && last_ns < now_ns ? now_ns - last_ns : 0;
}

/* Node names change without end; an index is free once no rank refers to it. */
static void sweep_nodes(struct nt_jobs *jobs)
{
	for (size_t i = 0; i < jobs->nodes; i++)
		jobs->node_at[i]->is_used = jobs->node_at[i]->quiet_ns < NT_JOBS_FORGET_NS;
	for (const struct nt_job_key *key = jobs->key; key; key = key->hh.next) {
		for (size_t i = 0; i < key->admissions; i++)
			jobs->node_at[key->admission[i]->node]->is_used = true;
		for (const struct nt_job *job = key->job; job; job = job->next)
			for (size_t i = 0; i < job->nodes; i++)
				jobs->node_at[job->node_at[i]->node]->is_used = true;
	}
	for (size_t i = 0; i < jobs->nodes; i++) {
		struct nt_node_entry *node = jobs->node_at[i];

		if (node->is_used || !node->name)
			continue;
		assert(jobs->node); /* holds every node with a name */
		HASH_DEL(jobs->node, node);
		free(nt_take(node->name));
		jobs->free_nodes++;
	}
}

void nt_jobs_sweep(struct nt_jobs *jobs)
{
	struct nt_job_key *key, *next_key;
	size_t ended = 0;

	/* Keys are in order of first appearance, so the oldest are removed first. */
	HASH_ITER(hh, jobs->key, key, next_key)
	{
		for (const struct nt_job *job = key->job; job; job = job->next)
			ended += job->closed;
	}
	HASH_ITER(hh, jobs->key, key, next_key)
	{
		struct nt_job *job, *next_job;

		for (job = key->job; job; job = next_job) {
			next_job = job->next;
			if (age_of(key, job) <= NT_JOBS_FORGET_NS &&
			    !(job->closed && ended > NT_JOBS_MAX_ENDED))
				continue;
			ended -= job->closed;
			remove_job(jobs, key, job);
		}
		if (key->job || key->admissions || key->quiet_ns < NT_JOBS_FORGET_NS)
			continue;
		HASH_DEL(jobs->key, key);
		free_key(jobs, key);
	}
	sweep_nodes(jobs);
}

/* ---- views ----------------------------------------------------------------------------------- */

struct nt_job_key *nt_jobs_keys(struct nt_jobs *jobs)
{
	return jobs->key;
}

static void count_live(struct nt_jobs *jobs, const struct nt_rank_session *session)
{
	if (!session->ended && !session->retired)
		jobs->node_at[session->node]->live++;
}

struct nt_node_entry *nt_jobs_nodes(struct nt_jobs *jobs)
{
	for (size_t i = 0; i < jobs->nodes; i++)
		jobs->node_at[i]->live = 0;
	for (const struct nt_job_key *key = jobs->key; key; key = key->hh.next) {
		for (size_t i = 0; i < key->admissions; i++)
			count_live(jobs, key->admission[i]);
		for (const struct nt_job *job = key->job; job; job = job->next)
			for (size_t i = 0; i < job->sessions; i++)
				count_live(jobs, job->session[i]);
	}
	return jobs->node;
}

size_t nt_jobs_max_nodes(const struct nt_jobs *jobs)
{
	return jobs->limits.nodes;
}

const struct nt_node_entry *nt_jobs_node(const struct nt_jobs *jobs, uint32_t index)
{
	return jobs->node_at[index];
}

const struct nt_jobs_counters *nt_jobs_counters(const struct nt_jobs *jobs)
{
	return &jobs->counters;
}

uint64_t nt_jobs_lead_ns(const struct nt_jobs *jobs)
{
	return jobs->lead_ns;
}

static void least_waiting(const struct nt_rank_session *session, uint64_t *least)
{
	if (session->waitings && session->waiting[0].end_ns < *least)
		*least = session->waiting[0].end_ns;
}

uint64_t nt_jobs_waiting_ns(const struct nt_jobs *jobs)
{
	uint64_t least = UINT64_MAX;

	for (const struct nt_job_key *key = jobs->key; key; key = key->hh.next) {
		for (size_t i = 0; i < key->admissions; i++)
			least_waiting(key->admission[i], &least);
		for (const struct nt_job *job = key->job; job; job = job->next)
			for (size_t i = 0; i < job->sessions; i++)
				least_waiting(job->session[i], &least);
	}
	return least;
}
