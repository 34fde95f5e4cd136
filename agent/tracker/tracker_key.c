/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys of jobs with data to send, and the ranks that have joined each. */
#include "agent/tracker/tracker_impl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void nt_tracker_free_key(struct nt_tracker *tracker, struct nt_tracker_key *key)
{
	struct nt_rank *rank, *next;

	DL_FOREACH_SAFE(key->rank, rank, next)
	rank->in_key = NULL;
	nt_share_leave(&tracker->key_share, &key->place);
	HASH_DEL(tracker->keys, key);
	free(key);
}

void nt_tracker_free_keys(struct nt_tracker *tracker)
{
	struct nt_tracker_key *key, *next;

	HASH_ITER(hh, tracker->keys, key, next)
	nt_tracker_free_key(tracker, key);
}

static struct nt_tracker_key *key_of(struct nt_share_entry *place)
{
	char *start = (char *)place - offsetof(struct nt_tracker_key, place);

	return (struct nt_tracker_key *)(void *)start;
}

/* The rank's windows are not sent. Counted once per period. */
static void miss_key(struct nt_tracker *tracker, struct nt_rank *rank, const struct nt_owner *owner)
{
	tracker->stats.keys_over_cap++;
	if (rank->missed == tracker->period + 1)
		return;
	rank->missed = tracker->period + 1;
	nt_share_miss(&tracker->key_share, owner, 1);
}

static struct nt_tracker_key *find_key(struct nt_tracker *tracker, struct nt_rank *rank)
{
	const struct nt_owner *owner = rank->process->owner;
	struct nt_tracker_key *key = NULL;
	struct nt_share_entry *victim;
	int r;

	HASH_FIND_STR(tracker->keys, rank->key, key);
	if (key)
		return key;
	key = calloc(1, sizeof(*key));
	if (!key) {
		tracker->stats.no_memory++;
		return NULL;
	}
	r = nt_share_enter(&tracker->key_share, owner, true, &key->place, &victim);
	if (r < 0) {
		nt_share_leave(&tracker->key_share, &key->place);
		miss_key(tracker, rank, owner);
		free(key);
		return NULL;
	}
	if (victim)
		nt_tracker_free_key(tracker, key_of(victim));
	memcpy(key->key, rank->key, sizeof(key->key));
	key->owner = *owner;
	HASH_ADD_STR(tracker->keys, key, key);
	return key;
}

struct nt_tracker_key *nt_tracker_join_key(struct nt_tracker *tracker, struct nt_rank *rank)
{
	struct nt_tracker_key *key;

	if (rank->in_key)
		return rank->in_key;
	key = find_key(tracker, rank);
	if (!key)
		return NULL;
	rank->in_key = key;
	DL_APPEND(key->rank, rank);
	key->ranks++;
	nt_share_call(&key->place);
	return key;
}

void nt_tracker_leave_key(struct nt_tracker *tracker, struct nt_rank *rank, uint64_t now_ns)
{
	struct nt_tracker_key *key = rank->in_key;

	(void)tracker;
	if (!key)
		return;
	DL_DELETE(key->rank, rank);
	rank->in_key = NULL;
	if (--key->ranks > 0)
		return;
	key->empty_ns = now_ns;
	nt_share_rest(&key->place);
}

uint64_t nt_tracker_watermark(const struct nt_tracker_key *key, uint64_t now_ns)
{
	uint64_t mark = now_ns;

	for (const struct nt_rank *rank = key->rank; rank; rank = rank->next) {
		if (rank->window_ns && rank->window_ns < mark)
			mark = rank->window_ns;
		if (rank->held_ns && rank->held_ns < mark)
			mark = rank->held_ns;
	}
	return mark;
}

void nt_tracker_name(struct nt_rank *rank)
{
	const struct nt_process *process = rank->process;
	const struct nt_environ *env = &process->facts.env;

	nt_identity_name(env, &process->placement.workload, &process->facts.cgroup,
			 env->script[0] ? env->script : process->facts.command, rank->key,
			 rank->name);
}

struct nt_tracker_key *nt_tracker_fix_key(struct nt_tracker *tracker, struct nt_rank *rank)
{
	const struct nt_process *process = rank->process;
	struct nt_identity_facts facts = {
		.scope = process->tenant.scope,
		.boot = tracker->options.boot,
		.parent = process->facts.parent,
	};

	if (rank->world && rank->world->from_unique_id && !rank->world->id_is_local)
		facts.first_id = rank->world->id;
	(void)nt_identity_key(&process->facts.env, &facts, rank->key);
	nt_tracker_name(rank);
	return nt_tracker_join_key(tracker, rank);
}
