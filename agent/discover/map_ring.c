/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/map_ring.h"

#include <errno.h>
#include <string.h>

#define NOTHING_LEFT UINT64_MAX

enum {
	FULL_BYTES = 4096 + 256, /* the longest record; with less room the ring counts as full */
};

/* Copies len bytes from a position of the ring, which may wrap around. */
static void copy_out(const struct nt_map_ring *ring, uint64_t at, char *to, size_t len)
{
	size_t offset = (size_t)(at % ring->size);
	size_t first = len < ring->size - offset ? len : ring->size - offset;

	memcpy(to, ring->data + offset, first);
	memcpy(to + first, ring->data, len - first);
}

/* The size of the record at the tail; 0: the ring is out of step. */
static size_t size_at_tail(const struct nt_map_ring *ring)
{
	struct perf_event_header header;

	if (ring->head - ring->tail < sizeof(header))
		return 0;
	copy_out(ring, ring->tail, (char *)&header, sizeof(header));
	return header.size >= sizeof(header) + NT_MAP_TRAILER_BYTES &&
			       header.size <= ring->head - ring->tail
		       ? header.size
		       : 0;
}

/* The time of the record at the tail. Returns 1 if the rest of the ring is lost. */
static uint64_t look_ahead(struct nt_map_ring *ring)
{
	char trailer[NT_MAP_TRAILER_BYTES];
	size_t size;

	ring->next_ns = NOTHING_LEFT;
	if (ring->tail == ring->head)
		return 0;
	size = size_at_tail(ring);
	if (!size) {
		ring->tail = ring->head;
		return 1;
	}
	copy_out(ring, ring->tail + size - sizeof(trailer), trailer, sizeof(trailer));
	ring->next_ns = nt_map_time(trailer);
	if (ring->next_ns == NOTHING_LEFT)
		ring->next_ns--;
	return 0;
}

static uint64_t begin(struct nt_map_ring *ring)
{
	const bool was_full = ring->was_full;

	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	ring->was_full = ring->head - ring->tail > ring->size - FULL_BYTES;
	return (ring->was_full && !was_full) + look_ahead(ring);
}

static struct nt_map_ring *oldest(struct nt_map_ring *ring, size_t rings)
{
	struct nt_map_ring *found = NULL;

	for (size_t i = 0; i < rings; i++)
		if (ring[i].next_ns != NOTHING_LEFT && (!found || ring[i].next_ns < found->next_ns))
			found = &ring[i];
	return found;
}

static uint64_t take(struct nt_map_ring *ring, char *bytes, nt_map_fn fn, void *data,
		     unsigned int *ret_records)
{
	size_t size = size_at_tail(ring);
	struct nt_map_record record;
	uint64_t lost = 0;

	copy_out(ring, ring->tail, bytes, size);
	ring->tail += size;
	switch (nt_map_parse(bytes, size, &record, &lost)) {
	case 0:
		++*ret_records;
		fn(data, &record);
		return 0;
	case NT_MAP_LOST:
		return lost;
	case -EBADMSG:
		return 1;
	default:
		return 0;
	}
}

uint64_t nt_map_rings_read(struct nt_map_ring *ring, size_t rings, char *record, size_t max,
			   nt_map_fn fn, void *data, unsigned int *ret_records, bool *ret_more)
{
	struct nt_map_ring *next;
	uint64_t lost = 0;

	for (size_t i = 0; i < rings; i++)
		lost += begin(&ring[i]);
	for (size_t taken = 0; (next = oldest(ring, rings)) && taken < max; taken++) {
		lost += take(next, record, fn, data, ret_records);
		lost += look_ahead(next);
	}
	for (size_t i = 0; i < rings; i++)
		__atomic_store_n(&ring[i].page->data_tail, ring[i].tail, __ATOMIC_RELEASE);
	*ret_more = next != NULL;
	return lost;
}
