/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One node of the fleet: from its vectors to one row of metrics a minute. Every vector is untrusted.
 *
 * A row is complete when a vector of a later minute arrives, by the node's own clock; the fleet
 * decides how far that clock may be off (fleet.h).
 */
#ifndef NT_ENGINE_NODES_FLEET_NODE_H
#define NT_ENGINE_NODES_FLEET_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/table.h"
#include "detect/anomaly/anomaly.h"
#include "detect/anomaly/minute.h"
#include "engine/nodes/fleet_metric.h"
#include "engine/nodes/score_history.h"
#include "proto/wire.h"

enum {
	NT_FLEET_TOLD = 4, /* metrics that an incident names */
	NT_FLEET_JOBS = 8, /* of one node; further ones are counted */
	NT_FLEET_SYSTEM_BYTES = 65, /* a boot id or kernel, with the NUL; longer ones are cut */
};

/* Why a node is learned from the beginning. */
enum nt_fleet_reason {
	NT_FLEET_NEW, /* its first vector */
	NT_FLEET_REBOOTED,
	NT_FLEET_OTHER_KERNEL,
	NT_FLEET_STATE_LOST, /* its saved state was damaged */
	NT_FLEET_REASON_END,
};

enum nt_fleet_state {
	NT_FLEET_LEARNING,
	NT_FLEET_QUIET,
	NT_FLEET_ALARM,
	NT_FLEET_STATE_END,
};

/* A metric's part in the last score, as struct nt_anomaly_metric. */
struct nt_fleet_part {
	uint8_t metric; /* its number */
	double share, value, low, high, peers;
};

struct nt_fleet_job {
	char *key; /* owned */
	uint64_t hash;
};

struct nt_fleet_node {
	char *name; /* owned */
	uint32_t shard; /* that its vectors belong to */
	/* Of the newest vector. seq is 0 before the first. */
	uint64_t run, seq, boot_ns, real_ns;
	uint32_t late; /* vectors in a row that were older than the newest */
	char boot_id[NT_FLEET_SYSTEM_BYTES], kernel[NT_FLEET_SYSTEM_BYTES]; /* "": unknown */
	struct nt_fleet_job job[NT_FLEET_JOBS];
	size_t jobs;
	/* Its metrics: number of each slot, and slot of each number or NT_FLEET_NO_METRIC. */
	size_t metrics;
	uint8_t number[NT_ANOMALY_METRICS_MAX], slot[NT_FLEET_METRICS];
	struct nt_minute minute;
	double row[NT_ANOMALY_METRICS_MAX]; /* by slot */
	uint64_t row_minute; /* 0: no row waits for its peers */
	uint64_t passed; /* the minutes before this one are over, since a while */
	uint64_t round; /* the fleet's, in which it was counted */
	bool has_passed; /* the end of that round's minute */
	/* Of its scores; NULL: another aggregator scores it, or it has no row yet. */
	struct nt_anomaly_node *scorer;
	uint64_t scored_ns; /* end of the last scored minute; 0: none */
	uint64_t learning_since_ns;
	enum nt_fleet_reason reason;
	struct nt_anomaly_score score;
	/* Of its peers, by slot: their largest spread of the last rows, and what it usually is. */
	float spread[NT_ANOMALY_METRICS_MAX], usual_spread[NT_ANOMALY_METRICS_MAX];
	uint32_t spread_rows; /* that it was taken from */
	size_t peers; /* nodes of the job that it was compared in; 0: its own past */
	uint8_t peer_job; /* that job's index */
	struct nt_fleet_part part[NT_ANOMALY_RANKED];
	size_t parts;
	struct nt_score_history history;
	/* Its open incident; 0: none. */
	uint64_t incident_id, incident_since_ns, incident_version, incident_told_ns;
	struct nt_fleet_part incident_part[NT_FLEET_TOLD]; /* as they were told last */
	size_t incident_parts;
	bool is_critical; /* a critical incident of a rank names this alarm */
	bool is_noted; /* another aggregator has an open incident of it, with these parts */
	/* Rows in which the alarm may be missing: the scorer's state is older than the incident. */
	uint8_t rows_of_grace;
	uint64_t refit; /* number of the one under way; 0: none */
	UT_hash_handle hh; /* the fleet's, by name */
};

/* Monotonic; of the whole fleet. */
struct nt_fleet_counters {
	uint64_t vectors;
	uint64_t late; /* vectors older than an earlier one: ignored */
	uint64_t left_out; /* values of metrics over a cap */
	uint64_t jobs_over_cap;
	uint64_t rows, rows_lost; /* lost: not scored before the next one was complete */
	uint64_t gaps, resets; /* of counters */
	uint64_t restarts; /* of nodes, which are learned anew */
	uint64_t nodes_over_cap, evicted;
	uint64_t alarms, refits, refits_failed;
	uint64_t states_refused;
};

/* -ENOMEM. */
NT_MUST_CHECK int nt_fleet_node_new(const char *name, struct nt_fleet_node **ret_node);
void nt_fleet_node_free(struct nt_fleet_node *node);
NT_DEFINE_AUTO(nt_fleet_node, nt_fleet_node_free)

/*
 * Takes a vector into the minute that is open. It is in one of the two minutes from `first` on,
 * whatever the node's clock says. ret_restarted: the node was booted anew, or with another kernel,
 * and is learned anew. A restart of its agent alone costs one rate of each counter. -ENOMEM.
 */
NT_MUST_CHECK int nt_fleet_node_take(struct nt_fleet_node *node, struct nt_fleet_metrics *metrics,
				     const struct nt_message *message, uint64_t first,
				     struct nt_fleet_counters *counters, bool *ret_restarted);

/* Completes the open minute's row if the minute is not after `last`. */
void nt_fleet_node_close(struct nt_fleet_node *node, uint64_t last,
			 struct nt_fleet_counters *counters);

/* Forgets what was learned. */
void nt_fleet_node_restart(struct nt_fleet_node *node, enum nt_fleet_reason reason,
			   uint64_t real_ns);

enum nt_fleet_state nt_fleet_node_state(const struct nt_fleet_node *node);
/* What the node keeps in memory. */
size_t nt_fleet_node_bytes(const struct nt_fleet_node *node);

/* "learning", "quiet", "alarm". */
const char *nt_fleet_state_name(enum nt_fleet_state state);
/* "new", "rebooted", "other-kernel", "state-lost". */
const char *nt_fleet_reason_name(enum nt_fleet_reason reason);

#endif
