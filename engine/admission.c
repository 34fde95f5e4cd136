/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Admission: assigns rank sessions to jobs. */
#include "engine/job_impl.h"

#include <errno.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/search.h"
#include "engine/admission_queue.h"

/* Tolerance when comparing times of processes and windows. */
#define CLOCK_SLACK_NS 1000000000ULL
/* Time after a job's first frame in which its other agents may still appear. */
#define YOUNG_NS (30ULL * 1000000000)

/* A young job with missing ranks may have agents that have not reported yet. */
static bool expects_more(const struct nt_job_key *key)
{
	size_t size = 0;

	for (const struct nt_job *job = key->job; job; job = job->next) {
		if (job->ended_ns)
			continue;
		if (job->sessions - job->retired + key->admissions < job->size &&
		    key->lead_ns < job->since_ns + YOUNG_NS)
			return true;
		size = SIZE_MAX;
	}
	return size != SIZE_MAX && key->admission_size > key->admissions;
}

static bool is_waited_for(const struct nt_source *source, uint64_t lead_ns)
{
	return source->sessions && source->watermark_ns + NT_JOBS_SILENCE_NS >= lead_ns;
}

uint64_t nt_jobs_closable_ns(struct nt_job_key *key)
{
	const uint64_t lead = key->lead_ns;
	uint64_t bound = lead > NT_JOBS_LATENESS_NS ? lead - NT_JOBS_LATENESS_NS : 0;
	const struct nt_source *laggard = key->laggard;
	uint64_t least = lead;

	if (bound >= key->due_ns || expects_more(key))
		return bound;
	/* With thousands of agents most messages change nothing, as the laggard is still behind. */
	if (laggard && laggard->watermark_ns < key->due_ns && is_waited_for(laggard, lead))
		return bound;
	for (const struct nt_source *source = key->source; source; source = source->hh.next) {
		if (!is_waited_for(source, lead))
			continue;
		if (source->unsure_ns)
			return bound;
		if (source->watermark_ns < key->due_ns)
			key->laggard = source;
		if (source->watermark_ns < least)
			least = source->watermark_ns;
	}
	return least > bound ? least : bound;
}

uint64_t nt_jobs_admission_ns(const struct nt_job_key *key)
{
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < key->admissions; i++) {
		uint64_t one = nt_rank_session_due_ns(key, key->admission[i]);

		if (one < due)
			due = one;
	}
	return due;
}

static struct nt_rank_session *rank_holder(const struct nt_job *job, uint32_t number)
{
	const size_t low = nt_search_first(0, job->sessions - job->retired, i,
					   job->session[i]->number >= number);

	if (low < job->sessions - job->retired && job->session[low]->number == number)
		return job->session[low];
	return NULL;
}

/* Whether the old process ended before the new one began. */
static bool gone_before(const struct nt_rank_session *old, const struct nt_rank_session *new)
{
	uint64_t seen = old->ended ? old->ended_ns : old->last_seen_ns;

	return seen <= new->start_ns + CLOCK_SLACK_NS &&seen < new->first_seen_ns;
}

static bool has_world_comm(const struct nt_rank_session *session)
{
	for (size_t i = 0; i < session->shared_comms; i++)
		if (session->shared_comm[i].size == session->size)
			return true;
	return false;
}

/* The job that shares a communicator with the session, or NULL. */
static struct nt_job *find_shared_comm_job(const struct nt_job_key *key,
					   const struct nt_rank_session *session)
{
	struct nt_shared_comm_index *index;
	struct nt_job *first = NULL;

	for (size_t i = 0; i < session->shared_comms; i++) {
		HASH_FIND(hh, key->shared_comm, &session->shared_comm[i].comm, sizeof(uint64_t),
			  index);
		if (!index || index->job->closed)
			continue;
		if (index->job->ended_ns && index->job->ended_ns <= session->start_ns)
			continue;
		if (!first || index->job->hash < first->hash)
			first = index->job;
	}
	return first;
}

enum fit {
	FITS,
	FITS_NOT, /* another job of the same key */
	FOLLOWS, /* the session belongs to a later attempt of the job */
};

static enum fit job_fits(const struct nt_job *job, const struct nt_rank_session *session)
{
	const struct nt_rank_session *holder;

	if (job->closed || (job->ended_ns && job->ended_ns < session->first_seen_ns))
		return FOLLOWS;
	holder = session->rank_known ? rank_holder(job, session->rank) : NULL;
	if (holder)
		return gone_before(holder, session) ? FOLLOWS : FITS_NOT;
	if (job->ended_ns)
		return FOLLOWS;
	if (has_world_comm(session) && job->world_comms)
		return FITS_NOT;
	return FITS;
}

