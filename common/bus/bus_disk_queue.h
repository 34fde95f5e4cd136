/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A bus in front of another one, with a disk queue on disk for what that one cannot take: while its
 * brokers are away, its queue is full, or it gives records back. On its return the disk queue is drained
 * behind the live records, at a limited rate.
 *
 * Live records never wait behind old ones: a verdict needs what is new, and what is older than a few
 * seconds is late for every verdict anyway. The backlog goes by class, and within a class oldest
 * first: gaps in the sequence numbers close from their front, and what the caps would evict next
 * goes out first. Records leave as they came, so that whoever reads knows by their sequence
 * numbers what it has seen, and by their times what is too late.
 *
 * No record is on disk alone while older ones of its kind are only in memory: what the other bus has
 * not got rid of when the disk queue is first used is copied there too. A process that is killed
 * therefore leaves no hole in the numbers, but may leave some twice.
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
	uint64_t least_rate; /* bytes a second that are drained at least; 0: 16 KiB */
};

struct nt_disk_queue_stats {
	struct nt_disk_queue_counters class[NT_DISK_QUEUE_CLASS_END];
	/* Records that the brokers would never take, by class: lost. */
	uint64_t refused[NT_DISK_QUEUE_CLASS_END];
	uint64_t given_back; /* by the other bus, as not delivered */
	uint64_t outages; /* times at which the other bus went away */
	uint64_t bytes; /* on disk now */
	uint64_t is_away; /* 0, 1: the other bus takes nothing now */
};

/*
 * Opens the disk queue; the directory is made where it is missing. -EWOULDBLOCK where another process
 * has it. Until nt_disk_queue_attach() everything is kept on disk. *ret_bus is a bus as any other.
 */
NT_MUST_CHECK int nt_disk_queue_open(const struct nt_disk_queue_options *options,
				     struct nt_bus **ret_bus);

/* `undelivered` of the options of the bus behind it, with *ret_bus of nt_disk_queue_open() as data. */
void nt_disk_queue_undelivered(void *data, const struct nt_bus_record *record,
			       enum nt_bus_cause cause);

/* The bus behind it, which it owns from here on. Once. */
void nt_disk_queue_attach(struct nt_bus *bus, struct nt_bus *behind);

/*
 * Ten times a second or so: looks how the bus behind is, and drains. Does not wait. Times are those of
 * the monotonic and the real clock.
 */
void nt_disk_queue_turn(struct nt_bus *bus, uint64_t mono_ns, uint64_t real_ns);

void nt_disk_queue_stats(const struct nt_bus *bus, struct nt_disk_queue_stats *ret_stats);

#endif
