/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the store. Private to aggregator/store/. */
#ifndef NT_AGGREGATOR_STORE_STORE_IMPL_H
#define NT_AGGREGATOR_STORE_STORE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/store/db.h"
#include "aggregator/store/store.h"

/* The shard of incidents of the aggregator itself, which no partition has. */
#define NT_STORE_OWN_SHARD      4294967295
#define NT_STORE_OWN_SHARD_TEXT "4294967295"

/* An incident that could not be written. */
struct nt_unsaved {
	struct nt_unsaved *next;
	struct nt_message *message;
	bool is_given_up; /* its shard was given up: the new owner publishes it */
};

struct nt_store {
	struct nt_store_options options; /* without path and receivers */
	char *receiver[NT_STORE_MAX_RECEIVERS];
	int lock_fd;

	pthread_mutex_t lock; /* covers the writing connection and its data */
	pthread_cond_t landed; /* an in-flight message was finished */
	/* Messages in flight by receiver; 0: none. */
	uint64_t flying[NT_STORE_MAX_RECEIVERS][NT_STORE_MAX_BATCH];
	sqlite3 *db;
	struct nt_unsaved *unsaved; /* oldest first */
	void (*queued)(void *data);
	void *queued_data;
	void (*stored)(void *data, const struct nt_wire_incident *incident, bool is_new);
	void *stored_data;

	pthread_mutex_t read_lock; /* covers the reading connection; never held with `lock` */
	sqlite3 *reader;
	uint64_t read_until_ns; /* monotonic: deadline of the current query */

	/* Read without a lock. */
	atomic_ullong incidents_written, incidents_stale, states_written, state_bytes;
	atomic_ullong write_errors, unsaved_now, unsaved_dropped, pruned, outbox_queued;
	atomic_ullong outbox_skipped, outbox_now, incidents_now, file_bytes_now;
	atomic_ullong adopted, taken, deliveries_refused;
	atomic_ullong flaps, flaps_now, flap_held, flap_uncounted;
	atomic_bool unpublished; /* some incident may have unpublished changes */
	_Atomic(const char *) problem; /* a constant; NULL: none */
};

/* ---- store_commit.c: transactions; the caller holds the lock --------------------------------- */

NT_MUST_CHECK int nt_store_begin(struct nt_store *store);
/*
 * Ends the transaction: commits if r is 0, otherwise rolls back. Returns r or the error of the
 * commit. Failures are counted and reported as the store's problem.
 */
NT_MUST_CHECK int nt_store_end(struct nt_store *store, int r);

/* That long before a time; 0: before all times. */
static inline uint64_t nt_store_before(uint64_t real_ns, uint64_t span_ns)
{
	return real_ns > span_ns ? real_ns - span_ns : 0;
}

/* ---- store_outbox.c -------------------------------------------------------------------------- */

/*
 * Inside a transaction: queues the messages for this incident and adds their number to *ret_queued.
 */
NT_MUST_CHECK int nt_store_queue(struct nt_store *store, const struct nt_wire_incident *incident,
				 size_t *ret_queued);

/* The same without flap control. */
NT_MUST_CHECK int nt_store_queue_freely(struct nt_store *store,
					const struct nt_wire_incident *incident,
					size_t *ret_queued);

/* ---- store_flap.c: the caller holds the lock ------------------------------------------------- */

enum {
	NT_STORE_FLAP_KEY = 65, /* a hex digest and its NUL */
};

/* A hold, and a held end, of another aggregator are given up: longer than any time of quiet. */
#define NT_STORE_FLAP_FOREIGN_NS (8 * NT_DAY)

/* The key of an incident in flap control. */
struct nt_store_flap {
	char key[NT_STORE_FLAP_KEY];
	uint64_t changes; /* while the key is held; 0: it is not */
	bool is_new; /* this change was not counted before */
};

/* Inside a transaction, for each version of an incident: counts its beginning and its end. */
NT_MUST_CHECK int nt_store_flap_note(struct nt_store *store,
				     const struct nt_wire_incident *incident,
				     struct nt_store_flap *ret_flap);
/* Whether the incident's message to this receiver is held back: 1, 0 or an errno. */
NT_MUST_CHECK int nt_store_flap_holds(struct nt_store *store, const struct nt_store_flap *flap,
				      const struct nt_wire_incident *incident,
				      const char *receiver);
/* After its messages: an incident that ended and of which nothing waits is no longer kept. */
NT_MUST_CHECK int nt_store_flap_forget(struct nt_store *store, const struct nt_store_flap *flap,
				       const struct nt_wire_incident *incident);
/* Ends the holds of keys that are quiet, and removes old changes. */
NT_MUST_CHECK int nt_store_flap_tick(struct nt_store *store, uint64_t real_ns);

/* ---- store_incident.c: the caller holds the lock --------------------------------------------- */