static int add_job(struct nt_jobs *jobs, struct nt_job_key *key, const struct nt_job *before,
		   const struct nt_rank_session *session, struct nt_job **ret_job)
{
	struct nt_job *job, **link;
	size_t living = 0;

	for (job = key->job; job; job = job->next)
		living += !job->closed;
	if (jobs->live >= jobs->limits.jobs || living >= NT_JOBS_MAX_SPLITS) {
		jobs->counters.refused_jobs++;
		return -ENOBUFS;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->owner = key;
	job->split = before ? before->split : key->splits++;
	job->attempt = before ? before->attempt + 1 : 1;
	if (job->attempt <= session->attempt_hint && session->attempt_hint < UINT32_MAX)
		job->attempt = session->attempt_hint + 1;
	job->hash = nt_hash_text(NT_HASH_SEED, key->key);
	if (job->split)
		job->hash = nt_hash_u64(job->hash, job->split);
	job->id = nt_hash_mix(nt_hash_u64(job->hash, job->attempt));
	job->hash = nt_hash_mix(job->hash);
	job->size = session->size;
	job->since_ns = session->waiting[0].end_ns;
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

/* Selects the session's job; creates one if none fits. */
static int choose_job(struct nt_jobs *jobs, struct nt_job_key *key,
		      const struct nt_rank_session *session, struct nt_job **ret_job)
{
	const struct nt_job *before = NULL;
	struct nt_job *job = find_shared_comm_job(key, session);

	if (job) {
		*ret_job = job;
		return 0;
	}
	for (job = key->job; job; job = job->next) {
		switch (job_fits(job, session)) {
		case FITS:
			*ret_job = job;
			return 0;
		case FOLLOWS:
			/* Of several ended jobs, the one that ended last. */
			before = job;
			break;
		case FITS_NOT:
			if (before && before->split == job->split)
				before = NULL;
			break;
		}
	}
	return add_job(jobs, key, before, session, ret_job);
}

static int by_number(const void *a, const void *b)
{
	const struct nt_rank_session *left = *(struct nt_rank_session *const *)a;
	const struct nt_rank_session *right = *(struct nt_rank_session *const *)b;

	if (left->retired != right->retired)
		return left->retired ? 1 : -1;
	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	return 0;
}

void nt_job_sort(struct nt_job *job)
{
	if (job->sessions > 1)
		qsort(job->session, job->sessions, sizeof(struct nt_rank_session *), by_number);
}

int nt_job_find_node(struct nt_job *job, uint32_t node, uint32_t *ret_index)
{
	struct nt_job_node *entry;
	int r;

	HASH_FIND(hh, job->node, &node, sizeof(node), entry);
	if (!entry) {
		r = nt_jobs_grow(&job->node_at, job->nodes, &job->node_cap,
				 sizeof(struct nt_job_node *));
		if (r < 0)
			return r;
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->node = node;
		entry->index = (uint32_t)job->nodes;
		HASH_ADD(hh, job->node, node, sizeof(entry->node), entry);
		if (!nt_table_has(entry)) {
			free(entry);
			return -ENOMEM;
		}
		job->node_at[job->nodes++] = entry;
	}
	*ret_index = entry->index;
	return 0;
}

static void retire(struct nt_job *job, struct nt_rank_session *session)
{
	size_t at = 0;

	if (!session->ended) {
		session->source->sessions--;
		job->live--;
	}
	/* Retired sessions are at the end. */
	while (job->session[at] != session)
		at++;
	memmove(job->session + at, job->session + at + 1,
		(job->sessions - at - 1) * sizeof(struct nt_rank_session *));
	job->session[job->sessions - 1] = session;
	session->retired = true;
	job->retired++;
	(void)nt_rank_session_drop(session, UINT64_MAX);
}

static void number_session(struct nt_jobs *jobs, struct nt_job *job,
			   struct nt_rank_session *session)
{
	struct nt_rank_session *holder = NULL;

	if (session->rank_known && session->rank < NT_JOB_FIRST_UNKNOWN)
		holder = rank_holder(job, session->rank);
	if (holder == session)
		return;
	if (holder && gone_before(holder, session)) {
		retire(job, holder);
		jobs->counters.replaced_ranks++;
		holder = NULL;
	}
	if (holder)
		jobs->counters.conflicting_ranks++;
	if (!session->rank_known || session->rank >= NT_JOB_FIRST_UNKNOWN || holder) {
		/* Never accused, and never confused with another rank. */
		session->rank_known = false;
		if (session->number < NT_JOB_FIRST_UNKNOWN)
			session->number = NT_JOB_FIRST_UNKNOWN + job->unknowns++;
	} else {
		session->number = session->rank;
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

static int describe_job(struct nt_job *job, const struct nt_rank_session *session)
{
	int r = rename_job(&job->name, session->job_name ? session->job_name : "");

	if (r < 0)
		return r;
	r = rename_job(&job->namespace, nt_rank_session_text(session, NT_RANK_SESSION_NAMESPACE));
	if (r < 0)
		return r;
	/* A claimed size is accepted up to the limit of a frame. */
	if (session->size > job->size)
		job->size = session->size < NT_FRAME_MAX_RANKS ? session->size : NT_FRAME_MAX_RANKS;
	return 0;
}

/* Inserts by number, after equal ones and before retired ones. */
static void insert_session(struct nt_job *job, struct nt_rank_session *session)
{
	const size_t low = nt_search_first(0, job->sessions - job->retired, i,
					   job->session[i]->number > session->number);

	memmove(job->session + low + 1, job->session + low,
		(job->sessions - low) * sizeof(struct nt_rank_session *));
	job->session[low] = session;
	job->sessions++;
}

static int join_job(struct nt_jobs *jobs, struct nt_job *job, struct nt_rank_session *session)
{
	int r;

	r = nt_jobs_grow(&job->session, job->sessions, &job->session_cap,
			 sizeof(struct nt_rank_session *));
	if (r < 0)
		return r;
	r = nt_job_find_node(job, session->node, &session->job_node);
	if (r < 0)
		return r;
	r = describe_job(job, session);
	if (r < 0)
		return r;
	number_session(jobs, job, session);
	session->job = job;
	insert_session(job, session);
	job->live++;
	job->ended_ns = 0;
	job->changed = true;
	return nt_jobs_index_comms(jobs, session, 0);
}

int nt_jobs_describe(struct nt_jobs *jobs, struct nt_rank_session *session)
{
	int r = describe_job(session->job, session);

	if (r < 0)
		return r;
	if (session->rank_known && session->number != session->rank) {
		number_session(jobs, session->job, session);
		nt_job_sort(session->job);
	}
	return 0;
}

static int admit_session(struct nt_jobs *jobs, struct nt_job_key *key,
			 struct nt_rank_session *session)
{
	struct nt_job *job = NULL;
	int r;

	r = choose_job(jobs, key, session, &job);
	if (r >= 0)
		r = join_job(jobs, job, session);
	if (r < 0 && session->job)
		return r; /* admitted, but its communicators are not all indexed */
	if (r < 0) {
		nt_jobs_forget_session(key, session);
		nt_rank_session_free(session);
		return r == -ENOBUFS ? 0 : r;
	}
	if (!job->grid.frames && !job->grid.start_ns)
		job->grid.start_ns = session->waiting[0].end_ns;
	jobs->counters.early_windows += nt_rank_session_drop(session, job->grid.start_ns);
	return 0;
}

/* Communicators of an admitted session can make others due. */
static int learn(struct nt_admission *queue, const struct nt_job_key *key,
		 const struct nt_rank_session *session, unsigned int known)
{
	int r = 0;

	if (HASH_COUNT(key->shared_comm) == known)
		return 0;
	for (size_t i = 0; i < session->shared_comms && r == 0; i++)
		r = nt_admission_learn(queue, key, session->shared_comm[i].comm);
	return r;
}

/* Admits the due sessions; those whose due time another one delayed are requeued. */
static int admit_batch(struct nt_jobs *jobs, struct nt_job_key *key, uint64_t now_ns,
		       struct nt_admission *queue, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		struct nt_admission_entry *entry = queue->batch[i];
		struct nt_rank_session *session = entry->session;
		const uint64_t due_ns = nt_rank_session_due_ns(key, session);
		const unsigned int known = HASH_COUNT(key->shared_comm);

		if (due_ns > now_ns) {
			r = nt_admission_put(queue, entry, due_ns);
			continue;
		}
		entry->session = NULL;
		r = admit_session(jobs, key, session);
		/* If no job accepted it, it is freed and nothing has become known. */
		if (r == 0)
			r = learn(queue, key, session, known);
	}
	return r;
}

/*
 * Admits all due by now_ns, then those due by until_ns. A new job ends the pass, because it changes
 * due times: before the first job, every session with a communicator is due.
 */
static int admit_queued(struct nt_jobs *jobs, struct nt_job_key *key, struct nt_admission *queue,
			uint64_t now_ns, uint64_t until_ns)
{
	const size_t before = key->jobs;
	int r;

	r = nt_admission_make(jobs, key, queue);
	while (r == 0 && now_ns <= until_ns) {
		size_t count;

		/* Admitted sessions may have made others due. */
		while (r == 0 && (count = nt_admission_take(queue, now_ns)))
			r = admit_batch(jobs, key, now_ns, queue, count);
		if (key->jobs != before)
			break;
		now_ns = nt_admission_due_ns(queue);
	}
	return r;
}

static void keep_admission(struct nt_job_key *key, const struct nt_admission *queue)
{
	if (queue->entries < key->admissions)
		return; /* the queue was not filled */
	key->admissions = 0;
	for (size_t i = 0; i < queue->entries; i++)
		if (queue->entry[i].session)
			key->admission[key->admissions++] = queue->entry[i].session;
	if (!key->admissions)
		key->admission_size = 0;
}

int nt_jobs_admit(struct nt_jobs *jobs, struct nt_job_key *key, uint64_t now_ns, uint64_t until_ns)
{
	for (;;) {
		const bool is_first = !key->job;
		struct nt_admission queue = {0};
		int r = admit_queued(jobs, key, &queue, now_ns, until_ns);

		keep_admission(key, &queue);
		nt_admission_release(&queue);
		if (r < 0 || !is_first || !key->job)
			return r;
		until_ns = now_ns;
	}
}
