/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A disk queue in front of another bus. It stores the records that the bus cannot accept: its
 * brokers are unreachable, its queue is full, or it gives records back. When the bus recovers, the
 * queue is drained behind the live records, at a limited rate.
 *
 * Live records never wait behind old ones: a record older than a few seconds is late for every
 * verdict anyway. The backlog is drained by class and, within a class, oldest first. Gaps in the
 * sequence numbers thus close from the front, and records next to be evicted are sent first.
 * Records are sent unchanged, so readers deduplicate by sequence number and discard by time.
 *
 * When the queue is first used, the unacknowledged records of the other bus are copied to it. So no
 * record is on disk while older ones of its kind are only in memory. A killed process therefore
 * leaves no gap in the sequence numbers, but possibly duplicates.
 */
#ifndef NT_COMMON_BUS_BUS_DISK_QUEUE_H
#define NT_COMMON_BUS_BUS_DISK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bus/bus.h"
#include "common/bus/disk_queue/store.h"

struct nt_disk_queue_options {
	const char *dir;
	struct nt_disk_queue_limits limits;
	uint64_t least_rate; /* minimum drain rate in bytes a second; 0: 16 KiB */
};

struct nt_disk_queue_stats {
	struct nt_disk_queue_counters class[NT_DISK_QUEUE_CLASS_END];
	/* Records that the brokers reject permanently, by class: lost. */
	uint64_t refused[NT_DISK_QUEUE_CLASS_END];
	uint64_t given_back; /* as undelivered by the other bus */
	uint64_t outages; /* transitions of the other bus to unavailable */
	uint64_t bytes; /* on disk now */
	uint64_t is_away; /* 0 or 1: the other bus accepts nothing now */
};

/*
 * Opens the disk queue; creates the directory if missing. -EWOULDBLOCK if another process holds it.
 * Until nt_disk_queue_attach() all records go to disk. *ret_bus is used like any other bus.
 */
NT_MUST_CHECK int nt_disk_queue_open(const struct nt_disk_queue_options *options,
				     struct nt_bus **ret_bus);

/*
 * The `undelivered` callback for the other bus's options; data is *ret_bus of nt_disk_queue_open().
 */
void nt_disk_queue_undelivered(void *data, const struct nt_bus_record *record,
			       enum nt_bus_cause cause);

/* Sets the other bus and takes ownership of it. Called once. */
void nt_disk_queue_attach(struct nt_bus *bus, struct nt_bus *behind);

/*
 * Checks the other bus and drains. Call about ten times a second; does not block. The times are
 * those of the monotonic and the real clock.
 */
void nt_disk_queue_turn(struct nt_bus *bus, uint64_t mono_ns, uint64_t real_ns);

void nt_disk_queue_stats(const struct nt_bus *bus, struct nt_disk_queue_stats *ret_stats);

#endif
