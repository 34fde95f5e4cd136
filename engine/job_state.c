/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/job_state.h"

#include <errno.h>
#include <string.h>

#include "common/base/codec.h"
#include "engine/frame_builder.h"
#include "engine/job_impl.h"

enum {
	SAVE_VERSION = 2,
	TIME_BITS = 62, /* of a time in nanoseconds */
};

/* ---- save ------------------------------------------------------------------------------------ */

static void save_inside(struct nt_codec *codec, const struct nt_rank_session *session)
{
	const struct nt_inside_wire *inside = &session->inside;

	nt_codec_put_u32(codec, inside->in_call);
	nt_codec_put_u32(codec, inside->synchronising);
	nt_codec_put_u64(codec, inside->comm);
	nt_codec_put_u64(codec, inside->number);
	nt_codec_put_u64(codec, inside->since_boot_ns);
	nt_codec_put_u64(codec, inside->count);
	nt_codec_put_u32(codec, inside->op);
	nt_codec_put_u32(codec, inside->type);
	nt_codec_put_u64(codec, session->inside_since_ns);
}

static void save_totals(struct nt_codec *codec, const struct nt_rank_session *session)
{
	const uint64_t total[] = {
		session->steps,
		session->launches,
		session->copies,
		session->copy_bytes,
		session->allocs,
		session->alloc_bytes,
		session->lost,
		session->first_seen_ns,
		session->last_seen_ns,
		session->step_window_ns[0],
		session->step_window_ns[1],
		session->own_ns,
		session->host_ns,
		session->blocked_ns,
		session->comm_ns,
		session->step_ns,
		session->step_end_ns,
		session->covered_boot_ns,
		session->absent_ns,
	};

	for (size_t i = 0; i < sizeof(total) / sizeof(total[0]); i++)
		nt_codec_put_u64(codec, total[i]);
	nt_codec_put_u32(codec, session->frame_steps);
	nt_codec_put_u32(codec, session->tier);
	nt_codec_put_u32(codec, (uint32_t)session->shared_comms);
	for (size_t i = 0; i < session->shared_comms; i++) {
		nt_codec_put_u64(codec, session->shared_comm[i].comm);
		nt_codec_put_u32(codec, session->shared_comm[i].size);
	}
	nt_codec_put_u32(codec, (uint32_t)session->alignments);
	for (size_t i = 0; i < session->alignments; i++) {
		nt_codec_put_u64(codec, session->alignment[i].comm);
		nt_codec_put_u64(codec, session->alignment[i].epoch);
		nt_codec_put_u64(codec, session->alignment[i].group);
		nt_codec_put_u64(codec, session->alignment[i].shift);
	}
	nt_codec_put_u32(codec, HASH_COUNT(session->series));
	for (const struct nt_session_series *series = session->series; series;
	     series = series->hh.next) {
		nt_codec_put_u64(codec, series->key.comm);
		nt_codec_put_u64(codec, series->key.op);
		nt_codec_put_u32(codec, series->library);
		nt_codec_put_u32(codec, series->comm_size);
		nt_codec_put_u32(codec, series->comm_rank);
		nt_codec_put_u64(codec, series->calls);
		nt_codec_put_u64(codec, series->bytes);
	}
}

static void save_session(struct nt_codec *codec, const struct nt_rank_session *session)
{
	nt_codec_put_u32(codec, session->node);
	nt_codec_put_u32(codec, session->pid);
	nt_codec_put_u64(codec, session->start_boot_ns);
	nt_codec_put_u64(codec, session->start_ns);
	nt_codec_put_u32(codec, session->rank);
	nt_codec_put_u32(codec, session->size);
	nt_codec_put_u32(codec, session->local_rank);
	nt_codec_put_u32(codec, session->number);
	nt_codec_put_u32(codec, session->attempt_hint);
	nt_codec_put_u32(codec, session->rank_known);
	nt_codec_put_u32(codec, session->uses_gpu);
	nt_codec_put_u32(codec, session->observed);
	nt_codec_put_u32(codec, session->silent);
	nt_codec_put_u32(codec, session->ended);
	nt_codec_put_u32(codec, session->finalized);
	nt_codec_put_u32(codec, session->retired);
	nt_codec_put_u64(codec, session->ended_ns);
	nt_codec_put_text(codec, session->source->agent);
	for (size_t i = 0; i <= NT_RANK_SESSION_PROCESS; i++)
		nt_codec_put_text(codec, session->names[i]);
	nt_codec_put_text(codec, session->job_name);
	save_inside(codec, session);
	save_totals(codec, session);
}

