/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a reader is in the partitions of its topics. */
#ifndef NT_COMMON_BUS_KAFKA_PARTITION_H
#define NT_COMMON_BUS_KAFKA_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bus/bus.h"

enum {
	NT_KAFKA_MAX_PARTITIONS = 4096, /* of one topic */
};

/* What decides where reading starts. */
enum nt_kafka_start {
	NT_KAFKA_FROM_OLDEST,
	NT_KAFKA_FROM_OFFSET, /* next */
	NT_KAFKA_FROM_TIME, /* from_real_ns */
	NT_KAFKA_FROM_EVICTED, /* next is not there any more */
};

struct nt_kafka_partition {
	enum nt_topic topic;
	uint32_t id;
	bool is_known; /* the cluster has it */
	bool is_owned; /* by this member of a group; always without one */
	bool is_running; /* the library fetches it */
	enum nt_kafka_start start;
	uint64_t next; /* offset of the next record, once there was one */
	uint64_t from_real_ns; /* what is earlier is passed over, until the first that is not */
	uint64_t last_real_ns; /* of the last record returned */

	/* ---- stall.c ---- */
	bool is_looked; /* the cluster was asked for its end since it was started; the next three hold */
	uint64_t looked_next; /* where we were before that was asked */
	uint64_t stuck_mono_ns; /* since when there is more and none comes; 0: it comes */
	bool is_short; /* it ended before what we have read */
	uint64_t end; /* behind its last record, when that was asked; 0: it never was */
	uint64_t tried_next, tried_end; /* for which a new client was made */
};

struct nt_kafka_partitions {
	struct nt_kafka_partition *partition;
	uint32_t count;
};

/*
 * Makes it at least so many, the new ones of this topic, from the given time on where there is one.
 * -EINVAL over NT_KAFKA_MAX_PARTITIONS, -ENOMEM. May move them all.
 */
NT_MUST_CHECK int nt_kafka_partitions_grow(struct nt_kafka_partitions *partitions,
					   enum nt_topic topic, uint32_t count, bool is_owned,
					   uint64_t from_real_ns);
void nt_kafka_partitions_release(struct nt_kafka_partitions *partitions);

#endif
