/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/admission_queue.h"

#include <errno.h>
#include <string.h>

#include "common/base/search.h"

enum {
	FEW_CALLS = 4, /* fewer may be less than a step */
};

struct nt_admission_slot {
	uint64_t due_ns;
	size_t entry;
};

/* A queued session that becomes due when this communicator becomes known. */
struct nt_admission_waiter {
	uint64_t comm;
	size_t entry;
};

static bool has_known_comm(const struct nt_job_key *key, const struct nt_window *window)
{
	struct nt_shared_comm_index *index;

	for (size_t i = 0; i < window->comms; i++) {
		if (window->comm[i].id_is_local || window->comm[i].size < 2)
			continue;
		/* The first session of a key has no job to be connected to. */
		if (!key->job)
			return true;
		HASH_FIND(hh, key->shared_comm, &window->comm[i].id, sizeof(uint64_t), index);
		if (index)
			return true;
	}
	return false;
}

/*
 * Whether the windows hold so few calls that the communicators that the rank shares with others of
 * a job may not be among them yet.
 */
static bool has_few_calls(const struct nt_job_key *key, const struct nt_rank_session *session)
{
	uint64_t calls = 0;

	if (!key->job || !session->rank_known)
		return false;
	/* Ends early: this is called for each message of a session that waits. */
	for (size_t i = 0; i < session->waitings && calls < FEW_CALLS; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;

		for (size_t j = 0; j < window->comms && calls < FEW_CALLS; j++)
			for (size_t k = 0; k < window->comm[j].ops && calls < FEW_CALLS; k++)
				calls += window->comm[j].size > 1 ? window->comm[j].op[k].calls : 0;
	}
	return calls > 0 && calls < FEW_CALLS;
}

uint64_t nt_rank_session_due_ns(const struct nt_job_key *key, const struct nt_rank_session *session)
{
	uint64_t due;

	if (!session->waitings)
		return UINT64_MAX;
	due = session->waiting[0].end_ns +
	      (has_few_calls(key, session) ? NT_JOBS_ADMISSION_FEW_NS : NT_JOBS_ADMISSION_NS);
	for (size_t i = 0; i < session->waitings && session->waiting[i].end_ns < due; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;

		if (window->ended || window->rank.size == 1 || has_known_comm(key, window))
			return session->waiting[i].end_ns;
	}
	return due;
}

int nt_admission_compare(const void *a, const void *b)
{
	const struct nt_admission_entry *left = a, *right = b;
	const struct nt_rank_session *x = left->session, *y = right->session;
	int order;

	if (left->due_ns != right->due_ns)
		return left->due_ns < right->due_ns ? -1 : 1;
	order = strcmp(left->node, right->node);
	if (order)
		return order;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_boot_ns != y->start_boot_ns)
		return x->start_boot_ns < y->start_boot_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

void nt_admission_release(struct nt_admission *queue)
{
	free(queue->entry);
	free(queue->slot);
	free(queue->waiter);
	free(queue->batch);
	*queue = (struct nt_admission){0};
}

/* ---- the heap -------------------------------------------------------------------------------- */

static void swap(struct nt_admission_slot *a, struct nt_admission_slot *b)
{
	const struct nt_admission_slot kept = *a;

	*a = *b;
	*b = kept;
}

static int push(struct nt_admission *queue, size_t entry)
{
	struct nt_admission_slot *slot;
	size_t at = queue->slots;
	int r = nt_jobs_grow(&queue->slot, queue->slots, &queue->slot_cap, sizeof(*slot));

	if (r < 0)
		return r;
	slot = queue->slot;
	slot[queue->slots++] = (struct nt_admission_slot){
		.due_ns = queue->entry[entry].due_ns,
		.entry = entry,
	};
	for (; at && slot[at].due_ns < slot[(at - 1) / 2].due_ns; at = (at - 1) / 2)
		swap(&slot[at], &slot[(at - 1) / 2]);
	return 0;
}

static void pop(struct nt_admission *queue)
{
	struct nt_admission_slot *slot = queue->slot;
	size_t at = 0, least;

	slot[0] = slot[--queue->slots];
	while ((least = 2 * at + 1) < queue->slots) {
		if (least + 1 < queue->slots && slot[least + 1].due_ns < slot[least].due_ns)
			least++;
		if (slot[at].due_ns <= slot[least].due_ns)
			return;
		swap(&slot[at], &slot[least]);
		at = least;
	}
}

