/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The writing side of one partition: it holds the lock, buffers frames in memory and appends them
 * to the newest segment.
 */
#ifndef NT_COMMON_BUS_SPOOL_PARTITION_H
#define NT_COMMON_BUS_SPOOL_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/bus/spool/frame.h"

struct nt_spool_limits {
	uint64_t max_bytes, max_age_ns, segment_bytes;
	size_t max_keys; /* tracked by a compaction: all records of further keys are kept */
	bool sync;
};

struct nt_spool_partition {
	int dirfd, lockfd;
	int fd; /* newest segment; -1: the next write creates one */
	uint32_t index;
	uint32_t log;
	uint64_t boot;
	const struct nt_spool_limits *limits;
	struct nt_bus_stats *stats;
	/* Of the newest segment: */
	uint64_t base, size, records, newest_real_ns, made_real_ns;
	/* Buffered frames: */
	uint64_t next; /* offset of the next record */
	struct nt_buf waiting;
	uint64_t waiting_records, waiting_payload, waiting_newest_real_ns;
};

/* Writes all, or returns how much was written. -ENOSPC for all kinds of a full disk. */
NT_MUST_CHECK int nt_spool_write_at(int fd, uint64_t at, const uint8_t *data, size_t size,
				    size_t *ret_written);

/*
 * Locks and recovers the partition: a torn tail is truncated. -EWOULDBLOCK if another writer holds
 * it. `limits` and `stats` are borrowed for the life of the partition.
 */
NT_MUST_CHECK int nt_spool_partition_open(int topic, uint32_t index,
					  const struct nt_spool_limits *limits,
					  struct nt_bus_stats *stats,
					  struct nt_spool_partition **ret_partition);
/* Releases it; buffered frames are discarded. Accepts NULL. */
void nt_spool_partition_free(struct nt_spool_partition *partition);
NT_DEFINE_AUTO(nt_spool_partition, nt_spool_partition_free)

/*
 * Writes and closes the newest segment if this record does not fit or the segment is old. 1:
 * closed, and the caller should trim. 0 otherwise. Errors as of nt_bus_publish().
 */
NT_MUST_CHECK int nt_spool_partition_make_room(struct nt_spool_partition *partition,
					       const struct nt_bus_record *record,
					       uint64_t now_real_ns);
/* Buffers a frame; writes once the buffer is large. Errors as of nt_bus_publish(). */
NT_MUST_CHECK int nt_spool_partition_add(struct nt_spool_partition *partition,
					 const struct nt_bus_record *record);
NT_MUST_CHECK int nt_spool_partition_flush(struct nt_spool_partition *partition);

/* Closes the newest segment if it has a record. Nothing may be buffered. */
void nt_spool_partition_roll(struct nt_spool_partition *partition);
/* The same, and creates an empty one, which preserves the offset when all others are removed. */
NT_MUST_CHECK int nt_spool_partition_retire(struct nt_spool_partition *partition);

#endif
