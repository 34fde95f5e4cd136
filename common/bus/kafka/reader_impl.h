/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Internals of the reader: reader.c (opening, polling, records), fetch.c (where each partition is
 * fetched from), fetch_stall.c (whether it progresses) and group.c (assignment). All on the
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
	rd_kafka_t *rk; /* for the membership only: it fetches nothing */
	rd_kafka_queue_t *queue;
	unsigned int since_poll; /* records */
	/*
	 * A member that lost its connection may be taken for its own duplicate when it returns. The
	 * library then fences it permanently, and it rejoins. A real duplicate is recognised
	 * because one of the two has had an assignment for long.
	 */
	uint64_t share_mono_ns; /* since when we have an assignment; 0: none */
	uint64_t rejoin_mono_ns; /* not before this; 0: not needed */
	unsigned int rejoins; /* since an assignment lasted */
	uint64_t patience_ns; /* with an assignment that is due */
};

struct nt_kafka_reader {
	struct nt_bus_reader bus;
	struct nt_kafka_client client;
	uint32_t topics;
	uint64_t idle_ns;
	uint64_t stall_ns;
	int event_fd;
	uint64_t from_real_ns; /* also for partitions added later */

	rd_kafka_t *rk;
	rd_kafka_queue_t *queue; /* of the records of all partitions */
	rd_kafka_topic_t *topic[NT_TOPIC_END]; /* NULL: not wanted */
	struct nt_kafka_partitions partitions[NT_TOPIC_END];
	struct nt_kafka_watch watch;
	uint64_t reconnect_mono_ns; /* not before this, after a failure */
	bool is_stuck; /* only a new client can continue */
	bool was_empty; /* the queue was empty at some time since the ends were requested */
	uint64_t unstuck_mono_ns; /* when a client was replaced for that; 0: never */
	uint64_t patience_ns; /* with brokers that do not report the ends of partitions */
	uint64_t generation; /* of the watch's last update applied here */

	bool must_start; /* a partition may have to be started */
	uint64_t retry_mono_ns; /* not before this, after a failure; 0: at once */

	rd_kafka_message_t *current; /* the last record returned */
	rd_kafka_message_t *batch[NT_KAFKA_BATCH];
	size_t batch_at, batch_count;

	struct nt_kafka_group *group; /* NULL: none */
};

/* ---- fetch.c ---- */

/* Starts fetching all partitions that should be read and are not. */
void nt_kafka_fetch_start(struct nt_kafka_reader *reader);
/* Stops fetching a partition; prefetched records are discarded. */
void nt_kafka_fetch_stop(struct nt_kafka_reader *reader, struct nt_kafka_partition *partition);
/* Sets the start of all known partitions to the offsets behind their last records. */
NT_MUST_CHECK int nt_kafka_fetch_from_end(struct nt_kafka_reader *reader);

/* ---- fetch_stall.c ---- */

/*
 * The library may stall without an error: from 2.1 on it takes the metadata of a recreated topic
 * for outdated, until the client ends. Compares our positions with the ends of partitions; true if
 * only a new client can continue.
 */
bool nt_kafka_stall_look(struct nt_kafka_reader *reader,
			 const rd_kafka_topic_partition_list_t *ends);
/*
 * The same where these releases cannot obtain the ends at all, for `without_ends_ns`. Slow brokers
 * look the same: for them the limit grows.
 */
bool nt_kafka_stall_without_ends(struct nt_kafka_reader *reader, uint64_t without_ends_ns);

/* ---- group.c ---- */

/* Copies what it needs. */
NT_MUST_CHECK int nt_kafka_group_new(const struct nt_bus_group *options,
				     struct nt_kafka_group **ret_group);
NT_MUST_CHECK int nt_kafka_group_join(struct nt_kafka_reader *reader, struct nt_bus_error *error);
/* Serves the events of the group; calls assigned and revoked. */
void nt_kafka_group_serve(struct nt_kafka_reader *reader);
/* Gives all partitions back. */
void nt_kafka_group_leave(struct nt_kafka_reader *reader);
void nt_kafka_group_free(struct nt_kafka_group *group);
NT_MUST_CHECK int nt_kafka_group_commit(struct nt_bus_reader *bus,
					const struct nt_bus_position *positions, size_t count);

#endif
