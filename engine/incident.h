/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a finding of the detection, which knows numbers, to the incident that people read: names,
 * one sentence, and what it costs. The same for live jobs, recordings and traces.
 */
#ifndef NT_ENGINE_INCIDENT_H
#define NT_ENGINE_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/detect.h"
#include "proto/arena.h"
#include "proto/wire.h"

/* Negative: unknown, and then the incident says null. */
struct nt_prices {
	double gpu_hour; /* of `currency` */
	double gpu_watts; /* drawn by a GPU on average, while its power is not measured */
	double co2_kg_per_kwh;
	const char *currency; /* "USD" */
};

/* All unknown. */
struct nt_prices nt_prices_unknown(void);

/* A rank's names; "" or NULL where unknown. They outlive nt_incident_describe(). */
struct nt_detect_rank_names {
	const char *node, *pod, *pod_uid, *container, *gpu;
	bool rank_known;
};

/* How the job and its parts are called. */
struct nt_incident_names {
	const char *job, *namespace, *job_key; /* "" where there is none */
	uint32_t attempt;
	/* False where nothing is known of the rank. NULL: of none. */
	bool (*rank)(void *data, uint32_t rank, struct nt_detect_rank_names *ret_names);
	/* NULL where the index has no name. NULL: no node has. */
	const char *(*node)(void *data, uint32_t index);
	void *data;
};

enum {
	/* So that an incident always fits one message, however many it accuses. */
	NT_INCIDENT_MAX_CULPRITS = 1024,
	NT_INCIDENT_MAX_NUMBERS = 65536, /* peers and ranks of all culprits together */
	NT_INCIDENT_MAX_NAME = 255, /* bytes */
};

/* The incident lies in the arena, whole. -ENOMEM. */
NT_MUST_CHECK int nt_incident_describe(const struct nt_finding *finding,
				       const struct nt_incident_names *names,
				       const struct nt_prices *prices, struct nt_arena *arena,
				       struct nt_wire_incident *ret_incident);

/* A deep copy in the arena. -ENOMEM. */
NT_MUST_CHECK int nt_incident_copy(const struct nt_wire_incident *incident, struct nt_arena *arena,
				   struct nt_wire_incident *ret_copy);

#endif
