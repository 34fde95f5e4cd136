/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the service; nobody else includes it. */
#ifndef NT_AGGREGATOR_SERVICE_IMPL_H
#define NT_AGGREGATOR_SERVICE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aggregator/group/bus_producer.h"
#include "aggregator/group/job_summary.h"
#include "aggregator/group/node_feed.h"
#include "aggregator/group/shard.h"
#include "aggregator/self_metrics.h"
#include "aggregator/service.h"

enum {
	NT_SERVICE_MAX_REQUESTS = 16,
	NT_SERVICE_MAX_GROUP = 256, /* bytes of the name of the group */
	NT_SERVICE_MAX_DAMAGE = 16, /* damaged segments that are named in the log */
};

struct nt_service {
	struct nt_service_options options;
	struct nt_bus_options bus; /* for all that is opened on it */
	struct nt_bus_error bus_error;
	struct nt_board *board;
	struct nt_shard_handler handler;
	struct nt_shard *shard; /* those that are ours, by number */
	struct nt_bus_reader *reader;
	struct nt_bus_producer *bus_producer; /* NULL: the bus cannot be written */
	/* Where the bus is shared out; NULL otherwise. */
	struct nt_bus_reader *news; /* incidents and heads of others */
	struct nt_job_summaries *heads;
	struct nt_node_feed *nodes;
	struct nt_state_logs *state_logs; /* during one assignment */
	int error; /* of an assignment, or of news: ends the loop */
	bool closing; /* nothing is saved any more */

	uint64_t picture_ns, sweep_ns, saved_ns, heads_ns; /* when it was done last */
	uint64_t picture_took_ns; /* the last one */
	bool must_draw; /* an incident was told since, which is not pending */
	uint64_t publish_after_ns; /* the bus did not take it */
	uint64_t adopt_after_ns; /* the store did not take over messages */
	uint64_t held_until_ns; /* the store did not take an incident of another; 0: it did */
	uint64_t waited_ns; /* since the last sweep, with nothing to read */
	uint64_t sink_errors, save_errors;
	uint64_t assigned, revoked, lost, foreign_incidents, foreign_refused;
	struct nt_self_metrics_sum gone; /* counted by shards that are no longer here */
	struct nt_bus_lag lag;
	bool lag_known;
	uint64_t corrupt; /* frames of the bus, when we last looked where */
	char damaged[NT_SERVICE_MAX_DAMAGE][NT_BUS_SEGMENT_TEXT]; /* has been said */
	size_t damages;

	atomic_bool stopping, caught_up;
	_Atomic uint64_t turned_ns;
	pthread_mutex_t lock; /* covers requests */
	uint64_t request[NT_SERVICE_MAX_REQUESTS];
	size_t requests;
};

/* ---- service_request.c ---------------------------------------------------------------------------- */

/* Carries out what other threads have requested. */
void nt_service_take_requests(struct nt_service *service);

/* ---- service_share.c ------------------------------------------------------------------------------ */

/* nt_bus_group's: `data` is the service. */
void nt_service_assigned(void *data, struct nt_bus_position *position);
void nt_service_revoked(void *data, const struct nt_bus_position *position, bool is_lost);

/* After nt_bus_reader_next(): what was collected for an assignment is let go. */
void nt_service_settle(struct nt_service *service);

/* What others have published, as far as it is there. -ENOMEM. */
NT_MUST_CHECK int nt_service_take_news(struct nt_service *service);

/* To the end of what there is, for a limited time. -ETIMEDOUT, -ENOMEM. */
NT_MUST_CHECK int nt_service_catch_up(struct nt_service *service);

/* Messages of shards that the store could not take over when they came. -ENOMEM. */
NT_MUST_CHECK int nt_service_adopt(struct nt_service *service);

/* What the bus does not know yet of our incidents, and of our jobs. */
void nt_service_publish(struct nt_service *service);
void nt_service_publish_heads(struct nt_service *service);

/* All shards; the first failure. */
int nt_service_save(struct nt_service *service);

/* The shard of a record; NULL: it is not ours (any more). */
struct nt_shard *nt_service_find(struct nt_service *service, uint32_t number);

/* Of a partition of the window topic. */
uint32_t nt_service_number(uint32_t partition);

#endif
