/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an implementation of the bus gives to common/bus/bus.c. Private to common/bus*.c. */
#ifndef NT_COMMON_BUS_BUS_IMPL_H
#define NT_COMMON_BUS_BUS_IMPL_H

#include "common/bus/bus.h"

/* The first member of an implementation's own struct. */
struct nt_bus {
	void (*close)(struct nt_bus *bus);
	int (*publish)(struct nt_bus *bus, const struct nt_bus_record *record);
	int (*flush)(struct nt_bus *bus);
	/* Both may be NULL: nothing to add, well. */
	void (*get_stats)(const struct nt_bus *bus, struct nt_bus_stats *stats);
	void (*get_health)(const struct nt_bus *bus, struct nt_bus_health *ret_health);
	/*
	 * What a disk queue (common/bus/bus_disk_queue.h) asks of a bus that delivers later; all NULL where what
	 * publish() took has arrived. Records are numbered from 1 as publish() takes them; where one is
	 * handed out, by each_unsettled() or as undelivered, its number is in `offset`, and `partition`
	 * is what it was when it was published.
	 */
	uint64_t (*settled)(const struct nt_bus *bus); /* all up to it arrived or were given back */
	void (*give_back)(struct nt_bus *bus); /* what is undelivered, now; does not wait */
	/* Those that may still arrive or be given back, oldest first. */
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
	/* All below may be NULL: none, nothing to add, well, nothing to do, unable, nothing to do. */
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
	/* Of a group on a bus that knows none: this reader owns all there is. */
	struct nt_bus_group group;
	bool is_joined, is_assigned;
};

#endif
