/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The store: one SQLite file with incidents, the detection state with its bus positions, and the
 * outbox of messages. The deciding thread writes through the sink and the state store, HTTP threads
 * read, and the notifier processes the outbox. All functions may be called from any thread.
 */
#ifndef NT_AGGREGATOR_STORE_STORE_H
#define NT_AGGREGATOR_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/store/sink.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_STORE_MAX_RECEIVERS = 16,
	NT_STORE_MAX_UNSAVED = 1024, /* incidents held in memory while writes fail */
	NT_STORE_MAX_PAGE = 1000,
	NT_STORE_MAX_NAME = 64, /* bytes of a receiver's name and of an incident's id */
	NT_STORE_MAX_NOTES = 20, /* of an incident */
	NT_STORE_MAX_NOTE = 2000, /* bytes of a note's text */
	NT_STORE_MAX_AUTHOR = 256, /* bytes of a person's name */
	NT_STORE_MAX_BATCH = 64, /* messages of a receiver in flight at a time */
	NT_STORE_MAX_FLAP_CHANGES = 4096, /* beginnings and ends in the window of flap control */
};

#define NT_STORE_MAX_SILENCE_NS (30 * NT_DAY)

/* Flap control: one key for each job, first culprit and class. */
struct nt_store_flap_options {
	uint32_t changes; /* beginnings and ends before a key is held; 0: none is */
	uint64_t window_ns; /* in which they are counted */
	uint64_t quiet_ns; /* without a change, until a hold ends */
	const char *exempt; /* a receiver that gets all messages; NULL: none; borrowed */
};

struct nt_store_options {
	const char *path;
	uint64_t max_bytes; /* of the file; 0: 256 MiB. Old incidents are pruned first */
	uint32_t max_incidents; /* 0: 100,000 */
	uint64_t max_age_ns; /* of a resolved incident; 0: one year */
	/*
	 * The bus is shared: messages of an earlier run are parked until the shard of their
	 * incident is adopted.
	 */
	bool shared;
	/* Names of the receivers of messages, borrowed for the call. */
	const char *const *receiver;
	size_t receivers;
	/*
	 * Whether a receiver gets the firing message of an incident. Called in the writer's thread;
	 * must not block. NULL: those of severity warning and above.
	 */
	bool (*accepts)(void *data, const char *receiver, const struct nt_wire_incident *incident);
	void *accepts_data;
	struct nt_store_flap_options flap;
};

struct nt_store_error {
	char text[512]; /* one line: the file, the problem and the remedy */
};

struct nt_store;

/*
 * Opens or creates the file (mode 0600) and its directory (0700). -EBADMSG: damaged, or not a
 * store; -ENOTSUP: made by a newer version; -EBUSY: used by another process; -ENOSPC, -EACCES … A
 * refused file is not modified. *ret_error is filled in on failure.
 */
NT_MUST_CHECK int nt_store_open(const struct nt_store_options *options, struct nt_store **ret_store,
				struct nt_store_error *ret_error);
void nt_store_close(struct nt_store *store);
NT_DEFINE_AUTO(nt_store, nt_store_close)

/*
 * For the deciding thread; both borrow the store. An incident that cannot be written is kept in
 * memory and written with a later one or by nt_store_tick().
 */
struct nt_sink nt_store_sink(struct nt_store *store);
struct nt_state_store nt_store_states(struct nt_store *store);

/* Called in the writer's thread after messages were queued; set before the first incident. */
void nt_store_on_queued(struct nt_store *store, void (*queued)(void *data), void *data);

/*
 * Called in the writer's thread after a version of an incident was stored, with the lock held: it
 * must not call the store. is_new: the store did not have the incident. Set before the first one.
 */
void nt_store_on_stored(struct nt_store *store,
			void (*stored)(void *data, const struct nt_wire_incident *incident,
				       bool is_new),
			void *data);

/* Every few seconds, from one thread: writes unsaved incidents, prunes, checkpoints the WAL. */
void nt_store_tick(struct nt_store *store, uint64_t real_ns);

/* ---- reading incidents: pending ones are not stored ------------------------------------------ */

