/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The end of a handle. The library may wait for its own threads for ever, above all where a topic went
 * while it was read (librdkafka 3954, 4131, 4362), so a handle ends on a thread of its own, and who ends
 * it waits for a while only.
 */
#ifndef NT_COMMON_BUS_KAFKA_HANDLE_REAPER_H
#define NT_COMMON_BUS_KAFKA_HANDLE_REAPER_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/cleanup.h"

/* What callbacks of a client's handles may touch; it outlives them all. */
struct nt_kafka_shared {
	atomic_uint references;
	_Atomic(const char *) certificate_reason; /* found by the library's threads; a constant */
};

/* With one reference. NULL: no memory. */
NT_MUST_CHECK struct nt_kafka_shared *nt_kafka_shared_new(void);
void nt_kafka_shared_unref(struct nt_kafka_shared *shared);

/* The opaque of a handle: what its callbacks may touch, and what its end takes. */
struct nt_kafka_opaque;

/* Takes a reference of its own. NULL: no memory. */
NT_MUST_CHECK struct nt_kafka_opaque *nt_kafka_opaque_new(struct nt_kafka_shared *shared);
/* Of a handle that was not made; nt_kafka_end() frees the others. */
void nt_kafka_opaque_free(struct nt_kafka_opaque *opaque);
struct nt_kafka_shared *nt_kafka_opaque_shared(const struct nt_kafka_opaque *opaque);

/* Lets go of a queue, which outlives its handle's end: it writes to our descriptor no more. */
void nt_kafka_end_queue(rd_kafka_queue_t *queue);

/*
 * Ends a handle of nt_kafka_client_make(), a member of a group in order. Its topics, queues and messages
 * are gone before. Where it has not ended after five seconds it is left behind, and counted.
 */
void nt_kafka_end(rd_kafka_t *rk, bool is_member);

/* The same of one that refers to what is freed next: waits for as long as it takes. */
void nt_kafka_end_fully(rd_kafka_t *rk);

/* How many of this process were left behind and have not ended yet. */
unsigned int nt_kafka_left_behind(void);

#endif
