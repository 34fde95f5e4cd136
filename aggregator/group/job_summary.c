/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/job_summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/table.h"

static const char prefix[] = "job/";

/* The summary of another aggregator's job. */
struct theirs {
	char id[NT_JOB_ID_LEN + 1];
	struct nt_snapshot_job *job;
	UT_hash_handle hh;
};

/* The last published summary of a job of ours. */
struct ours {
	char id[NT_JOB_ID_LEN + 1];
	uint32_t shard;
	uint64_t hash; /* of the published content; 0: none */
	bool seen; /* in the current round */
	UT_hash_handle hh;
};

struct nt_job_summaries {
	struct theirs *theirs;
	struct ours *ours;
	const struct nt_snapshot_job **list;
	struct nt_job_summaries_counters counters;
};

int nt_job_summaries_new(struct nt_job_summaries **ret_summaries)
{
	struct nt_job_summaries *summaries = calloc(1, sizeof(*summaries));

	if (!summaries)
		return -ENOMEM;
	*ret_summaries = summaries;
	return 0;
}

static void remove_theirs(struct nt_job_summaries *summaries, struct theirs *summary)
{
	HASH_DEL(summaries->theirs, summary);
	nt_snapshot_job_unref(summary->job);
	free(summary);
}

static void remove_ours(struct nt_job_summaries *summaries, struct ours *summary)
{
	HASH_DEL(summaries->ours, summary);
	free(summary);
}

void nt_job_summaries_free(struct nt_job_summaries *summaries)
{
	struct theirs *theirs, *their_next;
	struct ours *ours, *our_next;

	if (!summaries)
		return;
	HASH_ITER(hh, summaries->theirs, theirs, their_next)
	remove_theirs(summaries, theirs);
	HASH_ITER(hh, summaries->ours, ours, our_next)
	remove_ours(summaries, ours);
	free(summaries->list);
	free(summaries);
}

const struct nt_job_summaries_counters *
nt_job_summaries_counters(const struct nt_job_summaries *summaries)
{
	return &summaries->counters;
}

/* ---- theirs ---------------------------------------------------------------------------------- */

static bool is_id(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr("0123456789abcdef", text[i]) || !text[i])
			return false;
	return len == NT_JOB_ID_LEN;
}

static enum nt_job_state find_state(const char *name)
{
	enum nt_job_state state = 0;

	while (state < NT_JOB_STATE_END && strcmp(name, nt_job_state_name(state)) != 0)
		state++;
	return state;
}

static int make_job(const struct nt_message *message, struct nt_snapshot_job **ret_job)
{
	const struct nt_wire_job_summary *summary = &message->state.head;
	struct nt_snapshot_job *job = nt_snapshot_job_new();

	if (!job)
		return -ENOMEM;
	job->key = nt_snapshot_job_text(job, message->state.job_key);
	job->name = nt_snapshot_job_text(job, summary->name);
	job->namespace = nt_snapshot_job_text(job, summary->namespace);
	job->owner = nt_snapshot_job_text(job, message->state.owner);
	if (!job->key || !job->name || !job->namespace || !job->owner) {
		nt_snapshot_job_unref(job);
		return -ENOMEM;
	}
	(void)snprintf(job->id, sizeof(job->id), "%s", summary->id);
	job->is_summary = true;
	job->attempt = summary->attempt;
	job->state = find_state(summary->state);
	job->size = summary->size;
	job->live = summary->live;
	job->nodes = summary->nodes;
	job->step_ns = summary->step_ns;
	job->completeness = summary->completeness;
	job->frames = summary->frames;
	job->cell_ns = summary->cell_ns;
	job->since_ns = summary->since_real_ns;
	job->last_seen_ns = summary->seen_real_ns;
	job->ended_ns = summary->ended_real_ns;
	*ret_job = job;
	return 0;
}

static int put(struct nt_job_summaries *summaries, const char *id, const struct nt_message *message)
{
	struct nt_snapshot_job *job;
	struct theirs *summary;
	int r;

	HASH_FIND_STR(summaries->theirs, id, summary);
	if (!summary && HASH_COUNT(summaries->theirs) >= NT_JOB_SUMMARIES_MAX) {
		summaries->counters.over_cap++;
		return 0;
	}
	r = make_job(message, &job);
	if (r < 0)
		return r;
	if (!summary) {
		summary = calloc(1, sizeof(*summary));
		if (!summary) {
			nt_snapshot_job_unref(job);
			return -ENOMEM;
		}
		memcpy(summary->id, id, sizeof(summary->id));
		HASH_ADD_STR(summaries->theirs, id, summary);
		if (!nt_table_has(summary)) {
			nt_snapshot_job_unref(job);
			free(summary);
			return -ENOMEM;
		}
	}
	nt_snapshot_job_unref(summary->job);
	summary->job = job;
	summaries->counters.taken++;
	return 0;
}

static bool is_sound(const struct nt_message *message, const char *id)
{
	return message->body == NT_BODY_STATE && !strcmp(message->state.head.id, id) &&
	       find_state(message->state.head.state) != NT_JOB_STATE_END;
}

