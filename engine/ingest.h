/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ingest: decodes and validates bus records. Undecodable or impossible messages are refused with a
 * reason, duplicates are dropped and missing messages are counted.
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
#include "engine/agents/dedup.h"
#include "proto/wire.h"

enum {
	NT_INGEST_MAX_STREAMS = 65536, /* (agent, boot, topic, key); more are not watched */
};

/* Monotonic. */
struct nt_ingest_counters {
	uint64_t records, bytes, messages;
	uint64_t duplicates; /* dropped duplicates */
	struct nt_dedup_counters dedup; /* missing and late messages */
	uint64_t undecodable; /* not a message */
	uint64_t impossible; /* a message with impossible values */
	uint64_t ahead; /* from a clock ahead of ours */
	uint64_t unknown; /* a body type of a newer version */
	uint64_t unwatched; /* messages of streams over the cap */
	uint64_t verified; /* messages with a valid signature of their node */
	uint64_t without_signature, unknown_secret, wrong_signature;
	uint64_t other_node; /* signed by a node, about another one */
};

/* A message from further in the future is refused. */
#define NT_INGEST_AHEAD_NS (60 * NT_SECOND)

struct nt_ingest;

/*
 * Called for every refused record with the reason, a constant. The record is borrowed for the call.
 */
typedef void (*nt_ingest_refused_fn)(void *data, const struct nt_bus_record *record,
				     const char *reason);

NT_MUST_CHECK int nt_ingest_new(nt_ingest_refused_fn refused, void *data,
				struct nt_ingest **ret_ingest);
void nt_ingest_free(struct nt_ingest *ingest);
NT_DEFINE_AUTO(nt_ingest, nt_ingest_free)

/* Sets the signature policy, borrowed. NULL: off, the default. */
void nt_ingest_set_signatures(struct nt_ingest *ingest, const struct nt_signing_policy *policy);

/*
 * Returns 1 and a message, which the caller owns, or 0 if the record is to be skipped. Real times
 * after latest_ns are refused; 0: no limit. `again`: the record was taken before the state was
 * saved and is replayed; nothing is counted. -ENOMEM.
 */
NT_MUST_CHECK int nt_ingest_take(struct nt_ingest *ingest, const struct nt_bus_record *record,
				 uint64_t latest_ns, bool again, struct nt_message **ret_message);

/* The replay has ended. */
void nt_ingest_caught_up(struct nt_ingest *ingest);

/* Drops streams without messages since before_ns, real time. */
void nt_ingest_sweep(struct nt_ingest *ingest, uint64_t before_ns);

const struct nt_ingest_counters *nt_ingest_counters(const struct nt_ingest *ingest);

/* State that must survive a restart. Loading replaces it; -EBADMSG if damaged. */
NT_MUST_CHECK int nt_ingest_save(const struct nt_ingest *ingest, struct nt_buf *buf);
NT_MUST_CHECK int nt_ingest_load(struct nt_ingest *ingest, const void *data, size_t size);

#endif