uint64_t nt_admission_due_ns(struct nt_admission *queue)
{
	while (queue->slots) {
		const struct nt_admission_entry *entry = &queue->entry[queue->slot[0].entry];

		if (entry->session && !entry->is_out && entry->due_ns == queue->slot[0].due_ns)
			return entry->due_ns;
		pop(queue);
	}
	return UINT64_MAX;
}

static int by_entry(const void *a, const void *b)
{
	return nt_admission_compare(*(struct nt_admission_entry *const *)a,
				    *(struct nt_admission_entry *const *)b);
}

size_t nt_admission_take(struct nt_admission *queue, uint64_t now_ns)
{
	size_t count = 0;

	while (queue->slots && nt_admission_due_ns(queue) <= now_ns) {
		struct nt_admission_entry *entry = &queue->entry[queue->slot[0].entry];

		entry->is_out = true;
		queue->batch[count++] = entry;
	}
	if (count > 1)
		qsort(queue->batch, count, sizeof(struct nt_admission_entry *), by_entry);
	return count;
}

int nt_admission_put(struct nt_admission *queue, struct nt_admission_entry *entry, uint64_t due_ns)
{
	entry->due_ns = due_ns;
	entry->is_out = false;
	return push(queue, (size_t)(entry - queue->entry));
}

/* ---- awaited communicators ------------------------------------------------------------------- */

static int by_comm(const void *a, const void *b)
{
	const struct nt_admission_waiter *left = a, *right = b;

	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	return (left->entry > right->entry) - (left->entry < right->entry);
}

/* A session admitted with its first window cannot be due earlier. */
static int add_waiters(struct nt_admission *queue, size_t entry)
{
	const struct nt_rank_session *session = queue->entry[entry].session;

	for (size_t i = 0; i < session->waitings; i++) {
		const struct nt_window *window = &session->waiting[i].message->window;

		if (session->waiting[i].end_ns >= queue->entry[entry].due_ns)
			break;
		for (size_t j = 0; j < window->comms; j++) {
			int r = nt_jobs_grow(&queue->waiter, queue->waiters, &queue->waiter_cap,
					     sizeof(*queue->waiter));

			if (r < 0)
				return r;
			queue->waiter[queue->waiters++] = (struct nt_admission_waiter){
				.comm = window->comm[j].id,
				.entry = entry,
			};
		}
	}
	return 0;
}

static size_t find_waiter(const struct nt_admission *queue, uint64_t comm)
{
	return nt_search_first(0, queue->waiters, i, queue->waiter[i].comm >= comm);
}

int nt_admission_learn(struct nt_admission *queue, const struct nt_job_key *key, uint64_t comm)
{
	int r = 0;

	for (size_t i = find_waiter(queue, comm);
	     i < queue->waiters && queue->waiter[i].comm == comm && r == 0; i++) {
		struct nt_admission_entry *entry = &queue->entry[queue->waiter[i].entry];
		uint64_t due_ns;

		/* Taken entries are examined again in any case. */
		if (!entry->session || entry->is_out)
			continue;
		due_ns = nt_rank_session_due_ns(key, entry->session);
		if (due_ns < entry->due_ns)
			r = nt_admission_put(queue, entry, due_ns);
	}
	return r;
}

int nt_admission_make(const struct nt_jobs *jobs, const struct nt_job_key *key,
		      struct nt_admission *queue)
{
	int r = 0;

	queue->entry = calloc(key->admissions + 1, sizeof(*queue->entry));
	queue->batch = calloc(key->admissions + 1, sizeof(struct nt_admission_entry *));
	if (!queue->entry || !queue->batch)
		return -ENOMEM;
	for (size_t i = 0; i < key->admissions && r == 0; i++) {
		struct nt_rank_session *session = key->admission[i];

		queue->entry[queue->entries++] = (struct nt_admission_entry){
			.session = session,
			.due_ns = nt_rank_session_due_ns(key, session),
			.node = jobs->node_at[session->node]->name,
		};
		r = push(queue, i);
		if (r == 0)
			r = add_waiters(queue, i);
	}
	if (queue->waiters > 1)
		qsort(queue->waiter, queue->waiters, sizeof(*queue->waiter), by_comm);
	return r;
}
