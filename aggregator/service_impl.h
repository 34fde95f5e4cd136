/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the service. Private to aggregator/service*.c. */
#ifndef NT_AGGREGATOR_SERVICE_IMPL_H
#define NT_AGGREGATOR_SERVICE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/group/bus_producer.h"
#include "aggregator/group/event_desk.h"
#include "aggregator/group/job_summary.h"
#include "aggregator/group/level_desk.h"
#include "aggregator/group/level_profiles.h"
#include "aggregator/group/node_desk.h"
#include "aggregator/group/node_feed.h"
#include "aggregator/group/profile_desk.h"
#include "aggregator/group/series_desk.h"
#include "aggregator/group/shard.h"
#include "aggregator/self_metrics.h"
#include "aggregator/service.h"

enum {
	NT_SERVICE_MAX_REQUESTS = 16,
	NT_SERVICE_MAX_GROUP = 256, /* bytes of the group's name */
	NT_SERVICE_MAX_DAMAGE = 16, /* damaged segments that are named in the log */
};

struct nt_service {
	struct nt_service_options options;
	struct nt_bus_options bus; /* for all readers and writers */
	struct nt_bus_error bus_error;
	struct nt_board *board;
	struct nt_shard_handler handler;
	struct nt_shard *shard; /* owned shards, by number */
	struct nt_bus_reader *reader;
	struct nt_bus_producer *bus_producer; /* NULL: the bus cannot be written */
	struct nt_level_desk *level_desk;
	struct nt_profile_desk *profile_desk;
	struct nt_level_profiles level_profiles;
	struct nt_node_desk *node_desk;
	/* On a shared bus; NULL otherwise. */
	struct nt_bus_reader *news; /* incidents and job summaries of others */
	struct nt_job_summaries *summaries;
	struct nt_node_feed *nodes;
	struct nt_state_logs *state_logs; /* during one assignment */
	int error; /* of an assignment or of `news`: ends the loop */
	bool closing; /* shutdown: no more saves */

	uint64_t snapshot_ns, sweep_ns, saved_ns, summaries_ns; /* times of the last run */
	uint64_t snapshot_took_ns; /* duration of the last one */
	bool is_snapshot_urgent; /* an incident beyond pending was reported since */
	uint64_t publish_after_ns; /* retry time after a failure of the bus */
	uint64_t adopt_after_ns; /* retry time after a failure of the store */
	uint64_t held_until_ns; /* retry time for others' incidents; 0: none is held */
	uint64_t waited_ns; /* idle time since the last sweep */
	uint64_t sink_errors, save_errors;
	uint64_t restarts_since_ns; /* nodes learned anew that the log names: since, and how many */
	uint32_t restarts_logged;
	uint64_t assigned, revoked, lost, foreign_incidents, foreign_refused;
	struct nt_self_metrics_sum gone; /* counters of former shards */
	struct nt_bus_lag lag;
	bool lag_known;
	uint64_t corrupt; /* corrupt frames of the bus when last reported */
	char damaged[NT_SERVICE_MAX_DAMAGE][NT_BUS_SEGMENT_TEXT]; /* already logged */
	size_t damages;

	atomic_bool stopping, caught_up;
	_Atomic uint64_t turned_ns;
	pthread_mutex_t lock; /* covers requests */
	uint64_t request[NT_SERVICE_MAX_REQUESTS];
	size_t requests;
};

/* ---- service_request.c ----------------------------------------------------------------------- */

/* Compares jobs and levels with those of the last snapshot. */
void nt_service_post_events(struct nt_service *service, const struct nt_snapshot *snapshot);

/* Executes the requests of other threads. */
void nt_service_take_requests(struct nt_service *service);

/* ---- service_nodes.c ------------------------------------------------------------------------- */

void nt_service_join_nodes(void *data, const struct nt_wire_incident *incident);
NT_MUST_CHECK int nt_service_open_nodes(struct nt_service *service);
/* Of nt_shard_handler and nt_node_feed_options; `data` is the service. */
int nt_service_take_vector(void *data, const struct nt_shard *shard,
			   const struct nt_message *message);
int nt_service_take_fed_vector(void *data, const struct nt_message *message, uint32_t partition);
/* Of a shard. The state log finder is that of service_share.c; NULL: no bus state. */
NT_MUST_CHECK int nt_service_load_nodes(struct nt_service *service, struct nt_shard *shard,
					nt_node_state_log_fn find, void *data);
/* Saves the scores of all shards' nodes; all: every portion. Returns the first failure. */
int nt_service_save_nodes(struct nt_service *service, bool all);

/* ---- service_share.c ------------------------------------------------------------------------- */

/* Callbacks of nt_bus_group; `data` is the service. */
void nt_service_assigned(void *data, struct nt_bus_position *position);
void nt_service_revoked(void *data, const struct nt_bus_position *position, bool is_lost);

/* After nt_bus_reader_next(): frees the data collected for an assignment. */
void nt_service_settle(struct nt_service *service);

/* Processes the available records of other aggregators. -ENOMEM. */
NT_MUST_CHECK int nt_service_take_news(struct nt_service *service);

/* Reads others' records to the end, for a limited time. -ETIMEDOUT, -ENOMEM. */
NT_MUST_CHECK int nt_service_catch_up(struct nt_service *service);

/* Retries to adopt outbox messages of assigned shards. -ENOMEM. */
NT_MUST_CHECK int nt_service_adopt(struct nt_service *service);

/* Publishes unpublished incidents, and changed job summaries. */
void nt_service_publish(struct nt_service *service);
void nt_service_publish_summaries(struct nt_service *service);

/* Saves all shards; returns the first failure. */
int nt_service_save(struct nt_service *service);

/* The shard with that number; NULL: not owned. */
struct nt_shard *nt_service_find(struct nt_service *service, uint32_t number);

/* The shard number of a partition of the window topic. */
uint32_t nt_service_number(uint32_t partition);

#endif