static void save_job(struct nt_codec *codec, const struct nt_job *job)
{
	nt_codec_put_u64(codec, job->hash);
	nt_codec_put_u64(codec, job->id);
	nt_codec_put_u32(codec, job->split);
	nt_codec_put_u32(codec, job->attempt);
	nt_codec_put_text(codec, job->name);
	nt_codec_put_text(codec, job->namespace);
	nt_codec_put_u32(codec, job->size);
	nt_codec_put_u32(codec, job->unknowns);
	nt_codec_put_u64(codec, job->grid.start_ns);
	nt_codec_put_u64(codec, job->grid.length_ns);
	nt_codec_put_u64(codec, job->grid.frames);
	nt_codec_put_f64(codec, job->grid.completeness);
	nt_codec_put_u64(codec, job->since_ns);
	nt_codec_put_u64(codec, job->last_seen_ns);
	nt_codec_put_u64(codec, job->ended_ns);
	nt_codec_put_u32(codec, job->closed);
	nt_codec_put_u32(codec, job->is_shifted);
	/* This order restores the indices of the job's nodes. */
	nt_codec_put_u32(codec, (uint32_t)job->nodes);
	for (size_t i = 0; i < job->nodes; i++)
		nt_codec_put_u32(codec, job->node_at[i]->node);
	nt_codec_put_u32(codec, (uint32_t)job->sessions);
	for (size_t i = 0; i < job->sessions; i++)
		save_session(codec, job->session[i]);
}

static void save_key(struct nt_codec *codec, const struct nt_job_key *key)
{
	nt_codec_put_text(codec, key->key);
	nt_codec_put_u32(codec, key->splits);
	nt_codec_put_u64(codec, key->lead_ns);
	nt_codec_put_u32(codec, HASH_COUNT(key->source));
	for (const struct nt_source *source = key->source; source; source = source->hh.next) {
		nt_codec_put_text(codec, source->agent);
		nt_codec_put_u64(codec, source->watermark_ns);
	}
	nt_codec_put_u32(codec, (uint32_t)key->jobs);
	for (const struct nt_job *job = key->job; job; job = job->next)
		save_job(codec, job);
	nt_codec_put_u32(codec, (uint32_t)key->admissions);
	for (size_t i = 0; i < key->admissions; i++)
		save_session(codec, key->admission[i]);
}

int nt_jobs_save(const struct nt_jobs *jobs, struct nt_buf *buf)
{
	struct nt_codec codec = {.out = buf};

	nt_codec_put_u32(&codec, SAVE_VERSION);
	nt_codec_put_u64(&codec, jobs->lead_ns);
	nt_codec_put_u32(&codec, (uint32_t)jobs->nodes);
	for (size_t i = 0; i < jobs->nodes; i++) {
		nt_codec_put_text(&codec, jobs->node_at[i]->name);
		nt_codec_put_u64(&codec, jobs->node_at[i]->last_seen_ns);
	}
	nt_codec_put_u32(&codec, HASH_COUNT(jobs->key));
	for (const struct nt_job_key *key = jobs->key; key; key = key->hh.next)
		save_key(&codec, key);
	return codec.error;
}

/* ---- load ------------------------------------------------------------------------------------ */

static int damaged(struct nt_codec *codec)
{
	if (!codec->error)
		codec->error = -EBADMSG;
	return codec->error;
}

/* Larger values could overflow sums of times. */
static uint64_t load_time(struct nt_codec *codec)
{
	const uint64_t time_ns = nt_codec_get_u64(codec);

	if (time_ns >> TIME_BITS)
		(void)damaged(codec);
	return codec->error ? 0 : time_ns;
}

