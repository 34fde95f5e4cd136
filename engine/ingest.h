/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Bus records to messages that can be relied on. What is no message, or says what cannot be, is
 * turned down with a reason; what was here already is dropped; what is missing is counted.
 */
#ifndef NT_ENGINE_INGEST_H
#define NT_ENGINE_INGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "common/bus/node_key.h"
#include "common/system/clock.h"
#include "engine/dedup.h"
#include "proto/wire.h"

enum {
	NT_INGEST_MAX_STREAMS = 65536, /* (agent, boot, topic, key): more are taken, not watched */
};

/* Monotonic. */
struct nt_ingest_counters {
	uint64_t records, bytes, messages;
	uint64_t duplicates; /* seen before, and dropped */
	struct nt_dedup_counters sequence; /* what is missing, and what came after all */
	uint64_t undecodable; /* no message at all */
	uint64_t impossible; /* a message that says what cannot be */
	uint64_t ahead; /* from a clock that is ahead of ours */
	uint64_t unknown; /* a body that this version does not know: a newer agent */
	uint64_t unwatched; /* over the cap of streams */
	uint64_t verified; /* messages with the signature of their node */
	uint64_t without_signature, unknown_secret, wrong_signature;
	uint64_t other_node; /* signed by a node that tells of another */
};

/* A message from further in the future is turned down. */
#define NT_INGEST_AHEAD_NS (60 * NT_SECOND)

struct nt_ingest;

/*
 * Told of every record that is turned down, with the reason: a constant. The record is borrowed for
 * the call.
 */
typedef void (*nt_ingest_refused_fn)(void *data, const struct nt_bus_record *record,
				     const char *reason);

NT_MUST_CHECK int nt_ingest_new(nt_ingest_refused_fn refused, void *data,
				struct nt_ingest **ret_ingest);
void nt_ingest_free(struct nt_ingest *ingest);
NT_DEFINE_AUTO(nt_ingest, nt_ingest_free)

/* What signatures are worth; borrowed. NULL: off, as at first. */
void nt_ingest_set_signatures(struct nt_ingest *ingest, const struct nt_signing_policy *policy);

/*
 * 1 and a message, which the caller owns, or 0 where the record is to be passed over. Real times
 * after latest_ns are turned down; 0: there is no limit. With `again` the record was taken before
 * the state was saved, and is read once more: nothing is counted. -ENOMEM.
 */
NT_MUST_CHECK int nt_ingest_take(struct nt_ingest *ingest, const struct nt_bus_record *record,
				 uint64_t latest_ns, bool again, struct nt_message **ret_message);

/* The second reading is over. */
void nt_ingest_caught_up(struct nt_ingest *ingest);

/* Forgets streams of which nothing came since before_ns, real time. */
void nt_ingest_sweep(struct nt_ingest *ingest, uint64_t before_ns);

const struct nt_ingest_counters *nt_ingest_counters(const struct nt_ingest *ingest);

/* All that must survive a restart. Loading replaces it: -EBADMSG for what is damaged. */
NT_MUST_CHECK int nt_ingest_save(const struct nt_ingest *ingest, struct nt_buf *buf);
NT_MUST_CHECK int nt_ingest_load(struct nt_ingest *ingest, const void *data, size_t size);

#endif
