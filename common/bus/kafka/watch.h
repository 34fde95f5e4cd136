/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The thread beside a reader: it serves the library's errors, learns how many partitions each topic
 * has and where they end, and notices new secrets. Whoever waits on the reader's descriptor is woken
 * when there is news.
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
	bool is_stale; /* the secrets have changed */
	uint64_t deaf_mono_ns; /* since when nobody says where partitions end; 0: they do */
	rd_kafka_topic_partition_list_t *ends; /* NULL: to be asked for */
	bool wants_look; /* sooner than it is due */
	bool wants_call; /* the reader asked to be woken in a while */
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
	/* for how long nobody has said where partitions end, though all are there */
	uint64_t deaf_ns;
};

void nt_kafka_watch_get(struct nt_kafka_watch *watch, struct nt_kafka_news *ret_news);
/* Waits for the first news. -ETIMEDOUT. */
NT_MUST_CHECK int nt_kafka_watch_wait(struct nt_kafka_watch *watch, int timeout_ms);
/*
 * Where all partitions ended, asked after the call before: the offsets, and as "opaque" the topic. NULL:
 * no news. The caller frees it.
 */
rd_kafka_topic_partition_list_t *nt_kafka_watch_take_ends(struct nt_kafka_watch *watch);
/* The next ends in about a second. */
void nt_kafka_watch_hurry(struct nt_kafka_watch *watch);
/* The descriptor becomes readable in about a second. */
void nt_kafka_watch_call(struct nt_kafka_watch *watch);

#endif
