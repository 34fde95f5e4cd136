/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"

/* Clocks of processes and windows are compared with this much slack. */
#define CLOCK_SLACK_NS 1000000000ULL
/* So long after its first frame a job is given time for its other agents to be heard of. */
#define YOUNG_NS (30ULL * 1000000000)

struct nt_jobs {
	struct nt_jobs_limits limits;
	struct nt_jobs_counters counters;
	struct nt_job_key *key;
	struct nt_node_entry *node; /* hash by name */
	struct nt_node_entry **node_at;
	size_t nodes, node_cap;
	uint32_t live; /* jobs */
	uint64_t lead_ns;
	nt_job_gone_fn gone;
	void *gone_data;
};

/* Room for one more in a doubling array. */
static int grow(void *array, size_t count, size_t *cap, size_t size)
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

/* ---- nodes and sources -------------------------------------------------------------------------- */

static int find_node(struct nt_jobs *jobs, const char *name, struct nt_node_entry **ret_node)
{
	struct nt_node_entry *node;
	int r;

	HASH_FIND_STR(jobs->node, name, node);
	if (node) {
		*ret_node = node;
		return 0;
	}
	if (jobs->nodes >= jobs->limits.nodes) {
		jobs->counters.refused_nodes++;
		return -ENOBUFS;
	}
	r = grow(&jobs->node_at, jobs->nodes, &jobs->node_cap, sizeof(struct nt_node_entry *));
	if (r < 0)
		return r;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->name = strdup(name);
	if (!node->name) {
		free(node);
		return -ENOMEM;
	}
	node->index = (uint32_t)jobs->nodes;
	jobs->node_at[jobs->nodes++] = node;
	HASH_ADD_KEYPTR(hh, jobs->node, node->name, strlen(node->name), node);
	*ret_node = node;
	return 0;
}

static int find_source(struct nt_jobs *jobs, struct nt_job_key *key, const char *agent,
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
	}
	*ret_source = source;
	return 0;
}

static void move_source(struct nt_member *member, struct nt_source *source)
{
	if (member->source == source)
		return;
	if (!member->ended && !member->retired) {
		if (member->source)
			member->source->members--;
		source->members++;
	}
	member->source = source;
}

/* ---- keys --------------------------------------------------------------------------------------- */

static void free_job(struct nt_jobs *jobs, struct nt_job *job)
{
	struct nt_job_node *node, *next_node;

	if (jobs->gone)
		jobs->gone(jobs->gone_data, job);
	for (size_t i = 0; i < job->members; i++)
		nt_member_free(job->member[i]);
	free(job->member);
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
	struct nt_tie_index *tie, *next_tie;
	struct nt_source *source, *next_source;

	while (key->job) {
		struct nt_job *job = key->job;

		key->job = job->next;
		free_job(jobs, job);
	}
	for (size_t i = 0; i < key->lobbies; i++)
		nt_member_free(key->lobby[i]);
	free(key->lobby);
	HASH_ITER(hh, key->process, process, next_process)
	{
		HASH_DEL(key->process, process);
		free(process);
	}
	HASH_ITER(hh, key->tie, tie, next_tie)
	{
		HASH_DEL(key->tie, tie);
		free(tie);
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

static int find_key(struct nt_jobs *jobs, const char *text, struct nt_job_key **ret_key)
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
	}
	*ret_key = key;
	return 0;
}

/* ---- members ------------------------------------------------------------------------------------ */

/*
 * A process usually is one rank. Where it is several, the rank tells them apart; where its rank was
 * not known at first, the member stays the same when it becomes known.
 */
static struct nt_member *find_member(const struct nt_process_index *process,
				     const struct nt_rank_id *id)
{
	struct nt_member *member;

	for (member = process->member; member; member = member->next)
		if (member->rank == id->rank && member->rank_known == id->rank_known)
			return member;
	member = process->member;
	if (member && !member->next && (!member->rank_known || !id->rank_known))
		return member;
	return NULL;
}

static int add_member(struct nt_jobs *jobs, struct nt_job_key *key,
		      struct nt_process_index *process, const struct nt_message *message,
		      struct nt_source *source, struct nt_member **ret_member)
{
	nt_auto(nt_member) struct nt_member *member = NULL;
	int r;

