/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rings into which perf writes records, one per CPU, each in order of time. Read together they are
 * merged by time: what a process does on one CPU after another comes in the order in which it did it.
 */
#ifndef NT_AGENT_DISCOVER_MAP_RING_H
#define NT_AGENT_DISCOVER_MAP_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/discover/map_record.h"

struct nt_map_ring {
	struct perf_event_mmap_page *page; /* shared with the kernel */
	const char *data; /* of the same mapping */
	size_t size; /* of the data, a power of two */
	uint64_t tail; /* read up to here */
	bool was_full; /* when it was looked at last */
	uint64_t head,
		next_ns; /* while it is read: up to where, and the time of the record at tail */
};

/*
 * Gives fn what was there when it began, of at most `max` records: *ret_more is whether some are left.
 * record: NT_MAP_RECORD_BYTES of the caller's, in which records are put together. Returns how many were
 * lost; a ring out of step counts as one, and so does one that is full now and was not before: the
 * kernel tells how many did not fit only before the next that does. *ret_records grows by what fn was
 * given.
 */
uint64_t nt_map_rings_read(struct nt_map_ring *ring, size_t rings, char *record, size_t max,
			   nt_map_fn fn, void *data, unsigned int *ret_records, bool *ret_more);

#endif
