/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the store; nobody else includes it. */
#ifndef NT_AGGREGATOR_STORE_IMPL_H
#define NT_AGGREGATOR_STORE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/db.h"
#include "aggregator/store.h"

/* An incident that the disk did not take, as its encoded message. */
struct nt_unsaved {
	struct nt_unsaved *next;
	struct nt_message *message;
};

struct nt_store {
	struct nt_store_options options; /* without path and receivers */
	char *receiver[NT_STORE_MAX_RECEIVERS];
	int lock_fd;

	pthread_mutex_t lock; /* over the writing connection and what belongs to it */
	sqlite3 *db;
	struct nt_unsaved *unsaved; /* oldest first */
	void (*queued)(void *data);
	void *queued_data;

	pthread_mutex_t read_lock; /* over the reading connection; never held with the other */
	sqlite3 *reader;
	uint64_t read_until_ns; /* monotonic: when the query under way has had its time */

	/* Read without a lock. */
	atomic_ullong incidents_written, incidents_stale, states_written, state_bytes;
	atomic_ullong write_errors, unsaved_now, unsaved_dropped, pruned, outbox_queued;
	atomic_ullong outbox_skipped, outbox_now, incidents_now, file_bytes_now;
	_Atomic(const char *) problem; /* a constant; NULL: all is well */
};

/* ---- store.c: transactions, for a holder of the lock ---------------------------------------------- */

NT_MUST_CHECK int nt_store_begin(struct nt_store *store);
/*
 * Ends the transaction: commits where r is 0, otherwise rolls back. Returns r, or why the commit
 * failed; failures are counted and show as the store's problem.
 */
NT_MUST_CHECK int nt_store_end(struct nt_store *store, int r);

/* ---- store_outbox.c ------------------------------------------------------------------------------- */

/*
 * Inside a transaction: queues what the receivers must be told about this incident. *ret_queued
 * grows by the messages.
 */
NT_MUST_CHECK int nt_store_queue(struct nt_store *store, const struct nt_incident *incident,
				 size_t *ret_queued);

/* ---- store_incident.c: for a holder of the lock ---------------------------------------------------- */

/* Writes what waits in memory, as far as the disk takes it. */
NT_MUST_CHECK int nt_store_flush(struct nt_store *store);
/* Keeps the caps. */
NT_MUST_CHECK int nt_store_prune(struct nt_store *store, uint64_t real_ns);
int nt_store_put(void *data, const struct nt_incident *incident); /* nt_sink.incident */

#endif
