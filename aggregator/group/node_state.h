/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state of the scores of a shard's nodes, as sets of their own beside the shard's: one that is
 * shared and saved every time, and portions of the nodes, which are large and saved in turn.
 */
#ifndef NT_AGGREGATOR_GROUP_NODE_STATE_H
#define NT_AGGREGATOR_GROUP_NODE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/group/node_desk.h"
#include "aggregator/group/state_log.h"
#include "aggregator/store/sink.h"
#include "common/base/cleanup.h"

enum {
	NT_NODE_STATE_SETS = NT_FLEET_PORTIONS + 1,
};

/* Of one shard. Zero-initialised: nothing is saved. */
struct nt_node_state {
	uint32_t next; /* portion that is saved next */
	struct nt_state_log_mark mark[NT_NODE_STATE_SETS];
};

/* Where it is saved; states and port may be NULL. */
struct nt_node_state_port {
	const struct nt_state_store *states;
	const struct nt_state_log_port *log;
	const char *owner; /* address of this aggregator, "" */
};

/* Saves the shared set and some portions; `all`: all of them. Returns the first failure. */
NT_MUST_CHECK int nt_node_state_save(struct nt_node_desk *desk, uint32_t shard, bool all,
				     const struct nt_node_state_port *port,
				     struct nt_node_state *state);

/* The log of a set, or NULL: there is none. -ENOMEM. */
typedef int (*nt_node_state_log_fn)(void *data, uint32_t set, struct nt_state_log **ret_log);

/* Loads the newer of store and bus. What cannot be read is logged, and learned anew. -ENOMEM. */
NT_MUST_CHECK int nt_node_state_load(struct nt_node_desk *desk, uint32_t shard,
				     const struct nt_state_store *states, nt_node_state_log_fn find,
				     void *data, struct nt_node_state *state);

#endif
