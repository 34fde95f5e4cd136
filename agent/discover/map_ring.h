/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Perf ring buffers, one per CPU, each ordered by time. A read merges them by time, so that the
 * records of a process that changes CPU stay in order.
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
	bool was_full; /* at the last read */
	uint64_t head, next_ns; /* while reading: the end, and the time of the record at tail */
};

/*
 * Passes to fn at most `max` of the records present at the start; *ret_more: some are left. record:
 * a buffer of NT_MAP_RECORD_BYTES for records that wrap.
 *
 * Returns the number of lost records. A ring out of step counts as one. So does a ring that has
 * become full: the kernel reports its losses only with the next record that fits. *ret_records
 * grows by the number of records passed.
 */
uint64_t nt_map_rings_read(struct nt_map_ring *ring, size_t rings, char *record, size_t max,
			   nt_map_fn fn, void *data, unsigned int *ret_records, bool *ret_more);

#endif
