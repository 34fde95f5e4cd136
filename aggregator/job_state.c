/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/job_state.h"

#include <errno.h>
#include <string.h>

#include "aggregator/framer.h"
#include "aggregator/job_impl.h"
#include "aggregator/pack.h"

enum {
	SAVE_VERSION = 2,
	TIME_BITS = 62, /* of a time in nanoseconds */
};

/* ---- save --------------------------------------------------------------------------------------- */

static void save_inside(struct nt_packer *packer, const struct nt_member *member)
{
	const struct nt_inside_wire *inside = &member->inside;

	nt_pack_u32(packer, inside->in_call);
	nt_pack_u32(packer, inside->synchronising);
	nt_pack_u64(packer, inside->comm);
	nt_pack_u64(packer, inside->number);
	nt_pack_u64(packer, inside->since_boot_ns);
	nt_pack_u64(packer, inside->count);
	nt_pack_u32(packer, inside->op);
	nt_pack_u32(packer, inside->type);
	nt_pack_u64(packer, member->inside_since_ns);
}

static void save_totals(struct nt_packer *packer, const struct nt_member *member)
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
		nt_pack_u64(packer, total[i]);
	nt_pack_u32(packer, member->frame_steps);
	nt_pack_u32(packer, member->tier);
	nt_pack_u32(packer, (uint32_t)member->ties);
	for (size_t i = 0; i < member->ties; i++) {
		nt_pack_u64(packer, member->tie[i].comm);
		nt_pack_u32(packer, member->tie[i].size);
	}
	nt_pack_u32(packer, (uint32_t)member->alignments);
	for (size_t i = 0; i < member->alignments; i++) {
		nt_pack_u64(packer, member->alignment[i].comm);
		nt_pack_u64(packer, member->alignment[i].epoch);
		nt_pack_u64(packer, member->alignment[i].group);
		nt_pack_u64(packer, member->alignment[i].shift);
	}
	nt_pack_u32(packer, HASH_COUNT(member->series));
	for (const struct nt_series *series = member->series; series; series = series->hh.next) {
		nt_pack_u64(packer, series->key.comm);
		nt_pack_u64(packer, series->key.op);
		nt_pack_u32(packer, series->library);
		nt_pack_u32(packer, series->comm_size);
		nt_pack_u32(packer, series->comm_rank);
		nt_pack_u64(packer, series->calls);
		nt_pack_u64(packer, series->bytes);
	}
}

static void save_member(struct nt_packer *packer, const struct nt_member *member)
{
	nt_pack_u32(packer, member->node);
	nt_pack_u32(packer, member->pid);
	nt_pack_u64(packer, member->start_boot_ns);
	nt_pack_u64(packer, member->start_ns);
	nt_pack_u32(packer, member->rank);
	nt_pack_u32(packer, member->size);
	nt_pack_u32(packer, member->local_rank);
	nt_pack_u32(packer, member->number);
	nt_pack_u32(packer, member->attempt_hint);
	nt_pack_u32(packer, member->rank_known);
	nt_pack_u32(packer, member->uses_gpu);
	nt_pack_u32(packer, member->observed);
	nt_pack_u32(packer, member->silent);
	nt_pack_u32(packer, member->ended);
	nt_pack_u32(packer, member->finalized);
	nt_pack_u32(packer, member->retired);
	nt_pack_u64(packer, member->ended_ns);
	nt_pack_text(packer, member->source->agent);
	for (size_t i = 0; i <= NT_MEMBER_PROCESS; i++)
		nt_pack_text(packer, member->names[i]);
	nt_pack_text(packer, member->job_name);
	save_inside(packer, member);
	save_totals(packer, member);
}

static void save_job(struct nt_packer *packer, const struct nt_job *job)
{
	nt_pack_u64(packer, job->hash);
	nt_pack_u64(packer, job->id);
	nt_pack_u32(packer, job->split);
	nt_pack_u32(packer, job->attempt);
	nt_pack_text(packer, job->name);
	nt_pack_text(packer, job->namespace);
	nt_pack_u32(packer, job->size);
	nt_pack_u32(packer, job->unknowns);
	nt_pack_u64(packer, job->grid.start_ns);
	nt_pack_u64(packer, job->grid.length_ns);
	nt_pack_u64(packer, job->grid.frames);
	nt_pack_f64(packer, job->grid.completeness);
	nt_pack_u64(packer, job->since_ns);
	nt_pack_u64(packer, job->last_seen_ns);
	nt_pack_u64(packer, job->ended_ns);
	nt_pack_u32(packer, job->closed);
	nt_pack_u32(packer, job->is_shifted);
	/* In this order the job's nodes get the same indices again. */
	nt_pack_u32(packer, (uint32_t)job->nodes);
	for (size_t i = 0; i < job->nodes; i++)
		nt_pack_u32(packer, job->node_at[i]->node);
	nt_pack_u32(packer, (uint32_t)job->members);
	for (size_t i = 0; i < job->members; i++)
		save_member(packer, job->member[i]);
}

