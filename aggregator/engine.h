/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From messages to incidents: agents' clocks, jobs, frames, detection. Pure: no I/O, no clock, no
 * threads; time is what the messages say. The aggregator and `neutracer analyze` link the same.
 */
#ifndef NT_AGGREGATOR_ENGINE_H
#define NT_AGGREGATOR_ENGINE_H

#include <stdint.h>

#include "aggregator/incident.h"
#include "common/bus.h"
#include "common/cleanup.h"
#include "detect/detect.h"
#include "proto/wire.h"

struct nt_engine_options {
	struct nt_rules rules;
	struct nt_prices prices;
	uint64_t cell_min_ns; /* shortest frame; 0: half a second */
	uint32_t max_jobs; /* living ones; 0: default */
	uint32_t max_ranks; /* of one job; 0: default */
};

#endif
