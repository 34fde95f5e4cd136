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

static void save_inside(struct nt_codec *codec, const struct nt_rank_session *member)
{
	const struct nt_inside_wire *inside = &member->inside;

	nt_codec_put_u32(codec, inside->in_call);
	nt_codec_put_u32(codec, inside->synchronising);
	nt_codec_put_u64(codec, inside->comm);
	nt_codec_put_u64(codec, inside->number);
	nt_codec_put_u64(codec, inside->since_boot_ns);
	nt_codec_put_u64(codec, inside->count);
	nt_codec_put_u32(codec, inside->op);
	nt_codec_put_u32(codec, inside->type);
	nt_codec_put_u64(codec, member->inside_since_ns);
}

static void save_totals(struct nt_codec *codec, const struct nt_rank_session *member)
{
	const uint64_t total[] = {
		member->steps,
		member->launches,
		member->copies,
		member->copy_bytes,
		member->allocs,
		member->alloc_bytes,
		member->lost,
		member->first_seen_ns,
		member->last_seen_ns,
		member->step_window_ns[0],
		member->step_window_ns[1],
		member->own_ns,
		member->host_ns,
		member->blocked_ns,
		member->comm_ns,
		member->step_ns,
		member->step_end_ns,
		member->covered_boot_ns,
		member->absent_ns,
	};

	for (size_t i = 0; i < sizeof(total) / sizeof(total[0]); i++)
		nt_codec_put_u64(codec, total[i]);
	nt_codec_put_u32(codec, member->frame_steps);
	nt_codec_put_u32(codec, member->tier);
	nt_codec_put_u32(codec, (uint32_t)member->shared_comms);
	for (size_t i = 0; i < member->shared_comms; i++) {
		nt_codec_put_u64(codec, member->shared_comm[i].comm);
		nt_codec_put_u32(codec, member->shared_comm[i].size);
	}
	nt_codec_put_u32(codec, (uint32_t)member->alignments);
	for (size_t i = 0; i < member->alignments; i++) {
		nt_codec_put_u64(codec, member->alignment[i].comm);
		nt_codec_put_u64(codec, member->alignment[i].epoch);
		nt_codec_put_u64(codec, member->alignment[i].group);
		nt_codec_put_u64(codec, member->alignment[i].shift);
	}
	nt_codec_put_u32(codec, HASH_COUNT(member->series));
	for (const struct nt_session_series *series = member->series; series;
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

static void save_member(struct nt_codec *codec, const struct nt_rank_session *member)
{
	nt_codec_put_u32(codec, member->node);
	nt_codec_put_u32(codec, member->pid);
	nt_codec_put_u64(codec, member->start_boot_ns);
	nt_codec_put_u64(codec, member->start_ns);
	nt_codec_put_u32(codec, member->rank);
	nt_codec_put_u32(codec, member->size);
	nt_codec_put_u32(codec, member->local_rank);
	nt_codec_put_u32(codec, member->number);
	nt_codec_put_u32(codec, member->attempt_hint);
	nt_codec_put_u32(codec, member->rank_known);
	nt_codec_put_u32(codec, member->uses_gpu);
	nt_codec_put_u32(codec, member->observed);
	nt_codec_put_u32(codec, member->silent);
	nt_codec_put_u32(codec, member->ended);
	nt_codec_put_u32(codec, member->finalized);
	nt_codec_put_u32(codec, member->retired);
	nt_codec_put_u64(codec, member->ended_ns);
	nt_codec_put_text(codec, member->source->agent);
	for (size_t i = 0; i <= NT_RANK_SESSION_PROCESS; i++)
		nt_codec_put_text(codec, member->names[i]);
	nt_codec_put_text(codec, member->job_name);
	save_inside(codec, member);
	save_totals(codec, member);
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
	nt_codec_put_u32(codec, (uint32_t)job->members);
	for (size_t i = 0; i < job->members; i++)
		save_member(codec, job->member[i]);
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
		save_member(codec, key->admission[i]);
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

static void load_inside(struct nt_codec *codec, struct nt_rank_session *member)
{
	struct nt_inside_wire *inside = &member->inside;

	inside->in_call = nt_codec_get_bool(codec);
	inside->synchronising = nt_codec_get_bool(codec);
	inside->comm = nt_codec_get_u64(codec);
	inside->number = nt_codec_get_u64(codec);
	inside->since_boot_ns = nt_codec_get_u64(codec);
	inside->count = nt_codec_get_u64(codec);
	inside->op = (enum nt_op)nt_codec_get_count(codec, NT_OP_END - 1);
	inside->type = nt_codec_get_u32(codec);
	member->inside_since_ns = load_time(codec);
}

static void load_series(struct nt_codec *codec, struct nt_rank_session *member)
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
	HASH_REPLACE(hh, member->series, key, sizeof(series->key), series, same);
	free(same);
	if (!nt_table_has(series)) {
		free(series);
		codec->error = -ENOMEM;
	}
}

static void load_alignments(struct nt_codec *codec, struct nt_rank_session *member)
{
	uint32_t count = nt_codec_get_count(codec, NT_RANK_SESSION_MAX_ALIGNMENTS);

	if (!count)
		return;
	member->alignment = calloc(count, sizeof(*member->alignment));
	if (!member->alignment) {
		codec->error = -ENOMEM;
		return;
	}
	while (member->alignments < count) {
		struct nt_alignment *alignment = &member->alignment[member->alignments++];

		alignment->comm = nt_codec_get_u64(codec);
		alignment->epoch = nt_codec_get_u64(codec);
		alignment->group = nt_codec_get_u64(codec);
		alignment->shift = nt_codec_get_u64(codec);
	}
}

static void load_totals(struct nt_codec *codec, struct nt_rank_session *member)
{
	uint64_t *const total[] = {
		&member->steps,
		&member->launches,
		&member->copies,
		&member->copy_bytes,
		&member->allocs,
		&member->alloc_bytes,
		&member->lost,
		&member->first_seen_ns,
		&member->last_seen_ns,
		&member->step_window_ns[0],
		&member->step_window_ns[1],
		&member->own_ns,
		&member->host_ns,
		&member->blocked_ns,
		&member->comm_ns,
		&member->step_ns,
		&member->step_end_ns,
		&member->covered_boot_ns,
		&member->absent_ns,
	};
	uint32_t count;

	for (size_t i = 0; i < sizeof(total) / sizeof(total[0]); i++)
		*total[i] = nt_codec_get_u64(codec);
	member->frame_steps = nt_codec_get_u32(codec);
	member->tier = (enum nt_tier)nt_codec_get_count(codec, NT_TIER_END - 1);

	count = nt_codec_get_count(codec, NT_RANK_SESSION_MAX_COMMS);
	for (uint32_t i = 0; i < count && !codec->error; i++) {
		struct nt_shared_comm shared = {.comm = nt_codec_get_u64(codec)};

		shared.size = nt_codec_get_u32(codec);
		if (nt_rank_session_add_comm(member, &shared) < 0)
			codec->error = -ENOMEM;
	}
	load_alignments(codec, member);
	count = nt_codec_get_count(codec, NT_RANK_SESSION_MAX_SERIES);
	for (uint32_t i = 0; i < count && !codec->error; i++)
		load_series(codec, member);
}

static bool is_node(const struct nt_jobs *jobs, uint32_t index)
{
	return index < jobs->nodes && jobs->node_at[index]->name;
}

static int load_member(struct nt_codec *codec, struct nt_jobs *jobs, struct nt_job_key *key,
		       struct nt_rank_session **ret_member)
{
	nt_auto(nt_rank_session) struct nt_rank_session *member = calloc(1, sizeof(*member));
	nt_autofree char *agent = NULL;
	struct nt_source *source;

	if (!member)
		return -ENOMEM;
	member->node = nt_codec_get_u32(codec);
	member->pid = nt_codec_get_u32(codec);
	member->start_boot_ns = nt_codec_get_u64(codec);
	member->start_ns = load_time(codec);
	member->rank = nt_codec_get_u32(codec);
	member->size = nt_codec_get_u32(codec);
	member->local_rank = nt_codec_get_u32(codec);
	member->number = nt_codec_get_u32(codec);
	member->attempt_hint = nt_codec_get_u32(codec);
	member->rank_known = nt_codec_get_bool(codec);
	member->uses_gpu = nt_codec_get_bool(codec);
	member->observed = nt_codec_get_bool(codec);
	member->silent = nt_codec_get_bool(codec);
	member->ended = nt_codec_get_bool(codec);
	member->finalized = nt_codec_get_bool(codec);
	member->retired = nt_codec_get_bool(codec);
	member->ended_ns = load_time(codec);
	agent = nt_codec_get_text(codec);
	for (size_t i = 0; i <= NT_RANK_SESSION_PROCESS; i++)
		member->names[i] = nt_codec_get_text(codec);
	member->job_name = nt_codec_get_text(codec);
	load_inside(codec, member);
	load_totals(codec, member);
	if (codec->error)
		return codec->error;
	HASH_FIND_STR(key->source, agent, source);
	if (!source || !is_node(jobs, member->node))
		return damaged(codec);
	nt_rank_session_move(member, source);
	*ret_member = nt_take(member);
	return 0;
}

/* Adds the session to the tables of its key; its owner is the admission list or a job. */
static int register_member(struct nt_jobs *jobs, struct nt_job_key *key,
			   struct nt_rank_session *member)
{
	const struct nt_process_id id = {
		.node = member->node,
		.pid = member->pid,
		.start_boot_ns = member->start_boot_ns,
	};
	struct nt_process_index *process;
	int r;

	key->members++;
	r = nt_jobs_find_process(jobs, key, &id, &process);
	if (r < 0)
		return r == -ENOBUFS ? -EBADMSG : r;
	member->next = process->member;
	process->member = member;
	return 0;
}

/* Whether the last member is in order: ascending, retired ones at the end. */
static bool is_in_order(const struct nt_job *job)
{
	const struct nt_rank_session *last = job->member[job->members - 1];
	const struct nt_rank_session *before =
		job->members > 1 ? job->member[job->members - 2] : NULL;

	if (!before || last->retired)
		return true;
	return !before->retired && before->number < last->number;
}

static int load_job_member(struct nt_codec *codec, struct nt_jobs *jobs, struct nt_job *job)
{
	struct nt_rank_session *member;
	int r;

	r = nt_jobs_grow(&job->member, job->members, &job->member_cap,
			 sizeof(struct nt_rank_session *));
	if (r < 0)
		return r;
	r = load_member(codec, jobs, job->owner, &member);
	if (r < 0)
		return r;
	member->job = job;
	job->member[job->members++] = member;
	if (!is_in_order(job))
		(void)damaged(codec);
	job->retired += member->retired;
	job->live += !member->retired && !member->ended;
	r = register_member(jobs, job->owner, member);
	if (r < 0)
		return r;
	r = nt_job_find_node(job, member->node, &member->job_node);
	if (r < 0)
		return r;
	return nt_jobs_index_comms(jobs, member, 0);
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
		r = load_job_member(codec, jobs, job);
	if (r < 0)
		return r;
	/* A job has at least one member, as retired ones are replaced. */
	return job->members > job->retired ? codec->error : damaged(codec);
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
		struct nt_rank_session *member;

		r = nt_jobs_grow(&key->admission, key->admissions, &key->admission_cap,
				 sizeof(struct nt_rank_session *));
		if (r < 0)
			return r;
		r = load_member(codec, jobs, key, &member);
		if (r < 0)
			return r;
		key->admission[key->admissions++] = member;
		if (member->size > key->admission_size)
			key->admission_size = member->size;
		r = register_member(jobs, key, member);
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