int nt_job_summaries_take(struct nt_job_summaries *summaries, const struct nt_bus_record *record,
			  uint64_t own_boot)
{
	const size_t skip = sizeof(prefix) - 1;
	nt_auto(nt_message) struct nt_message *message = NULL;
	char id[NT_JOB_ID_LEN + 1] = "";
	struct theirs *summary;
	int r;

	if (record->topic != NT_TOPIC_STATE || record->key_len != skip + NT_JOB_ID_LEN ||
	    memcmp(record->key, prefix, skip) != 0 ||
	    !is_id((const char *)record->key + skip, NT_JOB_ID_LEN))
		return 0;
	memcpy(id, (const char *)record->key + skip, NT_JOB_ID_LEN);
	HASH_FIND_STR(summaries->theirs, id, summary);
	if (!record->value_len) {
		if (summary)
			remove_theirs(summaries, summary);
		return 0;
	}
	r = nt_message_decode(record->value, record->value_len, &message);
	if (r == -EBADMSG || (r == 0 && !is_sound(message, id))) {
		summaries->counters.refused++;
		return 0;
	}
	if (r < 0)
		return r;
	if (message->boot == own_boot) {
		/* Owned by us now: drops the other aggregator's summary. */
		if (summary)
			remove_theirs(summaries, summary);
		return 0;
	}
	return put(summaries, id, message);
}

int nt_job_summaries_list(struct nt_job_summaries *summaries,
			  const struct nt_snapshot_job ***ret_job, size_t *ret_jobs)
{
	const size_t count = HASH_COUNT(summaries->theirs);
	const struct nt_snapshot_job **list;
	size_t at = 0;

	list = reallocarray(summaries->list, count ? count : 1,
			    sizeof(const struct nt_snapshot_job *));
	if (!list)
		return -ENOMEM;
	summaries->list = list;
	for (const struct theirs *summary = summaries->theirs; summary; summary = summary->hh.next)
		list[at++] = summary->job;
	*ret_job = list;
	*ret_jobs = count;
	return 0;
}

/* ---- ours ------------------------------------------------------------------------------------ */

/* Hash of the content that triggers a new publication; mere progress of a job does not. */
static uint64_t hash_summary(const struct nt_snapshot_job *job, const char *owner)
{
	const uint64_t number[] = {
		job->state,
		job->size,
		job->live,
		job->nodes,
		(uint64_t)job->step_ns / 1000000,
		(uint64_t)(job->completeness * 100),
		job->since_ns,
		job->ended_ns,
		/* At least twice a minute. */
		job->last_seen_ns / (30ULL * 1000000000),
	};
	uint64_t hash = nt_hash_text(NT_HASH_SEED, owner);

	hash = nt_hash_text(nt_hash_text(hash, job->name), job->namespace);
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		hash = nt_hash_u64(hash, number[i]);
	return hash ? hash : 1;
}

static int publish_one(struct nt_job_summaries *summaries, const struct nt_state_log_port *port,
		       const char *owner, struct ours *summary, const struct nt_snapshot_job *job)
{
	const uint64_t hash = hash_summary(job, owner);
	char key[NT_STATE_LOG_MAX_KEY];
	const struct nt_message message = {
		.key = key,
		.body = NT_BODY_STATE,
		.state =
			{
				.job_key = job->key,
				.shard = summary->shard,
				.owner = owner,
				.head =
					{
						.id = job->id,
						.name = job->name,
						.namespace = job->namespace,
						.state = nt_job_state_name(job->state),
						.attempt = job->attempt,
						.size = job->size,
						.live = job->live,
						.nodes = job->nodes,
						.step_ns = job->step_ns,
						.completeness = job->completeness,
						.cell_ns = job->cell_ns,
						.frames = job->frames,
						.since_real_ns = job->since_ns,
						.seen_real_ns = job->last_seen_ns,
						.ended_real_ns = job->ended_ns,
					},
			},
	};
	int r;

	if (summary->hash == hash)
		return 0;
	(void)snprintf(key, sizeof(key), "%s%s", prefix, job->id);
	r = port->publish(port->data, &message);
	if (r < 0)
		return r;
	summary->hash = hash;
	summaries->counters.published++;
	return 0;
}

static int find_ours(struct nt_job_summaries *summaries, const char *id, uint32_t shard,
		     struct ours **ret_summary)
{
	struct ours *summary;

	HASH_FIND_STR(summaries->ours, id, summary);
	if (!summary) {
		summary = calloc(1, sizeof(*summary));
		if (!summary)
			return -ENOMEM;
		(void)snprintf(summary->id, sizeof(summary->id), "%s", id);
		HASH_ADD_STR(summaries->ours, id, summary);
		if (!nt_table_has(summary)) {
			free(summary);
			return -ENOMEM;
		}
	}
	summary->shard = shard;
	summary->seen = true;
	*ret_summary = summary;
	return 0;
}

static int remove_gone(struct nt_job_summaries *summaries, const struct nt_state_log_port *port,
		       uint32_t shard)
{
	struct ours *summary, *next;
	int r;

	HASH_ITER(hh, summaries->ours, summary, next)
	{
		char key[NT_STATE_LOG_MAX_KEY];

		if (summary->shard != shard || summary->seen)
			continue;
		(void)snprintf(key, sizeof(key), "%s%s", prefix, summary->id);
		r = port->remove(port->data, key);
		if (r < 0)
			return r;
		remove_ours(summaries, summary);
	}
	return 0;
}

int nt_job_summaries_publish(struct nt_job_summaries *summaries,
			     const struct nt_state_log_port *port, const char *owner,
			     uint32_t shard, const struct nt_snapshot_job *const *job, size_t jobs)
{
	int r;

	for (struct ours *summary = summaries->ours; summary; summary = summary->hh.next)
		summary->seen = false;
	for (size_t i = 0; i < jobs; i++) {
		struct ours *summary;

		r = find_ours(summaries, job[i]->id, shard, &summary);
		if (r == 0)
			r = publish_one(summaries, port, owner, summary, job[i]);
		if (r < 0)
			return r;
	}
	return remove_gone(summaries, port, shard);
}

void nt_job_summaries_drop(struct nt_job_summaries *summaries, uint32_t shard)
{
	struct ours *summary, *next;

	HASH_ITER(hh, summaries->ours, summary, next)
	if (summary->shard == shard)
		remove_ours(summaries, summary);
}
