/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A ring of the newest events, each with an id, for streams of Server-Sent Events. The oldest events
 * are removed when the ring is over either of its caps. All functions may be called from any thread;
 * none waits for a reader.
 *
 * An id is "BOOT-NUMBER": 16 hexadecimal digits, random for each ring, and a decimal number from 1.
 * An id of an earlier run of the program is therefore never mistaken for one of this run.
 */
#ifndef NT_COMMON_HTTP_EVENT_RING_H
#define NT_COMMON_HTTP_EVENT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum {
	NT_EVENT_TOPICS = 5,
	NT_EVENT_TOPIC_BYTES = 1024, /* with the NUL; also of a reader's topic */
	NT_EVENT_DATA_BYTES = 32 << 10, /* of one event */
	NT_EVENT_ID_BYTES = 40, /* with the NUL */
};

struct nt_event_ring;

struct nt_event_ring_options {
	size_t max_events; /* 0: 1024 */
	size_t max_bytes; /* 0: 2 MiB */
};

struct nt_event {
	const char *kind; /* "incident" */
	const char *topic[NT_EVENT_TOPICS]; /* a reader of any of these gets it; NULL: none */
	const char *data; /* one line */
};

struct nt_event_ring_stats {
	uint64_t posted; /* since start */
	uint64_t refused; /* too large, or no memory */
	uint64_t evicted; /* removed by a later one */
	uint64_t events, bytes; /* now */
};

NT_MUST_CHECK int nt_event_ring_new(const struct nt_event_ring_options *options,
				    struct nt_event_ring **ret_ring);
void nt_event_ring_free(struct nt_event_ring *ring);
NT_DEFINE_AUTO(nt_event_ring, nt_event_ring_free)

/* Copies the event. -EINVAL: a line break; -EMSGSIZE; -ENOMEM. Failures are counted. */
int nt_event_ring_post(struct nt_event_ring *ring, const struct nt_event *event);

/* The number of the last event; 0 before the first. */
uint64_t nt_event_ring_last(struct nt_event_ring *ring);

void nt_event_ring_id(const struct nt_event_ring *ring, uint64_t number,
		      char ret_id[NT_EVENT_ID_BYTES]);

/* The number of an id. -EINVAL: not an id; -ESTALE: of another ring, or later events are gone. */
NT_MUST_CHECK int nt_event_ring_find(struct nt_event_ring *ring, const char *id,
				     uint64_t *ret_number);

/*
 * Appends the text of events after *number, in the form of Server-Sent Events, and advances *number
 * over them. Ends after about max_bytes. topic NULL: all events. -ESTALE: the event after *number is
 * gone; -ENOMEM.
 */
NT_MUST_CHECK int nt_event_ring_read(struct nt_event_ring *ring, const char *topic,
				     size_t max_bytes, uint64_t *number, struct nt_buf *out);

void nt_event_ring_stats(struct nt_event_ring *ring, struct nt_event_ring_stats *ret_stats);

#endif