static void save_key(struct nt_packer *packer, const struct nt_job_key *key)
{
	nt_pack_text(packer, key->key);
	nt_pack_u32(packer, key->splits);
	nt_pack_u64(packer, key->lead_ns);
	nt_pack_u32(packer, HASH_COUNT(key->source));
	for (const struct nt_source *source = key->source; source; source = source->hh.next) {
		nt_pack_text(packer, source->agent);
		nt_pack_u64(packer, source->watermark_ns);
	}
	nt_pack_u32(packer, (uint32_t)key->jobs);
	for (const struct nt_job *job = key->job; job; job = job->next)
		save_job(packer, job);
	nt_pack_u32(packer, (uint32_t)key->lobbies);
	for (size_t i = 0; i < key->lobbies; i++)
		save_member(packer, key->lobby[i]);
}

int nt_jobs_save(const struct nt_jobs *jobs, struct nt_buf *buf)
{
	struct nt_packer packer = {.buf = buf};

	nt_pack_u32(&packer, SAVE_VERSION);
	nt_pack_u64(&packer, jobs->lead_ns);
	nt_pack_u32(&packer, (uint32_t)jobs->nodes);
	for (size_t i = 0; i < jobs->nodes; i++) {
		nt_pack_text(&packer, jobs->node_at[i]->name);
		nt_pack_u64(&packer, jobs->node_at[i]->last_seen_ns);
	}
	nt_pack_u32(&packer, HASH_COUNT(jobs->key));
	for (const struct nt_job_key *key = jobs->key; key; key = key->hh.next)
		save_key(&packer, key);
	return packer.error;
}

/* ---- load --------------------------------------------------------------------------------------- */

static int damaged(struct nt_unpacker *unpacker)
{
	if (!unpacker->error)
		unpacker->error = -EBADMSG;
	return unpacker->error;
}

/* Beyond, sums of times could overflow. */
static uint64_t load_time(struct nt_unpacker *unpacker)
{
	const uint64_t time_ns = nt_unpack_u64(unpacker);

	if (time_ns >> TIME_BITS)
		(void)damaged(unpacker);
	return unpacker->error ? 0 : time_ns;
}

static void load_inside(struct nt_unpacker *unpacker, struct nt_member *member)
{
	struct nt_inside_wire *inside = &member->inside;

	inside->in_call = nt_unpack_bool(unpacker);
	inside->synchronising = nt_unpack_bool(unpacker);
	inside->comm = nt_unpack_u64(unpacker);
	inside->number = nt_unpack_u64(unpacker);
	inside->since_boot_ns = nt_unpack_u64(unpacker);
	inside->count = nt_unpack_u64(unpacker);
	inside->op = (enum nt_op)nt_unpack_count(unpacker, NT_OP_END - 1);
	inside->type = nt_unpack_u32(unpacker);
	member->inside_since_ns = load_time(unpacker);
}

static void load_series(struct nt_unpacker *unpacker, struct nt_member *member)
{
	struct nt_series *series = calloc(1, sizeof(*series)), *same;

	if (!series) {
		unpacker->error = -ENOMEM;
		return;
	}
	series->key.comm = nt_unpack_u64(unpacker);
	series->key.op = nt_unpack_u64(unpacker);
	series->library = (enum nt_library)nt_unpack_count(unpacker, NT_LIBRARY_END - 1);
	series->comm_size = nt_unpack_u32(unpacker);
	series->comm_rank = nt_unpack_u32(unpacker);
	series->calls = nt_unpack_u64(unpacker);
	series->bytes = nt_unpack_u64(unpacker);
	if (series->key.op >= NT_OP_END)
		(void)damaged(unpacker);
	HASH_REPLACE(hh, member->series, key, sizeof(series->key), series, same);
	free(same);
	if (!nt_table_has(series)) {
		free(series);
		unpacker->error = -ENOMEM;
	}
}

static void load_alignments(struct nt_unpacker *unpacker, struct nt_member *member)
{
	uint32_t count = nt_unpack_count(unpacker, NT_MEMBER_MAX_ALIGNMENTS);

	if (!count)
		return;
	member->alignment = calloc(count, sizeof(*member->alignment));
	if (!member->alignment) {
		unpacker->error = -ENOMEM;
		return;
	}
	while (member->alignments < count) {
		struct nt_alignment *alignment = &member->alignment[member->alignments++];

		alignment->comm = nt_unpack_u64(unpacker);
		alignment->epoch = nt_unpack_u64(unpacker);
		alignment->group = nt_unpack_u64(unpacker);
		alignment->shift = nt_unpack_u64(unpacker);
	}
}

