/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The interfaces that the deciding thread writes to: a sink for incidents and a store for its
 * state. The store implements both; tests use their own.
 *
 * All calls come from one thread. Arguments are borrowed for the call. The caller logs and counts
 * errors, and continues.
 */
#ifndef NT_AGGREGATOR_STORE_SINK_H
#define NT_AGGREGATOR_STORE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bus/bus.h"
#include "proto/wire.h"

/* Publishes incidents: all of them, then one flush. */
struct nt_sink_bus_producer {
	int (*incident)(void *data, const struct nt_wire_incident *incident);
	int (*flush)(void *data);
	void *data;
};

/*
 * An incident was opened, changed or resolved: the complete object, pending ones included. After a
 * restart some are repeated with a known version; the sink drops those that are not newer than its
 * own.
 */
struct nt_sink {
	int (*incident)(void *data, const struct nt_wire_incident *incident);
	/*
	 * The rest may be NULL. On a shared bus each aggregator takes the incidents that others
	 * publish, so that it can serve all and take over shards. is_ours: this aggregator owns the
	 * shard, so only delivery states can be new.
	 */
	int (*take)(void *data, const struct nt_wire_incident *incident, bool is_ours);
	/* Publishes pending incidents with their deliveries. Returns their number or an errno. */
	int (*publish)(void *data, const struct nt_sink_bus_producer *bus_producer);
	/* Takes over a shard, including the undelivered messages of its previous owner. */
	int (*adopt)(void *data, uint32_t shard, uint64_t real_ns);
	/* Gives up a shard: no message of it is sent after this returns. */
	int (*release)(void *data, uint32_t shard);
	void *data;
};

/* A named part of the state, opaque to the store. */
struct nt_state_item {
	const char *name; /* "job-" and the job's id, "ingest": unique, at most 255 bytes */
	const void *bytes;
	size_t size;
};

/*
 * The state of a shard at one instant, with the bus positions that it covers. Stored in one
 * transaction; replaces the shard's previous set.
 */
struct nt_state_set {
	uint64_t real_ns; /* event time */
	const struct nt_state_item *item;
	size_t items;
	const struct nt_bus_position *position; /* next record to read, per topic and partition */
	size_t positions;
	uint32_t shard; /* 0: everything; otherwise a partition of the window topic, plus one */
};

struct nt_state_store {
	int (*save)(void *data, const struct nt_state_set *set);
	/*
	 * Calls `loaded` once with the shard's newest set, borrowed for that call, and returns its
	 * result. -ENOENT if none was saved.
	 */
	int (*load)(void *data, uint32_t shard,
		    int (*loaded)(void *loader, const struct nt_state_set *set), void *loader);
	void *data;
};

#endif
