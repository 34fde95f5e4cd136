/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Connection slots of an HTTP server: how many may be open at once, until when each, and how much memory
 * their answers take.
 *
 * A connection is ordinary while there is an ordinary slot, in total and for its address. One
 * beyond that takes a reserved slot. When the reserved slots are taken, too, the address that has
 * most of them loses its oldest one. So slow clients can fill the ordinary slots, but a client that
 * sends its request at once is still answered.
 *
 * Each phase of a connection has a deadline that arriving bytes do not extend. A late connection is
 * cut off by shutdown(); the server then sees its end and closes it. All functions are thread-safe.
 */
#ifndef NT_COMMON_HTTP_HTTPD_SLOTS_H
#define NT_COMMON_HTTP_HTTPD_SLOTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"

struct nt_slots_limits {
	uint32_t ordinary, ordinary_per_address, reserved; /* connections; none may be 0 */
	uint64_t header_ns; /* from accept to the end of the header, TLS handshake included */
	uint64_t request_ns; /* from there to the end of the answer */
	uint64_t idle_ns; /* from there to the end of the next header */
	uint64_t reserved_ns; /* from accept to the end of the answer, in a reserved slot */
	uint64_t answer_bytes; /* of all answers that are not sent yet; 0: no limit */
	uint64_t answer_bytes_per_address; /* 0: no limit */
};

struct nt_slot_address; /* a client address and its slot counts */

struct nt_slot {
	struct nt_slot *next, *previous;
	struct nt_slot_address *address;
	int fd; /* borrowed */
	uint64_t deadline_ns; /* monotonic */
	bool is_reserved, is_cut;
	uint64_t answer_bytes; /* of its answer, until that is sent */
	void *request; /* the owner's: of the connection, now; not touched here */
};

struct nt_slots_stats {
	uint32_t ordinary, reserved; /* now */
	uint64_t answer_bytes; /* now */
	uint64_t over_limit; /* connections that got a reserved slot */
	uint64_t evicted; /* of those: closed in favour of a later one */
	uint64_t reaped; /* closed at their deadline */
};

struct nt_slots {
	struct nt_slots_limits limits;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t wake;
	struct nt_slot *first[2]; /* ordinary, reserved; the latest first */
	struct nt_slot_address *addresses; /* by address: a hash table */
	struct nt_slots_stats stats;
	uint64_t wakes_ns; /* next check of nt_slots_run() */
	bool is_ending;
};

void nt_slots_init(struct nt_slots *slots, const struct nt_slots_limits *limits);
void nt_slots_destroy(struct nt_slots *slots); /* all slots must have been left */

/* A connection was accepted. The address may be NULL: all of these count as one. -ENOMEM. */
NT_MUST_CHECK int nt_slots_enter(struct nt_slots *slots, int fd, const struct sockaddr *address,
				 uint64_t mono_ns, struct nt_slot **ret_slot);
/* The header of a request is complete; the answer is sent. */
void nt_slots_request(struct nt_slots *slots, struct nt_slot *slot, uint64_t mono_ns);
void nt_slots_idle(struct nt_slots *slots, struct nt_slot *slot, uint64_t mono_ns);
/*
 * The answer has this size. False: those that are not sent yet take too much memory. One that is alone,
 * in total and for its address, is taken.
 */
NT_MUST_CHECK bool nt_slots_answer(struct nt_slots *slots, struct nt_slot *slot, uint64_t bytes);
/* A new deadline of an ordinary slot, for an answer that is long on purpose. */
void nt_slots_extend(struct nt_slots *slots, struct nt_slot *slot, uint64_t deadline_mono_ns);
/* Called before the descriptor is closed. Frees the slot; NULL is allowed. */
void nt_slots_leave(struct nt_slots *slots, struct nt_slot *slot);

/* Shuts down late connections. Returns the next deadline, or UINT64_MAX. */
uint64_t nt_slots_reap(struct nt_slots *slots, uint64_t mono_ns);

/* Calls nt_slots_reap() when due, until nt_slots_end(): the body of a thread. */
void nt_slots_run(struct nt_slots *slots);
void nt_slots_end(struct nt_slots *slots);

/*
 * Raises the limit of open files as far as possible, and leaves descriptors to the rest of the program:
 * at that limit nothing is accepted, and no file opened. Returns how many ordinary slots are possible.
 */
uint32_t nt_slots_fit(uint32_t wanted, uint32_t reserved);

void nt_slots_stats(struct nt_slots *slots, struct nt_slots_stats *ret_stats);

#endif
