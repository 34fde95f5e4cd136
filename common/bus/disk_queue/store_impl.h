/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the disk queue's store. Private to common/bus/disk_queue/store*.c. */
#ifndef NT_COMMON_BUS_DISK_QUEUE_STORE_IMPL_H
#define NT_COMMON_BUS_DISK_QUEUE_STORE_IMPL_H

#include "common/bus/disk_queue/store.h"
#include "common/bus/spool/partition.h"
#include "common/bus/spool/scan.h"

/* A closed segment. */
struct nt_disk_queue_segment {
	uint64_t base, bytes, records, newest_real_ns;
	uint64_t taken; /* records passed on */
	uint64_t number; /* of the last of them */
	bool is_done; /* all its records were read */
};

struct nt_disk_queue_row {
	int fd; /* of the topic's directory; -1: not created yet */
	struct nt_spool_partition *partition; /* the writing side */
	struct nt_bus_stats stats; /* of the partition */
	struct nt_disk_queue_segment **segment; /* oldest first */
	size_t segments, cap;
};

struct nt_disk_queue_store {
	int fd, lock;
	struct nt_disk_queue_limits limits;
	struct nt_spool_limits spool_limits;
	struct nt_disk_queue_row row[NT_TOPIC_END];
	struct nt_disk_queue_counters sum[NT_DISK_QUEUE_CLASS_END]; /* without stored and left */
	uint64_t closed_bytes;
	/* The segment being read: */
	struct nt_disk_queue_segment *reading; /* NULL: none */
	int reading_fd;
	struct nt_spool_scan scan;
	bool has_head;
	struct nt_bus_record head;
};

/* store_row.c: the counters of the row's class. */
struct nt_disk_queue_counters *nt_disk_queue_sum_of(struct nt_disk_queue_store *store,
						    const struct nt_disk_queue_row *row);
/* Records of a segment that have not been passed on. */
uint64_t nt_disk_queue_left_of(const struct nt_disk_queue_segment *segment);
/* Whether the open segment has records. */
bool nt_disk_queue_has_written(const struct nt_disk_queue_row *row);

/* Opens an existing topic directory; takes ownership of `fd`. */
NT_MUST_CHECK int nt_disk_queue_open_row(struct nt_disk_queue_store *store,
					 struct nt_disk_queue_row *row, int fd);
/* Creates the row of a new topic. */
NT_MUST_CHECK int nt_disk_queue_make_row(struct nt_disk_queue_store *store, enum nt_topic topic);
void nt_disk_queue_close_row(struct nt_disk_queue_row *row);

/* Closes the segment being written. -ENOMEM leaves it open. */
int nt_disk_queue_roll(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row);
/* The oldest settled segment that is not being read; row->segments if none. */
size_t nt_disk_queue_oldest_idle(const struct nt_disk_queue_store *store,
				 const struct nt_disk_queue_row *row);
void nt_disk_queue_remove_segment(struct nt_disk_queue_store *store, struct nt_disk_queue_row *row,
				  size_t at);

#endif
