/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reader in its four parts: reader.c (opening, waiting, records), fetch.c (from where each
 * partition is fetched), stall.c (whether it is) and group.c (which partitions are ours). All on the
 * caller's thread.
 */
#ifndef NT_COMMON_BUS_KAFKA_READER_IMPL_H
#define NT_COMMON_BUS_KAFKA_READER_IMPL_H

#include <librdkafka/rdkafka.h>

#include "common/bus/bus_impl.h"
#include "common/bus/bus_kafka.h"
#include "common/bus/kafka/client.h"
#include "common/bus/kafka/partition.h"
#include "common/bus/kafka/watch.h"

enum {
	NT_KAFKA_BATCH = 128,
};

struct nt_kafka_group {
	char *name, *member;
	uint32_t grouped;
	uint64_t session_ns;
	void (*assigned)(void *data, struct nt_bus_position *position);
	void (*revoked)(void *data, const struct nt_bus_position *position, bool is_lost);
	void *data;
	rd_kafka_t *rk; /* for the membership alone: it fetches nothing */
	rd_kafka_queue_t *queue;
	unsigned int since_poll; /* records */
	/*
	 * Who was cut off may be taken for its own double when it comes back, and is fenced off for
	 * good by the library: then it joins anew. A real double is found out, because one of the two
	 * has had its share for long.
	 */
	uint64_t share_mono_ns; /* since when we have a share; 0: we have none */
	uint64_t rejoin_mono_ns; /* not before this; 0: there is no need */
	unsigned int rejoins; /* since a share lasted */
	uint64_t patience_ns; /* with a share that is owed */
};

struct nt_kafka_reader {
	struct nt_bus_reader bus;
	struct nt_kafka_client client;
	uint32_t topics;
	uint64_t idle_ns;
	uint64_t stall_ns;
	int event_fd;
	uint64_t from_real_ns; /* for partitions that appear later, too */

	rd_kafka_t *rk;
	rd_kafka_queue_t *queue; /* of the records of all partitions */
	rd_kafka_topic_t *topic[NT_TOPIC_END]; /* NULL: not wanted */
	struct nt_kafka_partitions partitions[NT_TOPIC_END];
	struct nt_kafka_watch watch;
	uint64_t reconnect_mono_ns; /* not before this, after a failure */
	bool is_stuck; /* only a new client gets on */
	bool was_empty; /* nothing waited to be read, at some time since the ends were looked at */
	uint64_t unstuck_mono_ns; /* when a client was made anew because of that; 0: never */
	uint64_t patience_ns; /* with brokers that do not say where partitions end */
	uint64_t generation; /* of the watch's news, as far as we know it */

	bool must_start; /* a partition may have to be started */
	uint64_t retry_mono_ns; /* not before this, after a failure; 0: at once */

	rd_kafka_message_t *current; /* whose record was returned last */
	rd_kafka_message_t *batch[NT_KAFKA_BATCH];
	size_t batch_at, batch_count;

	struct nt_kafka_group *group; /* NULL: none */
};

/* ---- fetch.c ---- */

/* Starts all partitions that are to be read and are not. */
void nt_kafka_fetch_start(struct nt_kafka_reader *reader);
/* Ends the fetching of a partition; what came in advance is forgotten. */
void nt_kafka_fetch_stop(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition);
/* The offsets behind the last records of all known partitions, as the place to start from. */
NT_MUST_CHECK int nt_kafka_fetch_from_end(struct nt_kafka_reader *reader);

/* ---- stall.c ---- */

/*
 * The library may never get on, and says nothing: its releases from 2.1 on take what they hear of a
 * topic that was made anew for outdated, for as long as they live. Compares where we are with where
 * partitions end; true where only a new client gets on.
 */
bool nt_kafka_stall_look(struct nt_kafka_reader *reader,
			 const rd_kafka_topic_partition_list_t *ends);
/*
 * The same where these releases cannot even be told where partitions end, for so long. Slow brokers look
 * so, too: with them patience grows.
 */
bool nt_kafka_stall_hear(struct nt_kafka_reader *reader, uint64_t deaf_ns);

/* ---- group.c ---- */

/* Copies what it needs. */
NT_MUST_CHECK int nt_kafka_group_new(const struct nt_bus_group *options,
				     struct nt_kafka_group **ret_group);
NT_MUST_CHECK int nt_kafka_group_join(struct nt_kafka_reader *reader, struct nt_bus_error *error);
/* Serves what the group wants; calls assigned and revoked. */
void nt_kafka_group_serve(struct nt_kafka_reader *reader);
/* Gives all back. */
void nt_kafka_group_leave(struct nt_kafka_reader *reader);
void nt_kafka_group_free(struct nt_kafka_group *group);
NT_MUST_CHECK int nt_kafka_group_commit(struct nt_bus_reader *bus,
					const struct nt_bus_position *positions, size_t count);

#endif
