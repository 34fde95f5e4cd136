/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the deciding thread counts, as the rows of /metrics in a picture. */
#ifndef NT_AGGREGATOR_METER_H
#define NT_AGGREGATOR_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/engine.h"
#include "aggregator/head.h"
#include "aggregator/ingest.h"
#include "aggregator/outlet.h"
#include "aggregator/snapshot.h"
#include "common/bus.h"
#include "common/cleanup.h"

enum {
	NT_METER_MAX = 96, /* rows */
};

/* What was counted by shards that are no longer here, so that sums never fall. Zeroes: nothing. */
struct nt_meter_sum {
	uint64_t value[NT_METER_MAX];
};

void nt_meter_add(struct nt_meter_sum *sum, struct nt_engine *engine,
		  const struct nt_ingest_counters *ingest);
/* The same of node vectors that no engine reads. */
void nt_meter_add_nodes(struct nt_meter_sum *sum, const struct nt_shortages *shortages,
			const struct nt_ingest_counters *ingest);

/* Where the numbers come from. */
struct nt_meter {
	struct nt_meter_sum shards; /* of those that are here and those that were */
	const struct nt_outlet_counters *outlet; /* NULL: none */
	const struct nt_heads_counters *heads; /* NULL: none */
	uint64_t bus_missed, bus_corrupt, bus_reconnected, bus_left_behind;
	uint64_t sink_errors, save_errors;
	uint64_t shards_now, assigned, revoked, lost;
	uint64_t foreign_incidents, foreign_refused;
	bool lag_known;
	uint64_t lag_records, lag_ns;
	bool bus_well;
	uint64_t bus_errors[NT_BUS_CAUSE_END];
};

/* Puts the rows into the snapshot. -ENOMEM. */
NT_MUST_CHECK int nt_meter_read(const struct nt_meter *meter, struct nt_snapshot *snapshot);

#endif
