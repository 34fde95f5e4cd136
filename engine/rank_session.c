/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/rank_session.h"

#include <errno.h>
#include <string.h>

#include "common/system/clock.h"

/* What held a GPU's clock down so long ago, or computed then, is stated as present. */
static const uint64_t HELD_NS = 3 * NT_SECOND;

const char *nt_rank_session_text(const struct nt_rank_session *session,
				 enum nt_rank_session_name name)
{
	return session->names[name] ? session->names[name] : "";
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

int nt_rank_session_rename(struct nt_rank_session *session, const struct nt_rank_id *id)
{
	int r;

	for (size_t i = 0; i < NT_RANK_SESSION_NAMES; i++) {
		r = rename_text(&session->names[i], given_name(id, (enum nt_rank_session_name)i));
		if (r < 0)
			return r;
	}
	r = rename_text(&session->job_name, id->job);
	if (r < 0)
		return r;
	session->local_rank = id->local_rank;
	if (id->size)
		session->size = id->size;
	return 0;
}

int nt_rank_session_new(const struct nt_message *message, struct nt_rank_session **ret_session)
{
	nt_auto(nt_rank_session) struct nt_rank_session *session = calloc(1, sizeof(*session));
	const struct nt_rank_id *id = &message->window.rank;
	int r;

	if (!session)
		return -ENOMEM;
	session->sampled_permille = 1000;
	session->pid = id->pid;
	session->start_boot_ns = id->start_boot_ns;
	session->start_ns = nt_message_real_ns(message, id->start_boot_ns);
	session->rank = id->rank;
	session->rank_known = id->rank_known;
	session->attempt_hint = message->window.attempt_hint;
	r = nt_rank_session_rename(session, id);
	if (r < 0)
		return r;
	*ret_session = nt_take(session);
	return 0;
}

void nt_rank_session_free(struct nt_rank_session *session)
{
	struct nt_session_series *series, *next;

	if (!session)
		return;
	for (size_t i = 0; i < session->waitings; i++)
		nt_message_free(session->waiting[i].message);
	free(session->waiting);
	free(session->heap);
	nt_rank_links_free(session->links);
	HASH_ITER(hh, session->series, series, next)
	{
		HASH_DEL(session->series, series);
		free(series);
	}
	for (size_t i = 0; i < NT_RANK_SESSION_NAMES; i++)
		free(session->names[i]);
	free(session->job_name);
	free(session->shared_comm);
	free(session->alignment);
	free(session->gemm_rate);
	free(session);
}

int nt_rank_session_add_comm(struct nt_rank_session *session, const struct nt_shared_comm *shared)
{
	struct nt_shared_comm *grown;

	for (size_t i = 0; i < session->shared_comms; i++)
		if (session->shared_comm[i].comm == shared->comm)
			return 0;
	/* The capacity doubles at every power of two. */
	if ((session->shared_comms & (session->shared_comms - 1)) == 0) {
		grown = reallocarray(session->shared_comm,
				     session->shared_comms ? 2 * session->shared_comms : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		session->shared_comm = grown;
	}
	session->shared_comm[session->shared_comms++] = *shared;
	return 0;
}

/* Single-rank communicators connect no sessions, and local ids are valid in one process only. */
static int add_comm(struct nt_rank_session *session, const struct nt_comm_window *comm,
		    struct nt_rank_session_counters *counters)
{
	const struct nt_shared_comm shared = {.comm = comm->id, .size = comm->size};

	if (comm->id_is_local || comm->size < 2)
		return 0;
	if (session->shared_comms < NT_RANK_SESSION_MAX_COMMS)
		return nt_rank_session_add_comm(session, &shared);
	for (size_t i = 0; i < session->shared_comms; i++)
		if (session->shared_comm[i].comm == comm->id)
			return 0;
	counters->refused_comms++;
	return 0;
}

static int add_series(struct nt_rank_session *session, const struct nt_comm_window *comm,
		      const struct nt_comm_op *op, struct nt_rank_session_counters *counters)
{
	struct nt_session_series *series;
	struct nt_session_series find = {.key = {.comm = comm->id, .op = op->op}};

	HASH_FIND(hh, session->series, &find.key, sizeof(find.key), series);
	if (!series) {
		if (HASH_COUNT(session->series) >= NT_RANK_SESSION_MAX_SERIES) {
			counters->refused_series++;
			return 0;
		}
		series = calloc(1, sizeof(*series));
		if (!series)
			return -ENOMEM;
		series->key = find.key;
		HASH_ADD(hh, session->series, key, sizeof(series->key), series);
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

/* The driver is read once a second, and windows may be shorter. */
static bool is_held(uint64_t *held_ns, uint64_t window_ns, uint64_t end_ns)
{
	if (window_ns)
		*held_ns = end_ns;
	return *held_ns && end_ns - *held_ns <= HELD_NS;
}

static double share_of(uint64_t part_ns, uint64_t whole_ns)
{
	return part_ns < whole_ns ? (double)part_ns / (double)whole_ns : 1.0;
}

static struct nt_snapshot_gpu_activity
take_activity(struct nt_rank_session *session, const struct nt_host_evidence *host, uint64_t end_ns)
{
	const uint64_t known_ns = host->gpu_activity_ns;
	const double seconds = (double)known_ns / (double)NT_SECOND;

	if (!known_ns && session->gpu.activity.known &&
	    end_ns - session->gpu_activity_end_ns <= HELD_NS)
		return session->gpu.activity;
	if (!known_ns)
		return (struct nt_snapshot_gpu_activity){0};
	session->gpu_activity_end_ns = end_ns;
	return (struct nt_snapshot_gpu_activity){
		.known = true,
		.sm = share_of(host->gpu_sm_ns, known_ns),
		.occupancy = share_of(host->gpu_occupancy_ns, known_ns),
		.tensor = share_of(host->gpu_tensor_ns, known_ns),
		.dram = share_of(host->gpu_dram_ns, known_ns),
		.nvlink = (double)host->gpu_nvlink_bytes / seconds,
		.pcie = (double)host->gpu_pcie_bytes / seconds,
	};
}

static void take_gpu(struct nt_rank_session *session, const struct nt_host_evidence *host,
		     uint64_t end_ns)
{
	uint64_t *held_ns = session->gpu_held_ns;

	session->gpu = (struct nt_snapshot_gpu){
		.clock_mhz = host->gpu_clock_mhz,
		.most_clock_mhz = host->gpu_most_clock_mhz,
		.celsius = host->gpu_celsius,
		.memory_used = host->gpu_memory_used,
		.memory_total = host->gpu_memory_total,
		.last_xid = host->gpu_last_xid,
		.by_temperature = is_held(&held_ns[0], host->gpu_thermal_ns, end_ns),
		.by_power = is_held(&held_ns[1], host->gpu_power_ns, end_ns),
		.by_hardware = is_held(&held_ns[2], host->gpu_hardware_ns, end_ns),
		.activity = take_activity(session, host, end_ns),
	};
}

int nt_rank_session_count(struct nt_rank_session *session, const struct nt_message *message,
			  uint64_t end_ns, struct nt_rank_session_counters *counters)
{
	const struct nt_window *window = &message->window;
	int r;

	for (size_t i = 0; i < window->comms; i++) {
		r = add_comm(session, &window->comm[i], counters);
		if (r < 0)
			return r;
		for (size_t j = 0; j < window->comm[i].ops; j++) {
			r = add_series(session, &window->comm[i], &window->comm[i].op[j], counters);
			if (r < 0)
				return r;
		}
	}
	if (end_ns >= session->last_seen_ns) {
		r = nt_rank_heap_take(&session->heap, window, end_ns);
		r = r < 0 ? r : nt_rank_links_take(&session->links, window, end_ns);
		if (r < 0)
			return r;
	}
	session->steps += window->steps;
	session->launches += window->launches;
	session->copies += window->copies;
	session->copy_bytes += window->copy_bytes;
	session->allocs += window->allocs;
	session->alloc_bytes += window->alloc_bytes;
	session->lost += window->lost;
	session->uses_gpu |= window->uses_gpu;
	if (end_ns >= session->last_seen_ns) {
		take_gpu(session, &window->host, end_ns);
		session->cpu_takers.own_pid = window->rank.pid;
		nt_cpu_takers_add(&session->cpu_takers, &window->host);
	}
	if (!session->first_seen_ns || end_ns < session->first_seen_ns)
		session->first_seen_ns = end_ns;
	if (end_ns > session->last_seen_ns)
		session->last_seen_ns = end_ns;
	return 0;
}

static void drop_first(struct nt_rank_session *session, size_t count)
{
	for (size_t i = 0; i < count; i++)
		nt_message_free(session->waiting[i].message);
	session->waitings -= count;
	memmove(session->waiting, session->waiting + count,
		session->waitings * sizeof(*session->waiting));
}

int nt_rank_session_queue(struct nt_rank_session *session, struct nt_message *message,
			  uint64_t start_ns, uint64_t end_ns,
			  struct nt_rank_session_counters *counters)
{
	size_t at;

	if (session->waitings == NT_RANK_SESSION_MAX_WAITING) {
		drop_first(session, 1);
		counters->evicted_windows++;
	}
	if (session->waitings == session->waiting_cap) {
		size_t cap = session->waiting_cap ? 2 * session->waiting_cap : 8;
		struct nt_waiting *grown = realloc(session->waiting, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		session->waiting = grown;
		session->waiting_cap = cap;
	}
	/* Ordered by time, then by sequence, so that the order of arrival has no effect. */
	for (at = session->waitings; at > 0; at--) {
		const struct nt_waiting *before = &session->waiting[at - 1];

		if (before->end_ns < end_ns ||
		    (before->end_ns == end_ns && before->message->seq <= message->seq))
			break;
	}
	memmove(session->waiting + at + 1, session->waiting + at,
		(session->waitings - at) * sizeof(*session->waiting));
	session->waiting[at] = (struct nt_waiting){
		.message = message,
		.start_ns = start_ns,
		.end_ns = end_ns,
	};
	session->waitings++;
	return 0;
}

size_t nt_rank_session_drop(struct nt_rank_session *session, uint64_t end_ns)
{
	size_t count = 0;

	while (count < session->waitings && session->waiting[count].end_ns < end_ns)
		count++;
	if (count)
		drop_first(session, count);
	return count;
}
