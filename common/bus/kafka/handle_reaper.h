/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Termination of handles. The library may block forever on its own threads, above all if a topic
 * was deleted while being read (librdkafka 3954, 4131, 4362). A handle is therefore destroyed on a
 * thread of its own, and the caller waits for a limited time.
 */
#ifndef NT_COMMON_BUS_KAFKA_HANDLE_REAPER_H
#define NT_COMMON_BUS_KAFKA_HANDLE_REAPER_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/cleanup.h"

/* State shared with the callbacks of a client's handles; it outlives them all. */
struct nt_kafka_shared {
	atomic_uint references;
	_Atomic(const char *) certificate_reason; /* set by the library's threads; a constant */
};

/* With one reference. NULL: no memory. */
NT_MUST_CHECK struct nt_kafka_shared *nt_kafka_shared_new(void);
void nt_kafka_shared_unref(struct nt_kafka_shared *shared);

/* The opaque pointer of a handle: the state for its callbacks and its termination. */
struct nt_kafka_opaque;

/* Takes a reference of its own. NULL: no memory. */
NT_MUST_CHECK struct nt_kafka_opaque *nt_kafka_opaque_new(struct nt_kafka_shared *shared);
/* For a handle that was not made; nt_kafka_end() frees the others. */
void nt_kafka_opaque_free(struct nt_kafka_opaque *opaque);
struct nt_kafka_shared *nt_kafka_opaque_shared(const struct nt_kafka_opaque *opaque);

/* Releases a queue, which outlives its handle: it no longer writes to our descriptor. */
void nt_kafka_end_queue(rd_kafka_queue_t *queue);

/*
 * Destroys a handle of nt_kafka_client_make(); a member leaves its group first. Its topics, queues
 * and messages must be gone. After five seconds it is abandoned and counted.
 */
void nt_kafka_end(rd_kafka_t *rk, bool is_member);

/* The same without a time limit, for a handle that refers to memory freed next. */
void nt_kafka_end_fully(rd_kafka_t *rk);

/* Abandoned handles of this process that have not terminated yet. */
unsigned int nt_kafka_left_behind(void);

#endif
