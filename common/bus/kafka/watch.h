/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The thread beside a reader: it serves the library's errors, fetches the number of partitions of
 * each topic and their ends, and detects changed credentials. Updates make the reader's descriptor
 * readable.
 */
#ifndef NT_COMMON_BUS_KAFKA_WATCH_H
#define NT_COMMON_BUS_KAFKA_WATCH_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdbool.h>

#include "common/bus/kafka/client.h"

struct nt_kafka_watch {
	struct nt_kafka_client *client; /* borrowed, as the next three */
	rd_kafka_t *rk;
	rd_kafka_topic_t *const *topics; /* [NT_TOPIC_END]; NULL: not wanted */
	int event_fd;
	rd_kafka_queue_t *queue;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* The following are protected by the lock. */
	uint32_t partitions[NT_TOPIC_END]; /* 0: none, or not known yet */
	uint64_t generation; /* of the above; 0: nothing is known yet */
	bool is_stale; /* the credentials have changed */
	/* since when no broker reports the ends of partitions; 0: they do */
	uint64_t without_ends_mono_ns;
	rd_kafka_topic_partition_list_t *ends; /* NULL: to be requested */
	bool wants_look; /* before it is due */
	bool wants_call; /* the reader requested a wake-up */
	bool must_end;
};

/* All borrowed until nt_kafka_watch_end(). */
NT_MUST_CHECK int nt_kafka_watch_start(struct nt_kafka_watch *watch, struct nt_kafka_client *client,
				       rd_kafka_t *rk, rd_kafka_topic_t *const *topics,
				       int event_fd);
void nt_kafka_watch_end(struct nt_kafka_watch *watch);

struct nt_kafka_news {
	uint32_t partitions[NT_TOPIC_END];
	uint64_t generation;
	bool is_stale;
	/* how long no end of partitions was reported, although all brokers are up */
	uint64_t without_ends_ns;
};

void nt_kafka_watch_get(struct nt_kafka_watch *watch, struct nt_kafka_news *ret_news);
/* Waits for the first update. -ETIMEDOUT. */
NT_MUST_CHECK int nt_kafka_watch_wait(struct nt_kafka_watch *watch, int timeout_ms);
/*
 * The ends of all partitions, requested after the previous call: the offsets, and in "opaque" the
 * topic. NULL: no update. The caller frees it.
 */
rd_kafka_topic_partition_list_t *nt_kafka_watch_take_ends(struct nt_kafka_watch *watch);
/* Requests the ends within about a second. */
void nt_kafka_watch_hurry(struct nt_kafka_watch *watch);
/* Makes the descriptor readable within about a second. */
void nt_kafka_watch_call(struct nt_kafka_watch *watch);

#endif
