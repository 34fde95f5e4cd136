/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Internals of the writer: writer.c (the caller's side: opening, publishing, flushing, closing) and
 * writer_thread.c (which serves the library). One lock protects the outbox and the handle.
 */
#ifndef NT_COMMON_BUS_KAFKA_WRITER_IMPL_H
#define NT_COMMON_BUS_KAFKA_WRITER_IMPL_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>

#include "common/bus/bus_impl.h"
#include "common/bus/bus_kafka.h"
#include "common/bus/kafka/client.h"
#include "common/bus/kafka/outbox.h"

enum {
	NT_KAFKA_FLUSH_SLICE_MS = 50,
};

#define NT_KAFKA_MAKE_AGAIN_NS NT_SECOND /* after the first failure; doubles */

struct nt_kafka_writer {
	struct nt_bus bus;
	struct nt_kafka_client client;
	char topic_name[NT_TOPIC_END][NT_KAFKA_TOPIC_BYTES];
	uint64_t linger_ns, give_up_ns, flush_ns, close_ns;
	bool is_small;
	void (*undelivered)(void *data, const struct nt_bus_record *record,
			    enum nt_bus_cause cause);
	void *data;

	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* users, acknowledgements */
	/* The following are protected by the lock; only the thread changes rk and queue. */
	rd_kafka_t *rk; /* NULL while being replaced: records wait in the outbox */
	rd_kafka_queue_t *queue; /* NULL while the old one terminates */
	unsigned int users; /* of rk outside the lock */
	struct nt_kafka_outbox outbox;
	bool must_end;
	struct nt_bus_stats stats;

	/* The thread's own: */
	bool is_broken; /* a fatal error: the handle is unusable */
	bool is_outdated; /* the credentials changed, or the leaders did and it did not notice */
	uint64_t make_mono_ns, make_wait_ns; /* time of the next attempt; the delay after it */
	uint64_t probe_mono_ns, suspect_mono_ns; /* not before these */
};

/*
 * All below: writer_thread.c. With the lock held: the library refers to the bytes until delivery.
 */
rd_kafka_resp_err_t nt_kafka_writer_send_one(struct nt_kafka_writer *writer,
					     struct nt_kafka_message *message);
/* Milliseconds until then, rounded up; 0: it is past. */
int nt_kafka_writer_ms_until(uint64_t deadline_ns);
/* With the lock held: returns after a change, or this time. */
void nt_kafka_writer_wait_for_change(struct nt_kafka_writer *writer, int timeout_ms);

/* Makes a handle with the writer's settings. The error may be NULL. */
NT_MUST_CHECK int nt_kafka_writer_make(struct nt_kafka_writer *writer, struct nt_bus_error *error,
				       rd_kafka_t **ret_rk);
void nt_kafka_writer_destroy_handle(rd_kafka_t *rk, rd_kafka_queue_t *queue);

/* The thread's function: serves until it is stopped. */
void *nt_kafka_writer_serve(void *data);
bool nt_kafka_writer_must_end(struct nt_kafka_writer *writer);

#endif
