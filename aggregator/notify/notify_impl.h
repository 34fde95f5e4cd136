/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the notifier. Private to aggregator/notify/notify*.c. */
#ifndef NT_AGGREGATOR_NOTIFY_NOTIFY_IMPL_H
#define NT_AGGREGATOR_NOTIFY_NOTIFY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/notify/notify.h"
#include "aggregator/notify/sender.h"
#include "aggregator/notify/token_bucket.h"

/* One receiver. Of its thread alone, unless stated otherwise. */
struct nt_notify_line {
	struct nt_notify *notify;
	char *name; /* constant */
	struct nt_sender sender;
	struct nt_token_bucket bucket; /* of monotonic time */
	uint64_t repeat_ns; /* constant */
	uint64_t reminded_ns; /* real time: incidents that were due until then are done */
	uint64_t remind_ns; /* monotonic: next check for reminders */
	uint64_t heartbeat_ns; /* constant; 0: none */
	uint64_t beat_ns; /* monotonic: next heartbeat */
	struct nt_outbox_message message[NT_STORE_MAX_BATCH];
	size_t messages;
	atomic_ullong count[NT_NOTIFY_RESULTS]; /* read by others */
	pthread_t thread;
	/* Under the notifier's lock: */
	bool woken;
	struct nt_notify_sample sample;
};

struct nt_notify {
	struct nt_notify_options options;
	struct nt_notify_line line[NT_STORE_MAX_RECEIVERS];
	size_t receivers, threads;

	pthread_mutex_t lock; /* over `woken`, `sample`, `stopping` and `working` */
	pthread_cond_t wake, ended;
	bool stopping;
	size_t working; /* running threads */
	atomic_bool abort;
	_Atomic uint64_t alive_until_ns; /* monotonic: heartbeats end */
	char host[128]; /* constant: the name of this aggregator in heartbeats */

	atomic_ullong orphans; /* failed messages of receivers that are no longer configured */
	atomic_ullong kube_left_out;
};

/* ---- notify.c -------------------------------------------------------------------------------- */

/* Sleeps and ignores wake-ups. False: stopping. */
bool nt_notify_pause(struct nt_notify *notify, uint64_t pause_ns);
void nt_notify_count(struct nt_notify_line *line, enum nt_notify_result result, uint64_t count);

/* ---- notify_delivery.c ----------------------------------------------------------------------- */

/*
 * Delivers what is due: one message, or several as a digest where the rate is used up. Returns 1, 0
 * if nothing is due before *ret_next_ns (real time), or an errno of the store. *ret_goes_on: false
 * when stopping.
 */
NT_MUST_CHECK int nt_notify_deliver(struct nt_notify_line *line, uint64_t *ret_next_ns,
				    bool *ret_goes_on);

/* ---- notify_reminder.c ----------------------------------------------------------------------- */

/* Sends open incidents again that are due. Returns the monotonic time of the next check. */
uint64_t nt_notify_remind(struct nt_notify_line *line);

/* ---- notify_heartbeat.c ---------------------------------------------------------------------- */

/* Sends a heartbeat that is due. Returns the monotonic time of the next check. */
uint64_t nt_notify_beat(struct nt_notify_line *line);

/* ---- notify_sample.c ------------------------------------------------------------------------- */

/* Sends the sample that was requested, if any. */
void nt_notify_send_sample(struct nt_notify_line *line);

#endif