static void load_inside(struct nt_codec *codec, struct nt_rank_session *session)
{
	struct nt_inside_wire *inside = &session->inside;

	inside->in_call = nt_codec_get_bool(codec);
	inside->synchronising = nt_codec_get_bool(codec);
	inside->comm = nt_codec_get_u64(codec);
	inside->number = nt_codec_get_u64(codec);
	inside->since_boot_ns = nt_codec_get_u64(codec);
	inside->count = nt_codec_get_u64(codec);
	inside->op = (enum nt_op)nt_codec_get_count(codec, NT_OP_END - 1);
	inside->type = nt_codec_get_u32(codec);
	session->inside_since_ns = load_time(codec);
}

static void load_series(struct nt_codec *codec, struct nt_rank_session *session)
{
	struct nt_session_series *series = calloc(1, sizeof(*series)), *same;

	if (!series) {
		codec->error = -ENOMEM;
		return;
	}
	series->key.comm = nt_codec_get_u64(codec);
	series->key.op = nt_codec_get_u64(codec);
	series->library = (enum nt_library)nt_codec_get_count(codec, NT_LIBRARY_END - 1);
	series->comm_size = nt_codec_get_u32(codec);
	series->comm_rank = nt_codec_get_u32(codec);
	series->calls = nt_codec_get_u64(codec);
	series->bytes = nt_codec_get_u64(codec);
	if (series->key.op >= NT_OP_END)
		(void)damaged(codec);
	HASH_REPLACE(hh, session->series, key, sizeof(series->key), series, same);
	free(same);
	if (!nt_table_has(series)) {
		free(series);
		codec->error = -ENOMEM;
	}
}

static void load_alignments(struct nt_codec *codec, struct nt_rank_session *session)
{
	uint32_t count = nt_codec_get_count(codec, NT_RANK_SESSION_MAX_ALIGNMENTS);

	if (!count)
		return;
	session->alignment = calloc(count, sizeof(*session->alignment));
	if (!session->alignment) {
		codec->error = -ENOMEM;
		return;
	}
	while (session->alignments < count) {
		struct nt_alignment *alignment = &session->alignment[session->alignments++];

		alignment->comm = nt_codec_get_u64(codec);
		alignment->epoch = nt_codec_get_u64(codec);
		alignment->group = nt_codec_get_u64(codec);
		alignment->shift = nt_codec_get_u64(codec);
	}
}

static void load_totals(struct nt_codec *codec, struct nt_rank_session *session)
{
	uint64_t *const total[] = {
		&session->steps,
		&session->launches,
		&session->copies,
		&session->copy_bytes,
		&session->allocs,
		&session->alloc_bytes,
		&session->lost,
		&session->first_seen_ns,
		&session->last_seen_ns,
		&session->step_window_ns[0],
		&session->step_window_ns[1],
		&session->own_ns,
		&session->host_ns,
		&session->blocked_ns,
		&session->comm_ns,
		&session->step_ns,
		&session->step_end_ns,
		&session->covered_boot_ns,
		&session->absent_ns,
	};
	uint32_t count;

	for (size_t i = 0; i < sizeof(total) / sizeof(total[0]); i++)
		*total[i] = nt_codec_get_u64(codec);
	session->frame_steps = nt_codec_get_u32(codec);
	session->tier = (enum nt_tier)nt_codec_get_count(codec, NT_TIER_END - 1);

	count = nt_codec_get_count(codec, NT_RANK_SESSION_MAX_COMMS);
	for (uint32_t i = 0; i < count && !codec->error; i++) {
		struct nt_shared_comm shared = {.comm = nt_codec_get_u64(codec)};

		shared.size = nt_codec_get_u32(codec);
		if (nt_rank_session_add_comm(session, &shared) < 0)
			codec->error = -ENOMEM;
	}
	load_alignments(codec, session);
	count = nt_codec_get_count(codec, NT_RANK_SESSION_MAX_SERIES);
	for (uint32_t i = 0; i < count && !codec->error; i++)
		load_series(codec, session);
}

static bool is_node(const struct nt_jobs *jobs, uint32_t index)
{
	return index < jobs->nodes && jobs->node_at[index]->name;
}

static int load_session(struct nt_codec *codec, struct nt_jobs *jobs, struct nt_job_key *key,
			struct nt_rank_session **ret_session)
{
	nt_auto(nt_rank_session) struct nt_rank_session *session = calloc(1, sizeof(*session));
	nt_autofree char *agent = NULL;
	struct nt_source *source;