static void load_totals(struct nt_unpacker *unpacker, struct nt_member *member)
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
		*total[i] = nt_unpack_u64(unpacker);
	member->frame_steps = nt_unpack_u32(unpacker);
	member->tier = (enum nt_tier)nt_unpack_count(unpacker, NT_TIER_END - 1);

	count = nt_unpack_count(unpacker, NT_MEMBER_MAX_COMMS);
	for (uint32_t i = 0; i < count && !unpacker->error; i++) {
		struct nt_tie tie = {.comm = nt_unpack_u64(unpacker)};

		tie.size = nt_unpack_u32(unpacker);
		if (nt_member_tie(member, &tie) < 0)
			unpacker->error = -ENOMEM;
	}
	load_alignments(unpacker, member);
	count = nt_unpack_count(unpacker, NT_MEMBER_MAX_SERIES);
	for (uint32_t i = 0; i < count && !unpacker->error; i++)
		load_series(unpacker, member);
}

static bool is_node(const struct nt_jobs *jobs, uint32_t index)
{
	return index < jobs->nodes && jobs->node_at[index]->name;
}

static int load_member(struct nt_unpacker *unpacker, struct nt_jobs *jobs, struct nt_job_key *key,
		       struct nt_member **ret_member)
{
	nt_auto(nt_member) struct nt_member *member = calloc(1, sizeof(*member));
	nt_autofree char *agent = NULL;
	struct nt_source *source;

	if (!member)
		return -ENOMEM;
	member->node = nt_unpack_u32(unpacker);
	member->pid = nt_unpack_u32(unpacker);
	member->start_boot_ns = nt_unpack_u64(unpacker);
	member->start_ns = load_time(unpacker);
	member->rank = nt_unpack_u32(unpacker);
	member->size = nt_unpack_u32(unpacker);
	member->local_rank = nt_unpack_u32(unpacker);
	member->number = nt_unpack_u32(unpacker);
	member->attempt_hint = nt_unpack_u32(unpacker);
	member->rank_known = nt_unpack_bool(unpacker);
	member->uses_gpu = nt_unpack_bool(unpacker);
	member->observed = nt_unpack_bool(unpacker);
	member->silent = nt_unpack_bool(unpacker);
	member->ended = nt_unpack_bool(unpacker);
	member->finalized = nt_unpack_bool(unpacker);
	member->retired = nt_unpack_bool(unpacker);
	member->ended_ns = load_time(unpacker);
	agent = nt_unpack_text(unpacker);
	for (size_t i = 0; i <= NT_MEMBER_PROCESS; i++)
		member->names[i] = nt_unpack_text(unpacker);
	member->job_name = nt_unpack_text(unpacker);
	load_inside(unpacker, member);
	load_totals(unpacker, member);
	if (unpacker->error)
		return unpacker->error;
	HASH_FIND_STR(key->source, agent, source);
	if (!source || !is_node(jobs, member->node))
		return damaged(unpacker);
	nt_member_move(member, source);
	*ret_member = nt_take(member);
	return 0;
}

/* Into the tables of its key; the member is owned by the lobby or by a job already. */
static int register_member(struct nt_jobs *jobs, struct nt_job_key *key, struct nt_member *member)
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

/* The last member behind the one before it: ascending, the retired at the end. */
static bool is_in_order(const struct nt_job *job)
{
	const struct nt_member *last = job->member[job->members - 1];
	const struct nt_member *before = job->members > 1 ? job->member[job->members - 2] : NULL;

	if (!before || last->retired)
		return true;
	return !before->retired && before->number < last->number;
}

static int load_job_member(struct nt_unpacker *unpacker, struct nt_jobs *jobs, struct nt_job *job)
{
	struct nt_member *member;
	int r;

	r = nt_jobs_grow(&job->member, job->members, &job->member_cap, sizeof(struct nt_member *));
	if (r < 0)
		return r;
	r = load_member(unpacker, jobs, job->owner, &member);
	if (r < 0)
		return r;
	member->job = job;
	job->member[job->members++] = member;
	if (!is_in_order(job))
		(void)damaged(unpacker);
	job->retired += member->retired;
	job->live += !member->retired && !member->ended;
	r = register_member(jobs, job->owner, member);
	if (r < 0)
		return r;
	r = nt_job_find_node(job, member->node, &member->job_node);
	if (r < 0)
		return r;
	return nt_jobs_index_ties(jobs, member, 0);
}

