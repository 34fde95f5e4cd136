/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests to agents: takes an operator's levels, requests detail and stacks for the ranks of new
 * incidents by itself, and keeps what all aggregators have requested, as the control topic has it.
 */
#ifndef NT_AGGREGATOR_GROUP_LEVEL_DESK_H
#define NT_AGGREGATOR_GROUP_LEVEL_DESK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/group/bus_producer.h"
#include "common/base/cleanup.h"
#include "control/control_feed.h"
#include "control/level_table.h"
#include "engine/snapshot.h"

enum {
	NT_LEVEL_DESK_WAITING = 256, /* requests not yet published; further ones: -EBUSY */
	NT_LEVEL_DESK_RANKS = 4, /* of one incident, without the peer beside it */
	NT_LEVEL_DESK_INCIDENTS = 1024, /* the last incidents that were requested for */
	NT_LEVEL_DESK_A_MINUTE = 60, /* incidents that are requested for */
};

struct nt_level_desk_options {
	const char *bus_url; /* copied */
	const struct nt_bus_options *bus;
	/* The level of the ranks of a new incident, and how long it lasts; 0: none. */
	uint32_t auto_level;
	uint64_t auto_ns;
	uint64_t
		retry_ns; /* after the bus took no request; 0: 5 s, as publishing waits for brokers */
};

struct nt_level_desk_stats {
	struct nt_control_feed_stats feed;
	struct nt_level_table_stats table;
	uint64_t expired; /* not published in time: the bus could not be written */
	/* Requests for incidents beyond NT_LEVEL_DESK_WAITING, and incidents beyond the rate. */
	uint64_t over_cap;
	uint64_t in_force_now;
};

struct nt_level_desk;

NT_MUST_CHECK int nt_level_desk_open(const struct nt_level_desk_options *options,
				     struct nt_level_desk **ret_desk);
void nt_level_desk_close(struct nt_level_desk *desk);
NT_DEFINE_AUTO(nt_level_desk, nt_level_desk_close)

/*
 * From any thread: requests a level for ttl_ns from now on; level 0 ends an operator's earlier one.
 * Fills in the entry as it will be published. -EBUSY; -EROFS: the bus cannot be written; -EINVAL.
 */
NT_MUST_CHECK int nt_level_desk_set(struct nt_level_desk *desk,
				    const struct nt_level_target *target, uint32_t level,
				    uint64_t ttl_ns, struct nt_level_entry *ret_entry);

/* The same for a profile of a rank. */
NT_MUST_CHECK int nt_level_desk_profile(struct nt_level_desk *desk,
					const struct nt_level_target *target,
					const struct nt_profile_wish *wish,
					struct nt_level_entry *ret_entry);

/* From any thread: what is in force now; the caller frees *ret_entry. -ENOMEM. */
NT_MUST_CHECK int nt_level_desk_list(struct nt_level_desk *desk, struct nt_level_entry **ret_entry,
				     size_t *ret_count);

/* The deciding thread: reads the topic and publishes. bus_producer: NULL: it cannot be written. */
void nt_level_desk_turn(struct nt_level_desk *desk, struct nt_bus_producer *bus_producer);

/*
 * The deciding thread, with each new snapshot: makes the requests for ranks of firing incidents of
 * own jobs, once for each incident, and for one peer that is in none.
 */
void nt_level_desk_look(struct nt_level_desk *desk, const struct nt_snapshot *snapshot);

void nt_level_desk_stats(struct nt_level_desk *desk, struct nt_level_desk_stats *ret_stats);

#endif
