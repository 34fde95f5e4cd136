/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/rank_session.h"

#include <errno.h>
#include <string.h>

const char *nt_rank_session_text(const struct nt_rank_session *member,
				 enum nt_rank_session_name name)
{
	return member->names[name] ? member->names[name] : "";
}

static const char *given_name(const struct nt_rank_id *id, enum nt_rank_session_name name)
{
	switch (name) {
	case NT_RANK_SESSION_NODE:
		return id->node;
	case NT_RANK_SESSION_NAMESPACE:
		return id->namespace;
	case NT_RANK_SESSION_POD:
		return id->pod;
	case NT_RANK_SESSION_CONTAINER:
		return id->container;
	case NT_RANK_SESSION_GPU:
		return id->gpu;
	case NT_RANK_SESSION_PROCESS:
		return id->comm;
	case NT_RANK_SESSION_REPLICA:
		return id->replica;
	case NT_RANK_SESSION_POD_UID:
		return id->pod_uid;
	case NT_RANK_SESSION_NAMES:
		break;
	}
	return NULL;
}

/* A missing name keeps the previous one. */
static int rename_text(char **name, const char *given)
{
	char *copy;

	if (!given || !*given || (*name && strcmp(*name, given) == 0))
		return 0;
	copy = strdup(given);
	if (!copy)
		return -ENOMEM;
	free(*name);
	*name = copy;
	return 0;
}

int nt_rank_session_rename(struct nt_rank_session *member, const struct nt_rank_id *id)
{
	int r;

	for (size_t i = 0; i < NT_RANK_SESSION_NAMES; i++) {
		r = rename_text(&member->names[i], given_name(id, (enum nt_rank_session_name)i));
		if (r < 0)
			return r;
	}
	r = rename_text(&member->job_name, id->job);
	if (r < 0)
		return r;
	member->local_rank = id->local_rank;
	if (id->size)
		member->size = id->size;
	return 0;
}

int nt_rank_session_new(const struct nt_message *message, struct nt_rank_session **ret_member)
{
	nt_auto(nt_rank_session) struct nt_rank_session *member = calloc(1, sizeof(*member));
	const struct nt_rank_id *id = &message->window.rank;
	int r;

	if (!member)
		return -ENOMEM;
	member->sampled_permille = 1000;
	member->pid = id->pid;
	member->start_boot_ns = id->start_boot_ns;
	member->start_ns = nt_message_real_ns(message, id->start_boot_ns);
	member->rank = id->rank;
	member->rank_known = id->rank_known;
	member->attempt_hint = message->window.attempt_hint;
	r = nt_rank_session_rename(member, id);
	if (r < 0)
		return r;
	*ret_member = nt_take(member);
	return 0;
}

void nt_rank_session_free(struct nt_rank_session *member)
{
	struct nt_session_series *series, *next;

	if (!member)
		return;
	for (size_t i = 0; i < member->waitings; i++)
		nt_message_free(member->waiting[i].message);
	free(member->waiting);
	HASH_ITER(hh, member->series, series, next)
	{
		HASH_DEL(member->series, series);
		free(series);
	}
	for (size_t i = 0; i < NT_RANK_SESSION_NAMES; i++)
		free(member->names[i]);
	free(member->job_name);
	free(member->shared_comm);
	free(member->alignment);
	free(member);
}

