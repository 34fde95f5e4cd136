/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the deciding thread counts, as the rows of /metrics in a picture. */
#ifndef NT_AGGREGATOR_METER_H
#define NT_AGGREGATOR_METER_H

#include <stdint.h>

#include "aggregator/engine.h"
#include "aggregator/ingest.h"
#include "aggregator/outlet.h"
#include "aggregator/snapshot.h"
#include "common/cleanup.h"

/* Where the numbers come from. */
struct nt_meter {
	struct nt_engine *engine;
	const struct nt_ingest_counters *ingest;
	const struct nt_outlet_counters *outlet; /* NULL: none */
	uint64_t bus_missed, bus_corrupt;
	uint64_t sink_errors, save_errors;
};

/* Puts the rows into the snapshot. -ENOMEM. */
NT_MUST_CHECK int nt_meter_read(const struct nt_meter *meter, struct nt_snapshot *snapshot);

#endif