	if (!session)
		return -ENOMEM;
	session->node = nt_codec_get_u32(codec);
	session->pid = nt_codec_get_u32(codec);
	session->start_boot_ns = nt_codec_get_u64(codec);
	session->start_ns = load_time(codec);
	session->rank = nt_codec_get_u32(codec);
	session->size = nt_codec_get_u32(codec);
	session->local_rank = nt_codec_get_u32(codec);
	session->number = nt_codec_get_u32(codec);
	session->attempt_hint = nt_codec_get_u32(codec);
	session->rank_known = nt_codec_get_bool(codec);
	session->uses_gpu = nt_codec_get_bool(codec);
	session->observed = nt_codec_get_bool(codec);
	session->silent = nt_codec_get_bool(codec);
	session->ended = nt_codec_get_bool(codec);
	session->finalized = nt_codec_get_bool(codec);
	session->retired = nt_codec_get_bool(codec);
	session->ended_ns = load_time(codec);
	agent = nt_codec_get_text(codec);
	for (size_t i = 0; i <= NT_RANK_SESSION_PROCESS; i++)
		session->names[i] = nt_codec_get_text(codec);
	session->job_name = nt_codec_get_text(codec);
	load_inside(codec, session);
	load_totals(codec, session);
	if (codec->error)
		return codec->error;
	HASH_FIND_STR(key->source, agent, source);
	if (!source || !is_node(jobs, session->node))
		return damaged(codec);
	nt_rank_session_move(session, source);
	*ret_session = nt_take(session);
	return 0;
}

/* Adds the session to the tables of its key; its owner is the admission list or a job. */
static int register_session(struct nt_jobs *jobs, struct nt_job_key *key,
			    struct nt_rank_session *session)
{
	const struct nt_process_id id = {
		.node = session->node,
		.pid = session->pid,
		.start_boot_ns = session->start_boot_ns,
	};
	struct nt_process_index *process;
	int r;

	key->sessions++;
	r = nt_jobs_find_process(jobs, key, &id, &process);
	if (r < 0)
		return r == -ENOBUFS ? -EBADMSG : r;
	session->next = process->session;
	process->session = session;
	return 0;
}

/* Whether the last session is in order: ascending, retired ones at the end. */
static bool is_in_order(const struct nt_job *job)
{
	const struct nt_rank_session *last = job->session[job->sessions - 1];
	const struct nt_rank_session *before =
		job->sessions > 1 ? job->session[job->sessions - 2] : NULL;

	if (!before || last->retired)
		return true;
	return !before->retired && before->number < last->number;
}

static int load_job_session(struct nt_codec *codec, struct nt_jobs *jobs, struct nt_job *job)
{
	struct nt_rank_session *session;
	int r;

	r = nt_jobs_grow(&job->session, job->sessions, &job->session_cap,
			 sizeof(struct nt_rank_session *));
	if (r < 0)
		return r;
	r = load_session(codec, jobs, job->owner, &session);
	if (r < 0)
		return r;
	session->job = job;
	job->session[job->sessions++] = session;
	if (!is_in_order(job))
		(void)damaged(codec);
	job->retired += session->retired;
	job->live += !session->retired && !session->ended;
	r = register_session(jobs, job->owner, session);
	if (r < 0)
		return r;
	r = nt_job_find_node(job, session->node, &session->job_node);
	if (r < 0)
		return r;
	return nt_jobs_index_comms(jobs, session, 0);
}