static int load_job(struct nt_unpacker *unpacker, struct nt_jobs *jobs, struct nt_job_key *key)
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
	job->hash = nt_unpack_u64(unpacker);
	job->id = nt_unpack_u64(unpacker);
	job->split = nt_unpack_u32(unpacker);
	job->attempt = nt_unpack_u32(unpacker);
	job->name = nt_unpack_text(unpacker);
	job->namespace = nt_unpack_text(unpacker);
	job->size = nt_unpack_count(unpacker, NT_FRAME_MAX_RANKS);
	job->unknowns = nt_unpack_u32(unpacker);
	job->grid.start_ns = load_time(unpacker);
	job->grid.length_ns = nt_unpack_u64(unpacker);
	if (job->grid.length_ns > NT_FRAMER_CELL_MAX_NS)
		(void)damaged(unpacker);
	job->grid.frames = nt_unpack_u64(unpacker);
	job->grid.completeness = nt_unpack_f64(unpacker);
	job->since_ns = load_time(unpacker);
	job->last_seen_ns = load_time(unpacker);
	job->ended_ns = load_time(unpacker);
	job->closed = nt_unpack_bool(unpacker);
	job->is_shifted = nt_unpack_bool(unpacker);
	job->changed = true;
	jobs->live += !job->closed;
	count = nt_unpack_count(unpacker, NT_JOBS_MAX_NODES);
	for (uint32_t i = 0; i < count && !unpacker->error && r >= 0; i++) {
		uint32_t node = nt_unpack_u32(unpacker);

		r = is_node(jobs, node) ? nt_job_find_node(job, node, &index) : damaged(unpacker);
	}
	count = nt_unpack_count(unpacker, NT_FRAME_MAX_RANKS);
	for (uint32_t i = 0; i < count && !unpacker->error && r >= 0; i++)
		r = load_job_member(unpacker, jobs, job);
	if (r < 0)
		return r;
	/* A job begins with its first member, and whoever retires is replaced. */
	return job->members > job->retired ? unpacker->error : damaged(unpacker);
}

static int load_key(struct nt_unpacker *unpacker, struct nt_jobs *jobs)
{
	nt_autofree char *text = nt_unpack_text(unpacker);
	struct nt_source *source;
	struct nt_job_key *key;
	uint32_t count;
	int r;

	if (!text)
		return unpacker->error;
	r = nt_jobs_find_key(jobs, text, &key);
	if (r < 0)
		return r;
	key->splits = nt_unpack_u32(unpacker);
	key->lead_ns = load_time(unpacker);
	count = nt_unpack_count(unpacker, NT_JOBS_MAX_NODES);
	for (uint32_t i = 0; i < count && !unpacker->error; i++) {
		nt_autofree char *agent = nt_unpack_text(unpacker);

		if (!agent)
			return unpacker->error;
		r = nt_jobs_find_source(jobs, key, agent, &source);
		if (r < 0)
			return r;
		source->watermark_ns = load_time(unpacker);
	}
	count = nt_unpack_count(unpacker, NT_JOBS_MAX_LIVE);
	for (uint32_t i = 0; i < count && !unpacker->error; i++) {
		r = load_job(unpacker, jobs, key);
		if (r < 0)
			return r;
	}
	count = nt_unpack_count(unpacker, NT_FRAME_MAX_RANKS);
	for (uint32_t i = 0; i < count && !unpacker->error; i++) {
		struct nt_member *member;

		r = nt_jobs_grow(&key->lobby, key->lobbies, &key->lobby_cap,
				 sizeof(struct nt_member *));
		if (r < 0)
			return r;
		r = load_member(unpacker, jobs, key, &member);
		if (r < 0)
			return r;
		key->lobby[key->lobbies++] = member;
		if (member->size > key->lobby_size)
			key->lobby_size = member->size;
		r = register_member(jobs, key, member);
		if (r < 0)
			return r;
	}
	return unpacker->error;
}

int nt_jobs_load(struct nt_jobs *jobs, const void *data, size_t size)
{
	struct nt_unpacker unpacker = {.data = data, .size = size};
	struct nt_node_entry *node;
	uint32_t count;
	int r;

	if (nt_unpack_u32(&unpacker) != SAVE_VERSION)
		return -EBADMSG;
	jobs->lead_ns = load_time(&unpacker);
	count = nt_unpack_count(&unpacker, NT_JOBS_MAX_NODES);
	for (uint32_t i = 0; i < count && !unpacker.error; i++) {
		nt_autofree char *name = nt_unpack_text(&unpacker);

		if (!name)
			return unpacker.error;
		r = nt_jobs_append_node(jobs, name, &node);
		if (r < 0)
			return r == -ENOMEM ? r : -EBADMSG;
		node->last_seen_ns = load_time(&unpacker);
	}
	count = nt_unpack_count(&unpacker, NT_JOBS_MAX_KEYS);
	for (uint32_t i = 0; i < count && !unpacker.error; i++) {
		r = load_key(&unpacker, jobs);
		if (r < 0)
			return r;
	}
	return unpacker.error;
}
