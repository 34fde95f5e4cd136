/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * State sets on the bus, on a topic that keeps the last record of each key. A set is cut into chunks;
 * a manifest follows when all of them are there. Successive generations alternate between two places
 * of keys, so that a crash in the middle of one leaves the one before as it was.
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
	NT_STATE_LOG_PLACES = 2,
	NT_STATE_LOG_CHUNK_BYTES = NT_WIRE_MAX_STATE_BYTES,
	NT_STATE_LOG_MAX_CHUNKS = 1024, /* of one set */
	NT_STATE_LOG_MAX_KEY = 64, /* bytes, with the end */
};

/* ---- publishing ----------------------------------------------------------------------------------- */

/* Where records go. The envelope is the port's to fill, but for key and body. */
struct nt_state_log_port {
	int (*publish)(void *data, const struct nt_message *message);
	int (*remove)(void *data, const char *key); /* the bus may forget the key */
	int (*flush)(void *data); /* 0: all is where it survives a crash */
	void *data;
};

/* What is on the bus of a shard. Zeroes: nothing. */
struct nt_state_log_mark {
	uint64_t generation; /* of the newest; the next one's place is (generation + 1) % PLACES */
	uint32_t chunks[NT_STATE_LOG_PLACES]; /* keys in use */
};

/* A publication that has begun. */
struct nt_state_log_draft {
	uint32_t shard, chunks, before; /* before: keys that its place had */
	uint64_t generation, total, hash;
	struct nt_bus_position position; /* in the shard's partition of the window topic */
};

/*
 * The set as the next generation: its chunks; when they are where they survive a crash, the manifest;
 * and when that is too, the mark moves on. So that many shards need two flushes, not two each. After
 * a failure the mark is as it was, and the next attempt writes to the same place. -EFBIG over the cap
 * of chunks, or what the port says.
 */
NT_MUST_CHECK int nt_state_log_begin(const struct nt_state_log_port *port,
				     const struct nt_state_set *set, struct nt_state_log_mark *mark,
				     struct nt_state_log_draft *ret_draft);
NT_MUST_CHECK int nt_state_log_end(const struct nt_state_log_port *port, const char *owner,
				   const struct nt_state_log_draft *draft);
void nt_state_log_commit(const struct nt_state_log_draft *draft, struct nt_state_log_mark *mark);

/* ---- reading -------------------------------------------------------------------------------------- */

/* Monotonic. */
struct nt_state_log_counters {
	uint64_t records; /* of the shard */
	uint64_t refused; /* that say what cannot be */
	uint64_t over_cap; /* chunks beyond the cap */
	uint64_t torn; /* manifests whose chunks are not all there */
};

struct nt_state_log; /* all that the bus has of one shard */

NT_MUST_CHECK int nt_state_log_new(uint32_t shard, struct nt_state_log **ret_state_log);
void nt_state_log_free(struct nt_state_log *state_log);
NT_DEFINE_AUTO(nt_state_log, nt_state_log_free)

/* The record is part of the state of a shard: which one. */
bool nt_state_log_owns(const struct nt_bus_record *record, uint32_t *ret_shard);

/* A record of the topic, of any shard, in the order of the bus; hostile ones too. -ENOMEM. */
NT_MUST_CHECK int nt_state_log_take(struct nt_state_log *state_log,
				    const struct nt_bus_record *record);

/*
 * Calls `loaded` with the newest set that is whole, and returns what it returned; where that is
 * -EBADMSG, the other one gets its chance. -ENOENT where none is. It is the one that stands for the
 * later position; the state is a function of what was read, whoever wrote it.
 */
NT_MUST_CHECK int nt_state_log_load(struct nt_state_log *state_log,
				    int (*loaded)(void *loader, const struct nt_state_set *set),
				    void *loader);

/* After loading: publishing goes on where another one left off. */
struct nt_state_log_mark nt_state_log_mark(const struct nt_state_log *state_log);
const struct nt_state_log_counters *nt_state_log_counters(const struct nt_state_log *state_log);

/* The offset in the partition of the window topic that the set stands for; 0: none. */
uint64_t nt_state_set_offset(const struct nt_state_set *set);

#endif
