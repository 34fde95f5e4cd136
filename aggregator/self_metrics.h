/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Self metrics: the deciding thread's counters, as rows of /metrics in a snapshot. */
#ifndef NT_AGGREGATOR_SELF_METRICS_H
#define NT_AGGREGATOR_SELF_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/group/bus_producer.h"
#include "aggregator/group/job_summary.h"
#include "aggregator/group/level_desk.h"
#include "aggregator/group/node_desk.h"
#include "aggregator/group/profile_desk.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "engine/engine.h"
#include "engine/ingest.h"
#include "engine/snapshot.h"

enum {
	NT_SELF_METRICS_MAX = 128, /* rows */
};

/* Counters of shards that were given away, so that sums never decrease. Zero-initialised. */
struct nt_self_metrics_sum {
	uint64_t value[NT_SELF_METRICS_MAX];
};

void nt_self_metrics_add(struct nt_self_metrics_sum *sum, struct nt_engine *engine,
			 const struct nt_ingest_counters *ingest);
/* Adds the counters of the node feed. */
void nt_self_metrics_add_nodes(struct nt_self_metrics_sum *sum,
			       const struct nt_shortages *shortages,
			       const struct nt_ingest_counters *ingest);

/* Sources of the metrics. */
struct nt_self_metrics {
	struct nt_self_metrics_sum shards; /* of current and former shards */
	const struct nt_bus_producer_counters *bus_producer; /* NULL: none */
	const struct nt_job_summaries_counters *summaries; /* NULL: none */
	struct nt_level_desk_stats level_desk;
	struct nt_profile_desk_stats profile_desk;
	uint32_t unprofiled; /* ranks at level 2 without profiles */
	struct nt_node_desk_stats node_desk;
	struct nt_job_timelines_stats timelines;
	uint64_t bus_missed, bus_corrupt, bus_reconnected, bus_left_behind;
	uint64_t sink_errors, save_errors;
	uint64_t shards_now, assigned, revoked, lost;
	uint64_t foreign_incidents, foreign_refused;
	bool lag_known;
	uint64_t lag_records, lag_ns;
	bool bus_well;
	uint64_t bus_errors[NT_BUS_CAUSE_END];
};

/* Adds the rows to the snapshot. -ENOMEM. */
NT_MUST_CHECK int nt_self_metrics_read(const struct nt_self_metrics *metrics,
				       struct nt_snapshot *snapshot);

#endif
