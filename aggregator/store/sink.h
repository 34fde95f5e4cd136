/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the deciding thread asks of the world around it: somewhere to put incidents, and somewhere
 * to keep its state. The store and the notifier implement these; tests use their own.
 *
 * All calls come from one thread, never from two at a time. What is passed in is borrowed for the
 * call. A negative errno is logged and counted by the caller, which goes on.
 */
#ifndef NT_AGGREGATOR_STORE_SINK_H
#define NT_AGGREGATOR_STORE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bus/bus.h"
#include "proto/wire.h"

/* Where incidents are published: all of them, then the flush. */
struct nt_sink_bus_producer {
	int (*incident)(void *data, const struct nt_wire_incident *incident);
	int (*flush)(void *data);
	void *data;
};

/*
 * An incident was opened, changed or resolved: the whole object as it now stands; `state` says
 * which. Pending ones come too. After a restart some come again, with a version already seen: what
 * is not newer than what the sink has is dropped there.
 */
struct nt_sink {
	int (*incident)(void *data, const struct nt_wire_incident *incident);
	/*
	 * The rest may be NULL. Where several aggregators share the work, each takes what the others
	 * publish, so that it can answer for all and go on where another one stops. is_ours: the
	 * shard's owner is this aggregator, and all that can be new is how messages fared.
	 */
	int (*take)(void *data, const struct nt_wire_incident *incident, bool is_ours);
	/* Hands over, with its deliveries, what the bus does not know yet. How many, or an errno. */
	int (*publish)(void *data, const struct nt_sink_bus_producer *bus_producer);
	/* The shard is ours from now on, with all that its owner before has left undone … */
	int (*adopt)(void *data, uint32_t shard, uint64_t real_ns);
	/* … or no longer: nothing is sent for it any more when this returns. */
	int (*release)(void *data, uint32_t shard);
	void *data;
};

/* The state of one part of the aggregator, opaque to the store. */
struct nt_state_item {
	const char *name; /* "job-" and the job's id, "ingest": unique, at most 255 bytes */
	const void *bytes;
	size_t size;
};

/*
 * The state of everything at one instant, and the bus positions that it stands for. Stored in one
 * transaction: all of it or nothing. It replaces whatever was stored of its shard before.
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
	 * Calls `loaded` once with the shard's newest set, which is borrowed for that call, and returns
	 * what it returned. -ENOENT where none was ever saved.
	 */
	int (*load)(void *data, uint32_t shard,
		    int (*loaded)(void *loader, const struct nt_state_set *set), void *loader);
	void *data;
};

#endif