	if (key->members >= jobs->limits.ranks) {
		jobs->counters.refused_ranks++;
		return -ENOBUFS;
	}
	r = grow(&key->lobby, key->lobbies, &key->lobby_cap, sizeof(struct nt_member *));
	if (r < 0)
		return r;
	r = nt_member_new(message, &member);
	if (r < 0)
		return r;
	member->node = process->key.node;
	member->next = process->member;
	process->member = member;
	move_source(member, source);
	key->members++;
	key->lobby[key->lobbies++] = member;
	*ret_member = nt_take(member);
	return 0;
}

static int find_process(struct nt_jobs *jobs, struct nt_job_key *key, const struct nt_rank_id *id,
			uint64_t end_ns, struct nt_process_index **ret_process)
{
	struct nt_process_index find, *process;
	struct nt_node_entry *node;
	int r;

	r = find_node(jobs, id->node, &node);
	if (r < 0)
		return r;
	if (end_ns > node->last_seen_ns)
		node->last_seen_ns = end_ns;

	memset(&find.key, 0, sizeof(find.key));
	find.key.node = node->index;
	find.key.pid = id->pid;
	find.key.start_boot_ns = id->start_boot_ns;
	HASH_FIND(hh, key->process, &find.key, sizeof(find.key), process);
	if (!process) {
		if (HASH_COUNT(key->process) >= jobs->limits.ranks) {
			jobs->counters.refused_ranks++;
			return -ENOBUFS;
		}
		process = calloc(1, sizeof(*process));
		if (!process)
			return -ENOMEM;
		process->key = find.key;
		HASH_ADD(hh, key->process, key, sizeof(process->key), process);
	}
	*ret_process = process;
	return 0;
}

static void forget_member(struct nt_job_key *key, struct nt_member *member)
{
	struct nt_process_index find, *process;
	struct nt_member **link;

	memset(&find.key, 0, sizeof(find.key));
	find.key.node = member->node;
	find.key.pid = member->pid;
	find.key.start_boot_ns = member->start_boot_ns;
	HASH_FIND(hh, key->process, &find.key, sizeof(find.key), process);
	if (process) {
		for (link = &process->member; *link; link = &(*link)->next)
			if (*link == member) {
				*link = member->next;
				break;
			}
		if (!process->member) {
			HASH_DEL(key->process, process);
			free(process);
		}
	}
	if (!member->ended && !member->retired && member->source)
		member->source->members--;
	key->members--;
}

static int index_tie(struct nt_jobs *jobs, struct nt_job *job, const struct nt_tie *tie)
{
	struct nt_job_key *key = job->owner;
	struct nt_tie_index *index;

	HASH_FIND(hh, key->tie, &tie->comm, sizeof(tie->comm), index);
	if (index)
		return 0;
	if (HASH_COUNT(key->tie) >= NT_JOBS_MAX_COMMS) {
		jobs->counters.member.refused_comms++;
		return 0;
	}
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	index->comm = tie->comm;
	index->job = job;
	HASH_ADD(hh, key->tie, comm, sizeof(index->comm), index);
	if (tie->size == job->size)
		job->world_ties++;
	return 0;
}