struct nt_store_filter {
	const char *job; /* name or key; NULL: all */
	uint32_t attempt; /* 0: all */
	const char *class, *state, *severity; /* NULL: all */
	uint64_t since_ns; /* incidents that began at or after it; 0: all */
	uint64_t at_ns; /* incidents that were open at this time; 0: all */
	uint64_t before; /* `number` of the last one of the previous page; 0: the newest */
	size_t limit; /* 1 to NT_STORE_MAX_PAGE */
};

/* What people did with an incident; all 0: nothing. */
struct nt_store_handling {
	uint64_t revision; /* grows with each change */
	uint64_t acknowledged_real_ns; /* 0: it is not */
	/* Until 0: it is not, and the former is when a silence was taken back, or 0. */
	uint64_t silenced_real_ns, silenced_until_real_ns;
	char acknowledged_by[NT_STORE_MAX_AUTHOR + 1]; /* "": not given */
	char silenced_by[NT_STORE_MAX_AUTHOR + 1];
	uint32_t notes;
};

struct nt_store_page {
	struct nt_message **incident; /* bodies are incidents; newest first */
	struct nt_store_handling *handling; /* of each */
	uint64_t *number;
	size_t count;
	uint64_t next; /* `before` of the next page; 0: this is the last */
};

void nt_store_page_release(struct nt_store_page *page);
#define nt_autopage __attribute__((cleanup(nt_store_page_release)))

/*
 * The page must be zeroed; the caller releases it. Huge incidents make it shorter than the limit.
 * -ETIMEDOUT, -EIO.
 */
NT_MUST_CHECK int nt_store_list(struct nt_store *store, const struct nt_store_filter *filter,
				struct nt_store_page *ret_page);
/*
 * The ids of all firing incidents, newest first, with the key and the attempt of their jobs. `found`
 * must not call the store; it returns 0 or an errno, which ends the list.
 */
NT_MUST_CHECK int nt_store_each_firing(struct nt_store *store,
				       int (*found)(void *data, const char *id, const char *job_key,
						    uint32_t attempt),
				       void *data);
/* -ENOENT. The caller owns the message, whose body is the incident. */
NT_MUST_CHECK int nt_store_get(struct nt_store *store, const char *id,
			       struct nt_message **ret_incident);

/* ---- handling of incidents ------------------------------------------------------------------- */

enum nt_store_act {
	NT_STORE_ACKNOWLEDGE,
	NT_STORE_UNACKNOWLEDGE,
	NT_STORE_SILENCE,
	NT_STORE_UNSILENCE,
	NT_STORE_ANNOTATE,
};

struct nt_store_action {
	enum nt_store_act act;
	uint64_t real_ns; /* when */
	const char *by; /* at most NT_STORE_MAX_AUTHOR bytes; "": not given */
	uint64_t until_real_ns; /* of a silence */
	const char *text; /* of a note: 1 to NT_STORE_MAX_NOTE bytes */
};

/*
 * Does this with a stored incident. Firing messages of a silenced incident that no attempt was made
 * to send wait until the silence ends, and are dropped when the incident ends before. Reminders
 * pause. Messages of an end are not silenced. From any thread. -ENOENT; -EINVAL; -E2BIG: the cap of
 * notes; -EIO and the like.
 */
NT_MUST_CHECK int nt_store_act(struct nt_store *store, const char *id,
			       const struct nt_store_action *action);

/* Nothing was done: all 0. */
NT_MUST_CHECK int nt_store_get_handling(struct nt_store *store, const char *id,
					struct nt_store_handling *ret_handling);

struct nt_store_note {
	uint64_t real_ns;
	char by[NT_STORE_MAX_AUTHOR + 1], text[NT_STORE_MAX_NOTE + 1];
};

/* In order. Returns their number or an errno. */
NT_MUST_CHECK int nt_store_list_notes(struct nt_store *store, const char *id,
				      struct nt_store_note ret_note[NT_STORE_MAX_NOTES]);

/* ---- the outbox ------------------------------------------------------------------------------ */

struct nt_outbox_message {
	uint64_t number;
	char receiver[NT_STORE_MAX_NAME];
	char id[160]; /* of the message: stable across attempts and restarts */
	char incident[NT_STORE_MAX_NAME];
	bool resolved; /* otherwise firing */
	bool is_over; /* its incident has ended: a resolved message exists */
	uint32_t attempts; /* so far */
	/* The severities of its incident's firing messages that were not refused, as bits. */
	unsigned int severities;
	uint64_t queued_real_ns, next_real_ns;
	char *body; /* JSON; owned by the message */
	size_t body_len;
};

