/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read positions in the partitions of a reader's topics. */
#ifndef NT_COMMON_BUS_KAFKA_PARTITION_H
#define NT_COMMON_BUS_KAFKA_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bus/bus.h"

enum {
	NT_KAFKA_MAX_PARTITIONS = 4096, /* of one topic */
};

/* What determines the start of reading. */
enum nt_kafka_start {
	NT_KAFKA_FROM_OLDEST,
	NT_KAFKA_FROM_OFFSET, /* next */
	NT_KAFKA_FROM_TIME, /* from_real_ns */
	NT_KAFKA_FROM_EVICTED, /* next has been evicted */
};

struct nt_kafka_partition {
	enum nt_topic topic;
	uint32_t id;
	bool is_known; /* it exists in the cluster */
	bool is_owned; /* assigned to this member of a group; always true without one */
	bool is_running; /* the library fetches it */
	enum nt_kafka_start start;
	uint64_t next; /* offset of the next record, once there was one */
	uint64_t from_real_ns; /* earlier records are skipped, until one is not earlier */
	uint64_t last_real_ns; /* of the last record returned */

	/* ---- fetch_stall.c ---- */
	bool is_looked; /* its end was requested since it was started; the next three are valid */
	uint64_t looked_next; /* our position when that was requested */
	uint64_t stuck_mono_ns; /* since when more records exist but none arrives; 0: they do */
	bool is_short; /* it ended before our position */
	uint64_t end; /* behind its last record when requested; 0: never was */
	uint64_t tried_next, tried_end; /* for which a new client was made */
};

struct nt_kafka_partitions {
	struct nt_kafka_partition *partition;
	uint32_t count;
};

/*
 * Grows the array to at least so many partitions of this topic; new ones start from the given time,
 * if any. -EINVAL over NT_KAFKA_MAX_PARTITIONS, -ENOMEM. May move them all.
 */
NT_MUST_CHECK int nt_kafka_partitions_grow(struct nt_kafka_partitions *partitions,
					   enum nt_topic topic, uint32_t count, bool is_owned,
					   uint64_t from_real_ns);
void nt_kafka_partitions_release(struct nt_kafka_partitions *partitions);

#endif