static int index_ties(struct nt_jobs *jobs, struct nt_member *member, size_t from)
{
	int r;

	for (size_t i = from; i < member->ties; i++) {
		r = index_tie(jobs, member->job, &member->tie[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int put_window(struct nt_jobs *jobs, struct nt_job_key *key, struct nt_source *source,
		      struct nt_message **message, bool again)
{
	const struct nt_window *window = &(*message)->window;
	const uint64_t start_ns = nt_message_real_ns(*message, window->start_boot_ns);
	const uint64_t end_ns = nt_message_real_ns(*message, window->end_boot_ns);
	struct nt_process_index *process;
	struct nt_member *member;
	size_t ties;
	int r;

	r = find_process(jobs, key, &window->rank, end_ns, &process);
	if (r < 0)
		return r;
	member = find_member(process, &window->rank);
	if (!member) {
		r = add_member(jobs, key, process, *message, source, &member);
		if (r < 0)
			return r;
	}
	move_source(member, source);
	if (!again) {
		ties = member->ties;
		r = nt_member_count(member, *message, end_ns, &jobs->counters.member);
		if (r < 0)
			return r;
		if (member->job)
			r = index_ties(jobs, member, ties);
		if (r < 0)
			return r;
		jobs->counters.windows++;
	}
	if (member->ended)
		return 0;
	if (member->job && end_ns < member->job->grid.start_ns) {
		if (again)
			return 0;
		jobs->counters.member.late_windows++;
		/* Too late to be judged, but an end is an end. */
		if (window->ended)
			nt_jobs_end_member(jobs, member, end_ns, window->finalized);
		return 0;
	}
	r = nt_member_queue(member, *message, start_ns, end_ns, &jobs->counters.member);
	if (r < 0)
		return r;
	*message = NULL;
	return 0;
}

int nt_jobs_put(struct nt_jobs *jobs, struct nt_message *message, bool again,
		struct nt_job_key **ret_key)
{
	nt_auto(nt_message) struct nt_message *owned = message;
	struct nt_source *source;
	struct nt_job_key *key;
	uint64_t watermark_ns;
	int r;

	*ret_key = NULL;
	r = find_key(jobs, message->key, &key);
	if (r >= 0)
		r = find_source(jobs, key, message->agent, &source);
	if (r < 0)
		return r == -ENOBUFS ? 0 : r;

	watermark_ns = nt_message_real_ns(message, message->watermark_boot_ns);
	if (message->body == NT_BODY_WINDOW) {
		r = put_window(jobs, key, source, &owned, again);
		if (r < 0 && r != -ENOBUFS)
			return r;
	}
	/* After the window, which the watermark vouches for. */
	if (watermark_ns > source->watermark_ns)
		source->watermark_ns = watermark_ns;
	if (watermark_ns > key->lead_ns)
		key->lead_ns = watermark_ns;
	if (watermark_ns > jobs->lead_ns)
		jobs->lead_ns = watermark_ns;
	*ret_key = key;
	return 0;
}

/* ---- the lobby ---------------------------------------------------------------------------------- */

/* A young job of which ranks are missing may have agents that were not heard of yet. */
static bool expects_more(const struct nt_job_key *key)
{
	size_t size = 0;

	for (const struct nt_job *job = key->job; job; job = job->next) {
		if (job->ended_ns)
			continue;
		if (job->members - job->retired + key->lobbies < job->size &&
		    key->lead_ns < job->since_ns + YOUNG_NS)
			return true;
		size = SIZE_MAX;
	}
	for (size_t i = 0; i < key->lobbies && size != SIZE_MAX; i++)
		if (key->lobby[i]->size > size)
			size = key->lobby[i]->size;
	return size != SIZE_MAX && size > key->lobbies;
}

uint64_t nt_jobs_closable_ns(const struct nt_job_key *key)
{
	const uint64_t lead = key->lead_ns;
	uint64_t bound = lead > NT_JOBS_LATENESS_NS ? lead - NT_JOBS_LATENESS_NS : 0;
	uint64_t least = lead;

	if (expects_more(key))
		return bound;
	for (const struct nt_source *source = key->source; source; source = source->hh.next) {
		if (!source->members || source->watermark_ns + NT_JOBS_SILENCE_NS < lead)
			continue;
		if (source->watermark_ns < least)
			least = source->watermark_ns;
	}
	return least > bound ? least : bound;
}

/* When what is needed to place the member will have happened. */
static uint64_t member_due_ns(const struct nt_member *member)
{
	uint64_t due;

	if (!member->waitings)
		return UINT64_MAX;
	due = member->waiting[0].end_ns + NT_JOBS_LOBBY_NS;
	for (size_t i = 0; i < member->waitings && member->waiting[i].end_ns < due; i++) {
		const struct nt_window *window = &member->waiting[i].message->window;

		if (window->ended || window->rank.size == 1)
			return member->waiting[i].end_ns;
		for (size_t j = 0; j < window->comms; j++)
			if (!window->comm[j].id_is_local && window->comm[j].size > 1)
				return member->waiting[i].end_ns;
	}
	return due;
}

uint64_t nt_jobs_lobby_ns(const struct nt_job_key *key)
{
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < key->lobbies; i++) {
		uint64_t one = member_due_ns(key->lobby[i]);

		if (one < due)
			due = one;
	}
	return due;
}

static struct nt_member *rank_holder(const struct nt_job *job, uint32_t number)
{
	size_t low = 0, high = job->members - job->retired;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (job->member[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < job->members - job->retired && job->member[low]->number == number)
		return job->member[low];
	return NULL;
}

/* The old process was gone before the new one began. */
static bool gone_before(const struct nt_member *old, const struct nt_member *new)
{
	uint64_t seen = old->ended ? old->ended_ns : old->last_seen_ns;

	return seen <= new->start_ns + CLOCK_SLACK_NS &&seen < new->first_seen_ns;
}

static bool has_world_tie(const struct nt_member *member)
{
	for (size_t i = 0; i < member->ties; i++)
		if (member->tie[i].size == member->size)
			return true;
	return false;
}

/* The job with a communicator of the member. */
static struct nt_job *tied_job(const struct nt_job_key *key, const struct nt_member *member)
{
	struct nt_tie_index *index;
	struct nt_job *first = NULL;

	for (size_t i = 0; i < member->ties; i++) {
		HASH_FIND(hh, key->tie, &member->tie[i].comm, sizeof(uint64_t), index);
		if (!index || index->job->closed)
			continue;
		if (index->job->ended_ns && index->job->ended_ns <= member->start_ns)
			continue;
		if (!first || index->job->hash < first->hash)
			first = index->job;
	}
	return first;
}

enum fit {
	FITS,
	FITS_NOT, /* another job of the same key */
	FOLLOWS, /* the member belongs to a later attempt of the job */
};

static enum fit job_fits(const struct nt_job *job, const struct nt_member *member)
{
	const struct nt_member *holder;

	if (job->closed || (job->ended_ns && job->ended_ns < member->first_seen_ns))
		return FOLLOWS;
	holder = member->rank_known ? rank_holder(job, member->rank) : NULL;
	if (holder)
		return gone_before(holder, member) ? FOLLOWS : FITS_NOT;
	if (job->ended_ns)
		return FOLLOWS;
	if (has_world_tie(member) && job->world_ties)
		return FITS_NOT;
	return FITS;
}

static int add_job(struct nt_jobs *jobs, struct nt_job_key *key, const struct nt_job *before,
		   const struct nt_member *member, struct nt_job **ret_job)
{
	struct nt_job *job, **link;

	if (jobs->live >= jobs->limits.jobs || key->jobs >= NT_JOBS_MAX_SPLITS) {
		jobs->counters.refused_jobs++;
		return -ENOBUFS;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->owner = key;
	job->split = before ? before->split : key->splits++;
	job->attempt = before ? before->attempt + 1 : 1;
	if (job->attempt <= member->attempt_hint && member->attempt_hint < UINT32_MAX)
		job->attempt = member->attempt_hint + 1;
	job->hash = nt_hash_text(NT_HASH_SEED, key->key);
	if (job->split)
		job->hash = nt_hash_u64(job->hash, job->split);
	job->id = nt_hash_mix(nt_hash_u64(job->hash, job->attempt));
	job->hash = nt_hash_mix(job->hash);
	job->size = member->size;
	job->since_ns = member->waiting[0].end_ns;
	for (link = &key->job; *link; link = &(*link)->next)
		;
	*link = job;
	key->jobs++;
	jobs->live++;
	jobs->counters.jobs++;
	if (before)
		jobs->counters.attempts++;
	else if (job->split)
		jobs->counters.splits++;
	*ret_job = job;
	return 0;
}

/* The job that the member belongs to; a new one where none fits. */
static int choose_job(struct nt_jobs *jobs, struct nt_job_key *key, const struct nt_member *member,
		      struct nt_job **ret_job)
{
	const struct nt_job *before = NULL;
	struct nt_job *job = tied_job(key, member);

	if (job) {
		*ret_job = job;
		return 0;
	}
	for (job = key->job; job; job = job->next) {
		switch (job_fits(job, member)) {
		case FITS:
			*ret_job = job;
			return 0;
		case FOLLOWS:
			/* Of several that ended, the one that ended last. */
			before = job;
			break;
		case FITS_NOT:
			if (before && before->split == job->split)
				before = NULL;
			break;
		}
	}
	return add_job(jobs, key, before, member, ret_job);
}

static int by_number(const void *a, const void *b)
{
	const struct nt_member *left = *(struct nt_member *const *)a;
	const struct nt_member *right = *(struct nt_member *const *)b;

	if (left->retired != right->retired)
		return left->retired ? 1 : -1;
	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	return 0;
}

static void sort_members(struct nt_job *job)
{
	qsort(job->member, job->members, sizeof(struct nt_member *), by_number);
}

static int find_job_node(struct nt_job *job, uint32_t node, uint32_t *ret_index)
{
	struct nt_job_node *entry;
	int r;

	HASH_FIND(hh, job->node, &node, sizeof(node), entry);
	if (!entry) {
		r = grow(&job->node_at, job->nodes, &job->node_cap, sizeof(struct nt_job_node *));
		if (r < 0)
			return r;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->node = node;
		entry->index = (uint32_t)job->nodes;
		job->node_at[job->nodes++] = entry;
		HASH_ADD(hh, job->node, node, sizeof(entry->node), entry);
	}
	*ret_index = entry->index;
	return 0;
}

static void retire(struct nt_job *job, struct nt_member *member)
{
	if (!member->ended) {
		member->source->members--;
		job->live--;
	}
	member->retired = true;
	job->retired++;
	(void)nt_member_drop(member, UINT64_MAX);
}

static void number_member(struct nt_jobs *jobs, struct nt_job *job, struct nt_member *member)
{
	struct nt_member *holder = NULL;

	if (member->rank_known && member->rank < NT_JOB_FIRST_UNKNOWN)
		holder = rank_holder(job, member->rank);
	if (holder == member)
		return;
	if (holder && gone_before(holder, member)) {
		retire(job, holder);
		jobs->counters.replaced_ranks++;
		holder = NULL;
	}
	if (holder)
		jobs->counters.conflicting_ranks++;
	if (!member->rank_known || member->rank >= NT_JOB_FIRST_UNKNOWN || holder) {
		/* Never accused, and never taken for another. */
		member->rank_known = false;
		if (member->number < NT_JOB_FIRST_UNKNOWN)
			member->number = NT_JOB_FIRST_UNKNOWN + job->unknowns++;
	} else {
		member->number = member->rank;
	}
}

static int rename_job(char **name, const char *given)
{
	char *copy;

	if (!*given || (*name && **name))
		return 0;
	copy = strdup(given);
	if (!copy)
		return -ENOMEM;
	free(*name);
	*name = copy;
	return 0;
}

static int describe_job(struct nt_job *job, const struct nt_member *member)
{
	int r = rename_job(&job->name, member->job_name ? member->job_name : "");

	if (r < 0)
		return r;
	r = rename_job(&job->namespace, nt_member_text(member, NT_MEMBER_NAMESPACE));
	if (r < 0)
		return r;
	/* What a process claims is believed as far as a frame can hold it. */
	if (member->size > job->size)
		job->size = member->size < NT_FRAME_MAX_RANKS ? member->size : NT_FRAME_MAX_RANKS;
	return 0;
}

static int join_job(struct nt_jobs *jobs, struct nt_job *job, struct nt_member *member)
{
	int r;

	r = grow(&job->member, job->members, &job->member_cap, sizeof(struct nt_member *));
	if (r < 0)
		return r;
	r = find_job_node(job, member->node, &member->job_node);
	if (r < 0)
		return r;
	r = describe_job(job, member);
	if (r < 0)
		return r;
	number_member(jobs, job, member);
	member->job = job;
	job->member[job->members++] = member;
	job->live++;
	job->ended_ns = 0;
	job->changed = true;
	sort_members(job);
	return index_ties(jobs, member, 0);
}

int nt_jobs_describe(struct nt_jobs *jobs, struct nt_member *member)
{
	int r = describe_job(member->job, member);

	if (r < 0)
		return r;
	if (member->rank_known && member->number != member->rank) {
		number_member(jobs, member->job, member);
		sort_members(member->job);
	}
	return 0;
}

/* By time, and then by what cannot be equal: the order in which they came leaves no trace. */
static bool due_before(const struct nt_jobs *jobs, const struct nt_member *a,
		       const struct nt_member *b)
{
	uint64_t due_a = member_due_ns(a), due_b = member_due_ns(b);
	int order;

	if (due_a != due_b)
		return due_a < due_b;
	order = strcmp(jobs->node_at[a->node]->name, jobs->node_at[b->node]->name);
	if (order)
		return order < 0;
	if (a->pid != b->pid)
		return a->pid < b->pid;
	if (a->start_boot_ns != b->start_boot_ns)
		return a->start_boot_ns < b->start_boot_ns;
	return a->rank < b->rank;
}

int nt_jobs_admit(struct nt_jobs *jobs, struct nt_job_key *key, uint64_t now_ns)
{
	for (;;) {
		struct nt_member *member = NULL;
		struct nt_job *job;
		size_t at = 0;
		int r;

		for (size_t i = 0; i < key->lobbies; i++) {
			if (member_due_ns(key->lobby[i]) > now_ns)
				continue;
			if (!member || due_before(jobs, key->lobby[i], member)) {
				member = key->lobby[i];
				at = i;
			}
		}
		if (!member)
			return 0;
		key->lobby[at] = key->lobby[--key->lobbies];

		r = choose_job(jobs, key, member, &job);
		if (r >= 0)
			r = join_job(jobs, job, member);
		if (r < 0) {
			forget_member(key, member);
			nt_member_free(member);
			if (r != -ENOBUFS)
				return r;
			continue;
		}
		if (!job->grid.frames && !job->grid.start_ns)
			job->grid.start_ns = member->waiting[0].end_ns;
		jobs->counters.early_windows += nt_member_drop(member, job->grid.start_ns);
	}
}

/* ---- the end ------------------------------------------------------------------------------------ */

void nt_jobs_end_member(struct nt_jobs *jobs, struct nt_member *member, uint64_t ended_ns,
			bool finalized)
{
	struct nt_job *job = member->job;

	(void)jobs;
	if (member->ended || member->retired)
		return;
	member->ended = true;
	member->ended_ns = ended_ns;
	member->finalized = finalized;
	member->source->members--;
	if (!job)
		return;
	job->live--;
	job->changed = true;
	if (job->live)
		return;
	for (size_t i = 0; i < job->members; i++)
		if (job->member[i]->ended_ns > job->ended_ns)
			job->ended_ns = job->member[i]->ended_ns;
}

static void remove_job(struct nt_jobs *jobs, struct nt_job_key *key, struct nt_job *job)
{
	struct nt_tie_index *tie, *next;
	struct nt_job **link;

	HASH_ITER(hh, key->tie, tie, next)
	{
		if (tie->job != job)
			continue;
		HASH_DEL(key->tie, tie);
		free(tie);
	}
	for (size_t i = 0; i < job->members; i++)
		forget_member(key, job->member[i]);
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
	for (size_t i = 0; i < job->members; i++)
		(void)nt_member_drop(job->member[i], UINT64_MAX);
}

void nt_jobs_sweep(struct nt_jobs *jobs, uint64_t now_ns)
{
	struct nt_job_key *key, *next_key;
	size_t ended = 0;

	/* Keys are in the order in which they were first heard of, so the oldest go first. */
	HASH_ITER(hh, jobs->key, key, next_key)
	{
		for (const struct nt_job *job = key->job; job; job = job->next)
			ended += job->closed;
	}
	HASH_ITER(hh, jobs->key, key, next_key)
	{
		struct nt_job *job, *next_job;

		for (job = key->job; job; job = next_job) {
			uint64_t last = job->ended_ns ? job->ended_ns : job->last_seen_ns;
			bool old = last && last + NT_JOBS_FORGET_NS < now_ns;

			next_job = job->next;
			if (!old && !(job->closed && ended > NT_JOBS_MAX_ENDED))
				continue;
			ended -= job->closed;
			remove_job(jobs, key, job);
		}
		if (key->job || key->lobbies || key->lead_ns + NT_JOBS_FORGET_NS >= now_ns)
			continue;
		HASH_DEL(jobs->key, key);
		free_key(jobs, key);
	}
}

/* ---- views -------------------------------------------------------------------------------------- */

struct nt_job_key *nt_jobs_keys(struct nt_jobs *jobs)
{
	return jobs->key;
}

struct nt_node_entry *nt_jobs_nodes(struct nt_jobs *jobs)
{
	return jobs->node;
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
