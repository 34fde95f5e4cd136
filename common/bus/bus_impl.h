/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The interface between common/bus/bus.c and its implementations. Private to common/bus/. */
#ifndef NT_COMMON_BUS_BUS_IMPL_H
#define NT_COMMON_BUS_BUS_IMPL_H

#include "common/bus/bus.h"

/* The first member of an implementation's own struct. */
struct nt_bus {
	void (*close)(struct nt_bus *bus);
	int (*publish)(struct nt_bus *bus, const struct nt_bus_record *record);
	int (*flush)(struct nt_bus *bus);
	/* Both may be NULL: no further counters; always well. */
	void (*get_stats)(const struct nt_bus *bus, struct nt_bus_stats *stats);
	void (*get_health)(const struct nt_bus *bus, struct nt_bus_health *ret_health);
	/*
	 * For a disk queue (common/bus/bus_disk_queue.h) in front of a bus with asynchronous
	 * delivery; all NULL if publish() delivers at once. Records are numbered from 1 as
	 * publish() accepts them. A record passed to each_unsettled() or undelivered carries its
	 * number in `offset`, and the `partition` it was published with.
	 */
	uint64_t (*settled)(const struct nt_bus *bus); /* all up to it arrived or were given back */
	void (*give_back)(struct nt_bus *bus); /* gives back the undelivered ones; does not block */
	/* The records that may still be acknowledged or given back, oldest first. */
	void (*each_unsettled)(struct nt_bus *bus,
			       void (*fn)(void *data, const struct nt_bus_record *record),
			       void *data);
	struct nt_bus_stats stats;
};

struct nt_bus_reader {
	void (*close)(struct nt_bus_reader *reader);
	int (*seek)(struct nt_bus_reader *reader, const struct nt_bus_position *position);
	int (*seek_time)(struct nt_bus_reader *reader, uint64_t real_ns);
	int (*seek_end)(struct nt_bus_reader *reader);
	int (*next)(struct nt_bus_reader *reader, int timeout_ms, struct nt_bus_record *ret_record);
	int (*fd)(const struct nt_bus_reader *reader);
	/* All below may be NULL: not supported, or nothing to do. */
	size_t (*damage)(const struct nt_bus_reader *reader, struct nt_bus_damage *ret_damage,
			 size_t most);
	void (*get_stats)(const struct nt_bus_reader *reader, struct nt_bus_stats *stats);
	void (*get_health)(const struct nt_bus_reader *reader, struct nt_bus_health *ret_health);
	int (*pause)(struct nt_bus_reader *reader); /* after a change of `paused` */
	int (*lag)(struct nt_bus_reader *reader, uint32_t topics, uint64_t now_real_ns,
		   struct nt_bus_lag *ret_lag);
	int (*commit)(struct nt_bus_reader *reader, const struct nt_bus_position *positions,
		      size_t count);
	uint64_t missed;
	struct nt_bus_stats stats;
	uint32_t paused; /* topics */
	/* Of a group on a bus without groups: this reader owns everything. */
	struct nt_bus_group group;
	bool is_joined, is_assigned;
};

#endif
