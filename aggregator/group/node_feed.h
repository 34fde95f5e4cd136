/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The node feed: reads node vectors if several aggregators share the windows. Each aggregator reads
 * the vectors of all nodes, since its jobs may have ranks on any node. Reading begins at the
 * current end.
 */
#ifndef NT_AGGREGATOR_GROUP_NODE_FEED_H
#define NT_AGGREGATOR_GROUP_NODE_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "common/bus/node_key.h"
#include "engine/agents/shortage.h"
#include "engine/ingest.h"

struct nt_node_feed;

struct nt_node_feed_options {
	const char *bus_url;
	const struct nt_bus_options *bus;
	const struct nt_signing_policy *signatures; /* NULL: off; borrowed */
	/* Each vector with its partition; its error ends the turn. NULL: ignored. */
	int (*vector)(void *data, const struct nt_message *message, uint32_t partition);
	void *data;
	size_t max_nodes; /* nodes with reached limits; further ones are counted */
};

/* Returns the error of the bus, or -ENOMEM. Strings are borrowed for the call. */
NT_MUST_CHECK int nt_node_feed_open(const struct nt_node_feed_options *options,
				    struct nt_node_feed **ret_feed);
void nt_node_feed_close(struct nt_node_feed *feed);

/* Reads up to a thousand available vectors without blocking. -ENOMEM. */
NT_MUST_CHECK int nt_node_feed_turn(struct nt_node_feed *feed);
/* Adds idle time of the bus; drops streams without messages since before_ns, real time. */
void nt_node_feed_sweep(struct nt_node_feed *feed, uint64_t waited_ns, uint64_t before_ns);

const struct nt_shortages *nt_node_feed_shortages(const struct nt_node_feed *feed);
const struct nt_ingest_counters *nt_node_feed_counters(const struct nt_node_feed *feed);

#endif
