/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to engine/nodes/fleet*.c. */
#ifndef NT_ENGINE_NODES_FLEET_IMPL_H
#define NT_ENGINE_NODES_FLEET_IMPL_H

#include "detect/anomaly/budget.h"
#include "engine/nodes/fleet.h"

/* The nodes of a job in one minute. */
struct nt_fleet_group {
	char *key; /* owned: jobs of nodes change while a round is under way */
	size_t nodes;
	struct nt_fleet_node **member; /* owned; NULL: too few for a comparison */
	size_t members;
	/* By number of the metric, owned; NULL: too few nodes. Spread: median distance from it. */
	double *median, *spread;
	UT_hash_handle hh;
};

/* The rows of a minute that are to be scored. */
struct nt_fleet_round {
	struct nt_fleet_node **node; /* owned; NULL: no round is under way */
	size_t nodes, at;
	uint64_t minute; /* the last one that it closes */
	struct nt_fleet_group *group; /* uthash by key, owned */
	size_t groups;
	double *scratch; /* owned */
};

struct nt_fleet {
	struct nt_fleet_options options;
	struct nt_anomaly_options anomaly;
	struct nt_fleet_handler handler;
	struct nt_fleet_counters counters;
	struct nt_fleet_metrics metrics;
	struct nt_alarm_budget budget;
	struct nt_fleet_node *node; /* uthash by name, owned */
	struct nt_fleet_node *refit_at; /* where the search for a refit goes on; NULL: first */
	uint64_t refits; /* begun */
	struct nt_fleet_round round;
	uint64_t done; /* the last closed minute; 0: none */
	uint64_t rounds; /* since the start */
	size_t active, passers; /* nodes with vectors since the last round, and past its end */
	uint64_t lead_ns, quiet_ns;
	uint64_t full_ns; /* by these: at the cap, no node is looked for before that gives way */
};

/* Closes the minutes up to `last`, whose rows then wait to be scored. -ENOMEM. */
NT_MUST_CHECK int nt_fleet_round_begin(struct nt_fleet *fleet, uint64_t last);
void nt_fleet_round_release(struct nt_fleet_round *round);

/* Sets the node's alarm state after a scored row, or at its end. */
void nt_fleet_alarm_look(struct nt_fleet *fleet, struct nt_fleet_node *node);
void nt_fleet_alarm_end(struct nt_fleet *fleet, struct nt_fleet_node *node, uint64_t real_ns);

/* Counts and reports a node that was learned before and is learned anew. */
void nt_fleet_note_restart(struct nt_fleet *fleet, const struct nt_fleet_node *node);

/* -ENOMEM; *ret_node is NULL at the cap. */
NT_MUST_CHECK int nt_fleet_add(struct nt_fleet *fleet, const char *name,
			       struct nt_fleet_node **ret_node);

#endif
