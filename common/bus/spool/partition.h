/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The writer's end of one partition: it holds the lock, gathers frames in memory and appends them
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
	size_t max_keys; /* that a compaction knows: records of keys beyond stay, all of them */
	bool sync;
};

struct nt_spool_partition {
	int dirfd, lockfd;
	int fd; /* newest segment, or -1: the next write makes one */
	uint32_t index;
	uint32_t log;
	uint64_t boot;
	const struct nt_spool_limits *limits;
	struct nt_bus_stats *stats;
	/* Of the newest segment: */
	uint64_t base, size, records, newest_real_ns, made_real_ns;
	/* Frames that wait to be written: */
	uint64_t next; /* offset of the next record */
	struct nt_buf waiting;
	uint64_t waiting_records, waiting_payload, waiting_newest_real_ns;
};

/* Writes all, or says how much of it. -ENOSPC for all the ways in which a disk is full. */
NT_MUST_CHECK int nt_spool_write_at(int fd, uint64_t at, const uint8_t *data, size_t size,
				    size_t *ret_written);

/*
 * Takes the partition and makes it sound: a torn tail is cut off. -EWOULDBLOCK where another
 * writer has it. `limits` and `stats` are borrowed for as long as the partition lives.
 */
NT_MUST_CHECK int nt_spool_partition_open(int topic, uint32_t index,
					  const struct nt_spool_limits *limits,
					  struct nt_bus_stats *stats,
					  struct nt_spool_partition **ret_partition);
/* Gives it up without writing what waits. Accepts NULL. */
void nt_spool_partition_free(struct nt_spool_partition *partition);
NT_DEFINE_AUTO(nt_spool_partition, nt_spool_partition_free)

/*
 * Where the newest segment has no more room for this record, or is old, it is written out and
 * closed: 1, and now is the time to see what may go. 0 otherwise. Failures as nt_bus_publish().
 */
NT_MUST_CHECK int nt_spool_partition_make_room(struct nt_spool_partition *partition,
					       const struct nt_bus_record *record,
					       uint64_t now_real_ns);
/* Adds a frame to those that wait; writes when there are many. Failures as nt_bus_publish(). */
NT_MUST_CHECK int nt_spool_partition_add(struct nt_spool_partition *partition,
					 const struct nt_bus_record *record);
NT_MUST_CHECK int nt_spool_partition_flush(struct nt_spool_partition *partition);

/* Closes the newest segment, if it has a record. What waits must have been written. */
void nt_spool_partition_roll(struct nt_spool_partition *partition);
/* The same, and leaves an empty one, which keeps the offset when all others have gone. */
NT_MUST_CHECK int nt_spool_partition_retire(struct nt_spool_partition *partition);

#endif