void nt_outbox_message_release(struct nt_outbox_message *message);

/*
 * The receiver's next message. Returns 1 and *ret_message if one is due at real_ns; otherwise 0 and
 * the next due time in *ret_next_ns (UINT64_MAX: none). A resolved message is not due before the
 * firing one of its incident is finished. The receiver has no other message in flight.
 */
NT_MUST_CHECK int nt_store_outbox_next(struct nt_store *store, const char *receiver,
				       uint64_t real_ns, struct nt_outbox_message *ret_message,
				       uint64_t *ret_next_ns);
/*
 * Further messages of the receiver that are due, which are then in flight too. The caller releases
 * them. max: at most NT_STORE_MAX_BATCH - 1.
 */
NT_MUST_CHECK int nt_store_outbox_more(struct nt_store *store, const char *receiver,
				       uint64_t real_ns, size_t max,
				       struct nt_outbox_message *ret_message, size_t *ret_count);

enum nt_outbox_result {
	NT_OUTBOX_SENT,
	NT_OUTBOX_RETRY, /* at next_real_ns */
	NT_OUTBOX_FAILED, /* permanent, surely not received: no resolved message follows */
	NT_OUTBOX_EXPIRED, /* given up, but possibly received */
};

/* Fails the waiting messages of receivers that are no longer configured; counts them. */
NT_MUST_CHECK int nt_store_outbox_fail_others(struct nt_store *store, size_t *ret_failed);

NT_MUST_CHECK int nt_store_outbox_done(struct nt_store *store, uint64_t number,
				       enum nt_outbox_result result, uint64_t now_real_ns,
				       uint64_t next_real_ns);

/* ---- incidents of the aggregator itself ------------------------------------------------------ */

/*
 * An incident that this aggregator raises about itself: it is kept and sent like others, but not
 * published, and without flap control. Errors as of nt_sink.incident; it is not kept in memory.
 */
NT_MUST_CHECK int nt_store_put_own(struct nt_store *store, const struct nt_wire_incident *incident);
/* Those that are open, at most `max`. The caller frees them. Returns their number or an errno. */
NT_MUST_CHECK int nt_store_list_own(struct nt_store *store, size_t max,
				    struct nt_message **ret_incident);

/* ---- incidents that are firing --------------------------------------------------------------- */

struct nt_store_firing {
	uint64_t number; /* in the order of the store */
	uint64_t sent_real_ns; /* when its first firing message was finished */
	unsigned int severities; /* of its firing messages, as bits */
	char *body; /* of a firing message, as the incident is now; owned */
	size_t body_len;
};

void nt_store_firing_release(struct nt_store_firing *firing, size_t count);

/*
 * Open incidents whose firing message the receiver has, or may have, in order from after `after`;
 * with those whose end is held back, as they flap.
 * Of a shared bus only those of this aggregator. The caller releases them. Returns their number or
 * an errno.
 */
NT_MUST_CHECK int nt_store_list_firing(struct nt_store *store, const char *receiver, uint64_t after,
				       size_t max, struct nt_store_firing *ret_firing);

/* ---- statistics ------------------------------------------------------------------------------ */

/* Monotonic since open, except members named `now`. */
struct nt_store_stats {
	uint64_t incidents_written, incidents_stale; /* stale: not newer than the stored version */
	uint64_t states_written, state_bytes;
	uint64_t write_errors; /* failed transactions */
	uint64_t unsaved_now, unsaved_dropped;
	uint64_t pruned;
	uint64_t queued, queue_skipped; /* messages; skipped: resolved ones without a firing one */
	uint64_t adopted; /* messages taken over from others; they may have been sent */
	uint64_t taken; /* incident versions taken from others */
	uint64_t deliveries_refused; /* others' incidents: unknown receiver, event or state */
	uint64_t flaps, flaps_now; /* keys that were, and are, held */
	uint64_t flap_held; /* messages of beginnings that were held back */
	uint64_t flap_uncounted; /* changes over the cap */
	uint64_t outbox_now;
	uint64_t incidents_now, file_bytes_now;
	bool healthy; /* the last write succeeded and nothing is unsaved */
	char problem[160]; /* reason if not healthy; otherwise "" */
};

void nt_store_stats(struct nt_store *store, struct nt_store_stats *ret_stats);

#endif
