/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The state log: state sets on a compacted topic of the bus. A set is split into chunks, followed
 * by a manifest once all are stored. Successive generations alternate between two sets of keys
 * ("slots"), so a crash while writing one leaves the previous one intact.
 */
#ifndef NT_AGGREGATOR_GROUP_STATE_LOG_H
#define NT_AGGREGATOR_GROUP_STATE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/store/sink.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "proto/wire.h"

enum {
	NT_STATE_LOG_SLOTS = 2,
	NT_STATE_LOG_CHUNK_BYTES = NT_WIRE_MAX_STATE_BYTES,
	NT_STATE_LOG_MAX_CHUNKS = 1024, /* of one set */
	NT_STATE_LOG_MAX_KEY = 64, /* bytes including the NUL */
};

/* ---- publishing ------------------------------------------------------------------------------ */

/* Destination of records. The port fills in the envelope, except key and body. */
struct nt_state_log_port {
	int (*publish)(void *data, const struct nt_message *message);
	int (*remove)(void *data, const char *key); /* writes a tombstone for the key */
	int (*flush)(void *data); /* 0: all records are durable */
	void *data;
};

/* The records of a shard on the bus. Zeroes: none. */
struct nt_state_log_mark {
	uint64_t generation; /* of the newest; the next one's slot is (generation + 1) % SLOTS */
	uint32_t chunks[NT_STATE_LOG_SLOTS]; /* keys in use */
};

/* A publication in progress. */
struct nt_state_log_draft {
	uint32_t shard, chunks, before; /* before: keys that its slot used before */
	uint64_t generation, total, hash;
	struct nt_bus_position position; /* in the shard's partition of the window topic */
};

/*
 * Publishes a set as the next generation in three phases. Begin writes the chunks. Once they are
 * durable, end writes the manifest. Once that is durable, commit advances the mark. Many shards
 * thus share two flushes. After a failure the mark is unchanged, and the next attempt writes to the
 * same slot. -EFBIG over the cap of chunks, or the error of the port.
 */
NT_MUST_CHECK int nt_state_log_begin(const struct nt_state_log_port *port,
				     const struct nt_state_set *set, struct nt_state_log_mark *mark,
				     struct nt_state_log_draft *ret_draft);
NT_MUST_CHECK int nt_state_log_end(const struct nt_state_log_port *port, const char *owner,
				   const struct nt_state_log_draft *draft);
void nt_state_log_commit(const struct nt_state_log_draft *draft, struct nt_state_log_mark *mark);

/* ---- reading --------------------------------------------------------------------------------- */

/* Monotonic. */
struct nt_state_log_counters {
	uint64_t records; /* of the shard */
	uint64_t refused; /* invalid ones */
	uint64_t over_cap; /* chunks beyond the cap */
	uint64_t torn; /* manifests with missing chunks */
};

struct nt_state_log; /* all records of one shard */

NT_MUST_CHECK int nt_state_log_new(uint32_t shard, struct nt_state_log **ret_state_log);
void nt_state_log_free(struct nt_state_log *state_log);
NT_DEFINE_AUTO(nt_state_log, nt_state_log_free)

/* Whether the record belongs to the state of a shard, and to which. */
bool nt_state_log_owns(const struct nt_bus_record *record, uint32_t *ret_shard);

/* Processes a record of the topic, of any shard, in bus order. Records are untrusted. -ENOMEM. */
NT_MUST_CHECK int nt_state_log_take(struct nt_state_log *state_log,
				    const struct nt_bus_record *record);

/*
 * Calls `loaded` with the newest complete set and returns its result; on -EBADMSG tries the other
 * set. -ENOENT if there is none. The newest is the one with the later position: the state depends
 * only on the records read, not on its writer.
 */
NT_MUST_CHECK int nt_state_log_load(struct nt_state_log *state_log,
				    int (*loaded)(void *loader, const struct nt_state_set *set),
				    void *loader);

/* After loading: the mark from which publishing continues. */
struct nt_state_log_mark nt_state_log_mark(const struct nt_state_log *state_log);
const struct nt_state_log_counters *nt_state_log_counters(const struct nt_state_log *state_log);

/* The set's offset in its partition of the window topic; 0: none. */
uint64_t nt_state_set_offset(const struct nt_state_set *set);

#endif