int nt_rank_session_add_comm(struct nt_rank_session *member, const struct nt_shared_comm *shared)
{
	struct nt_shared_comm *grown;

	for (size_t i = 0; i < member->shared_comms; i++)
		if (member->shared_comm[i].comm == shared->comm)
			return 0;
	/* The capacity doubles at every power of two. */
	if ((member->shared_comms & (member->shared_comms - 1)) == 0) {
		grown = reallocarray(member->shared_comm,
				     member->shared_comms ? 2 * member->shared_comms : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		member->shared_comm = grown;
	}
	member->shared_comm[member->shared_comms++] = *shared;
	return 0;
}

/* Single-rank communicators connect no sessions, and local ids are valid in one process only. */
static int add_comm(struct nt_rank_session *member, const struct nt_comm_window *comm,
		    struct nt_rank_session_counters *counters)
{
	const struct nt_shared_comm shared = {.comm = comm->id, .size = comm->size};

	if (comm->id_is_local || comm->size < 2)
		return 0;
	if (member->shared_comms < NT_RANK_SESSION_MAX_COMMS)
		return nt_rank_session_add_comm(member, &shared);
	for (size_t i = 0; i < member->shared_comms; i++)
		if (member->shared_comm[i].comm == comm->id)
			return 0;
	counters->refused_comms++;
	return 0;
}

static int add_series(struct nt_rank_session *member, const struct nt_comm_window *comm,
		      const struct nt_comm_op *op, struct nt_rank_session_counters *counters)
{
	struct nt_session_series *series;
	struct nt_session_series find = {.key = {.comm = comm->id, .op = op->op}};

	HASH_FIND(hh, member->series, &find.key, sizeof(find.key), series);
	if (!series) {
		if (HASH_COUNT(member->series) >= NT_RANK_SESSION_MAX_SERIES) {
			counters->refused_series++;
			return 0;
		}
		series = calloc(1, sizeof(*series));
		if (!series)
			return -ENOMEM;
		series->key = find.key;
		HASH_ADD(hh, member->series, key, sizeof(series->key), series);
		if (!nt_table_has(series)) {
			free(series);
			return -ENOMEM;
		}
	}
	series->library = comm->library;
	series->comm_size = comm->size;
	series->comm_rank = comm->rank;
	series->calls += op->calls;
	series->bytes += op->bytes;
	return 0;
}

int nt_rank_session_count(struct nt_rank_session *member, const struct nt_message *message,
			  uint64_t end_ns, struct nt_rank_session_counters *counters)
{
	const struct nt_window *window = &message->window;
	int r;

	for (size_t i = 0; i < window->comms; i++) {
		r = add_comm(member, &window->comm[i], counters);
		if (r < 0)
			return r;
		for (size_t j = 0; j < window->comm[i].ops; j++) {
			r = add_series(member, &window->comm[i], &window->comm[i].op[j], counters);
			if (r < 0)
				return r;
		}
	}
	member->steps += window->steps;
	member->launches += window->launches;
	member->copies += window->copies;
	member->copy_bytes += window->copy_bytes;
	member->allocs += window->allocs;
	member->alloc_bytes += window->alloc_bytes;
	member->lost += window->lost;
	member->uses_gpu |= window->uses_gpu;
	if (!member->first_seen_ns || end_ns < member->first_seen_ns)
		member->first_seen_ns = end_ns;
	if (end_ns > member->last_seen_ns)
		member->last_seen_ns = end_ns;
	return 0;
}

static void drop_first(struct nt_rank_session *member, size_t count)
{
	for (size_t i = 0; i < count; i++)
		nt_message_free(member->waiting[i].message);
	member->waitings -= count;
	memmove(member->waiting, member->waiting + count,
		member->waitings * sizeof(*member->waiting));
}

int nt_rank_session_queue(struct nt_rank_session *member, struct nt_message *message,
			  uint64_t start_ns, uint64_t end_ns,
			  struct nt_rank_session_counters *counters)
{
	size_t at;

	if (member->waitings == NT_RANK_SESSION_MAX_WAITING) {
		drop_first(member, 1);
		counters->evicted_windows++;
	}
	if (member->waitings == member->waiting_cap) {
		size_t cap = member->waiting_cap ? 2 * member->waiting_cap : 8;
		struct nt_waiting *grown = realloc(member->waiting, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		member->waiting = grown;
		member->waiting_cap = cap;
	}
	/* Ordered by time, then by sequence, so that the order of arrival has no effect. */
	for (at = member->waitings; at > 0; at--) {
		const struct nt_waiting *before = &member->waiting[at - 1];

		if (before->end_ns < end_ns ||
		    (before->end_ns == end_ns && before->message->seq <= message->seq))
			break;
	}
	memmove(member->waiting + at + 1, member->waiting + at,
		(member->waitings - at) * sizeof(*member->waiting));
	member->waiting[at] = (struct nt_waiting){
		.message = message,
		.start_ns = start_ns,
		.end_ns = end_ns,
	};
	member->waitings++;
	return 0;
}

size_t nt_rank_session_drop(struct nt_rank_session *member, uint64_t end_ns)
{
	size_t count = 0;

	while (count < member->waitings && member->waiting[count].end_ns < end_ns)
		count++;
	if (count)
		drop_first(member, count);
	return count;
}