/* Writes the unsaved incidents until one fails. */
NT_MUST_CHECK int nt_store_flush(struct nt_store *store);
/* Enforces the caps. */
NT_MUST_CHECK int nt_store_prune(struct nt_store *store, uint64_t real_ns);
int nt_store_put(void *data, const struct nt_wire_incident *incident); /* nt_sink.incident */

/*
 * Inside a transaction: returns 1 and the stored version, or 0. nt_store_write() stores another
 * aggregator's incident as is and marks one of ours as unpublished.
 */
NT_MUST_CHECK int nt_store_version(struct nt_store *store, const char *id, uint64_t *ret_version);
NT_MUST_CHECK int nt_store_write(struct nt_store *store, const struct nt_wire_incident *incident,
				 const struct nt_buf *body, bool is_ours);
NT_MUST_CHECK int nt_store_encode(const struct nt_wire_incident *incident, struct nt_buf *buf);
/* Decodes a column that holds an encoded incident. */
NT_MUST_CHECK int nt_store_decode(sqlite3_stmt *stmt, int column, struct nt_message **ret_message);
enum {
	NT_STORE_LIST_SQL = 1200,
};

/* The query of nt_store_list(). */
void nt_store_list_sql(const struct nt_store_filter *filter, char sql[NT_STORE_LIST_SQL]);
/* Marks the incident as unpublished: it or a delivery has changed. */
NT_MUST_CHECK int nt_store_touch(struct nt_store *store, const char *id);

/* ---- store_outbox.c -------------------------------------------------------------------------- */

/* Inside a transaction: removes the firing message that waits and of which no attempt was made. */
NT_MUST_CHECK int nt_store_remove_waiting(struct nt_store *store, const char *incident,
					  const char *receiver, int *ret_removed);

enum nt_store_severity {
	NT_STORE_SEVERITY_INFO,
	NT_STORE_SEVERITY_WARNING,
	NT_STORE_SEVERITY_CRITICAL,
	NT_STORE_SEVERITY_END,
};

/* "info" …; NULL for none. */
const char *nt_store_severity_name(enum nt_store_severity severity);
/* NT_STORE_SEVERITY_END if the name is unknown. */
enum nt_store_severity nt_store_severity_of(const char *name);

/*
 * Writes the body of a message; deterministic. flaps: the changes of a firing incident that flaps;
 * 0: it does not. -ENOMEM.
 */
NT_MUST_CHECK int nt_store_body(const struct nt_wire_incident *incident, bool resolved,
				uint64_t flaps, struct nt_buf *body);
void nt_store_count_outbox(struct nt_store *store);

/* ---- store_handling.c ------------------------------------------------------------------------ */

/* The columns of a select, from `first` on: those of NT_STORE_HANDLING_COLUMNS. */
#define NT_STORE_HANDLING_COLUMNS                                                                  \
	"coalesce(handling.revision, 0), handling.acknowledged_ns, handling.acknowledged_by,"      \
	" handling.silenced_ns, handling.silenced_by, handling.silenced_until_ns, handling.notes"
void nt_store_read_handling(sqlite3_stmt *select, int first,
			    struct nt_store_handling *ret_handling);
/* As it is published. Borrows the texts. */
struct nt_handling nt_store_handling_of(const struct nt_store_handling *handling);
/*
 * Inside a transaction: takes what was done at another aggregator with an incident, unless ours is as
 * new. Of the same revision both are joined. Sets *ret_is_behind if some of ours is newer.
 */
NT_MUST_CHECK int nt_store_take_handling(struct nt_store *store,
					 const struct nt_wire_incident *incident,
					 bool *ret_is_behind);
/* The caller holds the lock. *ret_until_ns is 0 unless it is silenced at real_ns. */
NT_MUST_CHECK int nt_store_silenced_until(struct nt_store *store, const char *id, uint64_t real_ns,
					  uint64_t *ret_until_ns);
/*
 * Inside a transaction, when an incident ends: removes the firing messages to the receiver that wait
 * for the end of a silence, and counts them as skipped.
 */
NT_MUST_CHECK int nt_store_drop_silenced(struct nt_store *store, const char *id,
					 const char *receiver);
/* Inside a transaction: removes those of incidents that are no longer stored. */
NT_MUST_CHECK int nt_store_forget_handling(struct nt_store *store);
/* Locks the reading connection, until nt_store_end_read(). */
void nt_store_begin_read(struct nt_store *store);
void nt_store_end_read(struct nt_store *store);

/* ---- store_share.c: of nt_sink; store_state.c: of nt_state_store ----------------------------- */

int nt_store_take(void *data, const struct nt_wire_incident *incident, bool is_ours);
int nt_store_publish(void *data, const struct nt_sink_bus_producer *bus_producer);
int nt_store_adopt(void *data, uint32_t shard, uint64_t real_ns);
int nt_store_release(void *data, uint32_t shard);

int nt_store_save_state(void *data, const struct nt_state_set *set);
int nt_store_load_state(void *data, uint32_t shard,
			int (*loaded)(void *loader, const struct nt_state_set *set), void *loader);

#endif
