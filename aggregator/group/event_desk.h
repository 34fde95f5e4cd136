/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Turns what happens into events for the streams of REST: incidents as they are stored, jobs as
 * snapshots show them, nodes that alarm, and levels. Data are JSON objects of at most NT_EVENT_DATA_BYTES,
 * whose members docs/api/openapi.yaml lists.
 */
#ifndef NT_AGGREGATOR_GROUP_EVENT_DESK_H
#define NT_AGGREGATOR_GROUP_EVENT_DESK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/http/event_ring.h"
#include "control/level_table.h"
#include "engine/snapshot.h"
#include "proto/wire.h"

struct nt_event_desk;

/* The board is borrowed, and gives jobs' ids. */
NT_MUST_CHECK int nt_event_desk_new(struct nt_board *board, struct nt_event_desk **ret_desk);
void nt_event_desk_free(struct nt_event_desk *desk);
NT_DEFINE_AUTO(nt_event_desk, nt_event_desk_free)

/* Borrowed, for the HTTP server. */
struct nt_event_ring *nt_event_desk_ring(const struct nt_event_desk *desk);

/*
 * From any thread. change: "opened", "changed", "resolved" or "noted". An event that cannot be made
 * is counted.
 */
void nt_event_desk_incident(struct nt_event_desk *desk, const struct nt_wire_incident *incident,
			    const char *change);

/* The same, in the form of nt_store_on_stored(); data is the desk. */
void nt_event_desk_stored(void *data, const struct nt_wire_incident *incident, bool is_new);

/* On the deciding thread: compares the jobs with those of the last snapshot. desk may be NULL. */
void nt_event_desk_look(struct nt_event_desk *desk, const struct nt_snapshot *snapshot);

/*
 * On the deciding thread: compares the levels in force with those of the last look. Those that were set
 * earlier than a minute ago, such as at a start, are no event until they end. desk may be NULL.
 */
void nt_event_desk_look_levels(struct nt_event_desk *desk, const struct nt_level_entry *entry,
			       size_t count, const struct nt_snapshot *snapshot,
			       uint64_t now_real_ns);

struct nt_event_desk_stats {
	struct nt_event_ring_stats ring;
	uint64_t failed; /* events that could not be made, for want of memory */
};

void nt_event_desk_stats(struct nt_event_desk *desk, struct nt_event_desk_stats *ret_stats);

#endif
