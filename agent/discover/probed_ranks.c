/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/probed_ranks.h"

#include <errno.h>
#include <stdlib.h>

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

struct rank {
	uint32_t pid;
	uint64_t start_ns;
	bool waits; /* its file has not been searched since the ranks are probed */
	bool is_refused; /* its file cannot be probed */
	bool is_lost; /* out of memory when it was added */
	struct nt_rank_probe *probe; /* owned; NULL: none */
	struct rank *next; /* in the list `ended` */
	UT_hash_handle hh;
};

struct nt_probed_ranks {
	struct nt_probed_ranks_hooks hooks;
	struct rank *rank; /* uthash, owned */
	struct rank *ended; /* owned: have a probe, and are no longer in the table */
	uint32_t ended_count; /* also capped: detaching is slower than adding */
	uint32_t waiting;
	bool is_closed; /* none is probed now */
	struct nt_probed_ranks_stats stats;
};

int nt_probed_ranks_new(const struct nt_probed_ranks_hooks *hooks,
			struct nt_probed_ranks **ret_ranks)
{
	struct nt_probed_ranks *ranks = calloc(1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	ranks->hooks = *hooks;
	*ret_ranks = ranks;
	return 0;
}

static void detach(struct nt_probed_ranks *ranks, struct nt_rank_probe *probe)
{
	if (!probe)
		return;
	ranks->hooks.detach(ranks->hooks.data, probe);
	ranks->stats.attached--;
}

void nt_probed_ranks_free(struct nt_probed_ranks *ranks)
{
	struct rank *rank, *next;

	if (!ranks)
		return;
	HASH_ITER(hh, ranks->rank, rank, next)
	{
		HASH_DEL(ranks->rank, rank);
		detach(ranks, rank->probe);
		free(rank);
	}
	while (ranks->ended)
		nt_probed_ranks_detach(ranks);
	free(ranks);
}

void nt_probed_ranks_add(struct nt_probed_ranks *ranks, uint32_t pid, uint64_t start_boot_ns)
{
	struct rank *rank;

	HASH_FIND(hh, ranks->rank, &pid, sizeof(pid), rank);
	if (rank && rank->start_ns == start_boot_ns)
		return;
	if (rank) /* its exit was not reported */
		nt_probed_ranks_end(ranks, pid, rank->start_ns);
	if (HASH_COUNT(ranks->rank) + ranks->ended_count >= NT_PROBED_RANKS_MAX) {
		ranks->stats.over_cap++;
		return;
	}
	rank = calloc(1, sizeof(*rank));
	if (rank) {
		rank->pid = pid;
		rank->start_ns = start_boot_ns;
		rank->waits = !ranks->is_closed;
		HASH_ADD(hh, ranks->rank, pid, sizeof(rank->pid), rank);
	}
	if (!rank || rank->is_lost) {
		ranks->stats.failed++;
		free(rank);
		return;
	}
	ranks->waiting += rank->waits;
}

void nt_probed_ranks_end(struct nt_probed_ranks *ranks, uint32_t pid, uint64_t start_boot_ns)
{
	struct rank *rank;

	HASH_FIND(hh, ranks->rank, &pid, sizeof(pid), rank);
	if (!rank || rank->start_ns != start_boot_ns)
		return;
	HASH_DEL(ranks->rank, rank);
	ranks->waiting -= rank->waits;
	if (!rank->probe) {
		free(rank);
		return;
	}
	rank->next = ranks->ended;
	ranks->ended = rank;
	ranks->ended_count++;
}

bool nt_probed_ranks_start_ns(const struct nt_probed_ranks *ranks, uint32_t pid,
			      uint64_t *ret_start_boot_ns)
{
	struct rank *rank;

	HASH_FIND(hh, ranks->rank, &pid, sizeof(pid), rank);
	if (rank)
		*ret_start_boot_ns = rank->start_ns;
	return rank != NULL;
}

/* A file that is not there may come; others are tried again. What cannot be probed never can. */
static bool is_final(int result)
{
	return result < 0 && result != -ENOENT && result != -ESRCH && result != -EINPROGRESS &&
	       result != -EBUSY && result != -EAGAIN && result != -ETIMEDOUT;
}

static void count_result(struct nt_probed_ranks *ranks, int result)
{
	if (result >= 0)
		ranks->stats.attached++;
	else if (result != -ENOENT && result != -ESRCH && result != -EINPROGRESS)
		ranks->stats.failed++;
}

void nt_probed_ranks_attach(struct nt_probed_ranks *ranks)
{
	struct rank *rank = ranks->rank;
	int r;

	if (!ranks->waiting)
		return;
	while (rank && !rank->waits)
		rank = rank->hh.next;
	if (!rank)
		return;
	rank->waits = false;
	ranks->waiting--;
	r = ranks->hooks.attach(ranks->hooks.data, rank->pid, rank->start_ns, &rank->probe);
	rank->is_refused = is_final(r);
	count_result(ranks, r);
}

void nt_probed_ranks_found(struct nt_probed_ranks *ranks, uint32_t pid, uint64_t start_boot_ns,
			   int result, struct nt_rank_probe *probe)
{
	struct rank *rank;

	count_result(ranks, result);
	HASH_FIND(hh, ranks->rank, &pid, sizeof(pid), rank);
	if (rank && rank->start_ns != start_boot_ns)
		rank = NULL;
	if (rank && !rank->probe && !ranks->is_closed && !rank->is_refused)
		rank->probe = probe;
	else
		detach(ranks, probe);
	if (rank)
		rank->is_refused |= is_final(result);
}

void nt_probed_ranks_refuse(struct nt_probed_ranks *ranks, uint32_t pid)
{
	struct rank *rank;

	HASH_FIND(hh, ranks->rank, &pid, sizeof(pid), rank);
	if (!rank || rank->is_refused)
		return;
	ranks->waiting -= rank->waits;
	rank->waits = false;
	rank->is_refused = true;
	detach(ranks, rank->probe);
	rank->probe = NULL;
	ranks->stats.failed++;
}

void nt_probed_ranks_open(struct nt_probed_ranks *ranks)
{
	if (!ranks->is_closed)
		return;
	ranks->is_closed = false;
	for (struct rank *rank = ranks->rank; rank; rank = rank->hh.next) {
		rank->waits = !rank->is_refused;
		ranks->waiting += rank->waits;
	}
}

void nt_probed_ranks_close(struct nt_probed_ranks *ranks)
{
	ranks->is_closed = true;
	ranks->waiting = 0;
	for (struct rank *rank = ranks->rank; rank; rank = rank->hh.next) {
		rank->waits = false;
		detach(ranks, rank->probe);
		rank->probe = NULL;
	}
}

void nt_probed_ranks_detach(struct nt_probed_ranks *ranks)
{
	struct rank *rank = ranks->ended;

	if (!rank)
		return;
	ranks->ended = rank->next;
	ranks->ended_count--;
	detach(ranks, rank->probe);
	free(rank);
}

void nt_probed_ranks_stats(const struct nt_probed_ranks *ranks,
			   struct nt_probed_ranks_stats *ret_stats)
{
	*ret_stats = ranks->stats;
}