static int load_job(struct nt_codec *codec, struct nt_jobs *jobs, struct nt_job_key *key)
{
	struct nt_job *job = calloc(1, sizeof(*job)), **link;
	uint32_t count, index;
	int r = 0;

	if (!job)
		return -ENOMEM;
	job->owner = key;
	for (link = &key->job; *link; link = &(*link)->next)
		;
	*link = job;
	key->jobs++;
	job->hash = nt_codec_get_u64(codec);
	job->id = nt_codec_get_u64(codec);
	job->split = nt_codec_get_u32(codec);
	job->attempt = nt_codec_get_u32(codec);
	job->name = nt_codec_get_text(codec);
	job->namespace = nt_codec_get_text(codec);
	job->size = nt_codec_get_count(codec, NT_FRAME_MAX_RANKS);
	job->unknowns = nt_codec_get_u32(codec);
	job->grid.start_ns = load_time(codec);
	job->grid.length_ns = nt_codec_get_u64(codec);
	if (job->grid.length_ns > NT_FRAME_BUILDER_CELL_MAX_NS)
		(void)damaged(codec);
	job->grid.frames = nt_codec_get_u64(codec);
	job->grid.completeness = nt_codec_get_f64(codec);
	job->since_ns = load_time(codec);
	job->last_seen_ns = load_time(codec);
	job->ended_ns = load_time(codec);
	job->closed = nt_codec_get_bool(codec);
	job->is_shifted = nt_codec_get_bool(codec);
	job->changed = true;
	jobs->live += !job->closed;
	count = nt_codec_get_count(codec, NT_JOBS_MAX_NODES);
	for (uint32_t i = 0; i < count && !codec->error && r >= 0; i++) {
		uint32_t node = nt_codec_get_u32(codec);

		r = is_node(jobs, node) ? nt_job_find_node(job, node, &index) : damaged(codec);
	}
	count = nt_codec_get_count(codec, NT_FRAME_MAX_RANKS);
	for (uint32_t i = 0; i < count && !codec->error && r >= 0; i++)
		r = load_job_session(codec, jobs, job);
	if (r < 0)
		return r;
	/* A job has at least one session, as retired ones are replaced. */
	return job->sessions > job->retired ? codec->error : damaged(codec);
}

static int load_key(struct nt_codec *codec, struct nt_jobs *jobs)
{
	nt_autofree char *text = nt_codec_get_text(codec);
	struct nt_source *source;
	struct nt_job_key *key;
	uint32_t count;
	int r;

	if (!text)
		return codec->error;
	r = nt_jobs_find_key(jobs, text, &key);
	if (r < 0)
		return r;
	key->splits = nt_codec_get_u32(codec);
	key->lead_ns = load_time(codec);
	count = nt_codec_get_count(codec, NT_JOBS_MAX_NODES);
	for (uint32_t i = 0; i < count && !codec->error; i++) {
		nt_autofree char *agent = nt_codec_get_text(codec);

		if (!agent)
			return codec->error;
		r = nt_jobs_find_source(jobs, key, agent, &source);
		if (r < 0)
			return r;
		source->watermark_ns = load_time(codec);
	}
	count = nt_codec_get_count(codec, NT_JOBS_MAX_LIVE);
	for (uint32_t i = 0; i < count && !codec->error; i++) {
		r = load_job(codec, jobs, key);
		if (r < 0)
			return r;
	}
	count = nt_codec_get_count(codec, NT_FRAME_MAX_RANKS);
	for (uint32_t i = 0; i < count && !codec->error; i++) {
		struct nt_rank_session *session;

		r = nt_jobs_grow(&key->admission, key->admissions, &key->admission_cap,
				 sizeof(struct nt_rank_session *));
		if (r < 0)
			return r;
		r = load_session(codec, jobs, key, &session);
		if (r < 0)
			return r;
		key->admission[key->admissions++] = session;
		if (session->size > key->admission_size)
			key->admission_size = session->size;
		r = register_session(jobs, key, session);
		if (r < 0)
			return r;
	}
	return codec->error;
}

int nt_jobs_load(struct nt_jobs *jobs, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	struct nt_node_entry *node;
	uint32_t count;
	int r;

	if (nt_codec_get_u32(&codec) != SAVE_VERSION)
		return -EBADMSG;
	jobs->lead_ns = load_time(&codec);
	count = nt_codec_get_count(&codec, NT_JOBS_MAX_NODES);
	for (uint32_t i = 0; i < count && !codec.error; i++) {
		nt_autofree char *name = nt_codec_get_text(&codec);

		if (!name)
			return codec.error;
		r = nt_jobs_append_node(jobs, name, &node);
		if (r < 0)
			return r == -ENOMEM ? r : -EBADMSG;
		node->last_seen_ns = load_time(&codec);
	}
	count = nt_codec_get_count(&codec, NT_JOBS_MAX_KEYS);
	for (uint32_t i = 0; i < count && !codec.error; i++) {
		r = load_key(&codec, jobs);
		if (r < 0)
			return r;
	}
	return codec.error;
}
