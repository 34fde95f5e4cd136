/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Converts a finding of the detector, which holds numbers, to an incident for users: names, a
 * summary and the cost. Used for live jobs, recordings and traces.
 */
#ifndef NT_ENGINE_INCIDENT_H
#define NT_ENGINE_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "detect/detect.h"
#include "proto/arena.h"
#include "proto/wire.h"

struct nt_cpu_takers;

/* Negative: unknown, reported as null. */
struct nt_prices {
	double gpu_hour; /* of `currency` */
	double gpu_watts; /* mean power of a GPU, while not measured */
	double co2_kg_per_kwh;
	const char *currency; /* "USD" */
};

/* All unknown. */
struct nt_prices nt_prices_unknown(void);

/* A rank's names; "" or NULL if unknown. They outlive nt_incident_describe(). */
struct nt_detect_rank_names {
	const char *node, *pod, *pod_uid, *container, *gpu;
	bool rank_known;
	enum nt_own_source own_source; /* of the last window with own work */
	const struct nt_cpu_takers *cpu_takers; /* or NULL */
};

/* Names of the job and its parts. */
struct nt_incident_names {
	const char *job, *namespace, *job_key; /* "" if none */
	uint32_t attempt;
	/* False if the rank is unknown. NULL: no names. */
	bool (*rank)(void *data, uint32_t rank, struct nt_detect_rank_names *ret_names);
	/* Returns NULL if the index has no name. NULL: no names. */
	const char *(*node)(void *data, uint32_t index);
	void *data;
};

enum {
	/* Limits, so that an incident always fits one message. */
	NT_INCIDENT_MAX_CULPRITS = 1024,
	NT_INCIDENT_MAX_NUMBERS = 65536, /* peers and ranks of all culprits together */
	NT_INCIDENT_MAX_NAME = 255, /* bytes */
};

/* The incident is allocated in the arena, including all it points to. -ENOMEM. */
NT_MUST_CHECK int nt_incident_describe(const struct nt_finding *finding,
				       const struct nt_incident_names *names,
				       const struct nt_prices *prices, struct nt_arena *arena,
				       struct nt_wire_incident *ret_incident);

/* A deep copy in the arena. -ENOMEM. */
NT_MUST_CHECK int nt_incident_copy(const struct nt_wire_incident *incident, struct nt_arena *arena,
				   struct nt_wire_incident *ret_copy);

#endif
