/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A shard: the jobs of one partition of the window topic, with their state. On a bus that is not
 * shared there is one shard for everything. Used by the deciding thread.
 */
#ifndef NT_AGGREGATOR_GROUP_SHARD_H
#define NT_AGGREGATOR_GROUP_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/group/node_state.h"
#include "aggregator/group/offsets.h"
#include "aggregator/group/state_log.h"
#include "aggregator/store/sink.h"
#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "engine/engine.h"
#include "engine/ingest.h"

enum {
	NT_SHARD_WHOLE = 0, /* otherwise the partition plus one */
};

struct nt_shard;

struct nt_shard_handler {
	void (*incident)(void *data, const struct nt_shard *shard,
			 const struct nt_wire_incident *incident);
	/* A new message, before it is judged. -ENOMEM. NULL: not called. */
	int (*message)(void *data, const struct nt_message *message);
	/* nt_engine_handler.joined; NULL: ignored. */
	void (*joined)(void *data, const struct nt_wire_incident *incident);
	/* A node vector; NULL: ignored. */
	int (*vector)(void *data, const struct nt_shard *shard, const struct nt_message *message);
	nt_ingest_refused_fn refused;
	const struct nt_signing_policy *signatures; /* NULL: off */
	void *data;
};

struct nt_shard {
	uint32_t number;
	const struct nt_engine_options *options; /* borrowed, like the handler */
	const struct nt_shard_handler *handler;
	struct nt_engine *engine;
	struct nt_ingest *ingest;
	struct nt_offsets *offsets;
	struct nt_state_log_mark mark; /* of its state on the bus */
	struct nt_state_log_draft draft; /* of the save in progress */
	bool drafted, saved; /* drafted: draft is valid; saved: and unchanged since */
	bool loaded; /* it continues from a saved state */
	struct nt_node_state node_state; /* what is saved of its nodes' scores */
	bool must_adopt; /* its outbox messages are not adopted yet */
	UT_hash_handle hh; /* the owner's */
};

/* Creates an empty shard. Options and handler are borrowed and outlive it. */
NT_MUST_CHECK int nt_shard_new(uint32_t number, const struct nt_engine_options *options,
			       const struct nt_shard_handler *handler, struct nt_shard **ret_shard);
void nt_shard_free(struct nt_shard *shard);
NT_DEFINE_AUTO(nt_shard, nt_shard_free)

/*
 * Loads the saved state from the store or the bus (either may be NULL), whichever has the later
 * position. An unusable state is logged and ignored. -ENOMEM.
 */
NT_MUST_CHECK int nt_shard_load(struct nt_shard *shard, const struct nt_state_store *states,
				struct nt_state_log *state_log);

/*
 * Saves to the store and begins to publish to the port; either may be NULL. Returns the first
 * failure; `drafted` is true if the publication continues.
 */
NT_MUST_CHECK int nt_shard_save(struct nt_shard *shard, const struct nt_state_store *states,
				const struct nt_state_log_port *port);

/* Processes a record of the shard. Real times after latest_ns are refused. -ENOMEM. */
NT_MUST_CHECK int nt_shard_take(struct nt_shard *shard, const struct nt_bus_record *record,
				uint64_t latest_ns);

#endif
