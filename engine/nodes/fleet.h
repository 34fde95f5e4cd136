/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The fleet: the anomaly scores of all nodes. Vectors become rows, one a node and minute. When a
 * minute is over, medians over the nodes of each job are subtracted and the rows are scored.
 *
 * Time is event time. A minute is closed NT_ANOMALY_ROW_WAIT_NS after its end, when more than half
 * of the nodes that sent vectors meanwhile have passed that time by their own clocks. Clocks that
 * are ahead or behind move their node's samples into another minute and disturb no other node.
 *
 * Pure: no I/O, no clock, no thread. The owner serialises all calls.
 */
#ifndef NT_ENGINE_NODES_FLEET_H
#define NT_ENGINE_NODES_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "detect/anomaly/anomaly.h"
#include "detect/anomaly/refit.h"
#include "engine/nodes/fleet_node.h"

struct nt_fleet_options {
	enum nt_anomaly_method method;
	double false_alarms; /* per node and day; negative: the default */
	size_t max_nodes; /* further ones are counted */
	uint32_t learn_rows; /* 0: the default */
};

enum nt_fleet_change {
	NT_FLEET_ALARM_RAISED,
	NT_FLEET_ALARM_CHANGED, /* another metric leads */
	NT_FLEET_ALARM_ENDED,
};

/* Callbacks; any may be NULL. */
struct nt_fleet_handler {
	/* Whether vectors of this shard are scored here. NULL: all are. */
	bool (*owns)(void *data, uint32_t shard);
	/* The node's alarm at event time real_ns; its fields incident_… are set. */
	void (*alarm)(void *data, struct nt_fleet_node *node, enum nt_fleet_change change,
		      uint64_t real_ns);
	/* The node is learned anew: its fields reason and learning_since_ns state why and when. */
	void (*restarted)(void *data, const struct nt_fleet_node *node);
	void *data;
};

struct nt_fleet;

struct nt_fleet_options nt_fleet_options_default(void);

NT_MUST_CHECK int nt_fleet_new(const struct nt_fleet_options *options,
			       const struct nt_fleet_handler *handler, struct nt_fleet **ret_fleet);
void nt_fleet_free(struct nt_fleet *fleet);
NT_DEFINE_AUTO(nt_fleet, nt_fleet_free)

/* Takes a node vector. It may close a minute, whose rows nt_fleet_turn() scores. -ENOMEM. */
NT_MUST_CHECK int nt_fleet_take(struct nt_fleet *fleet, const struct nt_message *message,
				uint32_t shard);

/* Scores up to `most` rows that wait. -ENOMEM. */
NT_MUST_CHECK int nt_fleet_turn(struct nt_fleet *fleet, size_t most);

/* About every second, with the idle time of the bus: ends alarms of silent nodes, forgets nodes. */
void nt_fleet_wait(struct nt_fleet *fleet, uint64_t waited_ns);

/* Stops scoring the nodes of a shard that has another owner now. Their open alarms go with them. */
void nt_fleet_release_shard(struct nt_fleet *fleet, uint32_t shard);

/* ---- refits ---------------------------------------------------------------------------------- */

/* A refit under way. Solving it touches no node, so it may run on another thread. */
struct nt_fleet_refit {
	char *node; /* owned */
	uint64_t number; /* the node has it, unless it is learned anew meanwhile */
	uint64_t restarts; /* of its scorer, whose charts are others after one */
	struct nt_chart *chart; /* borrowed */
	struct nt_refit *refit; /* owned */
};

/* The next one that is due. 1: begun; 0: none; -ENOMEM. */
NT_MUST_CHECK int nt_fleet_refit_begin(struct nt_fleet *fleet, struct nt_fleet_refit *ret_refit);
/* Takes the result of nt_refit_solve(); a failure keeps the old basis. Releases the refit. */
void nt_fleet_refit_end(struct nt_fleet *fleet, struct nt_fleet_refit *refit, int result);
void nt_fleet_refit_release(struct nt_fleet_refit *refit);

/* A critical incident of a rank names the node's alarm, whose incident is critical from then on. */
void nt_fleet_join(struct nt_fleet *fleet, const char *node);

/* ---- alarms of other aggregators ------------------------------------------------------------- */

/* What an open incident of another aggregator says of a node; parts by share. -ENOMEM. */
NT_MUST_CHECK int nt_fleet_note_alarm(struct nt_fleet *fleet,
				      const struct nt_wire_incident *incident);

/* ---- state ----------------------------------------------------------------------------------- */

enum {
	NT_FLEET_PORTIONS = 64, /* in which the nodes' states are saved */
};

/* The shared part: the alarm threshold, and the nodes with an open alarm. -ENOMEM. */
NT_MUST_CHECK int nt_fleet_save(const struct nt_fleet *fleet, uint32_t shard, struct nt_buf *buf);
/* -EBADMSG: damaged; what was read before remains. */
NT_MUST_CHECK int nt_fleet_load(struct nt_fleet *fleet, uint32_t shard, const void *data,
				size_t size);
/* The nodes of a portion: how many, or -ENOMEM. A node of damaged state is learned anew. */
NT_MUST_CHECK int nt_fleet_save_portion(const struct nt_fleet *fleet, uint32_t shard,
					uint32_t portion, struct nt_buf *buf);
NT_MUST_CHECK int nt_fleet_load_portion(struct nt_fleet *fleet, uint32_t shard, const void *data,
					size_t size);

/* ---- what it holds --------------------------------------------------------------------------- */

/* NULL: unknown. */
const struct nt_fleet_node *nt_fleet_find(const struct nt_fleet *fleet, const char *name);
/* All nodes: follow hh.next. */
const struct nt_fleet_node *nt_fleet_nodes(const struct nt_fleet *fleet);
const struct nt_fleet_metrics *nt_fleet_metrics(const struct nt_fleet *fleet);
const struct nt_fleet_counters *nt_fleet_counters(const struct nt_fleet *fleet);
double nt_fleet_threshold(const struct nt_fleet *fleet);
double nt_fleet_false_alarms(const struct nt_fleet *fleet);
/* Time since the node's last vector, by those of others and idle time. */
uint64_t nt_fleet_silence_ns(const struct nt_fleet *fleet, const struct nt_fleet_node *node);
/* Event time of the newest vector; 0: none. */
uint64_t nt_fleet_lead_ns(const struct nt_fleet *fleet);

#endif
