/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state that must survive a restart of the aggregator, as the items of one set. */
#ifndef NT_AGGREGATOR_GROUP_STATE_H
#define NT_AGGREGATOR_GROUP_STATE_H

#include "aggregator/group/offsets.h"
#include "aggregator/store/sink.h"
#include "common/base/cleanup.h"
#include "engine/engine.h"
#include "engine/ingest.h"

NT_MUST_CHECK int nt_state_save(const struct nt_state_store *states, uint32_t shard,
				struct nt_engine *engine, const struct nt_ingest *ingest,
				const struct nt_offsets *offsets);

/*
 * Loads into a new engine. -EBADMSG for a set that is damaged or of another version: the three
 * objects can then only be freed.
 */
NT_MUST_CHECK int nt_state_take(const struct nt_state_set *set, struct nt_engine *engine,
				struct nt_ingest *ingest, struct nt_offsets *offsets);

#endif
