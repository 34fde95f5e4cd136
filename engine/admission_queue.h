/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The admission queue: rank sessions that wait for a job, in the order in which they are due. When
 * a communicator becomes known, sessions with it become due at once; nothing else changes the order
 * during admission.
 */
#ifndef NT_ENGINE_ADMISSION_QUEUE_H
#define NT_ENGINE_ADMISSION_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/job_impl.h"

/* A queued session and its sort key. */
struct nt_admission_entry {
	struct nt_rank_session *session; /* NULL: it has left the queue */
	uint64_t due_ns;
	const char *node;
	bool is_out; /* taken from the queue */
};

/* By due time, then by unique keys, so that the order of arrival has no effect. */
int nt_admission_compare(const void *a, const void *b);

struct nt_admission_slot;
struct nt_admission_waiter;

struct nt_admission {
	/* one per session, in the order of the key's admission list */
	struct nt_admission_entry *entry;
	size_t entries;
	struct nt_admission_slot *slot; /* a heap; rescheduled entries are in it twice */
	size_t slots, slot_cap;
	struct nt_admission_waiter *waiter; /* ascending by communicator */
	size_t waiters, waiter_cap;
	struct nt_admission_entry **batch; /* of the last nt_admission_take() */
};

/*
 * Queues all sessions of the key, borrowed. `queue` is zeroed before; release it in every case.
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_admission_make(const struct nt_jobs *jobs, const struct nt_job_key *key,
				    struct nt_admission *queue);
void nt_admission_release(struct nt_admission *queue);

/* When the first session is due; UINT64_MAX: the queue is empty. */
uint64_t nt_admission_due_ns(struct nt_admission *queue);

/* Moves the sessions due by now_ns to queue->batch, in order; returns their number. */
size_t nt_admission_take(struct nt_admission *queue, uint64_t now_ns);

/* Requeues an entry with a new due time. -ENOMEM. */
NT_MUST_CHECK int nt_admission_put(struct nt_admission *queue, struct nt_admission_entry *entry,
				   uint64_t due_ns);

/* Makes the sessions with this communicator due: it is known now. -ENOMEM. */
NT_MUST_CHECK int nt_admission_learn(struct nt_admission *queue, const struct nt_job_key *key,
				     uint64_t comm);

#endif
