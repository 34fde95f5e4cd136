/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The scores of nodes in the aggregator: one fleet, of which each aggregator scores the nodes of its
 * shards. The deciding thread feeds it, one thread of its own solves refits, and HTTP threads read.
 */
#ifndef NT_AGGREGATOR_GROUP_NODE_DESK_H
#define NT_AGGREGATOR_GROUP_NODE_DESK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "engine/nodes/fleet.h"
#include "engine/nodes/score_history.h"

/* Called on the deciding thread; any but `alarm` may be NULL. */
struct nt_node_desk_handler {
	bool (*owns)(void *data, uint32_t shard);
	void (*alarm)(void *data, const struct nt_fleet *fleet, const struct nt_fleet_node *node,
		      enum nt_fleet_change change, uint64_t real_ns);
	void (*restarted)(void *data, const struct nt_fleet_node *node); /* it is learned anew */
	void *data;
};

/* A metric's part in the last score. */
struct nt_node_desk_part {
	const char *metric, *unit; /* as long as the desk; unit "" : none or unknown */
	bool is_rate; /* the values are per second */
	double share, value, low, high, peers; /* NaN: unknown */
};

struct nt_node_desk_score {
	bool is_scored; /* by this aggregator; otherwise the rest is zero */
	enum nt_fleet_state state;
	enum nt_fleet_reason reason;
	uint64_t learning_since_ns, scored_ns;
	double score, threshold;
	size_t peers; /* nodes of the job that it was compared in; 0: its own past */
	uint64_t incident_id; /* 0: none */
	struct nt_node_desk_part part[NT_ANOMALY_RANKED];
	size_t parts;
};

struct nt_node_desk_point {
	uint64_t real_ns; /* end of the minute */
	double value;
	const char *leading; /* "": no metric leads */
	enum nt_fleet_state state;
};

struct nt_node_desk_stats {
	struct nt_fleet_counters counters;
	uint64_t names_over_cap;
	uint64_t scored, state[NT_FLEET_STATE_END]; /* nodes now */
	uint64_t bytes; /* of all nodes */
	double threshold;
};

struct nt_node_desk;

NT_MUST_CHECK int nt_node_desk_new(const struct nt_fleet_options *options,
				   const struct nt_node_desk_handler *handler,
				   struct nt_node_desk **ret_desk);
void nt_node_desk_free(struct nt_node_desk *desk);
NT_DEFINE_AUTO(nt_node_desk, nt_node_desk_free)

/* ---- the deciding thread --------------------------------------------------------------------- */

/* Takes a node vector of the shard. -ENOMEM. */
NT_MUST_CHECK int nt_node_desk_take(struct nt_node_desk *desk, const struct nt_message *message,
				    uint32_t shard);
/* Scores some of the rows that wait. -ENOMEM. */
NT_MUST_CHECK int nt_node_desk_turn(struct nt_node_desk *desk);
void nt_node_desk_wait(struct nt_node_desk *desk, uint64_t waited_ns);
NT_MUST_CHECK int nt_node_desk_note(struct nt_node_desk *desk,
				    const struct nt_wire_incident *incident);
/* A critical incident of a rank names the node's alarm. */
void nt_node_desk_join(struct nt_node_desk *desk, const char *node);
void nt_node_desk_release_shard(struct nt_node_desk *desk, uint32_t shard);
/* For reading on this thread only: no other one changes what is not a chart. */
const struct nt_fleet *nt_node_desk_fleet(const struct nt_node_desk *desk);

NT_MUST_CHECK int nt_node_desk_save(struct nt_node_desk *desk, uint32_t shard, struct nt_buf *buf);
NT_MUST_CHECK int nt_node_desk_load(struct nt_node_desk *desk, uint32_t shard, const void *data,
				    size_t size);
NT_MUST_CHECK int nt_node_desk_save_portion(struct nt_node_desk *desk, uint32_t shard,
					    uint32_t portion, struct nt_buf *buf);
NT_MUST_CHECK int nt_node_desk_load_portion(struct nt_node_desk *desk, uint32_t shard,
					    const void *data, size_t size);

/* ---- any thread ------------------------------------------------------------------------------ */

/* False: the node is unknown. */
bool nt_node_desk_find(struct nt_node_desk *desk, const char *node,
		       struct nt_node_desk_score *ret_score);
/* The last minutes, oldest first: the caller frees *ret_point. -ENOENT: unknown node. -ENOMEM. */
NT_MUST_CHECK int nt_node_desk_scores(struct nt_node_desk *desk, const char *node,
				      struct nt_node_desk_point **ret_point, size_t *ret_points);
/* Of one metric; -ESRCH: the node has no such metric, or it is not scored. *ret_part: its unit. */
NT_MUST_CHECK int nt_node_desk_series(struct nt_node_desk *desk, const char *node,
				      const char *metric, struct nt_node_desk_part *ret_part,
				      struct nt_node_desk_point **ret_point, size_t *ret_points);
void nt_node_desk_stats(struct nt_node_desk *desk, struct nt_node_desk_stats *ret_stats);

#endif
